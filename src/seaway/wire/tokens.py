"""Requests and views of tokens and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from seaway.application.records import AuditEntry, LastUse, Token
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
    last_used_at: str | None = None
    """Time of its last request, to about a minute; null if it was never used."""
    last_address: str = ""
    """Network address of its last request."""


class TokenCreated(TokenOut):
    """A new token, with its secret."""

    secret: str
    """Value for `Authorization: Bearer …`. It is shown only once."""


class TokenList(Shown):
    """All tokens, including revoked ones."""

    tokens: list[TokenOut]


class UserOut(Shown):
    """A user or program: the tokens of one name, or an identity of a provider."""

    name: str
    issuer: str
    """Issuer of its credentials; empty for tokens of Seaway."""
    role: RoleName
    """Most powerful role of its valid tokens, or that of its last request."""
    tenant: str
    last_seen_at: str | None
    """Time of its last request, to about a minute; null if it was never seen."""
    last_address: str
    tokens: list[TokenOut]
    """Its tokens, which may be expired or revoked; none for an identity of a provider."""


class UserList(Shown):
    """Users, by name."""

    users: list[UserOut]


class ProviderOut(Shown):
    """Settings of single sign-on, which are in the settings file."""

    issuer: str
    """Expected issuer of tokens; empty if single sign-on is not set up."""
    audience: str
    keys: str
    """URL or file of the keys."""
    name_claim: str
    role_claim: str
    tenant_claim: str
    roles: dict[str, str]
    """Role by role name of the provider; empty for equal names."""
    client_id: str
    """Client for log-ins on the pages; empty for none."""
    has_client_secret: bool
    redirect: str
    scopes: str


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
    currency: str = ""
    """Currency of prices and costs, a code of ISO 4217; empty if unknown."""


class DifferenceOut(Shown):
    """Changed field of a record."""

    kind: str
    """Kind of the record, such as `queue`."""
    name: str
    field: str
    """Path of the field, such as `limit.gpus`."""
    before: str
    """Value as text; empty without one."""
    after: str


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
    changes: list[DifferenceOut]
    """Fields of queues, tenants, pools, reservations, clusters and cordons that the request changed."""


class AuditPage(Shown):
    """Entries, newest first."""

    entries: list[AuditOut]
    next: int | None
    """Cursor of the next page: send it as `before`; null on the last page."""


def token_fields(token: Token, use: LastUse | None = None) -> dict[str, Any]:
    """Return the fields of `TokenOut` for a token with its last use."""
    return fields_of(
        TokenOut,
        token,
        last_used_at=moment(use.used_ns) if use else None,
        last_address=use.address if use else "",
        created_at=moment(token.created_ns),
        expires_at=moment_or_none(token.expires_ns),
        revoked_at=moment_or_none(token.revoked_ns),
    )


def user_fields(tokens: Sequence[Token], uses: Sequence[LastUse], now_ns: int) -> list[dict[str, Any]]:
    """Return the fields of `UserOut` for each user, by name."""
    of_token = {each.token_id: each for each in uses if each.token_id}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for each in sorted(uses, key=lambda each: each.used_ns):
        rows[each.name, each.issuer] = {
            "name": each.name,
            "issuer": each.issuer,
            "role": each.role,
            "tenant": each.tenant,
            "last_seen_at": moment(each.used_ns),
            "last_address": each.address,
            "tokens": [],
        }

    def rank(token: Token) -> int:
        over = token.revoked_ns is not None or (token.expires_ns is not None and token.expires_ns <= now_ns)
        return -1 if over else token.role.rank

    for token in sorted(tokens, key=rank):  # the role of the last one applies
        row = rows.setdefault(
            (token.name, ""),
            {"name": token.name, "issuer": "", "last_seen_at": None, "last_address": "", "tokens": []},
        )
        row |= {"role": token.role.value, "tenant": token.tenant}
        row["tokens"].append(token_fields(token, of_token.get(token.id)))
    return [row for _, row in sorted(rows.items())]


def audit_fields(entry: AuditEntry) -> dict[str, Any]:
    """Return the fields of `AuditOut` for an entry."""
    return fields_of(
        AuditOut,
        entry,
        at=moment(entry.at_ns),
        changes=[each._asdict() for each in entry.changes],
    )
