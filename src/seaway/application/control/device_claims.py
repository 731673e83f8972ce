"""Owners of devices that several nodes list, for example after a machine joined again under another node name."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seaway.domain.cluster import Cluster
from seaway.domain.node import Node

log = logging.getLogger(__name__)

Place = tuple[str, str]
"""Cluster and node."""


@dataclass(frozen=True, slots=True)
class DuplicateDevices:
    """Devices of a cluster that several nodes list.

    Attributes
    ----------
    lacking
        Devices that nodes of this cluster list but other nodes own, by node.
    elsewhere
        Devices that nodes of this cluster list and nodes of other clusters own.
    listed
        Nodes of other clusters that list devices of this cluster, with these devices and their owners.
    """

    lacking: Mapping[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    elsewhere: set[str] = field(default_factory=set)
    listed: Mapping[Place, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))


class Claims:
    """Record of the nodes that list each device. One of them owns the device.

    The previous owner stays the owner, unless only another node is ready. The other nodes lose only this device.
    """

    def __init__(self) -> None:
        self._places: dict[str, tuple[Place, ...]] = {}
        """Nodes that list a device, by UUID; the first is the owner."""
        self._last: dict[str, Place] = {}
        """Last owner of each device that is no longer listed."""
        self._contested: set[str] = set()
        self._down: set[Place] = set()
        self._duplicates: Mapping[str, DuplicateDevices] | None = None
        """Cached result of `duplicates`; None after a change."""

    def take(self, name: str, before: Cluster | None, now: Cluster | None) -> bool:
        """Apply the inventory of a cluster; report whether the owner of a device changed.

        Parameters
        ----------
        before
            The previous inventory; None for a new cluster.
        now
            The new inventory; None for a removed cluster.
        """
        old = {node.name: node for node in before.nodes} if before else {}
        owners: dict[str, Place | None] = {}
        for node in now.nodes if now else ():
            known = old.pop(node.name, None)
            if known is not node:
                self._note((name, node.name), known, node, owners)
        for node in old.values():
            self._note((name, node.name), node, None, owners)
        return self._settle(owners)

    def duplicates(self) -> Mapping[str, DuplicateDevices]:
        """Return the devices that several nodes list, by cluster. The result is cached until it changes."""
        if self._duplicates is None:
            found: defaultdict[str, DuplicateDevices] = defaultdict(DuplicateDevices)
            for uuid in self._contested:
                owner, *others = self._places[uuid]
                for other in others:
                    found[other[0]].lacking[other[1]].add(uuid)
                    if owner[0] != other[0]:
                        found[other[0]].elsewhere.add(uuid)
                        found[owner[0]].listed[other][uuid] = owner[1]
            self._duplicates = dict(found)
        return self._duplicates

    def offered(self, cluster: str, node: Node) -> Node:
        """Return a node with only the devices that it owns."""
        if self._contested.isdisjoint(device.uuid for device in node.devices):
            return node
        place = (cluster, node.name)
        return replace(node, devices=tuple(each for each in node.devices if self._places[each.uuid][0] == place))

    def _note(self, place: Place, before: Node | None, now: Node | None, owners: dict[str, Place | None]) -> None:
        """Record the devices of a node, and the previous owners of the affected devices."""
        had = {device.uuid for device in before.devices} if before else set()
        has = {device.uuid for device in now.devices} if now else set()
        self._down.discard(place)
        if now and not now.ready:
            self._down.add(place)
        changed = had ^ has
        if changed:
            self._duplicates = None
        for uuid in changed | (has & self._contested):
            places = self._places.get(uuid, ())
            owners.setdefault(uuid, places[0] if places else self._last.pop(uuid, None))
            if uuid not in has:
                self._places[uuid] = tuple(each for each in places if each != place)
            elif uuid not in had:
                self._places[uuid] = (*places, place)

    def _settle(self, owners: dict[str, Place | None]) -> bool:
        moved = False
        said: Counter[tuple[Place, Place]] = Counter()
        for uuid, before in owners.items():
            places = self._places[uuid]
            if not places:
                del self._places[uuid]
                self._contested.discard(uuid)
                if before:
                    self._last[uuid] = before
                continue
            if places[0] in self._down:
                ready = [each for each in places if each not in self._down]
                places = tuple(dict.fromkeys((*ready[:1], *places)))
            if places != self._places[uuid]:
                self._duplicates = None
            self._places[uuid] = places
            moved |= before not in {None, places[0]}
            if len(places) == 1:
                self._contested.discard(uuid)
            elif uuid not in self._contested or before != places[0]:
                self._contested.add(uuid)
                said.update((places[0], other) for other in places[1:])
        for (owner, other), count in said.items():
            log.warning(
                "%s and %s list the same %s; %s counted only on %s; delete the stale node",
                "/".join(owner),
                "/".join(other),
                "device" if count == 1 else f"{count} devices",
                "it is" if count == 1 else "they are",
                "/".join(owner),
            )
        return moved
