"""Verification of OpenID Connect tokens.

References
----------
OpenID Connect Core 1.0, section 3.1.3.7; RFC 7519, JSON Web Token; RFC 8725, JWT Best Current Practices.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
import orjson
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from seaway.application.access import RANKS, RESERVED, Caller, is_loopback
from seaway.application.ports.clock import Clock
from seaway.application.records import Role
from seaway.domain.errors import RejectedError, UnauthenticatedError, UnavailableError
from seaway.domain.tenancy import require_name

ALGORITHMS = ("RS256", "ES256")
"""Accepted signature algorithms. Shared secrets and unsigned tokens are not accepted."""

MIN_RSA_BITS = 2048
BETWEEN_READS_S = 60
TIMEOUT_S = 5.0
LARGEST_BYTES = 2**18

log = logging.getLogger(__name__)


class KeySet:
    """Signature keys of a provider by ID.

    Parameters
    ----------
    where
        Address or path of the keys; see `seaway.adapters.oidc.OidcSettings.jwks`.
    clock
        Clock for the minimum time between reads.
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
        """Return a key; None if the provider has no key with that ID.

        Raises
        ------
        UnavailableError
            If other keys are known, and another thread waits for the provider. So a provider that does not respond
            holds up one thread only.
        """
        key = self._keys.get(key_id)
        if key is not None:
            return key
        if not self._lock.acquire(blocking=not self._keys):
            raise UnavailableError("the keys of the identity provider are being read; try again soon", retry_after_s=1)
        try:
            if key_id not in self._keys and self._may_read():
                self._read()
            return self._keys.get(key_id)
        finally:
            self._lock.release()

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
    """Download the keys, up to the maximum size and time, without redirects."""
    until_s = time.monotonic() + TIMEOUT_S
    with httpx.stream("GET", address, timeout=TIMEOUT_S, follow_redirects=False) as answer:
        answer.raise_for_status()
        body = b""
        for part in answer.iter_bytes():
            body += part
            if len(body) > LARGEST_BYTES:
                raise ValueError(f"larger than {LARGEST_BYTES} bytes")
            if time.monotonic() > until_s:
                raise TimeoutError(f"not complete after {TIMEOUT_S:g} s")
    return body


def _usable(keys: list[dict[str, Any]]) -> dict[str, PyJWK]:
    """Return the keys that support an accepted algorithm."""
    found = {}
    for each in keys:
        if each.get("kty") not in ("RSA", "EC") or each.get("use", "sig") != "sig":
            continue
        try:
            key = PyJWK(each)
        except (PyJWTError, ValueError) as error:
            log.warning("a key of the provider is ignored: %s", error)
            continue
        long_enough = each["kty"] != "RSA" or key.key.key_size >= MIN_RSA_BITS
        if key.algorithm_name in ALGORITHMS and long_enough:
            found[each.get("kid", "")] = key
    return found


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """Settings of a provider's tokens.

    Attributes
    ----------
    issuer, audience
        Required values of a token's ``iss`` and ``aud``.
    jwks
        Location of the provider's keys: an address that begins with ``https://`` (``http://`` on this machine only), or
        the path of a file.
    name_claim, role_claim, tenant_claim
        Claims with the user's name, role and tenant. If the role is a list, the most powerful role applies.
    roles
        Seaway role by the provider's role; empty if the provider uses the names of Seaway's roles.
    leeway_s
        Maximum difference between the clocks of the provider and of Seaway.
    """

    issuer: str
    audience: str
    jwks: str
    name_claim: str = "sub"
    role_claim: str = "seaway_role"
    tenant_claim: str = "seaway_tenant"
    roles: Mapping[str, str] = field(default_factory=dict)
    leeway_s: int = 30

    def __post_init__(self) -> None:
        """Check that all required settings are present."""
        for name in ("issuer", "audience", "jwks", "name_claim", "role_claim", "tenant_claim"):
            if not getattr(self, name):
                raise RejectedError("is required to accept tokens of a provider", where=f"oidc.{name}")
        if not 0 <= self.leeway_s <= 300:
            raise RejectedError("must be between 0 and 300", where="oidc.leeway_s")


