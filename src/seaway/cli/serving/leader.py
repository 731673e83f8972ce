"""Leadership of the control plane: permanent for a single process, or by leader election with a Lease."""

from __future__ import annotations

import gc
import socket
import time
from collections.abc import Callable
from queue import SimpleQueue

from rich.console import Console

from seaway.api.http.health import Standby
from seaway.application.control.dispatch import Dispatcher
from seaway.application.ports.clock import Clock
from seaway.bootstrap.leader_election import FencedThreads, Leadership
from seaway.bootstrap.policies import compile_apart, uncompiled, warm_up
from seaway.bootstrap.settings import Settings
from seaway.cli.serving.stopping import StopSignals

NEWS, END = "news", "end"


class LeaderSession:
    """Leadership of a single process, which begins when the engine is compiled, and never ends.

    SIGTERM and Ctrl-C end the wait.

    Parameters
    ----------
    settings
        The Lease, and the address for health checks during the wait.
    stop
        Ctrl-C and SIGTERM.

    Attributes
    ----------
    came
        True if this process is the leader.
    waited_s
        Time until this process became the leader without the compilation, in seconds.
    """

    def __init__(self, settings: Settings, stop: StopSignals) -> None:
        self.came = False
        self.stop = stop
        self.waited_s = 0.0
        self._standby = Standby(settings.server, self._why, self._can_follow)

    def wait(self, listener: socket.socket) -> None:
        """Wait until this process becomes the leader or is stopped."""
        if uncompiled():
            self._standby.start(listener)
            compile_apart(stopped=lambda: bool(self.stop.count))
        self.came = not self.stop.count

    def close(self) -> None:
        """End the leadership."""
        self._standby.stop()

    @property
    def lost(self) -> str:
        """Reason why the leadership ended; empty if it has not ended."""
        return ""

    def on_lost(self, call: Callable[[], None]) -> None:
        """Register a function to call, from any thread, when the leadership ends.

        If it has ended, call it immediately.
        """

    def begin(self) -> None:
        """Release the port to the server."""
        self._standby.stop()

    def dispatcher(self, clock: Clock, stale_after_s: float) -> Dispatcher | None:
        """Return the dispatcher of cluster calls; None for the default one."""
        return None

    def _why(self) -> str:
        return "the engine is being compiled, which takes about a minute"

    def _can_follow(self) -> bool:
        return False


class LedSession(LeaderSession):
    """Leadership of the process that holds the Lease; parameters as for `LeaderSession`."""

    def __init__(self, settings: Settings, stop: StopSignals) -> None:
        self._news: SimpleQueue[str] = SimpleQueue()
        self._calls: list[Callable[[], None]] = []
        self._lease = settings.leader.lease
        self._leadership = Leadership(settings.leader, self._reported)
        super().__init__(settings, stop)
        stop.on_stop(lambda _: self._news.put(END))

    @property
    def lost(self) -> str:
        """See `LeaderSession`."""
        return self._leadership.lost

    def wait(self, listener: socket.socket) -> None:
        """Wait until this process becomes the leader or is stopped."""
        gc.enable()  # the wait may take weeks
        self._standby.start(listener)
        compile_apart(stopped=lambda: bool(self.stop.count))
        warm_up()  # saves time when the leadership starts
        began_s = time.monotonic()
        self._leadership.start()
        Console(highlight=False, soft_wrap=True).print(
            f"Waiting for the lease {self._lease!r} as {self._leadership.identity}", style="dim"
        )
        self.came = self._news.get() == NEWS and not self.stop.count
        self.waited_s = time.monotonic() - began_s

    def on_lost(self, call: Callable[[], None]) -> None:
        """Register a function to call when the Lease is lost. If it is lost already, call it immediately."""
        self._calls.append(call)
        if self.lost:
            call()

    def dispatcher(self, clock: Clock, stale_after_s: float) -> Dispatcher | None:
        """Return a dispatcher that sends no calls without the Lease."""
        return FencedThreads(clock, stale_after_s, lambda: self._leadership.holds)

    def close(self) -> None:
        """Release the Lease."""
        self._leadership.close()
        super().close()

    def _can_follow(self) -> bool:
        return self._leadership.can_follow

    def _why(self) -> str:
        if self._leadership.waiting:
            return "this process is a standby; its log names the leader"
        return "this process leads, and is starting"

    def _reported(self) -> None:
        self._news.put(NEWS)
        if self.lost:
            for call in list(self._calls):
                call()
