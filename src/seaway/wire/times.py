"""Timestamps as text: RFC 3339 in UTC, to the microsecond."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

NS_PER_US = 1000


def moment(at_ns: int) -> str:
    """Format nanoseconds since 1970."""
    s, rest_ns = divmod(at_ns, 10**9)
    return f"{_second(s)}.{rest_ns // NS_PER_US:06d}Z"


@lru_cache(4096)
def _second(since_s: int) -> str:
    return datetime.fromtimestamp(since_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def moment_or_none(at_ns: int | None) -> str | None:
    """Format nanoseconds since 1970; return None for None."""
    return None if at_ns is None else moment(at_ns)


def at_ns(text: str) -> int:
    """Parse a timestamp with a time zone.

    Raises
    ------
    ValueError
        If it is invalid.
    """
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        raise ValueError(f"{text!r} does not name its zone; put a Z behind it for UTC")
    since = read - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * NS_PER_US
