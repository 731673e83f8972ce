"""Probes over UDP."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seaway.probing import datagram, payload

secrets = st.binary(min_size=8, max_size=8)


@given(st.integers(0, (1 << 32) - 1), secrets, st.integers(0, 1 << 62))
def test_an_answer_brings_back_what_was_asked(probe: int, secret: bytes, dwell_ns: int) -> None:
    """The probe's number, its secret, and how long it lay at the reflector."""
    question = datagram.encode_question(probe, secret)
    assert datagram.is_question(question)
    assert datagram.decode_answer(datagram.answer(question, dwell_ns)) == (probe, secret, dwell_ns)


def test_an_answer_is_as_large_as_the_question_and_is_none() -> None:
    """So reflectors send nobody more than they got, and never answer each other."""
    question = datagram.encode_question(1, bytes(8))
    answer = datagram.answer(question, 5)
    assert len(answer) == len(question) == datagram.DATAGRAM_BYTES
    assert not datagram.is_question(answer)
    assert datagram.decode_answer(question) is None


@given(st.binary(max_size=100))
def test_anything_else_is_no_question(data: bytes) -> None:
    """Only what a prober sends is sent back, in full length."""
    question = datagram.encode_question(1, bytes(8))
    assert not datagram.is_question(data)
    assert not datagram.is_question(question + b"x")
    assert not datagram.is_question(question[:-1])


@given(st.binary(max_size=100))
def test_anything_else_is_no_answer(data: bytes) -> None:
    """Stray datagrams at a prober's port say nothing."""
    assert datagram.decode_answer(data) is None


def test_a_dwell_that_cannot_be_is_cut() -> None:
    """A reflector whose clock was set back says that the question did not lie there at all."""
    answer = datagram.decode_answer(datagram.answer(datagram.encode_question(1, bytes(8)), -1))
    assert answer is not None
    assert answer.dwell_ns == 0


def test_a_probe_is_as_large_as_a_ping() -> None:
    """56 bytes and the ICMP header, as people compare the two."""
    assert len(payload.encode(0, bytes(8))) == payload.PAYLOAD_BYTES == 56


@given(st.binary(max_size=80))
def test_a_payload_of_another_size_is_nobodys(data: bytes) -> None:
    """Other programs' replies of other sizes are told apart at once."""
    assert (payload.decode(data) is None) == (len(data) != payload.PAYLOAD_BYTES)
