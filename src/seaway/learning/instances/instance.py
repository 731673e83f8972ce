"""An instance: one problem to learn on, or to be judged by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from seaway.domain.cluster import Fleet
from seaway.domain.device import Device
from seaway.domain.job import Demand, Job
from seaway.domain.node import Node
from seaway.scheduling.arrays import Float64, Int64


@dataclass(frozen=True, slots=True)
class Instance:
    """A fleet and the jobs that come to it.

    Attributes
    ----------
    name
        What tables call it.
    fleet
        With nothing on it.
    jobs
        In order of arrival.
    mix
        Jobs of the past, from which heuristics and policies may learn what is likely to come; never `jobs`
        themselves, which would be a look ahead.
    best_known
        Most of the jobs that are known to fit at once; None where no one worked that out.
    """

    name: str
    fleet: Fleet
    jobs: tuple[Job, ...]
    mix: tuple[Job, ...] = ()
    best_known: int | None = None


GIB = 1024
"""MiB in a GiB."""


SHARE_LIMIT = 1000
"""Slices that a drawn device takes at once: so many that only memory and cores are scarce."""


CORE_MILLI = 1000
"""Thousandths of a CPU core."""


Span = tuple[float, float]
"""The lowest and the highest that may be drawn."""


def node(name: str, shape: tuple[int, int], gpus: int, model: str, gpu_memory_mib: int) -> Node:
    """Make a node of so many cores and GiB whose devices are named after it; its name is unique in the fleet."""
    cores, memory_gib = shape
    devices = tuple(
        Device(f"{name}/{index}", index, model, gpu_memory_mib, share_limit=SHARE_LIMIT) for index in range(gpus)
    )
    return Node(name, cores * CORE_MILLI, memory_gib * GIB, devices)


def jobs_of(demands: Iterable[Demand], prefix: str = "job") -> tuple[Job, ...]:
    """Make a job of one replica for each demand, in order."""
    return tuple(Job(f"{prefix}-{number:04}", demand) for number, demand in enumerate(demands))


def in_span(random: np.random.Generator, span: Span) -> float:
    """Draw evenly from a span."""
    return float(random.uniform(*span))


def picked(random: np.random.Generator, weights: Sequence[float], count: int) -> Int64:
    """Draw indices by their weights, shape (count,)."""
    return random.choice(len(weights), count, p=np.array(weights) / sum(weights))


def rounded(amounts: Float64, step: int, least: int, most: int) -> list[int]:
    """Round amounts to steps, and keep them between a least and a most, both multiples of the step."""
    whole: list[int] = np.clip(np.rint(amounts / step).astype(np.int64) * step, least, most).tolist()
    return whole
