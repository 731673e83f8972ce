"""A run is what was asked for, and the same run after it was written down."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.algos import ALGOS
from seaway.learning.runs.assemble import PARTS, command_of, new_run, record_of, resumed_run, run_of
from seaway.learning.runs.options import RANGES, unused
from seaway.learning.settings import DdpgSettings


def test_settings_reach_the_part_they_are_of() -> None:
    """Settings of the learner, of episodes and of the run are given side by side."""
    run = new_run("eade-ddpg", ["x"], [], {"batch": "32", "offers": "3", "seed": "7"})
    assert run.learner == DdpgSettings(batch=32)
    assert (run.episode.offers, run.settings.seed) == (3, 7)


def test_plain_ddpg_has_neither_attention_nor_expert() -> None:
    """It is the published method without these two, and cannot be given them."""
    learner = new_run("ddpg", ["x"], [], {}).learner
    assert isinstance(learner, DdpgSettings)
    assert (learner.attention, learner.expert_share) == (0, 0)
    with pytest.raises(RejectedError, match="--attention: cannot be set for ddpg: only eade-ddpg has it"):
        new_run("ddpg", ["x"], [], {"attention": 64})


@pytest.mark.parametrize("algo", ALGOS)
def test_names_of_settings_are_of_one_part_only(algo: str) -> None:
    """A name that two parts had could not be distinguished."""
    record = record_of(new_run(algo, ["x"], [], {}))
    names = [name for part in ("learner", "episode", "settings") for name in record[part]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("algo", ALGOS)
def test_a_run_is_the_same_after_it_was_written_down(algo: str) -> None:
    """Anything that JSON makes of it is read back as it was."""
    own = {"width": 8} if algo == "pilot" else {"hidden": "4-5", "offers": 1}
    run = new_run(algo, ["x", "y"], ["any"], {"seed": 3, **own})
    assert run_of(json.loads(json.dumps(record_of(run)))) == run


@pytest.mark.parametrize("algo", ALGOS)
def test_every_figure_that_can_be_set_has_a_range_and_begins_within(algo: str) -> None:
    """Anything that makes no sense is refused where it is typed, and not found out by a run that ends in the middle."""
    run = new_run(algo, ["x"], [], {})
    for part in (getattr(run, each) for each in PARTS):
        kinds = get_type_hints(type(part))
        for name in (each.name for each in fields(part) if kinds[each.name] not in {bool, str}):
            value = getattr(part, name)
            assert all(map(RANGES[name].contains, value if isinstance(value, tuple) else [value])), name


@pytest.mark.parametrize(
    "given", [{"judged": 1}, {"width": 0}, {"heads": 0}, {"pairs": 0}, {"spread": 0}, {"rate": 0}, {"average": 2}]
)
def test_the_pilot_is_not_begun_with_figures_that_it_cannot_learn_by(given: dict[str, object]) -> None:
    """Nothing is learned with all instances kept apart, by a network of no width, without candidates or steps."""
    with pytest.raises(RejectedError, match=f"--{next(iter(given))}: "):
        new_run("pilot", ["x"], [], given)


@pytest.mark.parametrize(
    ("algo", "given", "says"),
    [
        (
            "eade-ddpg",
            {"live_pool": 500},
            "--live-pool: live_pool keeps 500 transitions, and learning begins when it hol",
        ),
        (
            "ddpg",
            {"warm_up": 20_001},
            "--warm-up: live_pool keeps 20000 transitions, and learning begins when it holds",
        ),
        ("ddpg", {"updates": 0}, "--updates: 0 is not at least 1"),
        ("td3", {"updates": 0}, "--updates: 0 is not at least 1"),
        ("ppo", {"batch": 1}, "--batch: 1 is not at least 2, as ppo needs it"),
        ("ppo", {"steps": 1}, "--steps: 1 is not at least 2, as ppo needs it"),
        ("sac", {"hidden": "128-1000000"}, "--hidden: 1000000 is not from 1 to 4096"),
        ("sb3-ddpg", {"live_pool": 10**12}, "--live-pool: 1000000000000 is not from 1 to 10000000"),
    ],
)
def test_a_run_that_could_not_learn_is_not_begun(algo: str, given: dict[str, object], says: str) -> None:
    """Settings that cannot learn are rejected where they are given, with the name of a given one."""
    with pytest.raises(RejectedError) as error:
        new_run(algo, ["x"], [], given)
    assert str(error.value).startswith(says)


@pytest.mark.parametrize(("algo", "given"), [("td3", {"batch": 1}), ("sac", {"live_pool": 5}), ("ddpg", {"batch": 1})])
def test_what_one_algorithm_cannot_do_another_may(algo: str, given: dict[str, object]) -> None:
    """Least figures are each algorithm's own: with these the others do learn."""
    new_run(algo, ["x"], [], given)


