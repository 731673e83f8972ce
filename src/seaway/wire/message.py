"""The two kinds of message: what comes in is checked strictly, what goes out is only described."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Incoming(BaseModel):
    """Comes in: types are not bent, unknown fields are refused, and nothing is changed after."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        ser_json_inf_nan="null",
    )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the same: it never changes, and defaults would be copied for every message."""
        return self


class Shown(BaseModel):
    """Goes out. A reader passes over fields that it does not know, so that a newer server may add some."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)
