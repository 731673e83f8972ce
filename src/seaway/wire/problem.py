"""Problem details: the format of all errors.

References
----------
RFC 9457, Problem Details for HTTP APIs.
"""

from __future__ import annotations

from typing import Any

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason
from seaway.wire.message import CodeOut, Shown, code_of

MEDIA_TYPE = "application/problem+json"


class FieldProblem(Shown):
    """Problem of one field."""

    field: str
    """Path of the field, such as `resources.gpu_memory`; empty for the whole message."""
    message: str
    """The problem and its remedy."""
    reason: CodeOut | None = None
    """The same for programs; null without a code."""


class Problem(Shown):
    """An error, for people and for programs."""

    type: str
    """Type of the problem: `about:blank`, since the status is sufficient."""
    title: str
    status: int
    detail: str
    """The problem and its remedy."""
    reason: CodeOut | None = None
    """The problem for programs; null without a code."""
    instance: str
    """Path of the request."""
    errors: list[FieldProblem] = []  # noqa: RUF012  # a message copies its defaults
    """Problems of individual fields, if known."""


def problem_fields(
    status: int, title: str, detail: str, instance: str, error: RejectedError | None = None
) -> dict[str, Any]:
    """Return the fields of `Problem` for a problem; `error` adds the problem of each field."""
    fields: dict[str, Any] = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": instance,
        **_reason(detail),
    }
    if error is not None and (error.where or error.also):
        each_of = (error, *error.also)
        fields["errors"] = [{"field": each.where, "message": each.message, **_reason(each.message)} for each in each_of]
    return fields


def _reason(text: str) -> dict[str, Any]:
    return {"reason": code_of(text)} if isinstance(text, Reason) else {}
