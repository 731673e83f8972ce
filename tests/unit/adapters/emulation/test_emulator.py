"""The emulator between a packet queue, here one in memory, and the clients of its control socket."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from lab.conditions import Conditions
from lab.emulation.control import ask
from lab.emulation.emulator import Emulator, missed
from lab.emulation.queue import QueueEmulation
from lab.emulation.queue_messages import Queued
from lab.holding import Holding, Readings
from seaway.domain.errors import UnavailableError

MS = 1_000_000
DEVICES = {1: "gw-1", 2: "gw-2"}
ENDS, BACK = ("gw-1", "gw-2"), ("gw-2", "gw-1")


class MemoryQueue:
    """A packet queue that a test fills."""

    def __init__(self) -> None:
        self._readable, self._written = os.pipe()
        self._packets: list[Queued] = []
        self.released: list[tuple[int, int]] = []
        self.dropped: list[int] = []

    def put(self, *packets: Queued) -> None:
        """Add packets to the queue."""
        self._packets += packets
        os.write(self._written, b"." * len(packets))

    def wake(self) -> None:
        """Make the queue readable from now on, with or without packets."""
        os.write(self._written, b".")

    def fileno(self) -> int:
        """Return a descriptor that is readable while packets are queued."""
        return self._readable

    def read(self) -> Iterator[Queued]:
        """Return the queued packets."""
        while self._packets:
            os.read(self._readable, 1)
            yield self._packets.pop(0)

    def release(self, numbers: Sequence[int]) -> None:
        """Record released packets, and the time."""
        self.released += [(number, time.monotonic_ns()) for number in numbers]

    def drop(self, number: int) -> None:
        """Record a dropped packet."""
        self.dropped.append(number)

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self._readable)
        os.close(self._written)


@pytest.fixture
def queue() -> MemoryQueue:
    """Return an empty queue."""
    return MemoryQueue()


@pytest.fixture
def holding() -> Holding:
    """Return links without delays."""
    return Holding(Random(0))


@pytest.fixture
def emulator(
    queue: MemoryQueue, holding: Holding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Emulator]:
    """Run an emulator of that queue."""
    monkeypatch.setattr("socket.if_indextoname", name_of)
    made = Emulator(queue, holding, tmp_path / "emulator.sock")  # type: ignore[arg-type]  # a fake
    yield made
    made.close()


def name_of(device: int) -> str:
    """Return the kernel's name of an interface."""
    if device not in DEVICES:
        raise OSError("no such device")
    return DEVICES[device]


def turn_while(emulator: Emulator, queue: MemoryQueue, ask: Callable[[], object]) -> None:
    """Run the emulator while a client sends a request."""

    def ask_and_wake() -> None:
        try:
            ask()
        finally:
            queue.wake()

    other = threading.Thread(target=ask_and_wake)
    other.start()
    while other.is_alive():
        emulator.turn()


def test_a_packet_is_held_from_when_the_kernel_got_it(emulator: Emulator, queue: MemoryQueue, holding: Holding) -> None:
    """The time in the queue counts as part of the delay; a packet with a future time counts as arrived now."""
    holding.link(ENDS).change(Conditions(50 * MS))
    now_ns, real_ns = time.monotonic_ns(), time.time_ns()
    queue.put(Queued(1, 1, 2, real_ns - 40 * MS, 100), Queued(2, 1, 2, real_ns + 10**12, 100))
    while len(queue.released) < 2:
        emulator.turn()
    assert [number for number, _ in queue.released] == [1, 2]
    (first_ns, first_held), (second_ns, second_held) = holding.link(ENDS).holds
    assert first_ns == pytest.approx(now_ns - 40 * MS, abs=10 * MS)
    assert second_ns >= now_ns
    assert min(first_held, second_held) >= 50 * MS
    assert all(when >= now_ns for _, when in queue.released)