@pytest.mark.parametrize(
    ("algo", "given", "idle"),
    [
        ("eade-ddpg", {"actor_rate": 1e-3, "soft_update": 0.1, "critic_rate": 1e-2}, {"actor_rate", "soft_update"}),
        ("eade-ddpg", {"actor_rate": 1e-3, "soft_update": 0.1, "candidates": 3}, {"soft_update"}),
        ("eade-ddpg", {"actor_rate": 1e-3, "soft_update": 0.1, "discount": 0.9}, set()),
        ("eade-ddpg", {"heads": 2, "attention": 0, "expert_share": 0, "expert_pool": 9}, {"heads", "expert_pool"}),
        ("ddpg", {"heads": 2}, {"heads"}),
        ("td3", {"target_noise": 0.1, "noise": 0.1}, {"target_noise"}),
        ("ppo", {"trace_decay": 0.5}, {"trace_decay"}),
        ("pilot", {"rate": 0.4, "packing_s": 1.0}, {"packing_s"}),
        ("pilot", {"packings": 2, "packing_s": 1.0}, set()),
    ],
)
def test_settings_that_nothing_requests_for_are_found(algo: str, given: dict[str, object], idle: set[str]) -> None:
    """Of those that were given, with the others as they are."""
    assert unused(new_run(algo, ["x"], [], given).learner, given).keys() == idle


def test_a_setting_that_is_gone_is_named() -> None:
    """A run of another version, whose settings were others, is not guessed at."""
    record = record_of(new_run("ppo", ["x"], [], {}))
    record["learner"]["fancy"] = 1
    with pytest.raises(RejectedError, match="'fancy' is not a setting of ppo"):
        run_of(record)


@pytest.mark.parametrize(
    ("algo", "instances", "given", "says"),
    [
        ("tdd3", ["x"], {}, "--algo: 'tdd3' not found; did you mean 'td3'?"),
        ("zzz", ["x"], {}, "--algo: 'zzz' not found; available: eade-ddpg, ddpg"),
        ("td3", [], {}, "--instances: nothing to learn on"),
        ("td3", ["x"], {"actor_rates": 1}, "--actor-rates: td3 has no 'actor_rates'"),
        ("eade-ddpg", ["x"], {"figures": 8}, "--figures: cannot be set for eade-ddpg: the observation"),
        ("pilot", ["x"], {"offers": 3}, "--offers: cannot be set for pilot: it learns where jobs stay"),
        ("pilot", ["x"], {"departures": True}, "--departures: cannot be set for pilot: it learns where jobs stay"),
    ],
)
def test_what_cannot_be_is_rejected(algo: str, instances: list[str], given: dict[str, object], says: str) -> None:
    """Each mistake is reported with the option that has it."""
    with pytest.raises(RejectedError) as error:
        new_run(algo, instances, [], given)
    assert str(error.value).startswith(says)


def test_a_run_goes_on_with_more_episodes_but_not_as_another() -> None:
    """The way how long it goes may change; what it learns by may not, and all of that is reported."""
    before = new_run("eade-ddpg", ["x"], [], {"episodes": 5})
    assert resumed_run(before, {"episodes": 9, "batch": 256}).settings.episodes == 9
    with pytest.raises(RejectedError) as error:
        resumed_run(before, {"batch": 8, "hidden": "3-4", "patience": 2})
    assert [each.where for each in (error.value, *error.value.also)] == ["--hidden", "--batch"]
    assert "the run began with 128-64, not 3-4" in str(error.value)


def test_the_command_says_all_that_is_not_as_usual() -> None:
    """A user who types it gets the same run."""
    run = new_run("td3", ["a b", "c"], ["any"], {"hidden": "4-5", "seed": 3})
    words = shlex.split(command_of(run, Path("runs/x")))
    assert words == [
        *("seaway", "train", "--algo", "td3", "--instances", "a b", "c", "--draw", "any"),
        *("--set", "hidden=4-5", "--set", "seed=3", "--out", "runs/x"),
    ]
