"""Base classes of messages: requests are validated strictly, responses are only described."""

from __future__ import annotations

from enum import Enum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


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
