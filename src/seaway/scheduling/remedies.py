"""Remedies: the single changes to a demand that could let it fit where nothing fits now."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from seaway.domain.job import Demand
from seaway.domain.network import Link

BOUNDS = (
    ("max_latency_ns", "latency_ns"),
    ("max_jitter_ns", "jitter_ns"),
    ("max_loss_ppm", "loss_ppm"),
)
"""Bounds of a demand, and the figure of a link that each bounds."""


@dataclass(frozen=True)
class Change:
    """One figure of a demand, and what it could be changed to.

    Attributes
    ----------
    field
        Name of the figure.
    asked
        What the demand says now, with defaults filled in.
    values
        What it could say, the least change first. What fits with one value fits with all that
        come after it.
    changed
        Makes the demand with one of the values.
    """

    field: str
    asked: int
    values: Sequence[int]
    changed: Callable[[int], Demand]

    def least(self, admits: Callable[[Demand], bool]) -> int | None:
        """Find the first value whose demand is admitted; None when no value is enough."""
        if not self.values or not admits(self.changed(self.values[-1])):
            return None
        at = bisect_left(self.values, True, key=lambda value: admits(self.changed(value)))
        return self.values[at]

    def size(self, value: int) -> tuple[bool, Fraction]:
        """Weigh a change by how much of the figure it gives up; dropping a bound gives up most."""
        dropped = value == 0 and self.field.startswith("max_")
        return dropped, Fraction(abs(value - self.asked), self.asked)


def changes(demand: Demand, links: Iterable[Link]) -> Iterator[Change]:
    """List the single changes that would ask less of the fleet.

    Parameters
    ----------
    demand
        What is asked for.
    links
        Links of the fleet: a bound is raised to what one of them keeps, or dropped.
    """
    for field in ("gpus", "gpu_memory_mib", "gpu_memory_percent", "gpu_milli", "cpu_milli", "memory_mib"):
        yield _smaller(demand, field)
    starting = [link for link in links if link.source == demand.gateway]
    for bound, figure in BOUNDS:
        yield _looser(demand, bound, [getattr(link, figure) for link in starting])
    mbps = demand.network.min_bandwidth_mbps
    yield _network_change(demand, "min_bandwidth_mbps", range(mbps - 1, -1, -1))
    any_model = replace(demand, devices=replace(demand.devices, models=frozenset()))
    models = len(demand.devices.models)
    yield Change("models", models, (0,) if models else (), lambda _: any_model)


def _smaller(demand: Demand, field: str) -> Change:
    """Ask for less of one resource, counting down."""

    def changed(value: int) -> Demand:
        return replace(demand, request=replace(demand.request, **{field: value}))

    asked: int = getattr(demand.request.filled(), field)
    lowest = 0 if field in ("cpu_milli", "memory_mib") else 1
    if field == "gpu_milli" and asked and changed(0).request.filled().gpu_milli == 0:
        lowest = 0  # where memory is given, no cores means no cores rather than all of them
    return Change(field, asked, range(asked - 1, lowest - 1, -1), changed)


def _looser(demand: Demand, bound: str, figures: list[int]) -> Change:
    """Raise a bound to what links keep, and drop it in the end."""
    asked: int = getattr(demand.network, bound)
    values = [*sorted({figure for figure in figures if figure > asked}), 0] if asked else []
    return _network_change(demand, bound, values)


def _network_change(demand: Demand, field: str, values: Sequence[int]) -> Change:
    def changed(value: int) -> Demand:
        return replace(demand, network=replace(demand.network, **{field: value}))

    return Change(field, getattr(demand.network, field), values, changed)
