"""Request bodies in JSON and, for files of users, in YAML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import orjson
from fastapi import Request, Response
from pydantic import BaseModel

from seaway.api.http.pipeline import header_of, pipeline_of
from seaway.api.http.replies import BadRequestError, json_reply, tags_in
from seaway.api.http.routes import IF_MATCH, Header
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason
from seaway.wire.reading import MAX_SUBMITTED, read_json, read_yaml_message, require_few_values, require_once

Message = TypeVar("Message", bound=BaseModel)

JSON = "application/json"
YAML = ("application/yaml", "application/x-yaml", "text/yaml")
MERGE_PATCH = "application/merge-patch+json"


async def read_at_most(request: Request, model: type[Message], limit: int) -> Message:
    """Read a message in JSON of at most `limit` bytes; raises as `read`."""
    require_kind(request, JSON)
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise BadRequestError(413, f"this body may have {limit} bytes at most")
    return read_json(model, body)


async def read(request: Request, model: type[Message]) -> Message:
    """Read a message in JSON.

    Raises
    ------
    BadRequestError
        If the media type is not supported.
    RejectedError
        If the message is invalid.
    """
    require_kind(request, JSON)
    return read_json(model, await request.body())


async def read_aside(request: Request, model: type[Message]) -> Message:
    """Read a message in JSON in a thread, since it may be large; raises as `read`."""
    require_kind(request, JSON)
    return await pipeline_of(request).threads.read(read_json, model, await request.body())


async def read_either(request: Request, model: type[Message]) -> tuple[Message, bytes]:
    """Read a message of at most `MAX_SUBMITTED` values in JSON or YAML; return it with its bytes. Raises as `read`."""
    kind = require_kind(request, JSON, *YAML)
    body = await request.body()
    if kind == JSON:
        require_few_values(body)
        return read_json(model, body), body
    return await pipeline_of(request).threads.parse(read_yaml_message, model, body, MAX_SUBMITTED), body


async def read_large(request: Request, model: type[Message], values: int) -> Message:
    """Read a message in JSON, or in YAML of at most `values` values, in a thread; raises as `read`."""
    kind = require_kind(request, JSON, *YAML)
    body, threads = await request.body(), pipeline_of(request).threads
    if kind == JSON:
        return await threads.read(read_json, model, body)
    return await threads.parse(read_yaml_message, model, body, values)


async def read_patch(request: Request) -> dict[str, Any]:
    """Read a merge patch; raises as `read`."""
    require_kind(request, JSON, MERGE_PATCH)
    body = await request.body()
    try:
        patch = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RejectedError(Reason("not_json", why=str(error))) from None
    if not isinstance(patch, dict):
        raise RejectedError(Reason("not_mapping"))
    require_once(body)
    return patch


def merged(target: Any, patch: Any) -> Any:  # noqa: ANN401  # any JSON
    """Return the result of a merge patch.

    References
    ----------
    RFC 7396, section 2.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def require_kind(request: Request, *kinds: str) -> str:
    """Return the media type of a body, which must be one of `kinds`, uncompressed and in UTF-8."""
    header = header_of(request, b"content-type") or ""
    encoding = header_of(request, b"content-encoding")
    if header == JSON in kinds and encoding is None:
        return JSON
    kind, _, rest = header.partition(";")
    kind = kind.strip().lower()
    if kind not in kinds:
        raise BadRequestError(415, f"send {' or '.join(kinds[:2])}, not {kind[:60] or 'no media type'!r}")
    charset = rest.strip().lower()
    if charset.startswith("charset=") and charset[8:].strip('"') not in ("utf-8", "utf8"):
        raise BadRequestError(415, "send UTF-8")
    if encoding is not None and encoding.lower() != "identity":
        raise BadRequestError(415, "send the body uncompressed")
    return kind


Fields = dict[str, Any]
"""View of a queue, pool or tenant with its version; for the network, only its version."""

PRECONDITIONS = (IF_MATCH, Header("If-None-Match", "`*`: only if the name is unused."))


def tagged_reply(fields: Fields) -> Response:
    """Return a response with an ETag."""
    return json_reply(fields, headers={"etag": _tag(fields)})


def read_reply(request: Request, fields: Any, version: int | str | None = None) -> Response:  # noqa: ANN401
    """Return a response with an ETag, or 304 if the client has this version.

    Parameters
    ----------
    version
        Version for the ETag; None for the version in `fields`.
    """
    tag = _tag(fields) if version is None else f'"{version}"'
    known = tags_in(request.headers.get("if-none-match", ""))
    if "*" in known or tag in known:
        return Response(status_code=304, headers={"etag": tag})
    return json_reply(fields, headers={"etag": tag})


def precondition_of(request: Request, fields: Callable[[Any], Fields]) -> Callable[[object], bool] | None:
    """Return a check of the current object against If-Match and If-None-Match; None without these headers.

    Parameters
    ----------
    fields
        Returns the view of the current object.
    """
    match, none_match = request.headers.get("if-match"), request.headers.get("if-none-match")
    if match is None and none_match is None:
        return None

    def meant(there: object) -> bool:
        tags = set() if there is None else {"*", _tag(fields(there))}
        wanted = match is None or not tags.isdisjoint(tags_in(match))
        return wanted and (none_match is None or tags.isdisjoint(tags_in(none_match)))

    return meant


def _tag(fields: Fields) -> str:
    return f'"{fields["version"]}"'


def chosen(request: Request, *kinds: str) -> str:
    """Return the media type of `kinds` that the client prefers; the first among equals.

    Raises
    ------
    BadRequestError
        If the client accepts none of them.
    """
    header = request.headers.get("accept", "*/*")
    likes = dict(_like(part) for part in header.split(",")[:32] if part.strip())
    best = max(kinds, key=lambda kind: _liked(kind, likes))
    if _liked(best, likes) <= 0:
        raise BadRequestError(406, f"there is {' or '.join(kinds)}")
    return best


def _like(part: str) -> tuple[str, float]:
    kind, *parameters = (each.strip().lower() for each in part.split(";"))
    weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return kind, float(weight)
    except ValueError:
        return kind, 0.0


def _liked(kind: str, likes: dict[str, float]) -> float:
    return next((likes[each] for each in (kind, f"{kind.partition('/')[0]}/*", "*/*") if each in likes), 0.0)
