"""Emulator: reads packets from the kernel, drops some, delays the others, and counts them."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from lab.conditions import Conditions
from lab.emulation.control import Answer, Asker, listen
from lab.emulation.queue_socket import PacketQueue
from lab.holding import Holding
from seaway.domain.network import Ends

KERNELS_QUEUES = Path("/proc/thread-self/net/netfilter/nfnetlink_queue")
EARLY_NS = 120_000
"""Time that the emulator wakes up before a packet is due, since kernels wake sleepers late by about as much."""

SPARSE_NS = 500_000
"""Minimum gap to the previous packet for an early wake-up; busy waiting for every packet would use a whole core."""

STAMP_AGE_NS = 1_000_000_000
"""Maximum age of a kernel timestamp. An older one means that the clock was set."""


class Emulator:
    """Emulator of the links in a lab's core.

    Parameters
    ----------
    queue
        Queue of packets.
    holding
        Decides on packets.
    control
        Path of its control socket.
    """

    def __init__(self, queue: PacketQueue, holding: Holding, control: Path) -> None:
        self._queue = queue
        self._holding = holding
        self._listener = listen(control)
        self._askers: list[Asker] = []
        self._names: dict[int, str] = {}
        self._released_ns = 0

    def turn(self) -> None:
        """Wait for the next event, and handle it."""
        waited: Sequence[PacketQueue | socket.socket | Asker] = [self._queue, self._listener, *self._askers]
        ready, _, _ = select.select(waited, [], [], self._timeout_s())
        if self._queue in ready:
            self._take()
        now_ns = time.monotonic_ns()
        if released := list(self._holding.due(now_ns)):
            self._queue.release(released)
            self._released_ns = now_ns
        if self._listener in ready:
            with suppress(BlockingIOError):
                self._askers.append(Asker(self._listener.accept()[0], self._answer))
        self._serve(ready)

    def _timeout_s(self) -> float | None:
        if any(asker.waits for asker in self._askers):
            return 0
        next_ns = self._holding.next_ns()
        if next_ns is None:
            return None
        early_ns = EARLY_NS if next_ns - self._released_ns > SPARSE_NS else 0
        return max(next_ns - early_ns - time.monotonic_ns(), 0) / 1e9

    def _take(self) -> None:
        now_ns = time.monotonic_ns()
        ahead_ns = time.time_ns() - now_ns
        for packet in self._queue.read():
            came_ns = packet.stamp_ns - ahead_ns
            if not packet.stamp_ns or not now_ns - STAMP_AGE_NS < came_ns < now_ns:
                came_ns = time.monotonic_ns()
            ends = self._name(packet.came_in), self._name(packet.goes_out)
            if not self._holding.take(packet.number, ends, came_ns, packet.octets):
                self._queue.drop(packet.number)

    def _serve(self, ready: Sequence[object]) -> None:
        for asker in self._askers[:]:
            there = asker.read() if asker in ready else True
            if not (there and (not asker.waits or asker.write())):
                self._askers.remove(asker)
                asker.close()

    def _name(self, device: int) -> str:
        name = self._names.get(device)
        if name is None:
            try:
                name = self._names[device] = socket.if_indextoname(device)
            except OSError:  # the interface is gone
                return ""
        return name

    def _answer(self, question: dict[str, object]) -> Answer:
        match question:
            case {"change": list(links)}:
                for each in links:
                    ends = _ends(each.pop("ends"))
                    self._holding.link(ends).change(Conditions(**each))
            case {"holds": ends}:
                yield {"holds": list(self._holding.link(_ends(ends)).holds)}
            case {"read": True}:
                for ends, link in list(self._holding.links.items()):
                    yield {"ends": ends, **asdict(link.conditions), **asdict(link.counts)}
                yield {"missed": missed(KERNELS_QUEUES.read_text())}
            case _:
                raise ValueError("ask it to change, to read, or for holds")

    def close(self) -> None:
        """Close all sockets; packets in the queue are lost."""
        for asker in self._askers:
            asker.close()
        self._listener.close()
        self._queue.close()


def missed(queues: str) -> int:
    """Return the number of packets that the kernel dropped because of a full queue, from its queue statistics."""
    return sum(int(fields[5]) + int(fields[6]) for fields in map(str.split, queues.splitlines()))


def _ends(value: object) -> Ends:
    match value:
        case [str(source), str(target)]:
            return source, target
    raise ValueError("a link has two ends")
