"""Who is told how trained policies do: when they decide, and when something else has to decide for them."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

log = logging.getLogger(__name__)

REPEAT_NS = 600_000_000_000
"""After how long it is logged again that a policy falls back for the same reason."""

BOUNDS_S = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)
"""Bounds of the times of decisions that are counted apart, seconds."""

NS_PER_S = 1_000_000_000

_BOUNDS_NS = tuple(bound_s * NS_PER_S for bound_s in BOUNDS_S)


class Reason(StrEnum):
    """Why a trained policy did not decide."""

    SLOW = "slow"
    """Its answer took longer than it may."""
    FAILED = "failed"
    """It answered with an error, or with something else than was asked for."""
    NOT_FINITE = "not_finite"
    """It answered with figures that are none."""
    UNSUITABLE = "unsuitable"
    """It was trained for another number of clusters, or is shown no node that fits."""
    ILLEGAL = "illegal"
    """It chose a cluster in which nothing fits."""
    WAITED = "waited"
    """It would hold a job back that may not be held back, or not any longer."""
    UNUSABLE = "unusable"
    """It is not there, or may not be used here, as when it is not signed by a key that is trusted."""
    SET_ASIDE = "set_aside"
    """It is not asked for a while, after it was slow or failed several times in a row."""


class Watch(Protocol):
    """Is told of each decision; by any thread."""

    def decided(self, policy: str, took_ns: int) -> None:
        """Note that a policy decided."""

    def fell_back(self, policy: str, reason: Reason, why: str) -> None:
        """Note that something else decided in its place; `why` is one clause."""


@dataclass(frozen=True, slots=True)
class PolicyCount:
    """What one policy did since the start.

    Attributes
    ----------
    decided
        Decisions that took up to each of `BOUNDS_S`, and longer, in this order; none is in two.
    took_ns
        How long all of them took.
    fallbacks
        Decisions that something else made in its place, by reason.
    """

    decided: tuple[int, ...]
    took_ns: int
    fallbacks: dict[Reason, int]


@dataclass(slots=True)
class _Tally:
    decided: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    took_ns: int = 0
    fallbacks: Counter[Reason] = field(default_factory=Counter)


class Counts:
    """Counts, and logs once in a while what went wrong.

    Parameters
    ----------
    now_ns
        Monotonic clock.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._tallies: dict[str, _Tally] = {}
        self._reported: dict[tuple[str, Reason], int] = {}

    def decided(self, policy: str, took_ns: int) -> None:
        """Note that a policy decided."""
        with self._lock:
            tally = self._tallies.setdefault(policy, _Tally())
            tally.decided[bisect_left(_BOUNDS_NS, took_ns)] += 1
            tally.took_ns += took_ns

    def fell_back(self, policy: str, reason: Reason, why: str) -> None:
        """Note that something else decided in its place."""
        now_ns = self._now_ns()
        with self._lock:
            self._tallies.setdefault(policy, _Tally()).fallbacks[reason] += 1
            told_ns = self._reported.get((policy, reason))
            if told_ns is not None and now_ns - told_ns < REPEAT_NS:
                return
            self._reported[policy, reason] = now_ns
        log.warning("policy %s did not decide (%s): %s", policy, reason.value, why)

    def counted(self) -> dict[str, PolicyCount]:
        """Return what was counted, by policy."""
        with self._lock:
            return {
                name: PolicyCount(tuple(each.decided), each.took_ns, dict(each.fallbacks))
                for name, each in self._tallies.items()
            }


class Unwatched:
    """Takes no note."""

    def decided(self, policy: str, took_ns: int) -> None:
        """Do nothing."""

    def fell_back(self, policy: str, reason: Reason, why: str) -> None:
        """Do nothing."""
