"""Bodies: JSON, and YAML where people write it."""

from __future__ import annotations

from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel

from seaway.api.desk import desk_of, header_of
from seaway.api.errors import BadRequestError
from seaway.wire.reading import read_json, read_yaml_message

Message = TypeVar("Message", bound=BaseModel)

JSON = "application/json"
YAML = ("application/yaml", "application/x-yaml", "text/yaml")
MERGE_PATCH = "application/merge-patch+json"


async def read_at_most(request: Request, model: type[Message], limit: int) -> Message:
    """Read a message in JSON that has no more than `limit` bytes; raises as `read`."""
    require_kind(request, JSON)
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise BadRequestError(413, f"this body may have {limit} bytes at the most")
    return read_json(model, body)


async def read(request: Request, model: type[Message]) -> Message:
    """Read a message in JSON.

    Raises
    ------
    BadRequestError
        When the body is of another kind.
    RejectedError
        When it is not what it should be.
    """
    require_kind(request, JSON)
    return read_json(model, await request.body())


async def read_either(request: Request, model: type[Message]) -> tuple[Message, bytes]:
    """Read a message in JSON or YAML; return its bytes too. Raises as `read`."""
    kind = require_kind(request, JSON, *YAML)
    body = await request.body()
    if kind == JSON:
        return read_json(model, body), body
    return await desk_of(request).threads.read(read_yaml_message, model, body), body


async def read_large(request: Request, model: type[Message], values: int) -> Message:
    """Read a message in JSON, or in YAML of at most so many values, where others need not wait; raises as `read`."""
    kind = require_kind(request, JSON, *YAML)
    body, threads = await request.body(), desk_of(request).threads
    if kind == JSON:
        return await threads.read(read_json, model, body)
    return await threads.read(read_yaml_message, model, body, values)


def require_kind(request: Request, *kinds: str) -> str:
    """Return what kind of body a request has, one of `kinds`."""
    header = header_of(request, b"content-type") or ""
    encoding = header_of(request, b"content-encoding")
    if header == JSON in kinds and encoding is None:
        return JSON
    kind, _, rest = header.partition(";")
    kind = kind.strip().lower()
    if kind not in kinds:
        raise BadRequestError(415, f"send {' or '.join(kinds[:2])}, not {kind[:60] or 'something that has no type'!r}")
    charset = rest.strip().lower()
    if charset.startswith("charset=") and charset[8:].strip('"') not in ("utf-8", "utf8"):
        raise BadRequestError(415, "send UTF-8")
    if encoding is not None and encoding.lower() != "identity":
        raise BadRequestError(415, "send the body as it is, not compressed")
    return kind
