"""Operations on tokens, the caller and the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response

from seaway.api.http.bodies import read
from seaway.api.http.pipeline import MADE, caller_of, pipeline_of
from seaway.api.http.queries import AuditQuery
from seaway.api.http.replies import json_reply
from seaway.api.http.routes import operation, router
from seaway.application.records import Role
from seaway.bootstrap.settings import IdentitySettings
from seaway.learning.policies.file import LARGEST_FILE
from seaway.wire import fields
from seaway.wire.message import fields_of
from seaway.wire.tokens import (
    AuditPage,
    CallerOut,
    ProviderOut,
    TokenCreated,
    TokenIn,
    TokenList,
    TokenOut,
    UserList,
    audit_fields,
    token_fields,
    user_fields,
)

routes = router("access")


@operation(routes, "GET", "/me", Role.VIEWER, {200: CallerOut})
async def who_am_i(request: Request) -> Response:
    """Return the caller, the maximum sizes of request bodies, and the currency of prices."""
    who, settings = caller_of(request), pipeline_of(request).plane.settings
    reported = {"name": who.name, "role": who.role.value, "tenant": who.tenant}
    largest = settings.body_limit_bytes
    sizes = {"max_body_bytes": largest, "max_policy_file_bytes": max(largest, LARGEST_FILE)}
    return json_reply({**reported, **sizes, "currency": settings.server.currency})


@operation(routes, "GET", "/tokens", Role.ADMIN, {200: TokenList})
async def list_tokens(request: Request) -> Response:
    """List tokens, including revoked ones. Their secrets are not stored."""
    pipeline = pipeline_of(request)
    access = pipeline.plane.access
    rows, uses = await pipeline.threads.read(lambda: (access.tokens(), access.last_uses()))
    used = {each.token_id: each for each in uses}
    return json_reply({"tokens": [token_fields(row, used.get(row.id)) for row in rows]})


@operation(routes, "GET", "/users", Role.ADMIN, {200: UserList})
async def list_users(request: Request) -> Response:
    """List users and programs with their tokens, and identities of a provider that made requests."""
    pipeline = pipeline_of(request)
    access, now_ns = pipeline.plane.access, pipeline.plane.clock.now_ns()
    rows = await pipeline.threads.read(lambda: user_fields(access.tokens(), access.last_uses(), now_ns))
    return json_reply({"users": rows})


@operation(routes, "GET", "/identity-provider", Role.ADMIN, {200: ProviderOut})
async def get_identity_provider(request: Request) -> Response:
    """Return the settings of single sign-on, without its secret."""
    return json_reply(provider_fields(pipeline_of(request).plane.settings.oidc))


@operation(routes, "POST", "/tokens", Role.ADMIN, {201: TokenCreated}, errors=(409,), body=TokenIn)
async def create_token(request: Request) -> Response:
    """Create a token. Only this response contains its secret."""
    pipeline, given = pipeline_of(request), await read(request, TokenIn)
    token, secret = await pipeline.threads.write(
        pipeline.plane.access.create,
        given.name,
        Role(given.role),
        given.tenant,
        None if given.expires_in is None else fields.limit_s(given.expires_in),
        caller_of(request).name,
        gateway=given.gateway,
    )
    request.scope[MADE] = token.id
    return json_reply({**token_fields(token), "secret": secret}, 201, {"cache-control": "no-store"})


@operation(routes, "DELETE", "/tokens/{token}", Role.ADMIN, {200: TokenOut}, errors=(404, 409))
async def revoke_token(
    request: Request,
    token: str,
    force: Annotated[bool, Query(description="Revoke it even if it is the last token of an admin.")] = False,
) -> Response:
    """Revoke a token. The last token of an admin requires `force`."""
    pipeline = pipeline_of(request)
    return json_reply(token_fields(await pipeline.threads.write(pipeline.plane.access.revoke, token, force=force)))


def provider_fields(oidc: IdentitySettings) -> dict[str, Any]:
    """Return the fields of `ProviderOut` for the settings."""
    return fields_of(ProviderOut, oidc, keys=oidc.jwks, has_client_secret=bool(oidc.client_secret))


@operation(routes, "GET", "/audit", Role.ADMIN, {200: AuditPage})
async def list_audit(request: Request, query: Annotated[AuditQuery, Query()]) -> Response:
    """List the audit log, newest first. Dry runs have no entry."""
    pipeline = pipeline_of(request)
    rows = await pipeline.threads.read(pipeline.plane.store.audit, query.before, query.limit, query.wanted)
    following = rows[-1].id if len(rows) == query.limit else None
    return json_reply({"entries": [audit_fields(row) for row in rows], "next": following})
