"""Connection of a client to a server, and its retries."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from seaway import __version__
from seaway.client.call import Call
from seaway.client.config import Target
from seaway.client.errors import AnswerError, UpgradeRequiredError
from seaway.domain.backoff import backoff
from seaway.domain.errors import (
    ConflictError,
    ForbiddenError,
    InvariantError,
    RejectedError,
    SeawayError,
    StaleError,
    UnauthenticatedError,
    UnavailableError,
    UnknownError,
)
from seaway.domain.numbers import whole_number
from seaway.domain.reasons import Reason, received

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from types import ModuleType

    import httpx


class Response(Protocol):
    """Response that has been read, of httpx or `seaway.client.local`."""

    @property
    def status_code(self) -> int:
        """Status."""

    @property
    def reason_phrase(self) -> str:
        """Reason of the status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers; names in any case."""

    @property
    def content(self) -> bytes:
        """Body."""

    @property
    def text(self) -> str:
        """Body as text."""

    @property
    def is_success(self) -> bool:
        """True for a status from 200 to 299."""


RETRY_AFTER_S = 5
"""Pause if the server does not send one."""


MAX_RETRY_AFTER_S = 3600


SHOWN = 200
"""Limit of characters of an unknown answer in an error."""


def error_of(response: Response) -> SeawayError:
    """Return the exception of an error response that has been read."""
    status = response.status_code
    reported = _problem(response)
    detail = _text(reported, str(reported.get("detail") or reported.get("title") or _unexplained(response)))
    if status in PLAIN:
        return PLAIN[status](detail)
    if status < HTTPStatus.BAD_REQUEST or status == HTTPStatus.METHOD_NOT_ALLOWED:
        return AnswerError(f"this is not an answer of a Seaway server: {_unexplained(response)}; is the URL right?")
    if status in RETRIED or status in LATER:
        return UnavailableError(detail, retry_after_s=retry_after_s(response))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return InvariantError(f"the server failed: {detail}")
    return _rejected(UnknownError if status in GONE else RejectedError, detail, reported.get("errors"))


PLAIN: dict[int, type[SeawayError]] = {
    HTTPStatus.UNAUTHORIZED: UnauthenticatedError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.PRECONDITION_FAILED: StaleError,
    HTTPStatus.UPGRADE_REQUIRED: UpgradeRequiredError,
}
"""Errors with a message only."""


RETRIED = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
"""Statuses after which a retry makes sense."""


LATER = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
"""Statuses for timeouts and rate limits, where the request itself is valid."""


GONE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


def retry_after_s(response: Response) -> int:
    """Return the server's pause before a retry, in seconds."""
    reported = response.headers.get("Retry-After", "")
    seconds = whole_number(reported)
    return RETRY_AFTER_S if seconds is None else min(seconds, MAX_RETRY_AFTER_S)


def _problem(response: Response) -> dict[str, Any]:
    try:
        reported = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return {}
    return reported if isinstance(reported, dict) else {}


def _text(body: dict[str, Any], text: str) -> str:
    """Return a text, as a reason if the body has its code."""
    reason = body.get("reason")
    return received(reason, text) if isinstance(reason, dict) else text


def _unexplained(response: Response) -> str:
    start = " ".join(response.text[:SHOWN].split())
    return f"{response.status_code} {response.reason_phrase}{f': {start}' if start else ''}"


def _rejected(kind: type[RejectedError], detail: str, errors: object) -> RejectedError:
    """Return one exception for a problem and its fields."""
    fields = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    texts = [(_text(each, str(each.get("message", detail))), str(each.get("field", ""))) for each in fields]
    reported = [RejectedError(text, where=where) for text, where in texts]
    if not reported:
        return kind(detail)
    return kind(reported[0].message, where=reported[0].where, also=tuple(reported[1:]))


CONNECT_S = 5.0
READ_TIMEOUT_S = 45.0
"""Maximum silence of an event stream. Servers send heartbeats more often."""

IDLE_S = 25.0
"""Seconds for which idle connections stay open: longer than the interval of an agent's reports, and shorter than the
timeout of servers.
"""

_warned: set[str] = set()


def settings(target: Target, timeout_s: float) -> dict[str, Any]:
    """Return the settings of httpx for a server.

    Raises
    ------
    RejectedError
        When the certificates to trust cannot be read.
    """
    import httpx

    warn_if_exposed(target)
    return {
        "base_url": target.server,
        "headers": headers_of(target),
        "timeout": httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
        "limits": httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=IDLE_S),
        "verify": trusted(target),
        "trust_env": not target.loopback,  # no proxy for this machine itself
    }


def headers_of(target: Target) -> dict[str, str]:
    """Return the headers of every request to a server."""
    headers = {"User-Agent": f"seaway/{__version__}"}
    if target.token:
        headers["Authorization"] = f"Bearer {target.token}"
    return headers


def import_httpx() -> ModuleType:
    """Import httpx without its own command line, which doubles the import time."""
    own = "httpx._main"
    if "httpx" not in sys.modules:
        sys.modules[own] = None  # type: ignore[assignment]  # None means a missing module
        import_module("httpx")
        del sys.modules[own]
    return sys.modules["httpx"]


