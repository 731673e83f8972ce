"""A program that runs, with all that it began: what it prints is bounded, and heard only until it is ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

from seaway.domain.errors import RejectedError

MOST_MIB = 1
"""The most that one may print. Tokens and certificates have some KiB."""

PIECE = 1 << 16
"""How many bytes a pipe holds."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a program left.

    Attributes
    ----------
    code
        What it ended with; below zero the signal that killed it.
    out, err
        What it printed.
    """

    code: int
    out: str
    err: str


class Program:
    """One that was begun just now, without a terminal.

    Parameters
    ----------
    command
        What is run, with its arguments.
    environment
        All variables that it has.
    folder
        Where it runs.

    Raises
    ------
    OSError, ValueError
        When it cannot be run.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._bell, self._rope = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=environment,
                start_new_session=True,  # a group of its own, to be ended as a whole
            )
        except (OSError, ValueError):
            self._bell.close()
            self._rope.close()
            raise

    def said(self) -> Said:
        """Wait until it ended, and whatever it began printed the last; or until it is ended.

        Raises
        ------
        RejectedError
            When it prints too much; it is ended then.
        """
        out, err = bytearray(), bytearray()
        with DefaultSelector() as waiting:
            waiting.register(self._bell, EVENT_READ)
            for pipe, said in ((self._process.stdout, out), (self._process.stderr, err)):
                if pipe:
                    waiting.register(pipe, EVENT_READ, said)
            while len(waiting.get_map()) > 1:
                heard = [key for key, _ in waiting.select()]
                if any(key.fileobj is self._bell for key in heard):  # others may hold its pipes open for ever
                    break
                for key in heard:
                    piece = os.read(key.fd, PIECE)
                    key.data.extend(piece)
                    if not piece:
                        waiting.unregister(key.fileobj)
                    if len(key.data) > MOST_MIB << 20:
                        self.end()
                        self._process.wait()
                        raise RejectedError(f"prints more than {MOST_MIB} MiB")
        return Said(self._process.wait(), out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    def end(self) -> None:
        """End it and whatever it began, as far as that is still of its group; for any thread, until it is closed."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._rope.close()  # which the other end hears

    def close(self) -> None:
        """Let go of it: what prints to it from now on is ended by that."""
        for each in (self._process.stdout, self._process.stderr, self._bell, self._rope):
            if each:
                each.close()
