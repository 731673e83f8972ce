"""Base classes of messages: requests are validated strictly, responses are only described."""

from __future__ import annotations

from enum import Enum
from typing import Any, Self

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

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the same object: it is immutable, and pydantic would copy defaults for every message."""
        return self


class Shown(BaseModel):
    """A response. Clients ignore unknown fields, so that newer servers may add some."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class CodedOut(Shown):
    """A reason among the parameters of another one."""

    code: str
    """Stable code of the reason for programs; empty for a text of a user, a plugin or a cluster."""
    params: dict[str, str | int | float | CodedOut | list[CodedOut]]
    message: str
    """The reason in English."""


ReasonParams = dict[str, str | int | float | CodedOut | list[CodedOut]]
"""Names and values in a reason. Times are RFC 3339, and durations seconds."""


def coded_fields(reason: str) -> dict[str, Any]:
    """Return the fields of `CodedOut` for a reason."""
    if not isinstance(reason, Reason):
        return {"code": "", "params": {}, "message": reason}
    return {"code": reason.code, "params": params_fields(reason.params), "message": reason}


def params_fields(params: Params) -> dict[str, Any]:
    """Return the parameters of a reason, ready to encode."""
    return {name: _param(value) for name, value in params.items()}


def _param(value: Param) -> Any:  # noqa: ANN401  # any parameter
    if isinstance(value, tuple):
        return [coded_fields(each) for each in value]
    return coded_fields(value) if isinstance(value, Reason) else value


def coded(name: str, reason: str) -> dict[str, Any]:
    """Return the code and the parameters of a reason, as fields after its own."""
    fields = coded_fields(reason)
    return {f"{name}_code": fields["code"], f"{name}_params": fields["params"]}


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
