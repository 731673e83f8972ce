"""Data for benchmarks, stored outside the repository."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from benchmarks.record import ROOT, SkippedError
from seaway.simulation.trace import Trace, TraceFiles, read_trace

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
    """Return the data folder: ``SEAWAY_DATA``, or ``shared`` beside the repository.

    Raises
    ------
    SkippedError
        If it does not exist.
    """
    path = Path(os.environ.get("SEAWAY_DATA", ROOT.parent / "shared"))
    if not path.is_dir():
        raise SkippedError(f"needs the benchmark data in {path} (set SEAWAY_DATA to where it is)")
    return path


def openb(order: Order | None = None) -> Trace:
    """Read the openb trace in an order of arrivals and nodes; by default as it is, with its own arrival times."""
    base = folder() / "traces" / "openb"
    nodes = base / "openb_node_list_gpu_node.csv"
    if order is None:
        return read_trace(TraceFiles(nodes, base / "openb_pod_list_default.csv"))
    return read_trace(
        TraceFiles(
            nodes=nodes,
            jobs=base / f"openb_pod_list_{order.variant}.csv",
            node_order=base / "orders" / f"nodes_{order.name}.csv",
            job_order=base / "orders" / f"pods_{order.name}.csv",
        )
    )


def benchmark(kind: str, seed: int, mix: Path | None = None) -> Trace:
    """Read a generated instance, such as ``placement-16x4`` or ``network-3``."""
    base = instance(kind, seed)
    links = base / "links.csv"
    files = TraceFiles(base / "nodes.csv", base / "jobs.csv", links if links.exists() else None, mix=mix)
    return read_trace(files)


def instance(kind: str, seed: int) -> Path:
    """Return the folder of a generated instance."""
    return folder() / "benchmarks" / f"{kind}-seed{seed}"
