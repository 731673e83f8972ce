"""Messages to and from the kernel's packet queues."""

from __future__ import annotations

from struct import pack, unpack_from

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.emulation.queue_messages import (
    ACCEPT,
    CONFIG,
    DROP,
    FULL_LENGTH,
    HEADER,
    IN_DEVICE,
    NLMSG_ERROR,
    OUT_DEVICE,
    PACKET,
    PACKET_HEADER,
    PAYLOAD,
    TIMESTAMP,
    VERDICT,
    Queued,
    attribute,
    configuration,
    message,
    packets,
    refusal,
    verdicts,
)

NUMBERS = st.integers(0, 2**32 - 1)


def reported(packet: Queued, head: int = 40) -> bytes:
    """Write a packet as the kernel does."""
    seconds, rest = divmod(packet.stamp_ns, 10**9)
    parts = [
        attribute(PACKET_HEADER, pack(">IHB", packet.number, 0x86DD, 2)),
        attribute(IN_DEVICE, pack(">I", packet.came_in)),
        attribute(OUT_DEVICE, pack(">I", packet.goes_out)),
        attribute(TIMESTAMP, pack(">QQ", seconds, rest // 1000)) if packet.stamp_ns else b"",
        attribute(FULL_LENGTH, pack(">I", packet.octets)) if packet.octets > head else b"",
        attribute(PAYLOAD, bytes(min(packet.octets, head))),
    ]
    return message(PACKET, 0, b"".join(parts))


PACKETS = st.builds(
    Queued,
    number=NUMBERS,
    came_in=NUMBERS,
    goes_out=NUMBERS,
    stamp_ns=st.integers(0, 2**50).map(lambda micros: micros * 1000),
    octets=st.integers(0, 2**32 - 1),
)


@given(st.lists(PACKETS, max_size=4))
def test_packets_are_read_as_the_kernel_tells_them(given: list[Queued]) -> None:
    """Number, interfaces, time and whole length are read, of one packet or of several in a row."""
    assert list(packets(b"".join(map(reported, given)))) == given


def test_other_messages_are_passed_over() -> None:
    """Answers to late verdicts between packets are skipped."""
    packet = Queued(1, 2, 3, 0, 60)
    answer = HEADER.pack(20, NLMSG_ERROR, 0, 0, 0) + pack("=i", -2)
    assert list(packets(answer + reported(packet) + answer + reported(packet))) == [packet, packet]


@pytest.mark.parametrize("verdict", [ACCEPT, DROP])
def test_verdicts_name_every_packet(verdict: int) -> None:
    """There is one message for each packet: the verdict, then its number in network byte order."""
    data = verdicts(3, [7, 2**32 - 1], verdict)
    size = len(data) // 2
    for at, number in ((0, 7), (size, 2**32 - 1)):
        length, kind, *_ = HEADER.unpack_from(data, at)
        assert (length, kind) == (size, VERDICT)
        assert unpack_from(">BBHHHII", data, at + HEADER.size)[2:3] == (3,)
        assert unpack_from(">II", data, at + HEADER.size + 8) == (verdict, number)


def test_a_queue_is_bound_before_it_is_set_up() -> None:
    """Each step is a message of its own that requests an answer; the first binds the queue."""
    first, *others = configuration(0, 1000)
    assert unpack_from("=HH", first, HEADER.size + 4) == (8, 1)
    for each in (first, *others):
        length, kind, flags, *_ = HEADER.unpack_from(each)
        assert (length, kind, flags) == (len(each), CONFIG, 5)


def test_an_answer_says_whether_it_went_well() -> None:
    """An answer has an error number, 0 for none, and other messages are not answers."""
    refused = HEADER.pack(20, NLMSG_ERROR, 0, 0, 0) + pack("=i", -16)
    assert refusal(refused) == 16
    assert refusal(HEADER.pack(20, NLMSG_ERROR, 0, 0, 0) + pack("=i", 0)) == 0
    assert refusal(reported(Queued(1, 2, 3, 0, 60))) == 0
