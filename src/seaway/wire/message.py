"""Base classes of messages: requests are validated strictly, responses are only described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict

from seaway.domain.reasons import Param, Params, Reason


class Incoming(BaseModel):
    """A request: strict types, no unknown fields, immutable."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        ser_json_inf_nan="null",
    )

    FOREIGN: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Paths of fields by names that other systems use, for errors."""

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the same object: it is immutable, and pydantic would copy defaults for every message."""
        return self


class Shown(BaseModel):
    """A response. Clients ignore unknown fields, so that newer servers may add some."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class CodeOut(Shown):
    """A reason for programs. The `message` beside it has the same in English."""

    code: str
    """Stable code; empty for a text of a user, a plugin or a cluster, and in older events."""
    params: dict[str, str | int | float | CodedOut | list[CodedOut]]
    """Names and values in the reason. Times are RFC 3339, and durations seconds."""


class CodedOut(CodeOut):
    """A reason with its text in English."""

    message: str


def with_message(reason: str) -> dict[str, Any]:
    """Return the fields `reason` and `message` of a response."""
    return {"reason": code_of(reason), "message": reason}


def code_fields(code: str, params: Params, message: str) -> dict[str, Any]:
    """Return the fields `reason` and `message` of a response for a reason with a code of its own."""
    return {"reason": {"code": code, "params": _params(params)}, "message": message}


def coded(reason: str) -> dict[str, Any] | None:
    """Return the fields of `CodedOut` for a reason; None without one."""
    return {**code_of(reason), "message": reason} if reason else None


_NO_CODE: dict[str, Any] = {"code": "", "params": {}}


def code_of(reason: str) -> dict[str, Any]:
    """Return the fields of `CodeOut` for a reason. All texts without a code share an object."""
    return {"code": reason.code, "params": _params(reason.params)} if isinstance(reason, Reason) else _NO_CODE


def _params(params: Params) -> dict[str, Any]:
    return {name: _param(each) for name, each in params.items()}


def _param(value: Param) -> Any:  # noqa: ANN401  # any parameter
    if isinstance(value, tuple):
        return [coded(each) for each in value]
    return coded(value) if isinstance(value, Reason) else value


def fields_of(response: type[Shown], source: object, **other: Any) -> dict[str, Any]:  # noqa: ANN401  # of any type
    """Return the fields of a response, ready to encode.

    Parameters
    ----------
    source
        Object with attributes of the same names. Enums become their values, and tuples lists.
    other
        Values of all other fields.
    """
    return {name: other[name] if name in other else _plain(getattr(source, name)) for name in response.model_fields}


def _plain(value: Any) -> Any:  # noqa: ANN401  # of any type
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value
