"""Base classes of messages: requests are validated strictly, responses are only described."""

from __future__ import annotations

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
