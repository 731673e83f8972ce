"""Checks a provider's tokens.

References
----------
OpenID Connect Core 1.0, section 3.1.3.7; RFC 7519, JSON Web Token; RFC 8725, best current practices for it.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import Any

import jwt
from jwt.exceptions import PyJWTError

from seaway.adapters.oidc.keys import ALGORITHMS, Keys
from seaway.adapters.oidc.settings import OidcSettings
from seaway.application.access import RANKS, RESERVED, Who
from seaway.application.ports.clock import Clock
from seaway.application.records import Role
from seaway.domain.errors import RejectedError, UnauthenticatedError
from seaway.domain.tenancy import require_name

MOST_REMEMBERED = 10_000
LONGEST_NAME = 63
CHECKS = {
    "require": ["exp", "iss", "aud"],
    "verify_exp": False,  # these three by Seaway's own clock
    "verify_nbf": False,
    "verify_iat": False,
}


class OidcBearer:
    """Fills `seaway.application.access.Bearer`.

    Parameters
    ----------
    settings
        Whose tokens are taken.
    clock
        For when they end.
    """

    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._keys = Keys(settings.jwks, clock)
        self._known: OrderedDict[bytes, Who] = OrderedDict()
        self._lock = Lock()

    def known(self, credential: str) -> Who | None:
        """Return whose a token is that was verified before and still holds."""
        who = self._known.get(_digest(credential))
        holds = who is not None and who.expires_ns is not None and who.expires_ns > self._clock.now_ns()
        return who if holds else None

    def verify(self, credential: str) -> Who:
        """Return whose a token is."""
        try:
            who = self._who(self._claims(credential))
        except (PyJWTError, ValueError, TypeError, OverflowError) as error:
            raise UnauthenticatedError(f"this token does not hold: {error}") from None
        except RejectedError as error:
            raise UnauthenticatedError(f"this token does not say what it has to: {error.message}") from None
        with self._lock:
            self._known[_digest(credential)] = who
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
        return who

    def _claims(self, credential: str) -> dict[str, Any]:
        header = jwt.get_unverified_header(credential)
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS:
            raise UnauthenticatedError(f"tokens have to be signed with {' or '.join(ALGORITHMS)}")
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

    def _who(self, claims: dict[str, Any]) -> Who:
        settings, now_s = self._settings, self._clock.now_ns() / 10**9
        ends_s = float(claims["exp"]) + settings.leeway_s
        if ends_s <= now_s:
            raise UnauthenticatedError("this token is expired")
        if max(float(claims.get("nbf", 0)), float(claims.get("iat", 0))) - settings.leeway_s > now_s:
            raise UnauthenticatedError("this token does not hold yet")
        name = claims.get(settings.name_claim)
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
            raise RejectedError(f"{settings.name_claim} has to be a text of at most {LONGEST_NAME} letters")
        if name in RESERVED:
            raise RejectedError(f"{settings.name_claim} may not be {name!r}")
        role = self._role(claims.get(settings.role_claim))
        of_tenant = RANKS[role] < RANKS[Role.OPERATOR]
        tenant = claims.get(settings.tenant_claim) if of_tenant else ""
        if of_tenant:
            if not isinstance(tenant, str):
                raise RejectedError(f"{settings.tenant_claim} has to name a tenant")
            require_name("tenant", tenant)
        return Who(name, role, str(tenant), expires_ns=int(ends_s * 10**9))

    def _role(self, claim: object) -> Role:
        """Take the most powerful role of those that are claimed; agents have Seaway's own tokens."""
        claimed = [str(each) for each in claim] if isinstance(claim, list) else [str(claim)]
        words = self._settings.roles or {role.value: role.value for role in Role}
        roles = [Role(words[each]) for each in claimed if each in words]
        roles = [role for role in roles if role is not Role.AGENT]
        if not roles:
            raise RejectedError(f"{self._settings.role_claim} names no role")
        return max(roles, key=RANKS.__getitem__)


def _digest(credential: str) -> bytes:
    return hashlib.sha256(credential.encode("utf-8", "surrogateescape")).digest()
