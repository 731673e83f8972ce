"""What API servers answer when they do not do what was asked."""

from __future__ import annotations

from http import HTTPStatus
from http.client import responses

import msgspec

from seaway.domain.errors import SeawayError

LONGEST = 1000

PASSING = (
    "because it is being terminated",
    "error looking up service account",
    "not yet ready to handle request",
    "status unknown for quota",
)
"""What servers say along with 403 that nobody decided: soon it is otherwise."""

DECIDED = (
    "failed to create typed patch object",
    "field not declared in schema",
    "failed to convert new object",
)
"""What servers say of what they cannot read in an object that is applied: with 500, and without a reason."""

CONVERTED = "conversion webhook"
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
    def passing(self) -> bool:
        """Whether it is nobody's decision, so that the same may be done a little later."""
        return self.unauthorized or self.conflict or (self.forbidden and any(each in str(self) for each in PASSING))

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
        """Whether somebody else changed the object, or it is there already."""
        return self.status == HTTPStatus.CONFLICT


def refusal(status: int, body: bytes) -> ApiError:
    """Make an error of an answer."""
    try:
        said = msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        said = _Status(message=body[:LONGEST].decode("utf-8", "replace").strip())
    message = said.message or responses.get(status) or "no reason was given"
    if message.startswith("<"):
        message = f"it answers {status} with a web page; is that the address of a Kubernetes API server?"
    if status == HTTPStatus.UNAUTHORIZED:
        message = f"Seaway's credentials are not accepted there ({message}): they are wrong, or have expired"
    if _is_unreadable(status, said.reason, message):
        return ApiError(HTTPStatus.BAD_REQUEST, "BadRequest", message[:LONGEST])
    return ApiError(status, said.reason, message[:LONGEST])


def _is_unreadable(status: int, reason: str, message: str) -> bool:
    """Tell whether a server failed because of what it was given, in which case it always will.

    References
    ----------
    https://github.com/kubernetes/apimachinery ``pkg/util/managedfields/internal/structuredmerge.go``
    """
    return (
        status == HTTPStatus.INTERNAL_SERVER_ERROR
        and not reason
        and any(each in message for each in DECIDED)
        and CONVERTED not in message
    )
