"""Remedies: changes to a job that make it fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from seaway.domain.device import Device, mig_figures
from seaway.domain.gpu_models import NVIDIA, maker
from seaway.domain.job import Demand, GpuTopology, Job
from seaway.domain.network import NO_NEED, Link

BOUNDS = (
    ("max_latency_ns", "latency_ns"),
    ("max_jitter_ns", "jitter_ns"),
    ("max_loss_ppm", "loss_ppm"),
)
"""Bounds of a demand, each with the measurement of a link that it limits."""


AMOUNTS = ("gpus", "gpu_memory_mib", "gpu_memory_percent", "gpu_milli", "cpu_milli", "memory_mib")

SETS = (
    ("regions", "nodes"),
    ("hardware", "nodes"),
    ("cluster_labels", "nodes"),
    ("node_labels", "nodes"),
    ("models", "devices"),
    ("modes", "devices"),
    ("use_types", "devices"),
    ("avoid_types", "devices"),
    ("use_uuids", "devices"),
    ("avoid_uuids", "devices"),
)
"""Fields of a demand that restrict its placement, each with the rules that contain it. A remedy removes a whole field.

A vendor stays: what runs on cards of one vendor does not run on those of another one.

Clusters are not included, because they may be those of the queue's pool, which a job cannot change.
"""


ChangeDemand = Callable[[Demand, int], Demand]
"""Function that returns a demand with another value of a field."""


class _OfDemand(NamedTuple):
    """Possible changes of one field of a demand, as `Change`."""

    field: str
    current: int
    values: Sequence[int]
    apply: ChangeDemand
    names: Sequence[str] = ()
    listed: str = ""


@dataclass(frozen=True)
class Change:
    """Possible changes of one field of a job.

    Attributes
    ----------
    field
        Name of the field.
    current
        Current value, with defaults; for a set, its size.
    values
        Possible values, smallest change first. If a replica fits with one value, it fits with all later ones.
    apply
        Returns a job with one of the values.
    names
        Texts of the current value and of the others, for values that are positions in this list. These are tried one
        by one, since a job may fit with one and not with a later one; empty for amounts.
    listed
        Members of a set of names, as text; empty for other values.
    """

    field: str
    current: int
    values: Sequence[int]
    apply: Callable[[Job, int], Job]
    names: Sequence[str] = ()
    listed: str = ""

    def smallest_value(self, job: Job, fits: Callable[[Job], bool], admits: Callable[[Job], bool]) -> int | None:
        """Return the first value with which a whole job is admitted; None if none is found.

        Parameters
        ----------
        fits
            Report whether one replica fits a node, which is fast and needed for `admits`.
        admits
            Report whether all replicas can start. It is called for the returned value.
        """
        if self.names:
            made = ((value, self.apply(job, value)) for value in self.values)
            return next((value for value, changed in made if fits(changed) and admits(changed)), None)
        last = self.apply(job, self.values[-1]) if self.values else None
        if last is None or not fits(last) or not admits(last):
            return None
        at = bisect_left(self.values, True, key=lambda value: fits(self.apply(job, value)))
        if not admits(self.apply(job, self.values[at])):
            at = bisect_left(self.values, True, at + 1, key=lambda value: admits(self.apply(job, value)))
        return self.values[at]

    def text(self, value: int) -> int | str:
        """Return a value as a remedy has it."""
        return self.names[value] if self.names else (self.listed if value else "") if self.listed else value

    def size(self, value: int) -> tuple[bool, Fraction]:
        """Return the size of a change, relative to the current value. The removal of a bound is the largest."""
        if self.names:
            return not self.names[value], Fraction(value)
        dropped = value == 0 and self.field.startswith(("max_", "between_"))
        return dropped, Fraction(abs(value - self.current), self.current)


def changes(job: Job, links: Iterable[Link], devices: Iterable[Device] = ()) -> Iterator[Change]:
    """Yield the single changes that reduce the request of a job.

    Parameters
    ----------
    job
        Job to change.
    links
        Links of the fleet. A bound is raised to the value of one of them, or removed.
    devices
        Devices of the fleet. A MIG profile is replaced by the nearest one of them, or removed.
    """
    if job.replicas > 1:
        yield Change("replicas", job.replicas, range(job.replicas - 1, 0, -1), _fewer_replicas)
        bounded = job.between_replicas.any
        yield Change("between_replicas", int(bounded), (0,) if bounded else (), _any_links_between)
    for change in _demand_changes(job.demand, links, devices):

        def apply(before: Job, value: int, of_demand: ChangeDemand = change.apply) -> Job:
            return replace(before, demand=of_demand(before.demand, value))

        yield Change(change.field, change.current, change.values, apply, change.names, change.listed)


def _demand_changes(demand: Demand, links: Iterable[Link], devices: Iterable[Device]) -> Iterator[_OfDemand]:
    for field in AMOUNTS:
        yield _smaller(demand, field)
    if demand.request.mig:
        yield _other_profile(demand, devices)
    if demand.devices.topology is GpuTopology.SAME_ISLAND:
        names = (GpuTopology.SAME_ISLAND.value, GpuTopology.BEST_EFFORT.value)
        yield _OfDemand("gpu_topology", 0, (1,), _any_topology, names)
    starting = [link for link in links if link.source == demand.gateway and link.reachable]
    for bound, figure in BOUNDS:
        yield _looser(demand, bound, [getattr(link, figure) for link in starting])
    mbps = demand.network.min_bandwidth_mbps
    yield _network_change(demand, "min_bandwidth_mbps", range(mbps - 1, -1, -1))
    for field, rules in SETS:
        yield _wider(demand, field, rules)
    limited = demand.nodes.max_microprice is not None
    yield _OfDemand("max_microprice", int(limited), (0,) if limited else (), _any_price)


def combined_changes(job: Job, links: Iterable[Link], admits: Callable[[Job], bool]) -> tuple[dict[str, int], Job]:
    """Return changes that together admit a job. None of them can be left out or reduced.

    The number of replicas is preserved. Restrictions of the placement are preserved in preference to network bounds,
    and these in preference to amounts. Among amounts, devices are preserved in preference to CPU and memory of the
    node.

    Returns
    -------
    dict of str to int and Job
        New value of each field to change, and the changed job; no fields if no changes are sufficient.
    """
    listed = [
        change for change in changes(job, links) if change.values and not change.names and change.field != "replicas"
    ]
    amounts = [change for change in listed if change.field in AMOUNTS]
    kept_first = [change for change in reversed(listed) if change.field not in AMOUNTS] + amounts
    chosen: dict[str, int] = {change.field: change.values[-1] for change in kept_first}

    def made(given: dict[str, int]) -> Job:
        result = job
        for change in listed:
            if change.field in given:
                result = change.apply(result, given[change.field])
        return result

    if not admits(made(chosen)):
        return {}, job
    for change in kept_first:
        others = {field: value for field, value in chosen.items() if field != change.field}
        if admits(made(others)):
            chosen = others
            continue
        at = bisect_left(change.values, True, key=lambda value: admits(made({**others, change.field: value})))
        chosen = {**others, change.field: change.values[at]}
    return {change.field: chosen[change.field] for change in listed if change.field in chosen}, made(chosen)


def _fewer_replicas(before: Job, value: int) -> Job:
    """Return a job with fewer replicas; a single one has no ring."""
    return replace(before, replicas=value, ring=before.ring and value > 1)


def _any_links_between(before: Job, _: int) -> Job:
    """Return a job without bounds on the links between its replicas."""
    return replace(before, between_replicas=NO_NEED)


def _smaller(demand: Demand, field: str) -> _OfDemand:
    """Return the changes that request less of a resource."""

    def changed(before: Demand, value: int) -> Demand:
        amount: dict[str, Any] = {field: value}
        return replace(before, request=replace(before.request, **amount))

    asked: int = getattr(demand.request if demand.request.mig else demand.request.filled(), field)
    lowest = 0 if field in ("cpu_milli", "memory_mib") else 1
    if field == "gpu_milli" and asked and changed(demand, 0).request.filled().gpu_milli == 0:
        lowest = 0  # with a memory field, 0 cores reserve none; without it, 0 means all cores
    return _OfDemand(field, asked, range(asked - 1, lowest - 1, -1), changed)


def _other_profile(demand: Demand, devices: Iterable[Device]) -> _OfDemand:
    """Return the changes to other MIG profiles, nearest first, and last to a whole device.

    Profiles that are at least as large in memory and cores come first, and then the others, by their difference in
    memory and then in cores.
    """
    asked = demand.request.mig
    slices, memory_gb = mig_figures(asked)

    def distance(name: str) -> tuple[bool, int, int, str]:
        other_slices, other_gb = mig_figures(name)
        smaller = other_slices < slices or other_gb < memory_gb
        return smaller, abs(other_gb - memory_gb), abs(other_slices - slices), name

    known = {profile.name for device in devices for profile in device.mig_profiles if device.mig_profile(profile.name)}
    names = (asked, *sorted((name for name in known - {asked} if any(mig_figures(name))), key=distance), "")

    def changed(before: Demand, value: int) -> Demand:
        kept = before if names[value] else _of_vendor(before, NVIDIA)
        return replace(kept, request=replace(kept.request, mig=names[value]))

    return _OfDemand("mig", 0, range(1, len(names)), changed, names)


def _looser(demand: Demand, bound: str, figures: list[int]) -> _OfDemand:
    """Return the changes that raise a bound to the values of links, and last remove it."""
    asked: int = getattr(demand.network, bound)
    exact = bound == "max_loss_ppm"
    retained = {figure if exact else _rounded(figure) for figure in figures if figure > asked}
    values = [*sorted(retained), 0] if asked else []
    return _network_change(demand, bound, values)


def _rounded(ns: int) -> int:
    """Round a time up to tenths of a millisecond, or to microseconds if it is shorter than 1 ms."""
    step = next((step for step in (100_000, 1_000) if ns >= 10 * step), 1)
    return -(-ns // step) * step


def _network_change(demand: Demand, field: str, values: Sequence[int]) -> _OfDemand:
    def changed(before: Demand, value: int) -> Demand:
        return replace(before, network=replace(before.network, **{field: value}))

    return _OfDemand(field, getattr(demand.network, field), values, changed)


def _any_topology(before: Demand, _: int) -> Demand:
    """Return a demand that only prefers devices in one NVLink island."""
    return replace(before, devices=replace(before.devices, topology=GpuTopology.BEST_EFFORT))


def _any_price(before: Demand, _: int) -> Demand:
    """Return a demand without a maximum price."""
    return replace(before, nodes=replace(before.nodes, max_microprice=None))


def _wider(demand: Demand, field: str, rules: str) -> _OfDemand:
    """Return the change that removes a restriction of the placement."""

    def changed(before: Demand, _: int) -> Demand:
        if field in ("models", "use_types"):
            before = _of_vendor(before, maker(getattr(before.devices, field)))
        retained = getattr(before, rules)
        return replace(before, **{rules: replace(retained, **{field: type(getattr(retained, field))()})})

    members = getattr(getattr(demand, rules), field)
    listed = ", ".join(sorted(members)) if all(isinstance(each, str) for each in members) else ""
    return _OfDemand(field, len(members), (0,) if members else (), changed, listed=listed)


def _of_vendor(demand: Demand, vendor: str) -> Demand:
    """Return a demand for devices of a vendor, if it is known and the demand names none."""
    rules = demand.devices
    return (
        replace(demand, devices=replace(rules, vendors=frozenset({vendor}))) if vendor and not rules.vendors else demand
    )
