"""Requests and views of tokens and the audit log."""

from __future__ import annotations

from typing import Any, Literal

from seaway.application.records import AuditEntry, Token
from seaway.wire.fields import LabelValue, Limit, Name, NameOrNone, moment, moment_or_none
from seaway.wire.message import Incoming, Shown, fields_of

RoleName = Literal["agent", "viewer", "monitor", "user", "operator", "admin"]


class TokenIn(Incoming):
    """A token to create."""

    name: Name
    """Name of the user or program, recorded with all actions."""
    role: RoleName = "user"
    tenant: NameOrNone = ""
    """Tenant of the token; required for viewers and users, empty for other roles."""
    gateway: LabelValue = ""
    """Gateway of an agent; empty for other roles."""
    expires_in: Limit | None = None
    """Lifetime. Default: unlimited."""


class TokenOut(Shown):
    """A token, without its secret."""

    id: str
    name: str
    role: RoleName
    tenant: str
    gateway: str
    """Gateway of an agent; empty for other roles."""
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None


class TokenCreated(TokenOut):
    """A new token, with its secret."""

    secret: str
    """Value for `Authorization: Bearer …`. It is shown only once."""


class TokenList(Shown):
    """All tokens, including revoked ones."""

    tokens: list[TokenOut]


class CallerOut(Shown):
    """The caller."""

    name: str
    role: RoleName
    tenant: str
    """Tenant whose jobs are visible; empty for all."""
    max_body_bytes: int = 1_048_576
    """Maximum size of a request body, bytes."""
    max_policy_file_bytes: int = 1_048_576
    """Maximum size of an imported policy file, bytes."""


class AuditOut(Shown):
    """Entry of the audit log."""

    id: int
    at: str
    actor: str
    role: str
    tenant: str
    verb: str
    target: str
    status: int
    address: str
    token_id: str
    issuer: str
    requests: int


class AuditPage(Shown):
    """Entries, newest first."""

    entries: list[AuditOut]
    next: int | None
    """Cursor of the next page: send it as `before`; null on the last page."""


def token_fields(token: Token) -> dict[str, Any]:
    """Return the fields of `TokenOut` for a token."""
    return fields_of(
        TokenOut,
        token,
        created_at=moment(token.created_ns),
        expires_at=moment_or_none(token.expires_ns),
        revoked_at=moment_or_none(token.revoked_ns),
    )


def audit_fields(entry: AuditEntry) -> dict[str, Any]:
    """Return the fields of `AuditOut` for an entry."""
    return fields_of(
        AuditOut,
        entry,
        at=moment(entry.at_ns),
    )
