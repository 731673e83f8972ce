"""Connection of a client to a server."""

from __future__ import annotations

import ssl
import warnings
from typing import Any

import httpx

from seaway import __version__
from seaway.client.call import Call
from seaway.client.config import Target
from seaway.client.errors import RejectedError
from seaway.client.problems import error_of

CONNECT_S = 5.0
SILENCE_S = 45.0
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
    warn_if_exposed(target)
    headers = {"User-Agent": f"seaway/{__version__}"}
    if target.token:
        headers["Authorization"] = f"Bearer {target.token}"
    return {
        "base_url": target.server,
        "headers": headers,
        "timeout": httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
        "limits": httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=IDLE_S),
        "verify": _trusted(target),
        "trust_env": not target.loopback,  # no proxy for this machine itself
    }


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


def content(call: Call[Any], response: httpx.Response) -> bytes:
    """Return the body of a response that has been read, or the cached one if it has not changed.

    Raises
    ------
    SeawayError
        As in `seaway.client.errors`.
    """
    known = call.known
    if known and known.tag and response.status_code == httpx.codes.NOT_MODIFIED:
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


def _trusted(target: Target) -> ssl.SSLContext | bool:
    if not target.server.startswith("https:"):
        return False  # nothing to check; saves reading the system's certificates
    if not target.ca_file:
        return True
    try:
        return ssl.create_default_context(cafile=target.ca_file)
    except OSError as error:
        raise RejectedError(f"cannot be read as certificates: {error}", where=target.ca_file) from None
