"""An instance: one problem to learn on, or to be judged by."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job


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