def request(call: Call[Any]) -> dict[str, Any]:
    """Return a call as arguments of httpx."""
    sent: dict[str, Any] = {"method": call.method, "url": call.path, "headers": dict(call.headers)}
    if call.known and call.known.tag:
        sent["headers"]["If-None-Match"] = call.known.tag
    if call.query:
        sent["params"] = call.parameters
    if call.content:
        sent["content"] = call.content
    return sent


def content(call: Call[Any], response: Response) -> bytes:
    """Return the body of a response that has been read, or the cached one if it has not changed.

    Raises
    ------
    SeawayError
        As in `seaway.client.errors`.
    """
    known = call.known
    if known and known.tag and response.status_code == HTTPStatus.NOT_MODIFIED:
        return known.content
    if not response.is_success:
        raise error_of(response)
    if known:
        known.tag, known.content = response.headers.get("ETag", ""), response.content
    return response.content


def warn_if_exposed(target: Target) -> None:
    """Warn, once for each server, if the token would cross a network without encryption."""
    if target.exposed and target.server not in _warned:
        _warned.add(target.server)
        warnings.warn(
            f"the token is sent to {target.server} without encryption, and others can read it; use https",
            stacklevel=2,
        )


def trusted(target: Target) -> ssl.SSLContext | bool:
    """Return the certificates to trust, as httpx takes them; raise as `settings`."""
    if not target.server.startswith("https:"):
        return False  # nothing to check; saves reading the system's certificates
    if not target.ca_file:
        return True
    import ssl

    try:
        return ssl.create_default_context(cafile=target.ca_file)
    except OSError as error:
        raise RejectedError(f"cannot be read as certificates: {error}", where=target.ca_file) from None


def _pass_over(why: str) -> None:
    """Ignore the reason of a wait."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits of retries.

    Attributes
    ----------
    patience_s
        Seconds for which an idempotent call is retried before its failure is raised; 0 for no retries.
    first_s, most_s
        First and maximum pause. It doubles in between, with random jitter, so that clients do not retry together.
    clock
        Monotonic clock, seconds.
    random
        Source of the jitter.
    on_wait
        Called with each new message of a server that asks clients to wait: it is starting, or another one is the
        leader. The call is retried automatically.
    """

    patience_s: float = 30.0
    first_s: float = 0.1
    most_s: float = 5.0
    clock: Callable[[], float] = time.monotonic
    random: Random = field(default_factory=Random)
    on_wait: Callable[[str], None] = _pass_over

    def pause_s(self, failures: int) -> float:
        """Return the pause in seconds after a number of failures in a row, from 1."""
        return backoff(failures, self.first_s, self.most_s, self.random)


class Retries:
    """Retries of one call.

    Parameters
    ----------
    server
        URL in errors if it cannot be reached.
    repeatable
        Whether the call may be sent again if it is unknown whether it arrived.
    """

    def __init__(self, pace: Pace, server: str, *, repeatable: bool) -> None:
        self._pace = pace
        self._server = server
        self._repeatable = repeatable
        self._failures = 0
        self._reported = ""
        self._ends = pace.clock() + pace.patience_s

    def answered(self, response: Response) -> float | None:
        """Return the pause before the next try; None to accept the answer."""
        if response.status_code not in RETRIED or not self._repeatable:
            return None
        pause = self._pause()
        if response.headers.get("Retry-After"):
            pause = max(pause, float(retry_after_s(response)))
        if self._too_late(pause):
            return None
        self._report_wait(str(error_of(response)))
        return pause

    def refused(self, response: Response) -> float:
        """Return the pause before a refused stream is requested again.

        Raises
        ------
        SeawayError
            When a retry is pointless.
        """
        pause = self.answered(response)
        if pause is None:
            raise error_of(response)
        return pause

    def ended(self) -> float:
        """Return the pause before a stream that ended is requested again; raise as `lost`."""
        return self.lost(import_httpx().ReadError("the stream ended"))

    def lost(self, error: httpx.TransportError) -> float:
        """Return the pause before the next try after a call without an answer.

        Raises
        ------
        UnavailableError
            When it may not be sent again, or the time for retries is over.
        """
        import httpx

        unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        pause = self._pause()
        if not (unsent or self._repeatable) or self._too_late(pause):
            raise unreachable(self._server, error) from error
        return pause

    def _report_wait(self, why: str) -> None:
        if why != self._reported:
            self._reported = why
            self._pace.on_wait(why)

    def _pause(self) -> float:
        self._failures += 1
        return self._pace.pause_s(self._failures)

    def _too_late(self, pause: float) -> bool:
        return self._pace.clock() + pause > self._ends


def unreachable(server: str, error: httpx.TransportError) -> UnavailableError:
    """Return the error for a server that cannot be reached, with a hint."""
    import httpx

    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return UnavailableError(Reason("server_unreachable", server=server, error=_plain(error)))
    if isinstance(error, httpx.TimeoutException):
        return UnavailableError(Reason("server_late", server=server))
    return UnavailableError(Reason("connection_broke", server=server, why=_plain(error)))


def _plain(error: Exception) -> str:
    if "WRONG_VERSION_NUMBER" in str(error):  # of OpenSSL
        return "it does not answer with TLS, try http:// instead of https://"
    return str(error) or type(error).__name__
