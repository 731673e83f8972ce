"""What is said of an OpenID Connect provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seaway.domain.errors import RejectedError


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """Whose tokens are taken, and what is read from them.

    Attributes
    ----------
    issuer, audience
        What has to stand in a token's ``iss`` and ``aud``.
    jwks
        Where the provider's keys are: an address that begins with ``https://`` (``http://`` on this machine
        only), or the path of a file.
    name_claim, role_claim, tenant_claim
        Where a token says who its bearer is, what he may do, and whose jobs he sees. A role may be a list;
        the most powerful counts.
    roles
        Role by the word that the provider has for it; empty takes Seaway's own words.
    leeway_s
        By how much clocks may differ.
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
        """Check that nothing needed is missing."""
        for name in ("issuer", "audience", "jwks", "name_claim", "role_claim", "tenant_claim"):
            if not getattr(self, name):
                raise RejectedError("is needed to take tokens of a provider", where=f"oidc.{name}")
        if not 0 <= self.leeway_s <= 300:
            raise RejectedError("has to be between 0 and 300", where="oidc.leeway_s")
