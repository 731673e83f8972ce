"""Ids of jobs: short, sorted by time, and unlike each other without asking a database."""

from __future__ import annotations

from random import Random

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no i, l, o, u, which people mix up."""

_PAIRS = tuple(first + second for first in ALPHABET for second in ALPHABET)
"""Two letters at once: every row that is read has an id to write."""

_DIGITS = bytes(b"0123456789abcdefghijklmnopqrstuv!"[ALPHABET.find(chr(each))] for each in range(256))
"""Turns a letter of an id into what Python calls the same digit, and any other letter into none."""

LENGTH = 13
RANDOM_BITS = 22
NS_PER_MS = 1_000_000


class JobIds:
    """Draws ids: 42 bits of milliseconds since 1970, 22 bits that are random at first and count up after.

    Parameters
    ----------
    random
        Where the random bits come from.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._last = 0

    def draw(self, now_ns: int) -> str:
        """Return an id that sorts after all drawn before it, even when the clock was set back."""
        fresh = (now_ns // NS_PER_MS << RANDOM_BITS) | self._random.getrandbits(RANDOM_BITS)
        self._last = fresh if fresh >> RANDOM_BITS > self._last >> RANDOM_BITS else self._last + 1
        return encode(self._last)


def encode(number: int) -> str:
    """Write a 64-bit number as 13 letters and digits that sort as the number does."""
    pairs = _PAIRS
    return (
        ALPHABET[number >> 60 & 31]
        + pairs[number >> 50 & 1023]
        + pairs[number >> 40 & 1023]
        + pairs[number >> 30 & 1023]
        + pairs[number >> 20 & 1023]
        + pairs[number >> 10 & 1023]
        + pairs[number & 1023]
    )


def decode(text: str) -> int | None:
    """Read an id; None when `text` is none."""
    if len(text) != LENGTH:
        return None
    try:
        number = int(text.encode("ascii").translate(_DIGITS), 32)
    except ValueError:
        return None
    return number if number < 1 << 63 else None
