"""Selection among several paths between two gateways, by the bounds of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seaway.domain.network import Link, NetworkNeed
from seaway.scheduling.snapshot.encode import link_meets


@dataclass(frozen=True, slots=True)
class Measured:
    """A path and what was measured along it.

    Attributes
    ----------
    name
        The path's.
    link
        None for one that was not measured lately.
    """

    name: str
    link: Link | None

    @property
    def answers(self) -> bool:
        """Whether probes along it are answered."""
        return self.link is not None and self.link.latency_ns is not None

    def meets(self, need: NetworkNeed) -> bool:
        """Tell whether it keeps a job's bounds, bandwidth included, which all paths of a pair share."""
        return self.link is not None and link_meets(need, self.link)


@dataclass(frozen=True, slots=True)
class PathRequest:
    """A job that waits, and what it needs of the pair."""

    job_id: str
    need: NetworkNeed


@dataclass(frozen=True, slots=True)
class Choice:
    """A path, and why that one: a sentence for people.

    Attributes
    ----------
    job_id
        The job that waits and decided it; empty where none did.
    """

    path: str
    why: str
    job_id: str = ""


def choose(
    paths: Sequence[Measured], current: str, running: Sequence[NetworkNeed], waiting: Sequence[PathRequest]
) -> Choice:
    """Choose the path for the traffic of a pair.

    Paths that answer go first, then those that meet the bounds of most running jobs, then those that serve the first of
    the
    waiting jobs, then the second, and so on, then the configured order. The same input gives the same path, so paths
    change
    only when figures or jobs do.

    Parameters
    ----------
    paths
        At least one, in the configured order.
    current
        The active path; empty for none. It affects only the text.
    running
        Bounds of running jobs over the pair.
    waiting
        Waiting jobs for the pair, in order.
    """
    merits = {path.name: _merits(path, running, waiting) for path in paths}
    best = max(merits, key=merits.__getitem__)  # the first of equals
    if best == current or current not in merits:
        return Choice(best, "it serves what runs and what waits, and is liked best of those that do")
    return _better(best, merits[best], merits[current], current, waiting)


_Merits = tuple[bool, int, tuple[bool, ...]]
"""Whether a path answers, the number of running jobs that it serves, and the waiting jobs that it serves."""


def _merits(path: Measured, running: Sequence[NetworkNeed], waiting: Sequence[PathRequest]) -> _Merits:
    return path.answers, sum(map(path.meets, running)), tuple(path.meets(request.need) for request in waiting)


def _better(path: str, best: _Merits, now: _Merits, current: str, waiting: Sequence[PathRequest]) -> Choice:
    """Say by what a path is better than the one that is taken now."""
    if best[0] != now[0]:
        return Choice(path, f"{current} does not answer")
    if best[1] != now[1]:
        return Choice(path, f"it keeps the bounds of {best[1]} running jobs, {current} those of {now[1]}")
    for request, by_best, by_now in zip(waiting, best[2], now[2], strict=True):
        if by_best != by_now:
            return Choice(path, f"job {request.job_id} needs what {current} does not give", request.job_id)
    return Choice(path, f"it is liked better than {current} and serves as well")


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two gateways between which traffic can be steered.

    Attributes
    ----------
    current
        The path that is taken now.
    paths
        All paths, liked best first.
    """

    source: str
    target: str
    current: str
    paths: tuple[Measured, ...]

    @property
    def silent(self) -> bool:
        """Whether nothing comes back along the path that is taken, and something does along another."""
        now = next((path for path in self.paths if path.name == self.current), None)
        return (now is None or not now.answers) and any(path.answers for path in self.paths)