MAX_REMEMBERED = 10_000
LONGEST_NAME = 63
CHECKS = {
    "require": ["exp", "iss", "aud"],
    "verify_exp": False,  # Seaway checks these three by its own clock
    "verify_nbf": False,
    "verify_iat": False,
}


class OidcBearer:
    """Implementation of `seaway.application.access.Bearer`.

    Parameters
    ----------
    settings
        Settings of the provider.
    clock
        Clock for the expiry of tokens.
    """

    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._keys = KeySet(settings.jwks, clock)
        self._known: OrderedDict[bytes, Caller] = OrderedDict()
        self._lock = Lock()

    def known(self, credential: str) -> Caller | None:
        """Return the user of a token that was verified before and has not expired."""
        who = self._known.get(_digest(credential))
        holds = who is not None and who.expires_ns is not None and who.expires_ns > self._clock.now_ns()
        return who if holds else None

    def verify(self, credential: str) -> Caller:
        """Verify a token and return its user."""
        try:
            who = self._principal(self._claims(credential))
        except (PyJWTError, ValueError, TypeError, OverflowError) as error:
            raise UnauthenticatedError(f"invalid token: {error}") from None
        except RejectedError as error:
            raise UnauthenticatedError(f"this token has invalid claims: {error.message}") from None
        with self._lock:
            self._known[_digest(credential)] = who
            while len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
        return who

    def _claims(self, credential: str) -> dict[str, Any]:
        header = jwt.get_unverified_header(credential)
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS:
            raise UnauthenticatedError(f"tokens must be signed with {' or '.join(ALGORITHMS)}")
        key = self._keys.find(str(header.get("kid", "")))
        if key is None or key.algorithm_name != algorithm:
            raise UnauthenticatedError("this token is signed with a key that the provider does not have")
        return dict(
            jwt.decode(
                credential,
                key.key,
                algorithms=[algorithm],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                options=CHECKS,  # type: ignore[arg-type]
            )
        )

    def _principal(self, claims: dict[str, Any]) -> Caller:
        settings, now_s = self._settings, self._clock.now_ns() / 10**9
        ends_s = float(claims["exp"]) + settings.leeway_s
        if ends_s <= now_s:
            raise UnauthenticatedError("this token is expired")
        if max(float(claims.get("nbf", 0)), float(claims.get("iat", 0))) - settings.leeway_s > now_s:
            raise UnauthenticatedError("this token is not valid yet")
        name = claims.get(settings.name_claim)
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
            raise RejectedError(f"{settings.name_claim} must be a text of at most {LONGEST_NAME} letters")
        if name in RESERVED:
            raise RejectedError(f"{settings.name_claim} may not be {name!r}")
        role = self._role(claims.get(settings.role_claim))
        tenant = claims.get(settings.tenant_claim) if role.of_tenant else ""
        if role.of_tenant:
            if not isinstance(tenant, str):
                raise RejectedError(f"{settings.tenant_claim} must name a tenant")
            require_name("tenant", tenant)
        return Caller(name, role, str(tenant), expires_ns=int(ends_s * 10**9), issuer=settings.issuer)

    def _role(self, claim: object) -> Role:
        """Return the most powerful of the claimed roles.

        The role of agents is excluded: agents use tokens of Seaway.
        """
        claimed = [str(each) for each in claim] if isinstance(claim, list) else [str(claim)]
        words = self._settings.roles or {role.value: role.value for role in Role}
        roles = [Role(words[each]) for each in claimed if each in words]
        roles = [role for role in roles if role is not Role.AGENT]
        if not roles:
            raise RejectedError(f"{self._settings.role_claim} names no role")
        return max(roles, key=RANKS.__getitem__)


def _digest(credential: str) -> bytes:
    return hashlib.sha256(credential.encode("utf-8", "surrogateescape")).digest()
