"""Comparison of the nine published algorithms on the instances of placement-16x4 with the published order.

It includes EADE-DDPG without our interpretations of the paper.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.study.published import FIRST, LEARNED, LITERAL, TABLE
from benchmarks.study.training import Training
from seaway.domain.errors import RejectedError
from seaway.learning.evaluation.contestants import PUBLISHED_HEURISTICS, Contestant, heuristic
from seaway.learning.evaluation.measure import Trial, measure, tasks
from seaway.learning.evaluation.summary import Row, Summary, summarise
from seaway.learning.evaluation.trained import from_run
from seaway.learning.instances.instance import Instance
from seaway.learning.parallel import Serial

MEASURES = (
    ("load variance", "gpu_load_variance", 4),
    ("GPU memory %", "gpu_memory_pct", 1),
    ("fragmentation", "fragmentation", 3),
)
"""Further measures of the published table: title, figure, digits."""

EVALUATED = {"evaluate_every": "1"}
"""Evaluation for all algorithms: after each episode the policy plays once without noise, and the best one is stored."""

RANDOM_SEEDS = range(5)
"""Seeds of randomised policies."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Trainings of a comparison: instances, algorithms, seeds and episodes; `known` are results without a training."""

    folder: Path
    instances: Sequence[Path]
    algos: Sequence[str] = (*LEARNED, *LITERAL)
    seeds: Sequence[int] = (0,)
    episodes: int = 1000
    known: Sequence[Row] = ()


def known_rows(file: Path, episodes: int) -> list[Row]:
    """Return the results of trained policies in a stored study, whose runs may be lost.

    Raises
    ------
    RejectedError
        If it cannot be read, or its trainings have another length.
    """
    try:
        retained = json.loads(file.read_text(encoding="utf-8"))
        rows = [Row(**record) for record in retained["rows"] if record["policy"] in {*LEARNED, *LITERAL}]
        length = retained["episodes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RejectedError(f"is no kept comparison: {error}", where=str(file)) from None
    if length != episodes:
        raise RejectedError(f"has trainings of {length} episodes, not {episodes}: give --episodes", where=str(file))
    return rows


def trainings(asked: Comparison) -> list[Training]:
    """Return all trainings, by instance, so that early results compare all algorithms on some instances."""
    known = {_trained(row) for row in asked.known}
    return [
        training_of(asked, algo, path, seed)
        for seed in asked.seeds
        for path in asked.instances
        for algo in asked.algos
        if (algo, path.name, seed) not in known
    ]


def training_of(asked: Comparison, name: str, instance: Path, seed: int) -> Training:
    """Return the training of an algorithm, or of EADE-DDPG without one of our interpretations."""
    algo = FIRST if name in LITERAL else name
    settings = {**EVALUATED, **LITERAL.get(name, {})}
    return Training(asked.folder / f"{name}-{instance.name}-seed{seed}", algo, instance, seed, asked.episodes, settings)


def learned(asked: Comparison) -> list[Contestant]:
    """Return the best policy of each finished training, to be measured on its own instance."""
    return [
        replace(from_run(training.folder), name=name, own_only=True)
        for seed in asked.seeds
        for path in asked.instances
        for name in asked.algos
        if (training := training_of(asked, name, path, seed)).finished
    ]


def measured(asked: Comparison, instances: Sequence[Instance]) -> list[Trial]:
    """Return measurements of the published heuristics and of trained policies, with the known results."""
    contestants = [*(heuristic(name, "cluster") for name in PUBLISHED_HEURISTICS), *learned(asked)]
    work = tasks(contestants, instances, list(RANDOM_SEEDS))
    trials = [trial for _, trial in measure(work, Serial())]
    there, names = {_trained(trial.row) for trial in trials}, {instance.name for instance in instances}
    return [*trials, *(Trial(row) for row in asked.known if row.instance in names and _trained(row) not in there)]


def _trained(row: Row) -> tuple[str, str, int]:
    return row.policy, row.instance, row.seed


def beside_published(lines: Sequence[Summary]) -> list[dict[str, Any]]:
    """Return placed jobs next to the published ones, in the published order."""
    ours = {line.policy: (at, line) for at, line in enumerate((each for each in lines if each.policy in TABLE), 1)}
    rows = []
    for at, (name, theirs) in enumerate(TABLE.items(), 1):
        row: dict[str, Any] = {"policy": name, "published": at, "placed there": theirs.placed}
        if name in ours:
            rank, line = ours[name]
            row |= {"ours": rank, "placed": _mean(line, "placed", 1), "±": _ci(line, "placed")}
            row |= {"ratio": _mean(line, "ratio", 3), "instances": line.instances}
        rows.append(row)
    return [
        *rows,
        *(
            {"policy": line.policy, "placed": _mean(line, "placed", 1), "instances": line.instances}
            for line in lines
            if line.policy in LITERAL
        ),
    ]


def other_measures(lines: Sequence[Summary]) -> list[dict[str, Any]]:
    """Return the other measures next to the published ones."""
    ours = {line.policy: line for line in lines}
    rows = []
    for name, theirs in TABLE.items():
        row: dict[str, Any] = {"policy": name}
        for title, figure, digits in MEASURES:
            row[f"{title} there"] = getattr(theirs, figure)
            row[title] = _mean(ours[name], figure, digits) if name in ours else None
        rows.append(row)
    return rows


def findings(lines: Sequence[Summary]) -> list[str]:
    """Return findings on the published statements: the first rank, and the number of pairs in the published order."""
    ours = {line.policy: line for line in lines if line.policy in TABLE}
    missing = [name for name in TABLE if name not in ours]
    said = [f"not measured yet: {', '.join(missing)}"] if missing else []
    if FIRST in ours:
        said += [
            _first(ours, "placed", "jobs placed", most=True),
            _first(ours, "gpu_load_variance", "GPU load variance", most=False),
            _first(ours, "gpu_memory_pct", "mean GPU memory use", most=True),
        ]
    pairs = [(a, b) for a, b in combinations([name for name in TABLE if name in ours], 2)]
    turned = [f"{b} before {a}" for a, b in pairs if _value(ours[b], "placed") > _value(ours[a], "placed")]
    said.append(f"pairs in the published order of jobs placed: {len(pairs) - len(turned)} of {len(pairs)}")
    return said + ([f"turned round: {'; '.join(turned)}"] if turned else [])


def _first(ours: dict[str, Summary], figure: str, title: str, *, most: bool) -> str:
    order = sorted(ours, key=lambda name: _value(ours[name], figure), reverse=most)
    values = ", ".join(f"{name} {_value(ours[name], figure):.4g}" for name in order[:3])
    verdict = "holds" if order[0] == FIRST else f"does not hold: it is number {order.index(FIRST) + 1}"
    return f"{FIRST} first in {title}: {verdict} ({values})"


def _value(line: Summary, figure: str) -> float:
    found = line.figures.get(figure)
    return found.mean if found else 0.0


def _mean(line: Summary, figure: str, digits: int) -> float | None:
    found = line.figures.get(figure)
    return round(found.mean, digits) if found else None


def _ci(line: Summary, figure: str) -> float | None:
    found = line.figures.get(figure)
    return round(found.ci95, 1) if found and found.ci95 is not None else None


def record(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return all measurements for the record."""
    rows = [trial.row for trial in trials]
    lines = summarise(rows)
    return {
        "beside_published": beside_published(lines),
        "other_measures": other_measures(lines),
        "findings": findings(lines),
        "rows": [row.record() for row in rows],
    }
