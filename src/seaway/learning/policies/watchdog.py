"""Stopping what takes too long: one thread watches over all runs of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Protocol


class Run(Protocol):
    """What can be told to stop, as onnxruntime's ``RunOptions``; of one run only."""

    terminate: bool


class Watchdog:
    """Tells runs to stop when their time is over.

    Its thread starts with the first run. It is not woken for a run that ends later than it looks again anyway, so that
    runs that follow one another cost no switch of threads; without a run it sleeps.

    Parameters
    ----------
    now_s
        Monotonic clock in seconds.
    """

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget all runs and the thread: a process that was forked has neither."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._runs: dict[int, tuple[float, Run]] = {}
        self._looks_s = inf
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, run: Run, seconds: float) -> Iterator[None]:
        """Watch over a run, which is told to stop when so many seconds have passed before the end; by any thread."""
        until_s = self._now_s() + seconds
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
                thread.start()
                self._thread = thread
            self._runs[id(run)] = until_s, run
            if until_s < self._looks_s:
                self._looks_s = until_s
                self._changed.notify()
        try:
            yield
        finally:
            with self._lock:
                self._runs.pop(id(run), None)

    def _watch(self) -> None:
        with self._lock:
            while True:
                now_s = self._now_s()
                for key, (until_s, run) in list(self._runs.items()):
                    if until_s <= now_s:
                        run.terminate = True
                        del self._runs[key]
                self._looks_s = min((until_s for until_s, _ in self._runs.values()), default=inf)
                self._changed.wait(None if self._looks_s == inf else self._looks_s - now_s)


WATCHDOG = Watchdog()
"""Of this process."""

os.register_at_fork(after_in_child=WATCHDOG.begin_anew)
