"""What a trained policy may take, and what becomes of one that takes more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic_ns
from typing import TypeVar

from seaway.learning.policies.monitor import NS_PER_S, Reason, Watch

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
