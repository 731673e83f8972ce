"""Reading what an API server answers: whatever that is, it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

import aiohttp

from seaway.domain.errors import RejectedError, UnavailableError

MOST_BYTES = 512 * 1024**2
"""The longest answer: a list of everything, where a server could not keep its pages for long enough."""

MOST_LINE_BYTES = 32 * 1024**2
"""The longest line of a stream. Objects have 1.5 MiB at most, and a few times that where somebody raised it."""


async def whole(answer: aiohttp.ClientResponse) -> bytes:
    """Read an answer to its end.

    Raises
    ------
    UnavailableError
        When that does not come.
    """
    pieces, size = [], 0
    async for piece in answer.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise _too_long(answer, MOST_BYTES)
    return b"".join(pieces)


async def at_most(answer: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """Read an answer that is not longer than this.

    Raises
    ------
    RejectedError
        When it is, or is compressed.
    """
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise RejectedError("it answers compressed, although it was asked not to")
    said = bytearray()
    async for piece in answer.content.iter_any():
        said += piece
        if len(said) > most_bytes:
            raise RejectedError(f"it answers more than {most_bytes} bytes")
    return bytes(said)


async def last(answer: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """Read an answer to its end and return its last bytes."""
    pieces: deque[bytes] = deque()
    size = 0
    async for piece in answer.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        while size - len(pieces[0]) >= most_bytes:
            size -= len(pieces.popleft())
    return b"".join(pieces)[-most_bytes:]


async def lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Cut an answer into lines, without what ends them.

    Raises
    ------
    UnavailableError
        When one of them does not end.
    """
    rest = bytearray()
    async for piece in answer.content.iter_any():
        rest += piece
        if b"\n" in piece:
            *ended, begun = bytes(rest).split(b"\n")
            rest = bytearray(begun)
            for line in ended:
                if line:
                    yield line
        if len(rest) > MOST_LINE_BYTES:
            raise _too_long(answer, MOST_LINE_BYTES)
    if rest:
        yield bytes(rest)


def _too_long(answer: aiohttp.ClientResponse, most_bytes: int) -> UnavailableError:
    return UnavailableError(f"{answer.url.host} answers more than {most_bytes} bytes at once to {answer.url.path}")