def test_what_is_lost_is_dropped(emulator: Emulator, queue: MemoryQueue, holding: Holding) -> None:
    """A lost packet is dropped in the kernel, and one whose interface is gone is released."""
    holding.link(ENDS).change(Conditions(loss_ppm=1_000_000))
    queue.put(Queued(1, 1, 2, 0, 100), Queued(2, 9, 2, 0, 100))
    emulator.turn()
    assert queue.dropped == [1]
    assert [number for number, _ in queue.released] == [2]


def test_it_says_what_links_are_like_and_what_it_did(
    emulator: Emulator, queue: MemoryQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request returns conditions and counters of all links, and the latest delays of one."""
    kernel = tmp_path / "queues"
    kernel.write_text("    0  12345     3 2    40     2     1      99  1\n")
    monkeypatch.setattr("lab.emulation.emulator.KERNELS_QUEUES", kernel)
    emulation = QueueEmulation(list, tmp_path)
    turn_while(emulator, queue, lambda: emulation.change({ENDS: Conditions(MS, 0, 5, 7), BACK: Conditions()}))
    queue.put(Queued(1, 2, 1, 0, 100))
    emulator.turn()
    said: list[Readings] = []
    held: list[tuple[int, int]] = []
    turn_while(emulator, queue, lambda: said.append(emulation.read()))
    turn_while(emulator, queue, lambda: held.extend(emulation.holds(BACK)))
    there, back = said[0].links
    assert said[0].missed == 3
    assert (there.ends, there.conditions, there.counts.packets) == (ENDS, Conditions(MS, 0, 5, 7), 0)
    assert (back.ends, back.counts.packets, back.counts.octets, back.counts.released) == (BACK, 1, 100, 1)
    assert [held_ns for _, held_ns in held] == [back.counts.held_ns]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({"change": [{"ends": ["a"], "delay_ns": 1}]}, "two ends"),
        ({"change": [{"ends": ["a", "b"], "delay_ns": -1}]}, "delay"),
        ({"change": [{"ends": ["a", "b"], "dealy_ns": 1}]}, "dealy_ns"),
        ({"sing": True}, "ask it to"),
        ({"change": [5]}, "int"),
    ],
)
def test_a_wrong_question_is_refused_and_harms_no_one(
    emulator: Emulator, queue: MemoryQueue, holding: Holding, tmp_path: Path, question: dict[str, object], says: str
) -> None:
    """An invalid request gets an error, and the emulator continues."""
    refused: list[str] = []

    def wrong() -> None:
        try:
            ask(tmp_path / "emulator.sock", question)
        except ValueError as error:
            refused.append(str(error))

    turn_while(emulator, queue, wrong)
    assert says in refused[0]
    turn_while(emulator, queue, lambda: QueueEmulation(list, tmp_path).change({ENDS: Conditions(MS)}))
    assert holding.link(ENDS).conditions == Conditions(MS)


def test_a_question_that_cannot_be_read_is_refused(emulator: Emulator, queue: MemoryQueue, tmp_path: Path) -> None:
    """A request with excessive nesting gets an error, and the next one is answered."""
    answers: list[bytes] = []

    def wrong() -> None:
        with socket.socket(socket.AF_UNIX) as asker:
            asker.settimeout(5)
            asker.connect(str(tmp_path / "emulator.sock"))
            asker.sendall(b"[" * 200_000 + b"\n")
            answers.append(asker.recv(1000))

    turn_while(emulator, queue, wrong)
    assert b'"error"' in answers[0]
    turn_while(emulator, queue, lambda: QueueEmulation(list, tmp_path).read())


def test_an_emulator_that_is_gone_is_informed_of(tmp_path: Path) -> None:
    """The error explains the consequence for the lab, and the remedy."""
    with pytest.raises(UnavailableError, match="--replace"):
        QueueEmulation(list, tmp_path).read()


def test_packets_that_no_one_took_in_time_are_counted_by_the_kernel() -> None:
    """Both kernel counters count: of a full queue, and of a full socket; without a queue there are none."""
    assert missed("    0  12345     3 2    40     2     1      99  1\n") == 3
    assert missed("") == 0
