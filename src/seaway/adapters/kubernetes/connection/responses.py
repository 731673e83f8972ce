"""What API servers answer when they do not do what was asked."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from http import HTTPStatus
from http.client import responses

import aiohttp
import msgspec

from seaway.domain.errors import RejectedError, SeawayError, UnavailableError

MAX_MESSAGE_LENGTH = 1000

TRANSIENT_REASONS = (
    "because it is being terminated",
    "error looking up service account",
    "not yet ready to handle request",
    "status unknown for quota",
)
"""What servers say along with 403 that no one decided: soon it is otherwise."""

FINAL_REASONS = (
    "failed to create typed patch object",
    "field not declared in schema",
    "failed to convert new object",
)
"""What servers say of what they cannot read in an object that is applied: with 500, and without a reason."""

CONVERSION_FAILURES = "conversion webhook"
"""Who may have failed to convert an object instead, and may do better later."""


class _Status(msgspec.Struct):
    """The part of a Kubernetes ``Status`` that Seaway reads."""

    message: str = ""
    reason: str = ""


class ApiError(SeawayError):
    """An API server refused: asking again in the same words will not help, unless the refusal is `passing`.

    Attributes
    ----------
    status
        The HTTP status.
    reason
        Kubernetes' own word, like ``NotFound``.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    @property
    def missing(self) -> bool:
        """Whether what was asked for is not there."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def forbidden(self) -> bool:
        """Whether Seaway lacks the right to it."""
        return self.status == HTTPStatus.FORBIDDEN

    @property
    def unauthorized(self) -> bool:
        """Whether it does not know Seaway, or not any more."""
        return self.status == HTTPStatus.UNAUTHORIZED

    @property
    def transient(self) -> bool:
        """Whether it is no one's decision, so that the same may be done a little later."""
        return (
            self.unauthorized
            or self.conflict
            or (self.forbidden and any(each in str(self) for each in TRANSIENT_REASONS))
        )

    @property
    def gone(self) -> bool:
        """Whether the version that was asked for is too old."""
        return self.status == HTTPStatus.GONE or self.reason == "Expired"

    @property
    def immutable(self) -> bool:
        """Whether it is about something that may not be changed once it is there."""
        return self.status == HTTPStatus.UNPROCESSABLE_ENTITY and "immutable" in str(self)

    @property
    def conflict(self) -> bool:
        """Whether another user changed the object, or it is there already."""
        return self.status == HTTPStatus.CONFLICT


def error_of(status: int, body: bytes) -> ApiError:
    """Make an error of an answer."""
    try:
        said = msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        said = _Status(message=body[:MAX_MESSAGE_LENGTH].decode("utf-8", "replace").strip())
    message = said.message or responses.get(status) or "no reason was given"
    if message.startswith("<"):
        message = f"it answers {status} with a web page; is that the address of a Kubernetes API server?"
    if status == HTTPStatus.UNAUTHORIZED:
        message = f"Seaway's credentials are not accepted there ({message}): they are wrong, or have expired"
    if _is_unreadable(status, said.reason, message):
        return ApiError(HTTPStatus.BAD_REQUEST, "BadRequest", message[:MAX_MESSAGE_LENGTH])
    return ApiError(status, said.reason, message[:MAX_MESSAGE_LENGTH])


def _is_unreadable(status: int, reason: str, message: str) -> bool:
    """Tell whether a server failed because of what it was given, in which case it always will.

    References
    ----------
    https://github.com/kubernetes/apimachinery ``pkg/util/managedfields/internal/structuredmerge.go``
    """
    return (
        status == HTTPStatus.INTERNAL_SERVER_ERROR
        and not reason
        and any(each in message for each in FINAL_REASONS)
        and CONVERSION_FAILURES not in message
    )


MAX_BYTES = 512 * 1024**2
"""The longest answer: a list of everything, where a server could not keep its pages for long enough."""

MAX_LINE_BYTES = 32 * 1024**2
"""The longest line of a stream. Objects have 1.5 MiB at most, and a few times that where a user raised it."""


async def read_body(answer: aiohttp.ClientResponse) -> bytes:
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
        if size > MAX_BYTES:
            raise _too_long(answer, MAX_BYTES)
    return b"".join(pieces)


async def read_at_most(answer: aiohttp.ClientResponse, max_bytes: int) -> bytes:
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
        if len(said) > max_bytes:
            raise RejectedError(f"it answers more than {max_bytes} bytes")
    return bytes(said)


async def read_tail(answer: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Read an answer to its end and return its last bytes."""
    pieces: deque[bytes] = deque()
    size = 0
    async for piece in answer.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        while size - len(pieces[0]) >= max_bytes:
            size -= len(pieces.popleft())
    return b"".join(pieces)[-max_bytes:]


async def read_lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
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
        if len(rest) > MAX_LINE_BYTES:
            raise _too_long(answer, MAX_LINE_BYTES)
    if rest:
        yield bytes(rest)


def _too_long(answer: aiohttp.ClientResponse, max_bytes: int) -> UnavailableError:
    return UnavailableError(f"{answer.url.host} answers more than {max_bytes} bytes at once to {answer.url.path}")
