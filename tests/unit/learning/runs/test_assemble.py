"""Assembly of runs from options and records."""

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


def test_settings_are_assigned_to_their_parts() -> None:
    """Settings of the learner, of episodes and of the run are given together."""
    run = new_run("eade-ddpg", ["x"], [], {"batch": "32", "offers": "3", "seed": "7"})
    assert run.learner == DdpgSettings(batch=32)
    assert (run.episode.offers, run.settings.seed) == (3, 7)


def test_plain_ddpg_has_neither_attention_nor_expert() -> None:
    """It is the published method without both, and they cannot be set."""
    learner = new_run("ddpg", ["x"], [], {}).learner
    assert isinstance(learner, DdpgSettings)
    assert (learner.attention, learner.expert_share) == (0, 0)
    with pytest.raises(RejectedError, match="--attention: cannot be set for ddpg: only eade-ddpg has it"):
        new_run("ddpg", ["x"], [], {"attention": 64})


@pytest.mark.parametrize("algo", ALGOS)
def test_names_of_settings_are_unique(algo: str) -> None:
    """Two parts with the same name could not be distinguished."""
    record = record_of(new_run(algo, ["x"], [], {}))
    names = [name for part in ("learner", "episode", "settings") for name in record[part]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("algo", ALGOS)
def test_records_of_runs_round_trip(algo: str) -> None:
    """A run is equal after encoding as JSON and decoding."""
    own = {"width": 8} if algo == "pilot" else {"hidden": "4-5", "offers": 1}
    run = new_run(algo, ["x", "y"], ["any"], {"seed": 3, **own})
    assert run_of(json.loads(json.dumps(record_of(run)))) == run


@pytest.mark.parametrize("algo", ALGOS)
def test_all_numeric_settings_have_ranges(algo: str) -> None:
    """Defaults are in their ranges, so that invalid values are rejected before a run."""
    run = new_run(algo, ["x"], [], {})
    for part in (getattr(run, each) for each in PARTS):
        kinds = get_type_hints(type(part))
        for name in (each.name for each in fields(part) if kinds[each.name] not in {bool, str}):
            value = getattr(part, name)
            assert all(map(RANGES[name].contains, value if isinstance(value, tuple) else [value])), name


@pytest.mark.parametrize(
    "given", [{"judged": 1}, {"width": 0}, {"heads": 0}, {"pairs": 0}, {"spread": 0}, {"rate": 0}, {"average": 2}]
)
def test_invalid_settings_of_the_pilot_are_rejected(given: dict[str, object]) -> None:
    """Training needs instances, a width, candidates and a step size."""
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
def test_conflicts_of_settings_are_rejected(algo: str, given: dict[str, object], says: str) -> None:
    """The error has the place of a given setting."""
    with pytest.raises(RejectedError) as error:
        new_run(algo, ["x"], [], given)
    assert str(error.value).startswith(says)


@pytest.mark.parametrize(("algo", "given"), [("td3", {"batch": 1}), ("sac", {"live_pool": 5}), ("ddpg", {"batch": 1})])
def test_minima_depend_on_the_algorithm(algo: str, given: dict[str, object]) -> None:
    """Other algorithms learn with these settings."""
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
def test_settings_without_effect_are_found(algo: str, given: dict[str, object], idle: set[str]) -> None:
    """Only given settings are reported."""
    assert unused(new_run(algo, ["x"], [], given).learner, given).keys() == idle


def test_removed_settings_are_named() -> None:
    """A run of another version with other settings is rejected."""
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
def test_invalid_runs_are_rejected(algo: str, instances: list[str], given: dict[str, object], says: str) -> None:
    """The error has the option of each problem."""
    with pytest.raises(RejectedError) as error:
        new_run(algo, instances, [], given)
    assert str(error.value).startswith(says)


def test_a_resumed_run_may_change_its_length_only() -> None:
    """Other changes are rejected, with all of them in the error."""
    before = new_run("eade-ddpg", ["x"], [], {"episodes": 5})
    assert resumed_run(before, {"episodes": 9, "batch": 256}).settings.episodes == 9
    with pytest.raises(RejectedError) as error:
        resumed_run(before, {"batch": 8, "hidden": "3-4", "patience": 2})
    assert [each.where for each in (error.value, *error.value.also)] == ["--hidden", "--batch"]
    assert "the run began with 128-64, not 3-4" in str(error.value)


def test_the_command_has_all_settings_that_are_not_defaults() -> None:
    """Executing it starts an equal run."""
    run = new_run("td3", ["a b", "c"], ["any"], {"hidden": "4-5", "seed": 3})
    words = shlex.split(command_of(run, Path("runs/x")))
    assert words == [
        *("seaway", "train", "--algo", "td3", "--instances", "a b", "c", "--draw", "any"),
        *("--set", "hidden=4-5", "--set", "seed=3", "--out", "runs/x"),
    ]
