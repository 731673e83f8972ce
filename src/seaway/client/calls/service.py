"""Calls about the service: health, alerts, what-if queries, tokens and the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from seaway.client.call import Answer, Call, Model, Nothing, Paged, Text, get, page_size, part, send

if TYPE_CHECKING:
    from seaway.wire.alerts import AlertList
    from seaway.wire.tokens import (
        AuditOut,
        AuditPage,
        CallerOut,
        ProviderOut,
        TokenCreated,
        TokenList,
        TokenOut,
        UserList,
    )
    from seaway.wire.whatif import MovesOut, WhatIfOut


ALERTS: Answer[AlertList] = Model("seaway.wire.alerts", "AlertList")
CONSEQUENCES: Answer[WhatIfOut] = Model("seaway.wire.whatif", "WhatIfOut")
MOVES: Answer[MovesOut] = Model("seaway.wire.whatif", "MovesOut")


def health() -> Call[str]:
    """Check that the server is running."""
    return Call("GET", "/healthz", Text())


def ready() -> Call[str]:
    """Check that the server is ready for requests."""
    return Call("GET", "/readyz", Text())


def alerts() -> Call[AlertList]:
    """List alerts: idle clusters, long waits, and failures of deployments and databases."""
    return get("/alerts", ALERTS)


def acknowledge(name: str, of: str = "") -> Call[None]:
    """Acknowledge a firing alert until it clears; `name` and `of` are those of the alert."""
    return send("POST", "/alerts/acknowledge", Nothing(), {"name": name, "of": of})


def whatif(question: Mapping[str, Any]) -> Call[WhatIfOut]:
    """Run a what-if query on a copy of the live fleet and its queue, without changes; requires an operator.

    Parameters
    ----------
    question
        Changes that apply together: ``drain`` (clusters, or ``cluster/node``), ``add_nodes`` (each with ``cluster``,
        ``like``, ``count``), ``policy`` (schedules everything again), ``replay`` (schedules everything again) and
        ``jobs`` (additional jobs). Changes of queues: ``queues`` and ``tenants`` (each with ``name`` and the changed
        fields), ``remove_queues``, and ``move_jobs`` (each with ``queue``, ``to`` and ``tenant``). ``window`` is the
        time that shares of GPUs cover. ``last``, a time, replays the jobs that were submitted in it; ``trace`` replays
        given jobs (``kinds``, and ``jobs`` as lists of kind, submission and duration in seconds).
    """
    return send("POST", "/whatif", CONSEQUENCES, {"question": dict(question)})


def move_jobs(moves: Sequence[Mapping[str, Any]], drain: Sequence[str] = (), *, reason: str = "") -> Call[MovesOut]:
    """Restart running jobs on other nodes, all or none, and drain clusters and nodes; requires an operator.

    Parameters
    ----------
    moves
        Those of the answer to a what-if question: each with ``job``, ``attempt``, and the nodes ``to``, none for a job
        that only stops. The call fails if one of the jobs has changed, or does not fit any more.
    drain
        Clusters, or ``cluster/node``, to drain.
    reason
        Reason of the drains.
    """
    return send("POST", "/moves", MOVES, {"moves": [*moves], "drain": [*drain], "reason": reason})


_WIRE = "seaway.wire.tokens"

WHO: Answer[CallerOut] = Model(_WIRE, "CallerOut")
TOKEN: Answer[TokenOut] = Model(_WIRE, "TokenOut")
TOKENS: Answer[TokenList] = Model(_WIRE, "TokenList")
CREATED: Answer[TokenCreated] = Model(_WIRE, "TokenCreated")
AUDIT: Answer[AuditPage] = Model(_WIRE, "AuditPage")
USERS: Answer[UserList] = Model(_WIRE, "UserList")
PROVIDER: Answer[ProviderOut] = Model(_WIRE, "ProviderOut")


def me() -> Call[CallerOut]:
    """Return the caller's identity."""
    return get("/me", WHO)


def tokens() -> Call[TokenList]:
    """List tokens, including revoked ones; their secrets are not stored."""
    return get("/tokens", TOKENS)


def create_token(
    name: str, *, role: str = "user", tenant: str = "", gateway: str = "", expires_in: str | None = None
) -> Call[TokenCreated]:
    """Create a token. Its secret is returned only once.

    Parameters
    ----------
    role
        ``agent``, ``viewer``, ``monitor``, ``user``, ``operator`` or ``admin``.
    tenant
        Tenant of the token; required for viewers and users.
    gateway
        Gateway of an agent; required for agents.
    expires_in
        Lifetime, such as ``30d``; None for unlimited.
    """
    body = {"name": name, "role": role, "tenant": tenant, "gateway": gateway, "expires_in": expires_in}
    return send("POST", "/tokens", CREATED, body, repeatable=False)


def revoke_token(token: str, *, force: bool = False) -> Call[TokenOut]:
    """Revoke a token by its id; it is invalid immediately. The last one of an admin is only revoked with `force`."""
    call = send("DELETE", f"/tokens/{part(token)}", TOKEN)
    return replace(call, query={"force": True}) if force else call


def users() -> Call[UserList]:
    """List users and programs with their tokens; requires an admin."""
    return get("/users", USERS)


def identity_provider() -> Call[ProviderOut]:
    """Return the settings of single sign-on; requires an admin."""
    return get("/identity-provider", PROVIDER)


class AuditFilter(TypedDict, total=False):
    """Filter of audit entries. Omitted fields do not filter.

    Attributes
    ----------
    actor
        Name of the caller.
    contains
        Part of the operation, the object or the changes.
    since, until
        Times as in RFC 3339.
    questions
        True to include what-if questions, which change nothing.
    """

    actor: str
    contains: str
    since: str
    until: str
    questions: bool


def audit(*, limit: int | None = 100, before: int = 0, **wanted: Unpack[AuditFilter]) -> Paged[AuditOut]:
    """List the audit log, newest first."""
    given: dict[str, str | int | None] = {
        **{name: ("true" if value is True else str(value)) if value else None for name, value in wanted.items()},
        "limit": page_size(limit),
        "before": before or None,
    }
    return Paged(get("/audit", AUDIT, given), "entries", "before", limit)
