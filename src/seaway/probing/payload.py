"""What a probe carries, so that its answer is known for its own: its number and a secret."""

from __future__ import annotations

import struct

_MARK = struct.Struct("!I8s44x")
SECRET_BYTES = 8
PAYLOAD_BYTES = _MARK.size
"""As much as ping sends: 64 bytes with the ICMP header."""


def encode(probe: int, secret: bytes) -> bytes:
    """Return the payload of a probe."""
    return _MARK.pack(probe, secret)


def decode(payload: bytes) -> tuple[int, bytes] | None:
    """Return a probe's number and secret; None when that is no payload of a probe."""
    if len(payload) != PAYLOAD_BYTES:
        return None
    probe, secret = _MARK.unpack(payload)
    return probe, secret
