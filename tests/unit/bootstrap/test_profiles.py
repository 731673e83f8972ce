"""Profile files."""

from __future__ import annotations

from pathlib import Path

import pytest

from seaway.bootstrap.policies import policy_of
from seaway.domain.errors import RejectedError
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.profile import Profile

OPTIONS = PolicyOptions(seed=5)


def written(folder: Path, text: str) -> str:
    """Write a profile file and return its path."""
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_names_are_policies_of_the_list() -> None:
    """Anything that is not a path of a TOML file is a policy's name."""
    assert policy_of("bestfit", OPTIONS).name == "bestfit"
    with pytest.raises(RejectedError, match="unknown policy 'mine'"):
        policy_of("mine", OPTIONS)


def test_file_says_which_plugins_weigh_how_much(tmp_path: Path) -> None:
    """Plugins are in the order of the file, with their weights and settings."""
    text = """
        name = "near-and-tight"
        [[plugin]]
        name = "ClusterScore"
        weight = 3
        settings = { price = 0, location = 4 }
        [[plugin]]
        name = "BestFit"
    """
    policy = policy_of(written(tmp_path, text), OPTIONS)
    assert isinstance(policy, Profile)
    assert (policy.name, policy.seed) == ("near-and-tight", 5)
    assert [(plugin.name, weight) for plugin, weight in policy.scores()] == [("ClusterScore", 3), ("BestFit", 1)]


def test_file_without_a_name_is_named_after_itself(tmp_path: Path) -> None:
    """A profile that does not name itself goes by the name of its file."""
    assert policy_of(written(tmp_path, '[[plugin]]\nname = "BestFit"'), OPTIONS).name == "mine"


BAD = {
    "": "names no plugin; begin each with a line [[plugin]]",
    "plugin = []": "names no plugin; begin each with a line [[plugin]]",
    '[plugin]\nname = "BestFit"': "names no plugin; begin each with a line [[plugin]]",
    "plugin = [3]": 'plugin 1: needs a name = "..."',
    "[[plugin]]\nweight = 2": 'plugin 1: needs a name = "..."',
    '[[plugin]]\nname = "BestFit"\n[[plugin]]\nname = 3': 'plugin 2: needs a name = "..."',
    '[[plugin]]\nname = "BestFit"\nwight = 2': "plugin 1: unknown key 'wight'; available: name, policy, ",
    'nmae = "x"\n[[plugin]]\nname = "BestFit"': "unknown key 'nmae'; available: name, plugin",
    '[[plugin]]\nname = "BestFit"\nweight = 0': "plugin 1: weight must be a whole number from 1 up",
    '[[plugin]]\nname = "BestFit"\nweight = 1.5': "plugin 1: weight must be a whole number from 1 up",
    '[[plugin]]\nname = "BestFit"\nweight = true': "plugin 1: weight must be a whole number from 1 up",
    '[[plugin]]\nname = "BestFit"\nsettings = 3': "plugin 1: settings must be a table, like { price = 2 }",
    '[[plugin]]\nname = "Bestfit"': "unknown plugin 'Bestfit'; available: BestFit, ",
    '[[plugin]]\nname = "BestFit"\nsettings = { a = 1 }': "plugin 'BestFit' does not accept a",
    '[[plugin]]\nname = "ClusterScore"\nsettings = { price = "x" }': "weights of the cluster score are whole numbers",
    '[[plugin]]\nname = "BestFit"\n[[plugin]]\nname = "BestFit"': "has the plugin 'BestFit' more than once",
    '[[plugin]]\nname = "PrioritySort"': "has no plugin that scores nodes",
    "[[plugin": "",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text)[:40])
def test_bad_file_is_rejected_in_one_line(text: str, tmp_path: Path) -> None:
    """One line names the file, the plugin where one is at fault, and how to mend it."""
    path = written(tmp_path, text)
    with pytest.raises(RejectedError) as caught:
        policy_of(path, OPTIONS)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert BAD[text] in message
    assert "\n" not in message


@pytest.mark.parametrize("content", [b"\xff\xfe", None], ids=["no text", "no file"])
def test_unreadable_file_is_rejected(content: bytes | None, tmp_path: Path) -> None:
    """A file that is not there, or is not a text, is named."""
    path = tmp_path / "mine.toml"
    if content:
        path.write_bytes(content)
    with pytest.raises(RejectedError, match=r"mine\.toml: "):
        policy_of(str(path), OPTIONS)
