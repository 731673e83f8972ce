"""Threads that run in a network namespace other than that of the process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, TypeVar

from seaway.domain.errors import RejectedError

NAMESPACES = Path("/run/netns")
"""Folder of the named namespaces of `ip netns`."""
_CLONE_NEWNET = 0x40000000

T = TypeVar("T")


class Namespaced(Protocol):
    """Network namespace in which sockets are created."""

    def call(self, work: Callable[[], T]) -> T:
        """Run a function in the namespace, and return its result."""

    def close(self) -> None:
        """Release the namespace after all calls have ended."""


class CurrentNamespace:
    """Network namespace of the process."""

    def call(self, work: Callable[[], T]) -> T:
        """Run the function."""
        return work()

    def close(self) -> None:
        """Do nothing."""


class Namespace:
    """A named network namespace.

    Entering it requires the capability CAP_SYS_ADMIN. A permanent thread enters it once, so that the process can create
    sockets in it after it drops its privileges.

    Raises
    ------
    RejectedError
        When it does not exist, or the process may not enter it.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"netns-{name}")
        try:
            self.call(lambda: _enter(name))
        except BaseException:
            self.close()
            raise

    def call(self, work: Callable[[], T]) -> T:
        """Run a function in the namespace, and return its result."""
        return self._thread.submit(work).result()

    def close(self) -> None:
        """End the thread after all calls have ended."""
        self._thread.shutdown()


def open_namespace(netns: str) -> Namespaced:
    """Return a network namespace by name, or that of the process for an empty name."""
    return Namespace(netns) if netns else CurrentNamespace()


def _enter(name: str) -> None:
    try:
        descriptor = os.open(NAMESPACES / name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise RejectedError(f"network namespace {name!r} not found: {error.strerror}") from error
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:  # os.setns requires Python 3.12
            why = os.strerror(ctypes.get_errno())
            raise RejectedError(f"cannot enter network namespace {name!r}: {why}; it takes CAP_SYS_ADMIN")
    finally:
        os.close(descriptor)
