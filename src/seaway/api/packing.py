"""Answers that are packed while they are made, for who asks for that.

References
----------
RFC 9110, section 12.5.3; RFC 1952.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from fastapi import Request
from fastapi.responses import StreamingResponse

LEVEL = 1
"""The fastest: of figures of the same things again and again little is left all the same."""

AS_GZIP = 31
"""What tells zlib to write gzip's header and trailer, with the largest window."""


def in_pieces(request: Request, pieces: Iterable[bytes], media: str) -> StreamingResponse:
    """Answer piece by piece, made, and packed where that is asked for, in a thread while the one before is sent."""
    headers = {"vary": "accept-encoding"}
    if takes_gzip(request.headers.get("accept-encoding", "")):
        return StreamingResponse(packed(pieces), media_type=media, headers={**headers, "content-encoding": "gzip"})
    return StreamingResponse(iter(pieces), media_type=media, headers=headers)


def packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pack a text in pieces."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, AS_GZIP)
    for piece in pieces:
        if some := packer.compress(piece):
            yield some
    yield packer.flush()


def takes_gzip(header: str) -> bool:
    """Tell whether gzip is among what a client takes; what it does not name it does not get."""
    for part in header.split(",")[:32]:
        coding, *parameters = (each.strip().lower() for each in part.split(";"))
        if coding == "gzip":
            return not any(_is_nothing(each) for each in parameters)
    return False


def _is_nothing(parameter: str) -> bool:
    return parameter.startswith("q=") and not parameter[2:].strip("0.")
