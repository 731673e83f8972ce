"""Monitoring of trained policies: their decisions, their fallbacks, and their limits."""

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

from seaway.domain.reasons import Reason as Coded

log = logging.getLogger(__name__)

REPEAT_NS = 600_000_000_000
"""Minimum time between two log entries about the same fallback."""

BOUNDS_S = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)
"""Bounds of the histogram of decision times, seconds."""

NS_PER_S = 1_000_000_000

_BOUNDS_NS = tuple(bound_s * NS_PER_S for bound_s in BOUNDS_S)


class Reason(StrEnum):
    """Reason for a fallback."""

    SLOW = "slow"
    """The answer exceeded the time limit."""
    FAILED = "failed"
    """The model raised an error, or returned an invalid output."""
    NOT_FINITE = "not_finite"
    """The output contains NaN or infinity."""
    UNSUITABLE = "unsuitable"
    """The policy was trained for another number of clusters, or no node in its input is feasible."""
    ILLEGAL = "illegal"
    """The chosen cluster has no feasible node."""
    WAITED = "waited"
    """The policy deferred a job that must not be deferred, or not any longer."""
    UNUSABLE = "unusable"
    """The policy is missing or not allowed, for example without a trusted signature."""
    SET_ASIDE = "set_aside"
    """The policy is paused after several slow or failed decisions in a row."""


class Watch(Protocol):
    """Receiver of decisions and fallbacks; thread-safe."""

    def decided(self, policy: str, took_ns: int) -> None:
        """Record a decision of a policy."""

    def fell_back(self, policy: str, reason: Reason, why: str) -> None:
        """Record a fallback, with a reason in one clause."""


@dataclass(frozen=True, slots=True)
class PolicyCount:
    """Counters of a policy since the start.

    Attributes
    ----------
    decided
        Number of decisions in each interval of `BOUNDS_S`, and above.
    took_ns
        Sum of decision times.
    fallbacks
        Number of fallbacks by reason.
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
    """Counters of decisions, and logging of fallbacks.

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
        """Record a decision of a policy."""
        with self._lock:
            tally = self._tallies.setdefault(policy, _Tally())
            tally.decided[bisect_left(_BOUNDS_NS, took_ns)] += 1
            tally.took_ns += took_ns

    def fell_back(self, policy: str, reason: Reason, why: str) -> None:
        """Record a fallback."""
        now_ns = self._now_ns()
        with self._lock:
            self._tallies.setdefault(policy, _Tally()).fallbacks[reason] += 1
            logged_ns = self._reported.get((policy, reason))
            if logged_ns is not None and now_ns - logged_ns < REPEAT_NS:
                return
            self._reported[policy, reason] = now_ns
        log.warning("policy %s did not decide (%s): %s", policy, reason.value, why)

    def counted(self) -> dict[str, PolicyCount]:
        """Return the counters by policy."""
        with self._lock:
            return {
                name: PolicyCount(tuple(each.decided), each.took_ns, dict(each.fallbacks))
                for name, each in self._tallies.items()
            }


class NullWatch:
    """Receiver that ignores everything."""

    def decided(self, policy: str, took_ns: int) -> None:
        """Do nothing."""

    def fell_back(self, policy: str, reason: Reason, why: str) -> None:
        """Do nothing."""


Answer = TypeVar("Answer")

PAUSING = frozenset({Reason.SLOW, Reason.FAILED, Reason.NOT_FINITE})
"""Reasons that count towards a pause, because they are likely to recur."""


STOPPED_AT = 4
"""Multiple of the time limit at which a model is stopped. An answer between the two is ignored."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of trained policies.

    Attributes
    ----------
    fallback
        Policy of the engine that decides instead.
    budget_ms
        Time limit of a decision; 0 for none, so that decisions do not depend on a clock.
    failure_threshold
        Number of slow or failed decisions in a row that pause the policy.
    cooldown_s
        Duration of the pause, seconds.
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
        """Seconds after which a model is stopped; 0 for never."""
        return STOPPED_AT * self.budget_ms / 1e3


class NoAnswerError(Exception):
    """A trained policy has no valid answer.

    Parameters
    ----------
    reason
        Kind of reason.
    why
        Reason in one clause.
    """

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(why)
        self.reason = reason
        self.why = why


class Guard:
    """Limits of the calls of a trained policy: a slow or failing policy never blocks a decision.

    Parameters
    ----------
    policy
        Name of the policy.
    limits
        Its limits.
    watch
        Receiver of decisions and fallbacks.
    """

    def __init__(self, policy: str, limits: Limits, watch: Watch) -> None:
        self._policy = policy
        self._limits = limits
        self._watch = watch
        self._failures = 0
        self._until_ns: int | None = None

    def ask(self, answer: Callable[[], Answer], ready: Callable[[], None]) -> Answer | str:
        """Return an answer, or the reason for its absence in one clause.

        Parameters
        ----------
        ready
            Prepares data for the fleet; its time does not count.
        """
        now_ns = self._limits.now_ns
        if self._until_ns is not None and now_ns() < self._until_ns:
            return self._without(Reason.SET_ASIDE, Coded("set_aside", time=float(self._limits.cooldown_s)))
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
            # Without the time, so that equal reasons have equal texts in logs and at jobs.
            return self._without(Reason.SLOW, Coded("slower_than", limit=float(budget_ms)))
        self._failures = 0
        self._watch.decided(self._policy, took_ns)
        return found

    def _without(self, reason: Reason, why: str) -> str:
        self._watch.fell_back(self._policy, reason, why)
        if reason in PAUSING:
            self._failures += 1
            if self._failures >= self._limits.failure_threshold:
                self._failures = 0
                self._until_ns = self._limits.now_ns() + int(self._limits.cooldown_s * NS_PER_S)
        return why
