"""Packing quality of policies, compared with a bound for full knowledge."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from statistics import fmean
from typing import Any

from benchmarks.data import BEST_KNOWN, ORDERS, SEEDS, instance, openb, with_mix
from benchmarks.record import Result, SkippedError
from benchmarks.unseen import VARIANTS, variant
from seaway.bootstrap.policies import policy_of
from seaway.learning.evaluation.contestants import OFFERS
from seaway.learning.instances.instance import read_best
from seaway.learning.policies.library import ShippedLibrary
from seaway.scheduling.policies.registry import Level, PolicyOptions, policy_names
from seaway.simulation.bound import bound_pct
from seaway.simulation.outcome import Outcome
from seaway.simulation.replay import arrivals_until_requested, replay
from seaway.simulation.trace import Trace

NOTES = [
    "GPU allocation in % of capacity, mean over the arrivals at which what was asked for rounds to 100 %",
    "bound: linear programme with CPU pooled by kind of node, memory and CPU-only jobs left out",
    "recovered: how much of the distance from fgd to the bound seaway makes good, %",
    "nothing waits, as in the published runs: what does not fit on arrival is lost",
]
CLUSTER_LEVEL = ("greedy", "bestfit", "random", "utilization", "spread")


def quality(seed: int) -> Result:
    """Measure allocated GPUs at 100 % arrived on openb: bestfit, fgd, seaway, pilot, bound, recovered share."""
    rows = [_recovered(order.name, openb(order), seed) for order in ORDERS]
    return Result("quality", [*rows, _mean(rows)], NOTES)


def unseen(seed: int) -> Result:
    """Measure the same on job mixes that were not used for tuning: modified openb lists."""
    rows = [_recovered(name, variant(name, seed), seed) for name in VARIANTS]
    return Result("unseen", [*rows, _mean(rows)], NOTES)


def _recovered(name: str, trace: Trace, seed: int) -> dict[str, Any]:
    figures = {policy: _allocated(trace, policy, seed) for policy in ("bestfit", "fgd", "seaway", *trained())}
    figures["bound"] = bound_pct(trace.fleet, trace.jobs) or 0.0
    figures["recovered_pct"] = 100 * (figures["seaway"] - figures["fgd"]) / (figures["bound"] - figures["fgd"])
    return {"trace": name, **{key: round(figure, 2) for key, figure in figures.items()}}


def _mean(rows: list[dict[str, Any]]) -> dict[str, Any]:
    means = {key: round(fmean(row[key] for row in rows), 2) for key in rows[0] if key != "trace"}
    return {"trace": "mean", **means}


def placement(seed: int) -> Result:
    """Count placed jobs on placement-16x4 by policy, compared with the best known packing."""
    return _instances("placement-16x4", seed)


def _instances(kind: str, seed: int) -> Result:
    rows = []
    for name, level in policies():
        replays = [_replay_instance(kind, number, name, level, seed) for number in SEEDS]
        row: dict[str, Any] = {"policy": name, "level": level}
        row |= {f"seed{number}": each.counts.placed for number, each in zip(SEEDS, replays, strict=True)}
        row["mean"] = round(fmean(each.counts.placed for each in replays), 1)
        row["fragmentation"] = round(fmean(each.use.fragmentation or 0 for each in replays), 3)
        row["gpu_load_variance"] = round(fmean(each.use.gpu_load_variance or 0 for each in replays), 4)
        rows.append(row)
    rows.sort(key=lambda row: -row["mean"])
    if all(instance(kind, number).is_dir() for number in SEEDS):
        known = read_best(BEST_KNOWN)
        best = {f"seed{number}": known[f"{kind}-seed{number}"] for number in SEEDS}
        rows.append({"policy": "best packing known", **best, "mean": round(fmean(best.values()), 1)})
    notes = [
        "jobs placed; policies that learn a job mix learn it from the other four seeds",
        "a job that a policy has wait is offered once more after the last arrival",
    ]
    return Result(kind, rows, notes)


def policies() -> list[tuple[str, Level]]:
    """Return all policies with their level."""
    return [(name, "node") for name in (*policy_names(), *trained())] + [(name, "cluster") for name in CLUSTER_LEVEL]


def trained() -> list[str]:
    """Return the built-in trained policies; empty without onnxruntime."""
    return ShippedLibrary().names() if find_spec("onnxruntime") else []


def _replay_instance(kind: str, number: int, name: str, level: Level, seed: int) -> Outcome:
    trace = with_mix(kind, number)
    options = PolicyOptions(level, seed, trace.mix)
    return replay(trace.fleet, trace.jobs, partial(policy_of, name, options), offers=OFFERS)


def _allocated(trace: Trace, name: str, seed: int) -> float:
    options = PolicyOptions(seed=seed, mix=trace.mix)
    outcome = replay(
        trace.fleet, arrivals_until_requested(trace.fleet, trace.jobs, 1.05), partial(policy_of, name, options)
    )
    allocated = outcome.shares.gpu_allocated_pct_at_100
    if allocated is None:
        raise SkippedError("the trace does not ask for all of the fleet")
    return allocated
