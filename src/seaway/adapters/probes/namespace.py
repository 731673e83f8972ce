"""A thread that lives in a network namespace, while its process stays where it is."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, TypeVar

from seaway.domain.errors import RejectedError

NAMESPACES = Path("/run/netns")
"""Where `ip netns` keeps namespaces by name."""
_CLONE_NEWNET = 0x40000000

T = TypeVar("T")


class Namespaced(Protocol):
    """Where sockets are made."""

    def call(self, work: Callable[[], T]) -> T:
        """Do something there, and return what came of it."""

    def close(self) -> None:
        """Let go of it, once nothing is being done there any more."""


class CurrentNamespace:
    """The network namespace of the process."""

    def call(self, work: Callable[[], T]) -> T:
        """Do it."""
        return work()

    def close(self) -> None:
        """Leave things as they are."""


class Namespace:
    """A named network namespace.

    Entering require a privilege (CAP_SYS_ADMIN) and is done once, by a thread that stays: sockets can be made there
    when the process has no privilege any more.

    Raises
    ------
    RejectedError
        When there is none of that name, or it may not be entered.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"netns-{name}")
        try:
            self.call(lambda: _enter(name))
        except BaseException:
            self.close()
            raise

    def call(self, work: Callable[[], T]) -> T:
        """Do something in it, and return what came of it."""
        return self._thread.submit(work).result()

    def close(self) -> None:
        """End the thread, once nothing is being done there any more."""
        self._thread.shutdown()


def open_namespace(netns: str) -> Namespaced:
    """Return a network namespace by name; the process' own where the name is empty."""
    return Namespace(netns) if netns else CurrentNamespace()


def _enter(name: str) -> None:
    try:
        descriptor = os.open(NAMESPACES / name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise RejectedError(f"network namespace {name!r} not found: {error.strerror}") from error
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:  # os.setns came with Python 3.12
            why = os.strerror(ctypes.get_errno())
            raise RejectedError(f"cannot enter network namespace {name!r}: {why}; it takes CAP_SYS_ADMIN")
    finally:
        os.close(descriptor)
