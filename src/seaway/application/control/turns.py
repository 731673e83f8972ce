"""A lock that whoever waits for it gets, however soon its holder wants it again."""

from __future__ import annotations

import threading


class Turns:
    """A lock for a thread that holds it most of the time, and others that want it now and then.

    A plain lock that is let go and taken again at once hardly ever goes to anybody else. Here whoever waits stands
    before its holder, who has to queue up like everybody. It may not be taken twice by one thread.
    """

    def __init__(self) -> None:
        self._next = threading.Lock()
        self._held = threading.Lock()

    def __enter__(self) -> None:
        """Take it, once it is free."""
        with self._next:  # held by the one who is next
            self._held.acquire()

    def __exit__(self, *_: object) -> None:
        """Let it go."""
        self._held.release()
