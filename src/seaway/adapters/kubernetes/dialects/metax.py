"""MetaX: the JSON in which its own plugin registers cards that can be shared."""

from __future__ import annotations

from collections.abc import Iterator

from seaway.adapters.kubernetes.dialects.findings import bounded, named
from seaway.adapters.kubernetes.dialects.registers import Entry, json_cards
from seaway.domain.errors import RejectedError


def read_register(text: str) -> Iterator[Entry | RejectedError]:
    """Return each card of a register, or why it cannot be understood."""
    return json_cards(text, _entry)


def _entry(at: int, fields: object) -> Entry:
    if not isinstance(fields, dict):
        raise RejectedError("not a JSON object")
    model, healthy = fields.get("model", ""), fields.get("healthy", False)
    if not isinstance(model, str) or not isinstance(healthy, bool):
        raise RejectedError("model has to be a text, and healthy true or false")
    return Entry(
        named(fields.get("uuid"), "uuid"),
        at,
        bounded(fields.get("totalDevCount", 0), "totalDevCount"),
        bounded(fields.get("totalVRam", 0), "totalVRam"),
        bounded(fields.get("totalCompute", 0), "totalCompute"),
        model,
        max(bounded(fields.get("numa", 0), "numa", least=-1), 0),
        healthy,
    )
