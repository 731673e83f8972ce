"""Probes over UDP."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seaway.probing import packets

secrets = st.binary(min_size=8, max_size=8)


@given(st.integers(0, (1 << 32) - 1), secrets, st.integers(0, 1 << 62))
def test_an_answer_brings_back_what_was_asked(probe: int, secret: bytes, dwell_ns: int) -> None:
    """The probe's number, its secret, and how long it lay at the reflector."""
    question = packets.encode_question(probe, secret)
    assert packets.is_question(question)
    assert packets.decode_answer(packets.answer(question, dwell_ns)) == (probe, secret, dwell_ns)


def test_an_answer_is_as_large_as_the_question_and_is_none() -> None:
    """So reflectors send no one more than they got, and never answer each other."""
    question = packets.encode_question(1, bytes(8))
    answer = packets.answer(question, 5)
    assert len(answer) == len(question) == packets.DATAGRAM_BYTES
    assert not packets.is_question(answer)
    assert packets.decode_answer(question) is None


@given(st.binary(max_size=100))
def test_anything_else_is_no_question(data: bytes) -> None:
    """Only what a prober sends is sent back, in full length."""
    question = packets.encode_question(1, bytes(8))
    assert not packets.is_question(data)
    assert not packets.is_question(question + b"x")
    assert not packets.is_question(question[:-1])


@given(st.binary(max_size=100))
def test_anything_else_is_no_answer(data: bytes) -> None:
    """Orphan datagrams at a prober's port say nothing."""
    assert packets.decode_answer(data) is None


def test_a_dwell_that_cannot_be_is_cut() -> None:
    """A reflector whose clock was set back says that the question did not lie there at all."""
    answer = packets.decode_answer(packets.answer(packets.encode_question(1, bytes(8)), -1))
    assert answer is not None
    assert answer.dwell_ns == 0


def test_a_probe_is_as_large_as_a_ping() -> None:
    """56 bytes and the ICMP header, as people compare the two."""
    assert len(packets.encode_payload(0, bytes(8))) == packets.PAYLOAD_BYTES == 56


@given(st.binary(max_size=80))
def test_a_payload_of_another_size_is_nobodys(data: bytes) -> None:
    """Other programs' replies of other sizes are distinguished at once."""
    assert (packets.decode_payload(data) is None) == (len(data) != packets.PAYLOAD_BYTES)
