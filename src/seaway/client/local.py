"""Calls of a server on this machine by the standard library, which is imported faster than httpx."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPMessage
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from seaway.client.config import Target
from seaway.client.connection import CONNECT_S, headers_of, import_httpx

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class LocalResponse:
    """Response that has been read."""

    def __init__(self, status_code: int, reason_phrase: str, headers: HTTPMessage, content: bytes) -> None:
        self.status_code = status_code
        self.reason_phrase = reason_phrase
        self.headers: Mapping[str, str] = headers  # type: ignore[assignment]  # a mapping in all but name
        self.content = content

    @property
    def text(self) -> str:
        """Body as text."""
        return self.content.decode(errors="replace")

    @property
    def is_success(self) -> bool:
        """True for a status from 200 to 299."""
        return 200 <= self.status_code < 300


class LocalHttp:
    """Connections to a server on this machine, one for each call."""

    def __init__(self, target: Target, timeout_s: float) -> None:
        self._server = urlsplit(target.server)
        self._headers = headers_of(target)
        self._timeout_s = timeout_s

    @staticmethod
    def serves(target: Target) -> bool:
        """Report whether a server can be called: on this machine, without encryption."""
        return target.loopback and target.server.startswith("http:")

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        params: Iterable[tuple[str, str]] = (),
        content: bytes | None = None,
    ) -> LocalResponse:
        """Make a request, and read the response.

        Raises
        ------
        httpx.TransportError
            As httpx does when there is no response.
        """
        query = urlencode(list(params))
        path = f"{self._server.path}{url}{f'?{query}' if query else ''}"
        connection = HTTPConnection(self._server.hostname or "", self._server.port, timeout=CONNECT_S)
        try:
            connection.connect()
        except OSError as error:
            kind = import_httpx().ConnectTimeout if isinstance(error, TimeoutError) else import_httpx().ConnectError
            raise kind(str(error)) from error
        try:
            connection.sock.settimeout(self._timeout_s)
            connection.request(method, path, content, {**self._headers, **headers})
            response = connection.getresponse()
            return LocalResponse(response.status, response.reason, response.msg, response.read())
        except TimeoutError as error:
            raise import_httpx().ReadTimeout(str(error)) from error
        except (OSError, HTTPException) as error:
            raise import_httpx().ReadError(str(error) or type(error).__name__) from error
        finally:
            connection.close()
