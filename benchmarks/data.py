"""Data for benchmarks, stored outside the repository."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.record import ROOT, SkippedError
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.study import NetworkKind, PlacementKind
from seaway.simulation.trace import Trace, TraceFiles, read_trace, shuffled

SEEDS = range(5)

BEST_KNOWN = ROOT / "benchmarks" / "best.csv"
"""Best known number of placed jobs by instance, with all jobs known in advance."""


@dataclass(frozen=True, slots=True)
class Order:
    """An arrival order of the openb trace."""

    variant: str
    seed: int

    @property
    def name(self) -> str:
        """Name in file names, like ``default_42``."""
        return f"{self.variant}_{self.seed}"


ORDERS = (
    Order("default", 42),
    Order("default", 43),
    Order("default", 44),
    Order("multigpu20", 42),
    Order("gpushare40", 42),
    Order("gpuspec10", 42),
    Order("cpu050", 42),
)


def folder() -> Path:
    """Return the data folder: ``SEAWAY_BENCHMARK_DATA``, or ``shared`` beside the repository."""
    return Path(os.environ.get("SEAWAY_BENCHMARK_DATA", ROOT.parent / "shared"))


def existing(path: Path, hint: str) -> Path:
    """Return a path of the data.

    Raises
    ------
    SkippedError
        If it does not exist; with a hint.
    """
    if not path.exists():
        raise SkippedError(f"needs {path}; {hint}")
    return path


def openb_folder() -> Path:
    """Return the folder of openb's files: ``SEAWAY_OPENB``, or its place in the data folder; raises as `existing`."""
    path = Path(os.environ.get("SEAWAY_OPENB", folder() / "traces" / "openb"))
    return existing(path, "`seaway trace` says where to get openb, and SEAWAY_OPENB names its folder")


def openb(order: Order | None = None) -> Trace:
    """Read the openb trace in an order of arrivals and nodes; by default as it is, with its own arrival times.

    The order is the published one if the folder has it, otherwise a random one with the same seed.
    """
    base = openb_folder()
    nodes = base / "openb_node_list_gpu_node.csv"
    if order is None:
        return read_trace(TraceFiles(nodes, base / "openb_pod_list_default.csv"))
    files = TraceFiles(nodes, base / f"openb_pod_list_{order.variant}.csv")
    node_order, job_order = (base / "orders" / f"{kind}_{order.name}.csv" for kind in ("nodes", "pods"))
    if not job_order.exists():
        return shuffled(read_trace(files), order.seed)
    return read_trace(replace(files, node_order=node_order, job_order=job_order))


DRAWN: dict[str, Callable[[np.random.Generator], Instance]] = {
    "placement-16x4": PlacementKind(),
    "network-3": NetworkKind(),
}
"""Generators of instances like those of the data folder."""


@cache
def benchmark(kind: str, seed: int) -> Trace:
    """Return an instance, such as ``placement-16x4`` or ``network-3``: from the data folder, else one that is drawn."""
    base = instance(kind, seed)
    if not base.is_dir():
        drawn = DRAWN[kind](np.random.default_rng(seed))
        return Trace(drawn.fleet, drawn.jobs, drawn.mix)
    links = base / "links.csv"
    return read_trace(TraceFiles(base / "nodes.csv", base / "jobs.csv", links if links.exists() else None))


def with_mix(kind: str, number: int) -> Trace:
    """Return an instance, with the jobs of the other seeds as past jobs."""
    others = [
        replace(job, name=f"{other}-{job.name}")
        for other in SEEDS
        if other != number
        for job in benchmark(kind, other).jobs
    ]
    return replace(benchmark(kind, number), mix=tuple(others))


def instance(kind: str, seed: int) -> Path:
    """Return the folder of an instance, which may not exist."""
    return folder() / "benchmarks" / f"{kind}-seed{seed}"
