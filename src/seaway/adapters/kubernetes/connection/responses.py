"""Error responses and size-limited bodies of API servers."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from http import HTTPStatus
from http.client import responses

import aiohttp
import msgspec

from seaway.domain.errors import RejectedError, SeawayError, UnavailableError
from seaway.domain.reasons import Reason

MAX_MESSAGE_LENGTH = 1000

TRANSIENT_REASONS = (
    "because it is being terminated",
    "error looking up service account",
    "not yet ready to handle request",
    "status unknown for quota",
)
"""Messages of temporary 403 responses, which are not a decision of an authorizer."""

FINAL_REASONS = (
    "failed to create typed patch object",
    "field not declared in schema",
    "failed to convert new object",
)
"""Messages for an applied object that the server cannot parse. Servers send them with status 500 and no reason."""

CONVERSION_FAILURES = "conversion webhook"
"""Message of a failed conversion webhook, which may succeed later."""


class _Status(msgspec.Struct):
    """``Status`` of Kubernetes with the fields that Seaway reads."""

    message: str = ""
    reason: str = ""


class ApiError(SeawayError):
    """Refusal by an API server. A retry without changes fails again, unless the error is `transient`.

    Attributes
    ----------
    status
        The HTTP status.
    reason
        The reason of Kubernetes, such as ``NotFound``.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    @property
    def missing(self) -> bool:
        """True if the object does not exist."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def forbidden(self) -> bool:
        """True if Seaway lacks the permission."""
        return self.status == HTTPStatus.FORBIDDEN

    @property
    def unauthorized(self) -> bool:
        """True if the server does not accept the credentials."""
        return self.status == HTTPStatus.UNAUTHORIZED

    @property
    def transient(self) -> bool:
        """True if the same request may succeed later."""
        return (
            self.unauthorized
            or self.conflict
            or (self.forbidden and any(each in str(self) for each in TRANSIENT_REASONS))
        )

    @property
    def gone(self) -> bool:
        """True if the requested resource version is too old."""
        return self.status == HTTPStatus.GONE or self.reason == "Expired"

    @property
    def immutable(self) -> bool:
        """True if the request changes an immutable field."""
        return self.status == HTTPStatus.UNPROCESSABLE_ENTITY and "immutable" in str(self)

    @property
    def conflict(self) -> bool:
        """True if another client changed the object, or the object exists already."""
        return self.status == HTTPStatus.CONFLICT


def error_of(status: int, body: bytes) -> ApiError:
    """Convert an answer to an error."""
    try:
        said = msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        said = _Status(message=body[:MAX_MESSAGE_LENGTH].decode("utf-8", "replace").strip())
    message = said.message or responses.get(status) or "no reason was given"
    if _is_unreadable(status, said.reason, message):
        return ApiError(HTTPStatus.BAD_REQUEST, "BadRequest", message[:MAX_MESSAGE_LENGTH])
    message = Reason("web_page", status=status) if message.startswith("<") else message[:MAX_MESSAGE_LENGTH]
    if status == HTTPStatus.UNAUTHORIZED:
        message = Reason("credentials_refused", text=message)
    return ApiError(status, said.reason, message)


def _is_unreadable(status: int, reason: str, message: str) -> bool:
    """Report whether the server failed because of an invalid object, so that retries fail, too.

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
"""Maximum size of an answer in bytes. A full list is large if the server cannot keep its pages long enough."""

MAX_LINE_BYTES = 32 * 1024**2
"""Maximum length of a line in a stream, in bytes.

Objects have at most 1.5 MiB by default, but administrators can raise that limit.
"""


async def read_body(answer: aiohttp.ClientResponse) -> bytes:
    """Read a complete answer.

    Raises
    ------
    UnavailableError
        When it exceeds `MAX_BYTES`.
    """
    pieces, size = [], 0
    async for piece in answer.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > MAX_BYTES:
            raise _too_long(answer, MAX_BYTES)
    return b"".join(pieces)


async def read_at_most(answer: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Read an answer, up to a maximum size.

    Raises
    ------
    RejectedError
        When it exceeds `max_bytes` or is compressed.
    """
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise RejectedError("it sends a compressed answer although the request forbids it")
    said = bytearray()
    async for piece in answer.content.iter_any():
        said += piece
        if len(said) > max_bytes:
            raise RejectedError(f"it answers more than {max_bytes} bytes")
    return bytes(said)


async def read_tail(answer: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Read a complete answer and return its last bytes."""
    pieces: deque[bytes] = deque()
    size = 0
    async for piece in answer.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        while size - len(pieces[0]) >= max_bytes:
            size -= len(pieces.popleft())
    return b"".join(pieces)[-max_bytes:]


async def read_lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Split an answer into lines, without their line ends.

    Raises
    ------
    UnavailableError
        When a line exceeds `MAX_LINE_BYTES`.
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
    return UnavailableError(f"{answer.url.host} sends more than {max_bytes} bytes for {answer.url.path}")
