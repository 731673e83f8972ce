"""Sockets and their options. All operations that require a privilege are in this module."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Protocol, TypeVar

from seaway.domain.errors import RejectedError
from seaway.probing import packets

Address = IPv4Address | IPv6Address

# <linux/socket.h>, <linux/packets.h> and <linux/icmpv6.h>: constants that are missing in Python's socket module.
_SO_ATTACH_FILTER = 26
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 64
"""SO_TIMESTAMPNS_NEW: two 64-bit numbers on every architecture."""
_SOL_RAW = 255
_FILTER_OF_ICMP = 1
_BUFFER_BYTES = 4 << 20
_TIMESTAMP = struct.Struct("=qq")
ANCILLARY_BYTES = socket.CMSG_SPACE(_TIMESTAMP.size)

Ancillary = list[tuple[int, int, bytes]]


def open_icmp(version: int, source: Address | None, identifier: int) -> socket.socket:
    """Open a raw socket that receives only echo replies with the given identifier.

    Parameters
    ----------
    version
        IP version: 4 or 6.
    source
        Local address of that version; None for the address that the routes select.

    Raises
    ------
    RejectedError
        When a privilege is missing, or the address is not local.
    OSError
        When this machine does not support the protocol.
    """
    family, protocol = _FAMILIES[version]
    try:
        opened = socket.socket(family, socket.SOCK_RAW | socket.SOCK_NONBLOCK, protocol)
    except PermissionError as error:
        raise RejectedError("raw sockets require a privilege: run it as root or with CAP_NET_RAW") from error
    try:
        if version == 6:
            opened.setsockopt(protocol, _FILTER_OF_ICMP, _all_but(packets.V6.reply, words=8))
        else:
            opened.setsockopt(_SOL_RAW, _FILTER_OF_ICMP, _all_but(packets.V4.reply, words=1))
        _attach(opened, _FILTERS[version], identifier)
        prepare(opened)
        bind(opened, source, 0)
    except BaseException:
        opened.close()
        raise
    return opened


def open_udp(version: int, source: Address | None, port: int) -> socket.socket:
    """Open a UDP socket with receive timestamps.

    Raises
    ------
    RejectedError
        When the address is not local, or the port is in use.
    OSError
        When this machine does not support the protocol.
    """
    opened = socket.socket(_FAMILIES[version][0], socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        prepare(opened)
        bind(opened, source, port)
    except BaseException:
        opened.close()
        raise
    return opened


def prepare(opened: socket.socket) -> None:
    """Enable receive timestamps and enlarge the buffers of a socket."""
    opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    for forced, asked in ((_SO_RCVBUFFORCE, socket.SO_RCVBUF), (_SO_SNDBUFFORCE, socket.SO_SNDBUF)):
        try:
            opened.setsockopt(socket.SOL_SOCKET, forced, _BUFFER_BYTES)
        except PermissionError:  # without CAP_NET_ADMIN the system's limits apply
            opened.setsockopt(socket.SOL_SOCKET, asked, _BUFFER_BYTES)


def bind(opened: socket.socket, source: Address | None, port: int) -> None:
    """Bind a socket to a local address and port, unless neither is given."""
    if source is None and not port:
        return
    try:
        opened.bind((str(source) if source else "", port))
    except OSError as error:
        raise RejectedError(f"cannot use {source or 'any address'} port {port}: {error.strerror}") from error


def route_through(opened: socket.socket, header: bytes) -> None:
    """Set the segment routing header of an IPv6 socket; an empty one means the default route.

    This requires no privilege. Linux supports such a header only for a whole socket, not for one message.
    """
    opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RTHDR, header)


def stamp_ns(ancillary: Ancillary) -> int:
    """Return the receive time of a packet by the wall clock; 0 without a timestamp."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds: int
            nanoseconds: int
            seconds, nanoseconds = _TIMESTAMP.unpack(data)
            return seconds * 1_000_000_000 + nanoseconds
    return 0


def _all_but(kind: int, *, words: int) -> bytes:
    """Return the mask that blocks all ICMP message types except one."""
    blocked = ~(1 << kind)
    return struct.pack(f"={words}I", *((blocked >> 32 * word) & 0xFFFFFFFF for word in range(words)))


# Classic BPF (<linux/filter.h>): code, jump if true, jump if false, operand. A raw ICMPv6 socket's packets start with
# the message, those of a raw ICMP socket with the IP header. The identifier is at byte 4 of a message.
_Program = tuple[tuple[int, int, int, int | None], ...]
_LOAD_HALF, _LOAD_HALF_INDEXED, _LOAD_HEADER_LENGTH, _JUMP_IF_EQUAL, _RETURN = 0x28, 0x48, 0xB1, 0x15, 0x06
_IF_IDENTIFIER: _Program = ((_JUMP_IF_EQUAL, 0, 1, None), (_RETURN, 0, 0, 0xFFFFFFFF), (_RETURN, 0, 0, 0))
_FILTERS: dict[int, _Program] = {
    6: ((_LOAD_HALF, 0, 0, 4), *_IF_IDENTIFIER),
    4: ((_LOAD_HEADER_LENGTH, 0, 0, 0), (_LOAD_HALF_INDEXED, 0, 0, 4), *_IF_IDENTIFIER),
}
_FAMILIES = {
    4: (socket.AF_INET, socket.IPPROTO_ICMP),
    6: (socket.AF_INET6, socket.IPPROTO_ICMPV6),
}


def _attach(opened: socket.socket, program: _Program, identifier: int) -> None:
    """Attach a kernel filter that drops packets for other sockets, so that they do not fill the buffer."""
    steps = (
        struct.pack("=HBBI", code, true, false, identifier if operand is None else operand)
        for code, true, false, operand in program
    )
    code = ctypes.create_string_buffer(b"".join(steps))
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)))


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
            raise RejectedError(f"cannot enter network namespace {name!r}: {why}; this requires CAP_SYS_ADMIN")
    finally:
        os.close(descriptor)
