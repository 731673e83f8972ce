"""Trained policies as plugins of profile files, beside others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seaway.bootstrap.policies import policy_of, read_outline, read_outlines
from seaway.bootstrap.trained_policies import Trained, own_folder
from seaway.domain.errors import RejectedError
from seaway.learning.policies.file import PolicyFile, pack, write_policy
from seaway.learning.policies.library import FolderLibrary
from seaway.learning.policies.monitor import Counts, Limits, Reason
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.demo import demo_fleet, demo_jobs
from tests.fakes.policies import cluster_policy, node_policy

OPTIONS = PolicyOptions()

BOTH = """
name = "both"
[[plugin]]
name = "trained"
policy = "tiny"
weight = {weight}
[[plugin]]
name = "BestFit"
"""


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with a data folder that has the policy tiny."""
    monkeypatch.setenv("SEAWAY_DATA", str(tmp_path / "own"))
    write_policy(own_folder() / "tiny.policy", node_policy())


def written(folder: Path, text: str, name: str = "both.toml") -> str:
    """Write a profile file and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def made(text: str, folder: Path) -> Profile:
    """Make the policy of a profile file."""
    policy = policy_of(written(folder, text), OPTIONS)
    assert isinstance(policy, Profile)
    return policy


def decided(profile: Profile) -> Plan:
    """Decide the demo's jobs, none of which may wait."""
    snapshot, jobs = Snapshot(demo_fleet()), demo_jobs(30)
    return decide(snapshot, JobQueue(snapshot, jobs), profile, overdue=range(len(jobs)))


def test_a_trained_policy_is_weighed_against_other_plugins(tmp_path: Path) -> None:
    """With much weight a profile places as the policy alone, and with little as the other plugin alone."""
    alone = {
        "tiny": decided(made('[[plugin]]\nname = "trained"\npolicy = "tiny"', tmp_path)),
        "BestFit": decided(made('[[plugin]]\nname = "BestFit"', tmp_path)),
    }
    much, little = (decided(made(text, tmp_path)) for text in (BOTH.format(weight=1000), _heavy("BestFit")))
    np.testing.assert_array_equal(much.decisions, alone["tiny"].decisions)
    np.testing.assert_array_equal(little.decisions, alone["BestFit"].decisions)
    assert (much.decisions != little.decisions).any()


def _heavy(name: str) -> str:
    return BOTH.format(weight=1).replace(f'name = "{name}"', f'name = "{name}"\nweight = 1000')


def test_the_profile_decides_and_bears_what_it_is_made_of(tmp_path: Path) -> None:
    """Jobs are placed in the profile's name; its edition changes with weights and models: comparisons start over."""
    profile = made(BOTH.format(weight="2.0"), tmp_path)
    assert [(plugin.name, weight) for plugin, weight in profile.scores()] == [("tiny", 2), ("BestFit", 1)]
    assert {each.name for each in decided(profile).deciders.values()} == {"both"}
    titles = {profile.title, made(BOTH.format(weight=3), tmp_path).title}
    write_policy(own_folder() / "tiny.policy", node_policy(seed=1))
    titles.add(made(BOTH.format(weight=3), tmp_path).title)
    assert len(titles) == 3
    assert all(title.startswith("both@") for title in titles)


def test_a_heuristic_scores_where_the_policy_has_no_answer(tmp_path: Path) -> None:
    """The other plugins still count, the plan says what happened, and it is counted under the policy's name."""
    folder, counts = tmp_path / "library", Counts(lambda: 0)
    write_policy(folder / "tiny.policy", cluster_policy(clusters=9))
    trained = Trained(FolderLibrary(folder), Limits(budget_ms=0), counts)
    profile = trained.joined(read_outline(Path(written(tmp_path, BOTH.format(weight=1)))), OPTIONS)
    plan = decided(profile)
    why = "seaway scores instead of tiny: trained for 9 clusters, and the fleet has 3"
    assert {(each.name, each.reason) for each in plan.deciders.values()} == {("both", why)}
    assert set(plan.messages.values()) == {why}
    assert list(counts.counted()["tiny"].fallbacks) == [Reason.UNSUITABLE]
    instead = decided(made(BOTH.format(weight=1).replace('"trained"\npolicy = "tiny"', '"Seaway"'), tmp_path))
    np.testing.assert_array_equal(plan.decisions, instead.decisions)


