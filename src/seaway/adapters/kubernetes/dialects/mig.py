"""MIG profiles as HAMi's register of v2.10 has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seaway.adapters.kubernetes.dialects.findings import bounded, named
from seaway.domain.device import MILLI_PER_PERCENT_POINT, MigProfile
from seaway.domain.errors import RejectedError


def read_profiles(found: Iterable[object]) -> Iterator[MigProfile | RejectedError]:
    """Yield each profile, or why it cannot be understood."""
    for at, fields in enumerate(found):
        try:
            yield _profile(fields)
        except RejectedError as error:
            yield RejectedError(f"MIG profile {at}: {error}")


def _profile(fields: object) -> MigProfile:
    if not isinstance(fields, dict):
        raise RejectedError("not a JSON object")
    places = fields.get("placements") or []
    if not isinstance(places, list) or not places:
        raise RejectedError("no list of placements")
    spans = [_place(place) for place in places]
    size = spans[0][1]
    if any(other != size for _, other in spans):
        raise RejectedError("its placements are of different sizes")
    return MigProfile(
        named(fields.get("name"), "name"),
        bounded(fields.get("memoryMB", 0), "memoryMB", least=1),
        bounded(fields.get("core", 0), "core") * MILLI_PER_PERCENT_POINT,
        bounded(fields.get("sliceCount", 0), "sliceCount"),
        size,
        tuple(start for start, _ in spans),
    )


def _place(fields: object) -> tuple[int, int]:
    """Return start and size of a placement."""
    if not isinstance(fields, dict):
        raise RejectedError("a placement is no JSON object")
    return bounded(fields.get("start", 0), "start"), bounded(fields.get("size", 0), "size", least=1)
