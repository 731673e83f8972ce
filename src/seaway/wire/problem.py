"""Problem details: the format of all errors.

References
----------
RFC 9457, Problem Details for HTTP APIs.
"""

# ruff: noqa: RUF012  # a message copies its defaults

from __future__ import annotations

from typing import Any

from seaway.domain.errors import RejectedError
from seaway.wire.message import Shown

MEDIA_TYPE = "application/problem+json"


class FieldProblem(Shown):
    """Problem of one field."""

    field: str
    """Its path, like `resources.gpu_memory`; empty where it is the whole."""
    message: str
    """The problem and its remedy."""


class Problem(Shown):
    """An error, for people and for programs."""

    type: str
    """Type of the problem: `about:blank`, since the status is sufficient."""
    title: str
    status: int
    detail: str
    """The problem and its remedy."""
    instance: str
    """The path that was asked for."""
    errors: list[FieldProblem] = []
    """Field by field, where that is known."""


def problem_fields(
    status: int, title: str, detail: str, instance: str, error: RejectedError | None = None
) -> dict[str, Any]:
    """Tell a problem as the fields of `Problem`; `error` adds what is wrong with each field."""
    fields: dict[str, Any] = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": instance,
    }
    if error is not None and (error.where or error.also):
        fields["errors"] = [{"field": each.where, "message": each.message} for each in (error, *error.also)]
    return fields
