"""HAMi's registers: texts in which a device plugin lists the cards of its node.

NVIDIA's register is a JSON list since v2.8. Earlier versions have lines of 7 or 9 fields. Other vendors use either
format. The JSON omits fields that are zero or false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

import msgspec

from seaway.adapters.kubernetes.device_plugins.findings import bounded, bounded_text, named
from seaway.domain.errors import RejectedError

HAMI_CORE = "hami-core"
_LISTS = msgspec.json.Decoder(list[msgspec.Raw])
_ANYTHING = msgspec.json.Decoder(object)
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


Figure = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
PlainId = Annotated[str, msgspec.Meta(max_length=200, pattern=r"\A[!-~]+\Z")]


class Entry(msgspec.Struct, frozen=True, gc=False):
    """Card in a register, with memory in MiB and cores in the vendor's unit.

    Names and limits in the annotations are those of HAMi's JSON.

    Attributes
    ----------
    mode
        Sharing mode; empty if not given.
    profiles
        MIG profiles in JSON form.
    pair_scores
        Connection scores of card pairs. Only v2.8 and v2.9 write them, always, and usually empty.
    """

    id: PlainId
    index: Figure = 0
    count: Figure = 0
    memory: Figure = msgspec.field(default=0, name="devmem")
    cores: Figure = msgspec.field(default=0, name="devcore")
    type: str = ""
    numa: Figure = 0
    healthy: bool = msgspec.field(default=False, name="health")
    mode: str = ""
    profiles: tuple[object, ...] = msgspec.field(default=(), name="migProfiles")
    pair_scores: object = msgspec.field(default=None, name="devicepairscore")


_CARDS = msgspec.json.Decoder(tuple[Entry, ...])


def read_register(text: str) -> Iterable[Entry | RejectedError]:
    """Return each card of a register, or the error of an invalid card."""
    text = text.strip()
    if not text.startswith("["):
        return _line_entries(text)
    try:
        return _CARDS.decode(text)
    except (ValueError, RecursionError):  # an invalid card must not affect the others
        return json_cards(text, _json_entry)


def json_list(text: str) -> list[object]:
    """Decode a JSON list; elements that cannot be decoded are None.

    Raises
    ------
    RejectedError
        When it is not a list.
    """
    try:
        return [_element(raw) for raw in _LISTS.decode(text)]
    except (ValueError, RecursionError) as error:
        raise RejectedError(f"not a JSON list: {error}") from error


def _element(raw: msgspec.Raw) -> object:
    try:
        return _ANYTHING.decode(raw)
    except (ValueError, RecursionError):
        return None


def parse_bool(text: str, what: str) -> bool:
    """Parse a boolean as Go does.

    Raises
    ------
    RejectedError
        When it is not a boolean.
    """
    if text not in _TRUE | _FALSE:
        raise RejectedError(f"{what} is {text[:60]!r}, but must be true or false")
    return text in _TRUE


def json_cards(text: str, read: Callable[[int, object], Entry]) -> Iterator[Entry | RejectedError]:
    """Yield each card of a JSON register, decoded by its index and fields, or its error."""
    try:
        found = json_list(text)
    except RejectedError as error:
        yield error
        return
    for at, fields in enumerate(found):
        try:
            yield read(at, fields)
        except RejectedError as error:
            yield RejectedError(f"card {at}: {error}")


def _json_entry(_: int, fields: object) -> Entry:
    if not isinstance(fields, dict):
        raise RejectedError("not a JSON object")
    kind, mode, healthy, profiles = (
        fields.get("type", ""),
        fields.get("mode", ""),
        fields.get("health", False),
        fields.get("migProfiles") or [],
    )
    if not isinstance(kind, str) or not isinstance(mode, str) or not isinstance(healthy, bool):
        raise RejectedError("type and mode must be texts, and health true or false")
    if not isinstance(profiles, list):
        raise RejectedError("migProfiles must be a list")
    return Entry(
        named(fields.get("id"), "id"),
        bounded(fields.get("index", 0), "index"),
        bounded(fields.get("count", 0), "count"),
        bounded(fields.get("devmem", 0), "devmem"),
        bounded(fields.get("devcore", 0), "devcore"),
        kind,
        max(bounded(fields.get("numa", 0), "numa", least=-1), 0),
        healthy,
        mode,
        tuple(profiles),
        fields.get("devicepairscore"),
    )


def _line_entries(text: str) -> Iterator[Entry | RejectedError]:
    if text and ":" not in text:
        yield RejectedError("neither a JSON list nor cards that end with a colon")
        return
    for at, line in enumerate(part for part in text.split(":") if part.strip()):
        try:
            yield _line_entry(at, line.strip().split(","))
        except RejectedError as error:
            yield RejectedError(f"card {at}: {error}")


def _line_entry(at: int, fields: list[str]) -> Entry:
    if len(fields) not in {7, 9}:
        raise RejectedError(f"{len(fields)} fields, but there must be 7 or 9")
    return Entry(
        named(fields[0], "uuid"),
        bounded_text(fields[7], "index") if len(fields) == 9 else at,
        bounded_text(fields[1], "count"),
        bounded_text(fields[2], "devmem"),
        bounded_text(fields[3], "devcore"),
        fields[4],
        max(bounded_text(fields[5], "numa", least=-1), 0),
        parse_bool(fields[6], "health"),
        fields[8] if len(fields) == 9 else HAMI_CORE,
    )
