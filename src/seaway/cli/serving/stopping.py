"""Ctrl-C and SIGTERM of a server, from the first import until the server has ended, and lines about its start."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Self

import typer

ENDING = (signal.SIGTERM, signal.SIGINT)


PATIENT = 2
"""Number of signals after which the next one ends the process at once."""


class StoppedError(Exception):
    """A stop that was requested during the start."""


class StopSignals:
    """Handler of Ctrl-C and SIGTERM.

    While modules are imported, nothing has started, and a signal ends the process. After `begin`, the first signal
    requests a graceful stop, the second one a stop that does not wait for open requests. If something hangs, the third
    one ends the process.

    Attributes
    ----------
    count
        Number of signals so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._begun = False
        self._calls: list[Callable[[int], None]] = []

    def __enter__(self) -> Self:
        """Handle signals."""
        self._before = {each: signal.signal(each, self._handle) for each in ENDING}
        return self

    def __exit__(self, *_: object) -> None:
        """Stop handling signals. After a stop, they are ignored until the process has ended."""
        if self.count:
            _write("stopped\n")
        for each, handler in self._before.items():
            signal.signal(each, signal.SIG_IGN if self.count else handler)

    def starting(self, step: str) -> None:
        """Print a step of the start.

        Raises
        ------
        StoppedError
            If a stop was requested.
        """
        if self.count:
            raise StoppedError
        typer.secho(f"Starting: {step} ...", dim=True)

    def begin(self) -> None:
        """Record that components run from now on, which have to stop first."""
        self._begun = True

    def on_stop(self, call: Callable[[int], None]) -> None:
        """Register a function to call in the main thread for each signal, with the number of signals so far."""
        self._calls.append(call)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if not self._begun:
            _write("stopped before the start\n")
            os._exit(128 + number)  # as in shells
        if self.count > PATIENT:
            _write("stopped at once; what was stored stays\n")
            os._exit(128 + number)
        if self.count == 1:
            _write("stopping ...\n")
        for call in list(self._calls):
            call(self.count)


def _write(text: str) -> None:
    """Write a line to standard error without its buffer, which the interrupted code may be using."""
    with suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), text.encode())
