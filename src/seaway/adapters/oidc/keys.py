"""A provider's keys, read when one is asked for that is not known, but not more often than once a minute.

References
----------
RFC 7517, JSON Web Key.
"""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from seaway.application.access import is_loopback
from seaway.application.ports.clock import Clock
from seaway.domain.errors import RejectedError

ALGORITHMS = ("RS256", "ES256")
"""Signatures that are taken; nothing with a shared secret, and nothing unsigned."""

LEAST_RSA_BITS = 2048
BETWEEN_READS_S = 60
TIMEOUT_S = 5.0
LARGEST_BYTES = 2**18

log = logging.getLogger(__name__)


class Keys:
    """Finds a key by its id.

    Parameters
    ----------
    where
        Address or path; see `seaway.adapters.oidc.settings.OidcSettings.jwks`.
    clock
        For the time between reads.
    """

    def __init__(self, where: str, clock: Clock) -> None:
        self._where = where
        self._clock = clock
        self._keys: dict[str, PyJWK] = {}
        self._read_ns: int | None = None
        self._lock = Lock()
        self._address = where if "://" in where else None
        if self._address is not None:
            _require_safe(self._address)

    def find(self, key_id: str) -> PyJWK | None:
        """Return a key; None when the provider has none of that id."""
        key = self._keys.get(key_id)
        if key is not None:
            return key
        with self._lock:
            if key_id not in self._keys and self._may_read():
                self._read()
            return self._keys.get(key_id)

    def _may_read(self) -> bool:
        now_ns = self._clock.monotonic_ns()
        if self._read_ns is not None and now_ns - self._read_ns < BETWEEN_READS_S * 10**9:
            return False
        self._read_ns = now_ns
        return True

    def _read(self) -> None:
        try:
            body = Path(self._where).read_bytes() if self._address is None else _fetched(self._address)
            self._keys = _usable(orjson.loads(body)["keys"])
        except (OSError, httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            log.warning("the keys at %s cannot be read: %s", self._where, error)


def _require_safe(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise RejectedError("has to begin with https://, or name a file", where="oidc.jwks")


def _fetched(address: str) -> bytes:
    """Read an answer of bounded size, without being sent elsewhere."""
    with httpx.stream("GET", address, timeout=TIMEOUT_S, follow_redirects=False) as answer:
        answer.raise_for_status()
        body = b""
        for part in answer.iter_bytes():
            body += part
            if len(body) > LARGEST_BYTES:
                raise ValueError("more than keys can be")
    return body


def _usable(keys: list[dict[str, Any]]) -> dict[str, PyJWK]:
    """Keep the keys that can check a signature of the kinds that are taken."""
    found = {}
    for each in keys:
        if each.get("kty") not in ("RSA", "EC") or each.get("use", "sig") != "sig":
            continue
        try:
            key = PyJWK(each)
        except (PyJWTError, ValueError) as error:
            log.warning("a key of the provider is left out: %s", error)
            continue
        long_enough = each["kty"] != "RSA" or key.key.key_size >= LEAST_RSA_BITS
        if key.algorithm_name in ALGORITHMS and long_enough:
            found[each.get("kid", "")] = key
    return found
