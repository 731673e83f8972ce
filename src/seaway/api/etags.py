"""Versions of queues, pools, tenants and the network as entity tags: shown when read, heeded by changes.

References
----------
RFC 9110, sections 8.8.3, 13.1.1 and 13.1.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request, Response

from seaway.api.replies import json_reply, tags_in
from seaway.api.routes import IF_MATCH, Header

Fields = dict[str, Any]
"""A queue, pool or tenant as it is shown, with its version; of the network, at least that."""

IF_MEANT = (IF_MATCH, Header("If-None-Match", "`*`: only if there is none of this name yet."))


def tagged_reply(fields: Fields) -> Response:
    """Show something with its tag."""
    return json_reply(fields, headers={"etag": _tag(fields)})


def read_reply(request: Request, fields: Any, version: int | str | None = None) -> Response:  # noqa: ANN401
    """Show something with its tag, unless who asks has it already.

    Parameters
    ----------
    version
        What the tag says; None where it stands among the fields.
    """
    tag = _tag(fields) if version is None else f'"{version}"'
    known = tags_in(request.headers.get("if-none-match", ""))
    if "*" in known or tag in known:
        return Response(status_code=304, headers={"etag": tag})
    return json_reply(fields, headers={"etag": tag})


def meant_by(request: Request, fields: Callable[[Any], Fields]) -> Callable[[object], bool] | None:
    """Return what tells whether a change is meant for what there is; None when the request says nothing of that.

    Parameters
    ----------
    fields
        Shows what there is.
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
