"""Socket to one of the kernel's packet queues (NFQUEUE), in the network namespace of this process."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress

from lab.emulation.queue_messages import ACCEPT, DROP, Queued, configuration, packets, refusal, verdicts

NETLINK_NETFILTER = 12
SOL_NETLINK, NETLINK_NO_ENOBUFS = 270, 5
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35

BUFFER = 16 << 20
"""Size of the receive buffer, octets."""
LARGEST = 1 << 16
LONGEST_QUEUE = 1 << 17
AT_ONCE = 64
"""Maximum number of messages per read."""
VERDICTS_AT_ONCE = 256


class PacketQueue:
    """Packets that the kernel queues until it receives a verdict.

    Parameters
    ----------
    queue
        Its number, as in the netfilter rule.

    Raises
    ------
    OSError
        If the kernel has no such queues, or another process uses this one.
    """

    def __init__(self, queue: int = 0) -> None:
        self._queue = queue
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_NO_ENOBUFS, 1)
        with suppress(PermissionError):
            self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        self._socket.bind((0, 0))
        for each in configuration(queue, LONGEST_QUEUE):
            self._socket.send(each)
            error = refusal(self._socket.recv(LARGEST))
            if error:
                raise OSError(error, os.strerror(error))
        self._socket.setblocking(False)
        # While any socket requests timestamps, the kernel records the arrival of every packet, also of queued ones.
        self._stamps = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self._stamps.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def fileno(self) -> int:
        """Return the file descriptor for `select`."""
        return self._socket.fileno()

    def read(self) -> Iterator[Queued]:
        """Yield waiting packets, up to a limit."""
        for _ in range(AT_ONCE):
            try:
                data = self._socket.recv(LARGEST)
            except BlockingIOError:
                return
            yield from packets(data)

    def release(self, numbers: Sequence[int]) -> None:
        """Release packets."""
        self._tell(numbers, ACCEPT)

    def drop(self, number: int) -> None:
        """Drop a packet."""
        self._tell([number], DROP)

    def _tell(self, numbers: Sequence[int], verdict: int) -> None:
        for at in range(0, len(numbers), VERDICTS_AT_ONCE):
            self._socket.send(verdicts(self._queue, numbers[at : at + VERDICTS_AT_ONCE], verdict))

    def close(self) -> None:
        """Leave the queue; waiting packets are lost."""
        self._socket.close()
        self._stamps.close()
