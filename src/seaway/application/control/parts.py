"""Copies of which a part is gone: some of their replicas are nowhere any more, while others go on."""

from __future__ import annotations

from dataclasses import replace

from seaway.application.records import Attempt
from seaway.domain.deployment import Copy, CopyPhase

STARTED = frozenset({CopyPhase.RUNNING, CopyPhase.SUCCEEDED})
NONE: frozenset[int] = frozenset()


def lacking(copy: Copy, attempt: Attempt) -> frozenset[int]:
    """Return the replicas of an attempt that were placed where a copy is, and of which nothing is there.

    A copy that tells of no replica at all is taken for whole.
    """
    placed = [each.replica for each in attempt.placements if each.cluster == copy.cluster]
    if not copy.replicas or len(copy.replicas) >= len(placed):
        return NONE
    return frozenset(placed) - _there(copy)


def lost(copy: Copy, before: Copy | None, attempt: Attempt) -> frozenset[int]:
    """Return the replicas that were there before, and are not any more."""
    return lacking(copy, attempt) & _there(before) if before else NONE


def with_what_ended(copy: Copy, before: Copy | None, attempt: Attempt) -> Copy:
    """Return a copy with those of its replicas that had done their part before they went."""
    gone = lost(copy, before, attempt)
    if not gone or not before:
        return copy
    ended = [each for each in before.replicas if each.replica in gone and each.phase is CopyPhase.SUCCEEDED]
    return replace(copy, replicas=tuple(sorted((*copy.replicas, *ended), key=lambda each: each.replica)))


def phase_of(copy: Copy | None, attempt: Attempt) -> CopyPhase | None:
    """Return how a copy does as a whole: one that lacks something has not started."""
    if copy and copy.phase in STARTED and lacking(copy, attempt):
        return CopyPhase.STARTING
    return copy.phase if copy else None


def what_is_gone(cluster: str, copy: Copy | None, attempt: Attempt) -> str:
    """Say what somebody removed of an attempt in a cluster, of which this is left."""
    number = len(lacking(copy, attempt)) if copy else 0
    if not number:
        return f"what ran in {cluster} is gone"
    placed = sum(each.cluster == cluster for each in attempt.placements)
    return f"{number} of the {placed} replicas in {cluster} {'is' if number == 1 else 'are'} gone"


def _there(copy: Copy) -> frozenset[int]:
    return frozenset(each.replica for each in copy.replicas)
