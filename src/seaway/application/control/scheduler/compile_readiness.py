"""Compile readiness of policies. The first use of a policy compiles it, which must not delay the control loop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.queues import policy_text
from seaway.domain.reasons import Reason

log = logging.getLogger(__name__)

PATIENCE_S = 2
"""Maximum time that a request waits for policies, seconds. Kernels that are in the cache load faster than that."""


class CompileReadiness:
    """Compilation of policies before their first use, one at a time. Thread-safe.

    Parameters
    ----------
    warm
        Compiles a policy by its name; None if every policy is ready.
    ready
        Policies that are ready from the start.

    Attributes
    ----------
    count
        Counter of policies that became ready.
    on_ready
        Called whenever a policy became ready.
    """

    def __init__(self, warm: Callable[[str], None] | None = None, ready: Iterable[str] = ()) -> None:
        self._warm = warm
        self._ready = {"", *ready}
        self._wanted: list[str] = []
        self._outdated: set[str] = set()
        self._works = False
        self._news = threading.Condition()
        self.count = 0
        self.on_ready: Callable[[], None] = lambda: None

    def has(self, name: str) -> bool:
        """Report whether a policy is ready; always true for an empty name."""
        return self._warm is None or name in self._ready

    def want(self, name: str) -> None:
        """Compile a policy in a thread."""
        if self.has(name):
            return
        with self._news:
            if name not in self._wanted:
                self._wanted.append(name)
            if self._works:
                return
            self._works = True
        threading.Thread(target=self._work, name="warm up policies", daemon=True).start()

    def forget(self, name: str) -> None:
        """Mark a policy as outdated, so that the next request compiles it again."""
        with self._news:
            self._ready.discard(name)
            if name in self._wanted:
                self._outdated.add(name)

    def wait(self, *names: str, most_s: float | None = None) -> bool:
        """Compile policies, wait up to a limit, and report whether they are ready.

        The caller must not hold a lock that other threads need.
        """
        for name in names:
            self.want(name)
        with self._news:
            return self._news.wait_for(
                lambda: all(self.has(name) for name in names), PATIENCE_S if most_s is None else most_s
            )

    def require(self, *names: str) -> None:
        """Wait until policies are ready.

        Raises
        ------
        UnavailableError
            If that takes longer than `PATIENCE_S`.
        """
        if not self.wait(*names):
            late = ", ".join(repr(policy_text(name)) for name in names if not self.has(name))
            raise UnavailableError(Reason("policies_compile", names=late), retry_after_s=5)

    def _work(self) -> None:
        while True:
            with self._news:
                if not self._wanted:
                    self._works = False
                    return
                name = self._wanted[0]
            self._make_ready(name)

    def _make_ready(self, name: str) -> None:
        assert self._warm is not None  # without it, all policies are ready
        try:
            self._warm(name)
        except RejectedError as error:
            log.warning("policy %s could not be compiled: %s", name, error)
        except Exception:  # it may be of another package; the caller that decides with it reports the problem
            log.exception("policy %s could not be compiled", name)
        with self._news:
            if name in self._outdated:
                self._outdated.remove(name)
                return  # compile it again
            self._ready.add(name)
            self._wanted.remove(name)
            self.count += 1
            self._news.notify_all()
        self.on_ready()
