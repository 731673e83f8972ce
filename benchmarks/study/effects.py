"""Effects of expert share, batch, layers and learning rates on EADE-DDPG, for the values of the study.

They include our interpretations of the paper, each compared with the alternative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks.study.published import BEST_SCORE_BY_EXPERT_SHARE, FIRST, TRIED
from benchmarks.study.published import DEFAULTS as PUBLISHED
from benchmarks.study.training import Training
from seaway.learning.runs.folder import RunFolder
from seaway.learning.runs.table import read_rows

READ = {"attention": "128", "candidates": "0", "fitting": "true", "discount": "0.0"}
"""Our interpretations of the paper."""

DEFAULTS = {**PUBLISHED, **READ}

RATES = "learning rates"
ASKED = {"candidates": "5"}
"""Settings that use the actor; if the critic chooses among all bins, the actor is unused and its rate has no effect."""

EFFECTS: dict[str, tuple[dict[str, str], ...]] = {
    **{effect: values for effect, values in TRIED.items() if effect != RATES},
    f"{RATES} of actor and critic, where the actor is asked": tuple({**rates, **ASKED} for rates in TRIED[RATES]),
    "attention": tuple({"attention": value} for value in ("0", "128")),
    "bins that the critic chooses among": tuple({"candidates": value} for value in ("1", "5", "0")),
    "only nodes that fit count": tuple({"fitting": value} for value in ("false", "true")),
    "discount": tuple({"discount": value} for value in ("0.0", "0.5", "0.9")),
}
"""All effects with their values; other settings are defaults."""

LAST = 20
"""Number of last episodes over which rewards are averaged."""


@dataclass(frozen=True, slots=True)
class Effects:
    """Trainings of the effects: instance, seeds and episodes."""

    folder: Path
    instance: Path
    seeds: Sequence[int] = (0,)
    episodes: int = 200


def trainings(asked: Effects) -> list[Training]:
    """Return a training for each value and seed; the defaults, which every effect includes, are trained once."""
    found = {
        training.name: training
        for seed in asked.seeds
        for values in EFFECTS.values()
        for settings in values
        for training in [training_of(asked, settings, seed)]
    }
    return list(found.values())


def training_of(asked: Effects, settings: dict[str, str], seed: int) -> Training:
    """Return the training of a value."""
    whole = {**DEFAULTS, **settings}
    other = "-".join(f"{name}-{value}" for name, value in settings.items() if DEFAULTS[name] != value)
    name = f"{(other or 'defaults').replace('_', '-')}-{asked.instance.name}-seed{seed}"
    return Training(asked.folder / name, FIRST, asked.instance, seed, asked.episodes, whole)


def table(asked: Effects) -> list[dict[str, Any]]:
    """Return a row for each value with finished trainings: means over seeds."""
    rows = []
    for effect, values in EFFECTS.items():
        for settings in values:
            each = [training_of(asked, settings, seed) for seed in asked.seeds]
            found = [figures(training) for training in each if training.finished]
            if found:
                rows.append(_row(effect, settings, found))
    return rows


def figures(training: Training) -> dict[str, float]:
    """Return the figures of a training: rewards of its episodes, and placed jobs in evaluations."""
    rows = read_rows(RunFolder(training.folder).episodes)
    rewards = [float(row["reward"]) for row in rows]
    evaluated = [int(row["evaluated_placed"]) for row in rows if row["evaluated_placed"]]
    return {
        "best score": max(rewards),
        f"mean score of the last {LAST}": fmean(rewards[-LAST:]),
        "most placed": max(evaluated),
        "placed in the end": evaluated[-1],
        "seconds": sum(float(row["seconds"]) for row in rows),
    }


def _row(effect: str, settings: dict[str, str], found: Sequence[dict[str, float]]) -> dict[str, Any]:
    row: dict[str, Any] = {"effect": effect, "value": "/".join(settings.values()), "seeds": len(found)}
    row |= {name: round(fmean(each[name] for each in found), 1) for name in found[0]}
    if len(found) > 1:
        row["std of best score"] = round(stdev(each["best score"] for each in found), 1)
    theirs = BEST_SCORE_BY_EXPERT_SHARE.get(settings.get("expert_share", ""))
    return row | ({"published best score": theirs} if theirs is not None else {})


def files(asked: Effects) -> dict[str, dict[str, list[Path]]]:
    """Return the episode files of finished trainings, by effect and value."""
    return {
        effect: {
            "/".join(settings.values()): [
                RunFolder(training.folder).episodes
                for seed in asked.seeds
                if (training := training_of(asked, settings, seed)).finished
            ]
            for settings in values
        }
        for effect, values in EFFECTS.items()
    }
