"""Declaration of operations with their roles, responses and errors, for routing and OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, get_origin

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from seaway.api.http.examples import EXAMPLES
from seaway.api.http.pipeline import pipeline_of
from seaway.application.records import Role
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason, also
from seaway.wire.problem import MEDIA_TYPE, Problem


@dataclass(frozen=True, slots=True)
class Header:
    """Header that an operation reads itself. It is described, but not checked in advance."""

    name: str
    says: str
    longest: int = 1000

    @property
    def described(self) -> dict[str, Any]:
        """OpenAPI description of the header."""
        schema = {"type": "string", "maxLength": self.longest}
        return {"in": "header", "name": self.name, "required": False, "description": self.says, "schema": schema}


IF_MATCH = Header("If-Match", "ETag of the required version; `*` for any.")
IF_NONE_MATCH = Header("If-None-Match", "ETag of the version that you have.")

Handler = Callable[..., Awaitable[Response]]

STATUS_DESCRIPTIONS = {
    304: "You have this version.",
    400: "The HTTP request is invalid.",
    401: "The token is missing or invalid.",
    403: "The token does not allow this.",
    404: "Not found, or not visible to you.",
    406: "None of the accepted media types is available.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with the current state.",
    412: "The version has changed.",
    413: "The body is too large.",
    414: "The path and the query are longer than 8 KiB.",
    415: "The media type of the body is not supported.",
    422: "The request is invalid; `errors` has the reason for each field.",
    426: "The operation requires a web socket.",
    428: "If-Match is required.",
    429: "Too many requests without a valid token from your address, or too many reports of a gateway.",
    431: "The headers are larger than 64 KiB, or more than 100.",
    500: "Internal error; see the log of the server.",
    503: "A dependency does not respond; retry after `Retry-After`.",
}

MESSAGES: set[type[BaseModel]] = {Problem}
"""Messages that operations refer to by name."""

PREFIX = "/api/v1"
"""Prefix of all operations, except those with a well-known path."""

ALWAYS = (400, 401, 403, 414, 422, 429, 431, 500, 503)
WITH_BODY = (408, 413, 415)
ROLE = "x-role"


class Received(APIRoute):
    """A route through the request pipeline that rejects unknown and repeated parameters."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return the handler of requests."""
        call = super().get_route_handler()
        operation = self.operation_id or self.name
        role = Role((self.openapi_extra or {})[ROLE])
        changed = max(int(status) for status in self.responses if int(status) < 300)
        known: set[str] = set()
        several: set[str] = set()
        for each in self.dependant.query_params:
            kind = each.field_info.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):  # the class stands for its fields
                known |= {field.alias or name for name, field in kind.model_fields.items()}
                several |= {
                    field.alias or name
                    for name, field in kind.model_fields.items()
                    if get_origin(field.annotation) is list
                }
            else:
                known.add(each.alias)
                several |= {each.alias} if get_origin(kind) is list else set()

        async def strict(request: Request) -> Response:
            if request.scope["query_string"] and (unknown := set(request.query_params) - known):
                raise _unknown(sorted(unknown), sorted(known))
            _require_once(request, several)
            reply: Response = await call(request)
            return reply

        async def serve(request: Request) -> Response:
            return await pipeline_of(request).serve(request, operation, role, strict, changed=changed)

        return serve


def _require_once(request: Request, several: Set[str]) -> None:
    """Check that single-valued parameters are not repeated, since several values would be ambiguous."""
    given = [name for name, _ in request.query_params.multi_items() if name not in several]
    for name in dict.fromkeys(given):
        if given.count(name) > 1:
            raise RejectedError(Reason("given_again"), where=name)


def _unknown(names: Sequence[str], known: Sequence[str]) -> RejectedError:
    there = Reason("available", names=tuple(known)) if known else Reason("none_here")
    errors = [RejectedError(also(Reason("unknown_parameter"), there), where=name[:60]) for name in names[:20]]
    return RejectedError(errors[0].message, where=errors[0].where, also=tuple(errors[1:]))


def router(tag: str, prefix: str = PREFIX) -> APIRouter:
    """Create a router whose operations form one section of the API reference."""
    return APIRouter(prefix=prefix, route_class=Received, tags=[tag])


def operation(  # noqa: PLR0913  # parts of the description
    routes: APIRouter,
    method: str,
    path: str,
    role: Role,
    answers: dict[int, Any],
    *,
    errors: Sequence[int] = (),
    body: type[BaseModel] | None = None,
    media: Sequence[str] = ("application/json",),
    headers: Sequence[Header] = (),
    body_needed: bool = True,
) -> Callable[[Handler], Handler]:
    """Declare an operation. The handler's name is its ID, and the handler's docstring is its description.

    Parameters
    ----------
    answers
        Responses by status: a message, a media type of text, or None for no content.
    errors
        Statuses of errors in addition to the common ones.
    body
        Message in the request body.
    media
        Accepted media types of the body.
    headers
        Request headers that the handler reads.
    body_needed
        Whether the body is required.
    """

    def declare(handler: Handler) -> Handler:
        first = min(answers)
        described: dict[str, Any] = {ROLE: role.value}
        if headers:
            described["parameters"] = [each.described for each in headers]
        if body is not None:
            MESSAGES.add(body)
            schema = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}, **_example(body.__name__)}
            content = dict.fromkeys(media, schema)
            described["requestBody"] = {"required": body_needed, "content": content}
        failing = {*ALWAYS, *errors, *(WITH_BODY if body is not None else ())}
        routes.add_api_route(
            path,
            handler,
            methods=[method],
            operation_id=handler.__name__,
            summary=_summary(handler),
            description=_text(handler),
            status_code=first,
            response_model=None,
            responses={
                **{status: _answer(status, what) for status, what in answers.items()},
                **{status: _error(status) for status in sorted(failing)},
            },
            openapi_extra=described,
        )
        return handler

    return declare


def _answer(status: int, what: Any) -> dict[str, Any]:  # noqa: ANN401
    if what is None:
        return {"description": STATUS_DESCRIPTIONS.get(status, "Done.")}
    if isinstance(what, str):
        return {"description": "The text.", "content": {what: {"schema": {"type": "string"}}}}
    if isinstance(what, dict):
        return what
    content = {"application/json": example} if (example := _example(what.__name__)) else {}
    return {"description": (what.__doc__ or "").partition("\n")[0], "model": what, "content": content}


def _example(name: str) -> dict[str, Any]:
    return {"example": EXAMPLES[name]} if name in EXAMPLES else {}


def _error(status: int) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{Problem.__name__}"}
    return {"description": STATUS_DESCRIPTIONS[status], "content": {MEDIA_TYPE: {"schema": schema}}}


def _summary(handler: Handler) -> str:
    return (handler.__doc__ or handler.__name__).strip().partition("\n")[0].rstrip(".")


def _text(handler: Handler) -> str:
    lines = [line.strip() for line in (handler.__doc__ or "").strip().splitlines()]
    return "\n".join(lines)
