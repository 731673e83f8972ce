"""Path selection between two gateways, by the network bounds of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seaway.domain.network import Link, NetworkNeed
from seaway.domain.reasons import Reason
from seaway.scheduling.snapshot.encode import link_meets


@dataclass(frozen=True, slots=True)
class Measured:
    """Path with its measurement.

    Attributes
    ----------
    name
        Name of the path.
    link
        Measurement; None without a recent one.
    """

    name: str
    link: Link | None

    @property
    def answers(self) -> bool:
        """True if probes on the path are answered."""
        return self.link is not None and self.link.latency_ns is not None

    def meets(self, need: NetworkNeed) -> bool:
        """Report whether the path meets the bounds of a job, including bandwidth, which all paths of a pair share."""
        return self.link is not None and link_meets(need, self.link)


@dataclass(frozen=True, slots=True)
class PathRequest:
    """Waiting job with its bounds for the pair."""

    job_id: str
    need: NetworkNeed


@dataclass(frozen=True, slots=True)
class Choice:
    """Selected path, and the reason as a sentence.

    Attributes
    ----------
    job_id
        Waiting job that determined the selection; empty if none did.
    """

    path: str
    why: str
    job_id: str = ""


def choose(
    paths: Sequence[Measured], current: str, running: Sequence[NetworkNeed], waiting: Sequence[PathRequest]
) -> Choice:
    """Select the path for the traffic of a pair.

    Paths that respond are preferred, then those that meet the bounds of most running jobs. Next are those that serve
    the first of the waiting jobs, then the second, and so on. The configured order decides ties. The same input gives
    the same path, so paths change only when figures or jobs change.

    Parameters
    ----------
    paths
        At least one, in the configured order.
    current
        The active path; empty for none. It affects only the reason.
    running
        Bounds of running jobs over the pair.
    waiting
        Waiting jobs for the pair, in order.
    """
    merits = {path.name: _rank_of(path, running, waiting) for path in paths}
    best = max(merits, key=merits.__getitem__)  # the first of equals
    if best == current or current not in merits:
        return Choice(best, Reason("serves_first"))
    return _better(best, merits[best], merits[current], current, waiting)


def serving_gateway(gateways: Sequence[str], current: str, answers: Mapping[str, bool]) -> str:
    """Select the gateway that carries the traffic of a cluster.

    The current one stays until no other gateway gets an answer from it, so that traffic does not move when a lost
    gateway is back.

    Parameters
    ----------
    gateways
        Gateways of the cluster, in the configured order.
    answers
        Whether each gateway answers; gateways without measurements are missing.
    """
    if answers.get(current, True):
        return current
    return next((each for each in gateways if answers.get(each)), current)


_Rank = tuple[bool, int, tuple[bool, ...]]
"""Merits of a path: response, number of running jobs that it serves, and waiting jobs that it serves."""


def _rank_of(path: Measured, running: Sequence[NetworkNeed], waiting: Sequence[PathRequest]) -> _Rank:
    return path.answers, sum(map(path.meets, running)), tuple(path.meets(request.need) for request in waiting)


def _better(path: str, best: _Rank, now: _Rank, current: str, waiting: Sequence[PathRequest]) -> Choice:
    """Return the choice of a path, with its advantage over the current path as the reason."""
    if best[0] != now[0]:
        return Choice(path, Reason("no_answer_of", name=current))
    if best[1] != now[1]:
        return Choice(path, Reason("meets_more", count=best[1], other=current, less=now[1]))
    for request, by_best, by_now in zip(waiting, best[2], now[2], strict=True):
        if by_best != by_now:
            return Choice(path, Reason("job_needs", job=request.job_id, other=current), request.job_id)
    return Choice(path, Reason("comes_first", other=current))


@dataclass(frozen=True, slots=True)
class SteerablePair:
    """Pair of gateways whose traffic can be steered.

    Attributes
    ----------
    current
        The active path.
    paths
        All paths, largest weight first.
    """

    source: str
    target: str
    current: str
    paths: tuple[Measured, ...]

    @property
    def is_dead(self) -> bool:
        """True if the active path does not respond and another path does."""
        now = next((path for path in self.paths if path.name == self.current), None)
        return (now is None or not now.answers) and any(path.answers for path in self.paths)
