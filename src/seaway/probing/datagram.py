"""Probes over UDP as bytes: what goes out, and what the reflector at the other end makes of it.

An answer is as large as the question and is none itself, so reflectors can neither be used to send much traffic
somewhere nor to keep each other busy. It says how long it lay at the reflector, which is no part of the round trip.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from seaway.probing import payload
from seaway.probing.payload import PAYLOAD_BYTES

_HEADER = struct.Struct("!4sB3xQ")
_MAGIC = b"SWPR"
_QUESTION, _ANSWER = 0, 1
_MOST_DWELL_NS = (1 << 64) - 1
DATAGRAM_BYTES = _HEADER.size + PAYLOAD_BYTES


class Answer(NamedTuple):
    """An answer, read; `dwell_ns` is how long the question lay at the reflector."""

    probe: int
    secret: bytes
    dwell_ns: int


def encode_question(probe: int, secret: bytes) -> bytes:
    """Return the datagram of a probe."""
    return _HEADER.pack(_MAGIC, _QUESTION, 0) + payload.encode(probe, secret)


def is_question(datagram: bytes) -> bool:
    """Say whether that is a probe, to be sent back."""
    return len(datagram) == DATAGRAM_BYTES and datagram[: len(_MAGIC) + 1] == _MAGIC + bytes((_QUESTION,))


def answer(question: bytes, dwell_ns: int) -> bytes:
    """Return what a reflector sends back, as large as the question."""
    return _HEADER.pack(_MAGIC, _ANSWER, min(max(dwell_ns, 0), _MOST_DWELL_NS)) + question[_HEADER.size :]


def decode_answer(datagram: bytes) -> Answer | None:
    """Read an answer; None when it is none."""
    if len(datagram) != DATAGRAM_BYTES:
        return None
    magic, kind, dwell_ns = _HEADER.unpack_from(datagram)
    marked = payload.decode(datagram[_HEADER.size :])
    if magic != _MAGIC or kind != _ANSWER or marked is None:
        return None
    return Answer(*marked, dwell_ns)