def test_two_trained_policies_may_join(tmp_path: Path) -> None:
    """Each is asked and counted by itself; one without an answer leaves the other's."""
    write_policy(own_folder() / "wide.policy", cluster_policy("wide", clusters=9))
    text = BOTH.format(weight=1) + '[[plugin]]\nname = "trained"\npolicy = "wide"\n'
    plan = decided(made(text, tmp_path))
    assert plan.jobs_placed.any()
    assert {each.reason.partition(":")[0] for each in plan.deciders.values()} == {"seaway scores instead of wide"}


def test_a_file_is_found_from_the_profile_that_names_it(tmp_path: Path) -> None:
    """A policy may be named by its file, whose path begins where the profile file is."""
    write_policy(tmp_path / "near" / "mine.policy", node_policy("mine"))
    profile = policy_of(written(tmp_path / "near", '[[plugin]]\nname = "trained"\npolicy = "mine.policy"'), OPTIONS)
    assert isinstance(profile, Profile)
    assert profile.plugins[-1].plugin.name == "mine"


def damaged(file: PolicyFile) -> bytes:
    """Return a policy file whose network is not the one that it names."""
    return pack(PolicyFile(file.manifest, file.model + b" ", file.trials))


BAD = {
    '[[plugin]]\nname = "trained"': 'plugin 1: needs a trained policy, like policy = "pilot"',
    '[[plugin]]\nname = "trained"\npolicy = 3': 'plugin 1: needs a trained policy, like policy = "pilot"',
    '[[plugin]]\nname = "trained"\npolicy = "missing"': "'missing': trained policy 'missing' not found; available: ",
    '[[plugin]]\nname = "trained"\npolicy = "seaway"': "'seaway': trained policy 'seaway' not found; available: ",
    '[[plugin]]\nname = "trained"\npolicy = "none.policy"': "none.policy: ",
    '[[plugin]]\nname = "trained"\npolicy = "cut.policy"': "cut.policy: not a policy file",
    '[[plugin]]\nname = "trained"\npolicy = "other.policy"': "other.policy: ",
    '[[plugin]]\nname = "trained"\npolicy = "tiny"\nsettings = { depth = 3 }': "does not accept depth, policy",
    '[[plugin]]\nname = "BestFit"\npolicy = "tiny"': "plugin 'BestFit' does not accept policy",
    '[[plugin]]\nname = "Trained"\npolicy = "tiny"': "unknown plugin 'Trained'; available: BestFit, ",
    2 * '[[plugin]]\nname = "trained"\npolicy = "tiny"\n': "has the plugin 'tiny' more than once",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text)[-40:])
def test_what_cannot_be_used_is_rejected_in_one_line(text: str, tmp_path: Path) -> None:
    """One line names the profile file, the policy that is at fault, and why."""
    whole = pack(node_policy())
    (tmp_path / "cut.policy").write_bytes(whole[:-9])
    (tmp_path / "other.policy").write_bytes(damaged(node_policy()))
    path = written(tmp_path, text)
    with pytest.raises(RejectedError) as caught:
        policy_of(path, OPTIONS)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert BAD[text] in message
    assert "\n" not in message


def test_a_policy_for_nodes_does_not_join_at_the_level_of_clusters(tmp_path: Path) -> None:
    """A user who asks for the level of clusters is reported that a policy chooses among nodes."""
    with pytest.raises(RejectedError, match="'tiny' chooses among nodes; leave the level out"):
        policy_of(written(tmp_path, BOTH.format(weight=1)), PolicyOptions(level="cluster"))


def test_a_folder_of_profiles_is_read_whole(tmp_path: Path) -> None:
    """Every profile is known by its name; every file that is none is reported at once, but policies may come later."""
    folder = tmp_path / "profiles"
    folder.mkdir()
    written(folder, BOTH.format(weight=1).replace("tiny", "to-come"))
    written(folder, '[[plugin]]\nname = "BestFit"', "tight.toml")
    assert list(read_outlines(str(folder))) == ["both", "tight"]
    written(folder, '[[plugin]]\nname = "Bestfit"', "wrong.toml")
    written(folder, 'name = "seaway"\n[[plugin]]\nname = "BestFit"', "xtaken.toml")
    written(folder, 'name = "A B"\n[[plugin]]\nname = "BestFit"', "yname.toml")
    written(folder, "[[plugin", "zbroken.toml")
    with pytest.raises(RejectedError, match=r"wrong\.toml: unknown plugin 'Bestfit'") as caught:
        read_outlines(str(folder))
    assert [Path(each.where).name for each in caught.value.also] == ["xtaken.toml", "yname.toml", "zbroken.toml"]
    with pytest.raises(RejectedError, match=r"profiles_dir: .*nowhere: is not a folder"):
        read_outlines(str(tmp_path / "nowhere"))
