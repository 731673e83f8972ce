"""Filters of the fleet page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

from nicegui import ui

from seaway.client.calls.fleet import FleetFilter
from seaway.domain.errors import RejectedError
from seaway.domain.gpu_models import covers
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import DeviceOut


TEXTS = ("cluster", "name", "model", "device")
MIB_PER_GIB = 1024
MILLI_PER_PERCENT = 10
READY: Mapping[str, FleetFilter] = {
    "yes": {"ready": True},
    "no": {"ready": False},
    "unhealthy": {"healthy": False},
}
"""Filters by the choice of *Scheduling* in addresses."""

AMOUNTS: Mapping[str, tuple[str, int]] = {
    "memory": ("free_memory_mib", MIB_PER_GIB),
    "cores": ("free_core_milli", MILLI_PER_PERCENT),
}
"""Amounts by their name in addresses: the name in the API, and the API's units per unit."""

FIELDS = (*TEXTS, *AMOUNTS, "ready")
"""Names of all filters in addresses."""


def wanted_of(given: Mapping[str, str]) -> FleetFilter:
    """Return the filter for the API.

    Raises
    ------
    RejectedError
        When an amount is invalid. The error names the field.
    """
    wanted = FleetFilter(ready=None, healthy=None)
    wanted.update(READY.get(given.get("ready", ""), {}))
    for name in TEXTS:
        wanted[name] = given.get(name, "")  # type: ignore[literal-required]  # one of its keys
    for name, (field, units) in AMOUNTS.items():
        wanted[field] = _amount(name, given.get(name, ""), units)  # type: ignore[literal-required]
    return wanted


def is_meant(wanted: FleetFilter) -> Callable[[DeviceOut], bool]:
    """Return a predicate for the devices that a filter selects."""

    def meant(device: DeviceOut) -> bool:
        return (
            (not wanted.get("model") or covers(wanted["model"], device.model))
            and wanted.get("device", "").casefold() in device.uuid.casefold()
            and device.memory_mib.free >= wanted.get("free_memory_mib", 0)
            and device.core_milli.free >= wanted.get("free_core_milli", 0)
        ) or not any(wanted.get(each) for each in ("model", "device", "free_memory_mib", "free_core_milli"))

    return meant


def _amount(name: str, text: str, units: int) -> int:
    if not text:
        return 0
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 2**31 / units:
        raise RejectedError("must be a number, 0 or more", where=name)
    return round(number * units)


Change = Callable[..., Awaitable[None]]
"""Function that receives the changed filters by name."""

WAIT_MS = 300
"""Delay between the last key press and a search, in milliseconds."""


class FleetBar:
    """Row of filter fields.

    Parameters
    ----------
    given
        Initial values by their names in the page's address.
    models
        Device models to choose from.
    change
        Method of the page that receives changed filters. The reference is weak, because the page refers to this bar.
    """

    def __init__(self, words: Words, given: Mapping[str, str], models: Sequence[str], change: Change) -> None:
        self._change = WeakMethod(change)
        self._words = words
        self._given = dict(given)
        self._fields: dict[str, ui.input | ui.select] = {}
        with ui.element("search").classes("filters").props(f'aria-label="{words("Filters")}"'):
            self._choose("cluster", words("Cluster"), [])
            self._type("name", words("Node"))
            self._choose("model", words("Model"), models)
            self._type("memory", words("Free memory ≥ GiB"))
            self._type("cores", words("Free cores ≥ %"))
            self._type("device", words("UUID of the card"))
            ready = {"yes": words("schedulable"), "no": words("unschedulable"), "unhealthy": words("not healthy")}
            self._choose("ready", words("Scheduling"), ready)

    def know(self, clusters: Sequence[str]) -> None:
        """Set the clusters to choose from."""
        select = self._fields["cluster"]
        assert isinstance(select, ui.select)
        chosen = self._given.get("cluster", "")
        options = ["", *clusters, *([chosen] if chosen and chosen not in clusters else [])]
        words = self._words
        named = {each: each or words("all") for each in options}
        if select.options != named:
            select.set_options(named, value=chosen)

    def accept(self, given: Mapping[str, str]) -> None:
        """Show the current filters, and clear errors."""
        self._given = dict(given)
        for name, field in self._fields.items():
            field.error = None
            if (field.value or "") != given.get(name, ""):
                field.set_value(given.get(name, ""))

    def refuse(self, error: RejectedError) -> None:
        """Show an error at its field."""
        words, of = self._words, {field: name for name, (field, _) in AMOUNTS.items()}
        for each in (error, *error.also):
            field = self._fields.get(of.get(each.where, each.where))
            if field is not None:
                field.error = words("a number ≥ 0") if each.where in AMOUNTS else each.message

    def _type(self, name: str, label: str) -> None:
        made = ui.input(label, value=self._given.get(name, ""), on_change=self._received(name))
        made.props(f"outlined dense clearable debounce={WAIT_MS} autocomplete=off").classes("filter")
        if name in AMOUNTS:
            made.props("inputmode=decimal")
        self._fields[name] = made

    def _choose(self, name: str, label: str, options: Sequence[str] | Mapping[str, str]) -> None:
        chosen = self._given.get(name, "")
        named = dict(options) if isinstance(options, Mapping) else {each: each for each in options}
        words = self._words
        named = {"": words("all"), **named, **({chosen: chosen} if chosen and chosen not in named else {})}
        made = ui.select(named, label=label, value=chosen, on_change=self._received(name))
        self._fields[name] = made.props("outlined dense options-dense").classes("filter")

    def _received(self, name: str) -> Callable[[Any], Awaitable[None]]:
        async def callback(event: Any) -> None:  # noqa: ANN401  # type of the library
            value = str(event.value or "").strip()
            if value != self._given.get(name, ""):
                self._given[name] = value
                if change := self._change():
                    await change(**{name: value})

        return callback
