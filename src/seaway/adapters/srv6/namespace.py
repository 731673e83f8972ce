"""Network namespaces: what is done inside of one is done by sockets and files of that one."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seaway.domain.errors import ForbiddenError, RejectedError

NAMED = Path("/run/netns")
"""Where `ip netns add` puts namespaces."""

OWN = Path("/proc/thread-self/ns/net")

CLONE_NEWNET = 0x40000000
SO_NETNS_COOKIE = 71


@contextmanager
def inside(netns: str) -> Iterator[None]:
    """Put this thread into a network namespace for a while; empty leaves it where it is.

    Raises
    ------
    RejectedError
        When there is no such namespace.
    ForbiddenError
        When this process may not enter it.
    """
    if not netns:
        yield
        return
    before = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = _open(netns)
        try:
            _enter(there, netns)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _enter(before, "the one before")
    finally:
        os.close(before)


def identity() -> str:
    """Return what no other namespace of this machine has, before the next boot or after."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_socket:
        try:
            cookie = any_socket.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8)
        except OSError:  # before Linux 5.14; numbers of files are given anew when a namespace is gone
            return f"{boot}/file-{OWN.stat().st_ino}"
    return f"{boot}/{int.from_bytes(cookie, sys.byteorder)}"


def _open(netns: str) -> int:
    if netns in {".", ".."} or "/" in netns:
        raise RejectedError(f"{netns!r} is no name of a network namespace")
    try:
        return os.open(NAMED / netns, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        there = ", ".join(sorted(each.name for each in NAMED.iterdir())) if NAMED.is_dir() else ""
        raise RejectedError(f"there is no network namespace {netns!r}; there are: {there or 'none'}") from None


def _enter(namespace: int, name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET):
        why = os.strerror(ctypes.get_errno())
        raise ForbiddenError(f"cannot enter the network namespace {name!r}: {why}; that takes root")
