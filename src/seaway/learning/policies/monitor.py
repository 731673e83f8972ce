"""Who is told how trained policies do: when they decide, and when something else has to decide for them."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic_ns
from typing import Protocol, TypeVar

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


Answer = TypeVar("Answer")

STRIKING = frozenset({Reason.SLOW, Reason.FAILED, Reason.NOT_FINITE})
"""Reasons that count towards being set aside: the others say nothing of the next decision."""


STOPPED_AT = 4
"""After so many times its budget a model is stopped; before, it ends, and its answer does not count."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What trained policies may take.

    Attributes
    ----------
    fallback
        The policy of the engine that decides where a trained one does not.
    budget_ms
        How long it may take for a decision; 0 for any time, so that what is decided depends on no clock.
    failure_threshold
        After so many slow or failed decisions in a row it is set aside.
    cooldown_s
        For so long.
    now_ns
        Monotonic clock.
    """

    fallback: str = "seaway"
    budget_ms: float = 5
    failure_threshold: int = 5
    cooldown_s: float = 30
    now_ns: Callable[[], int] = monotonic_ns

    @property
    def stop_s(self) -> float:
        """After how many seconds a model is stopped; 0 for never."""
        return STOPPED_AT * self.budget_ms / 1e3


class NoAnswerError(Exception):
    """A trained policy has no answer that counts.

    Parameters
    ----------
    reason
        Which kind of.
    why
        One clause.
    """

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(why)
        self.reason = reason
        self.why = why


class Guard:
    """Asks a trained policy within its limits: whatever it does, a user decides.

    Parameters
    ----------
    policy
        Its name.
    limits
        What it may take.
    watch
        Who is told.
    """

    def __init__(self, policy: str, limits: Limits, watch: Watch) -> None:
        self._policy = policy
        self._limits = limits
        self._watch = watch
        self._strikes = 0
        self._until_ns: int | None = None

    def ask(self, answer: Callable[[], Answer], ready: Callable[[], None]) -> Answer | str:
        """Return an answer; or, as a text of one clause, why there is none that counts.

        Parameters
        ----------
        ready
            Makes what is worked out once for a fleet, and takes no part of the time that an answer may take.
        """
        now_ns = self._limits.now_ns
        if self._until_ns is not None and now_ns() < self._until_ns:
            return self._without(Reason.SET_ASIDE, f"set aside for {self._limits.cooldown_s:g} s")
        try:
            ready()
            begun_ns = now_ns()
            found = answer()
        except NoAnswerError as none:
            return self._without(none.reason, none.why)
        except Exception as error:  # noqa: BLE001  # whatever a model does, the job is placed
            return self._without(Reason.FAILED, str(error) or type(error).__name__)
        took_ns = now_ns() - begun_ns
        budget_ms = self._limits.budget_ms
        if budget_ms and took_ns > budget_ms * 1e6:
            # The time is left out: the text stands in logs and by jobs, where each would be another.
            return self._without(Reason.SLOW, f"slower than {budget_ms:g} ms")
        self._strikes = 0
        self._watch.decided(self._policy, took_ns)
        return found

    def _without(self, reason: Reason, why: str) -> str:
        self._watch.fell_back(self._policy, reason, why)
        if reason in STRIKING:
            self._strikes += 1
            if self._strikes >= self._limits.failure_threshold:
                self._strikes = 0
                self._until_ns = self._limits.now_ns() + int(self._limits.cooldown_s * NS_PER_S)
        return why
