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


AMOUNTS = ("gpus", "gpu_memory_mib", "gpu_memory_percent", "gpu_milli", "cpu_milli", "memory_mib")

SETS = (
    ("regions", "nodes"),
    ("hardware", "nodes"),
    ("node_labels", "nodes"),
    ("models", "devices"),
    ("vendors", "devices"),
    ("modes", "devices"),
    ("use_types", "devices"),
    ("avoid_types", "devices"),
    ("use_uuids", "devices"),
    ("avoid_uuids", "devices"),
)
"""Fields of a demand that narrow down where it may go, and which of its rules each is in: all of one can be dropped.

Clusters are not among them: they may be those of a queue's pool, which is not the job's to leave.
"""


@dataclass(frozen=True)
class Change:
    """One figure of a demand, and what it could be changed to.

    Attributes
    ----------
    field
        Name of the figure.
    current
        What the demand says now, with defaults filled in; of a set, how much it names.
    values
        What it could say, the least change first. What fits with one value fits with all that
        come after it.
    apply
        Makes a demand that says one of the values of one that does not.
    """

    field: str
    current: int
    values: Sequence[int]
    apply: Callable[[Demand, int], Demand]

    def smallest_value(self, demand: Demand, admits: Callable[[Demand], bool]) -> int | None:
        """Find the first value with which a demand is admitted; None when no value is enough."""
        if not self.values or not admits(self.apply(demand, self.values[-1])):
            return None
        at = bisect_left(self.values, True, key=lambda value: admits(self.apply(demand, value)))
        return self.values[at]

    def size(self, value: int) -> tuple[bool, Fraction]:
        """Weigh a change by how much of the figure it gives up; dropping a bound gives up most."""
        dropped = value == 0 and self.field.startswith("max_")
        return dropped, Fraction(abs(value - self.current), self.current)


def changes(demand: Demand, links: Iterable[Link]) -> Iterator[Change]:
    """List the single changes that would ask less of the fleet.

    Parameters
    ----------
    demand
        What is asked for.
    links
        Links of the fleet: a bound is raised to what one of them keeps, or dropped.
    """
    for field in AMOUNTS:
        yield _smaller(demand, field)
    starting = [link for link in links if link.source == demand.gateway and link.reachable]
    for bound, figure in BOUNDS:
        yield _looser(demand, bound, [getattr(link, figure) for link in starting])
    mbps = demand.network.min_bandwidth_mbps
    yield _network_change(demand, "min_bandwidth_mbps", range(mbps - 1, -1, -1))
    for field, rules in SETS:
        yield _wider(demand, field, rules)


def combined_changes(
    demand: Demand, links: Iterable[Link], admits: Callable[[Demand], bool]
) -> tuple[dict[str, int], Demand]:
    """Find changes that admit a demand together where no single one does; none of them can be left out or lessened.

    What narrows down where it may go is kept before bounds on the network, and these before amounts; of amounts,
    devices are kept before CPU and memory of the node.

    Returns
    -------
    dict of str to int and Demand
        The new value of each figure that has to change, and the demand then; no figure when nothing is enough.
    """
    listed = [change for change in changes(demand, links) if change.values]
    amounts = [change for change in listed if change.field in AMOUNTS]
    kept_first = [change for change in reversed(listed) if change.field not in AMOUNTS] + amounts
    chosen: dict[str, int] = {change.field: change.values[-1] for change in kept_first}

    def made(given: dict[str, int]) -> Demand:
        result = demand
        for change in listed:
            if change.field in given:
                result = change.apply(result, given[change.field])
        return result

    if not admits(made(chosen)):
        return {}, demand
    for change in kept_first:
        others = {field: value for field, value in chosen.items() if field != change.field}
        if admits(made(others)):
            chosen = others
            continue
        at = bisect_left(change.values, True, key=lambda value: admits(made({**others, change.field: value})))
        chosen = {**others, change.field: change.values[at]}
    return {change.field: chosen[change.field] for change in listed if change.field in chosen}, made(chosen)


def _smaller(demand: Demand, field: str) -> Change:
    """Ask for less of one resource, counting down."""

    def changed(before: Demand, value: int) -> Demand:
        return replace(before, request=replace(before.request, **{field: value}))

    asked: int = getattr(demand.request.filled(), field)
    lowest = 0 if field in ("cpu_milli", "memory_mib") else 1
    if field == "gpu_milli" and asked and changed(demand, 0).request.filled().gpu_milli == 0:
        lowest = 0  # where memory is given, no cores means no cores rather than all of them
    return Change(field, asked, range(asked - 1, lowest - 1, -1), changed)


def _looser(demand: Demand, bound: str, figures: list[int]) -> Change:
    """Raise a bound to what links keep, and drop it in the end."""
    asked: int = getattr(demand.network, bound)
    exact = bound == "max_loss_ppm"
    retained = {figure if exact else _rounded(figure) for figure in figures if figure > asked}
    values = [*sorted(retained), 0] if asked else []
    return _network_change(demand, bound, values)


def _rounded(ns: int) -> int:
    """Round a time up to what people write: tenths of a millisecond, or microseconds of what is shorter."""
    step = next((step for step in (100_000, 1_000) if ns >= 10 * step), 1)
    return -(-ns // step) * step


def _network_change(demand: Demand, field: str, values: Sequence[int]) -> Change:
    def changed(before: Demand, value: int) -> Demand:
        return replace(before, network=replace(before.network, **{field: value}))

    return Change(field, getattr(demand.network, field), values, changed)


def _wider(demand: Demand, field: str, rules: str) -> Change:
    """Drop what narrows down where a demand may go."""

    def changed(before: Demand, _: int) -> Demand:
        retained = getattr(before, rules)
        return replace(before, **{rules: replace(retained, **{field: type(getattr(retained, field))()})})

    named = len(getattr(getattr(demand, rules), field))
    return Change(field, named, (0,) if named else (), changed)
