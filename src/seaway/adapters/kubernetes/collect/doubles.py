"""Devices that several nodes of a cluster list, as when a machine was joined anew and its old node stayed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

from seaway.adapters.kubernetes.dialects.views import NodeView, Trouble, TroubleKind
from seaway.adapters.kubernetes.objects.node import NodeObject
from seaway.domain.node import Node

DEVICES = "devices"


class Doubles:
    """Finds them, and leaves each to one node: to one that answers, and of several such to the newest.

    Attributes
    ----------
    troubles
        What is wrong with the nodes that others were preferred to.
    """

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._listed_twice: set[str] = set()
        self.troubles: dict[str, Trouble] = {}

    def count(self, before: NodeView | None, now: NodeView | None) -> None:
        """Take a node as it is now; None when it is not there."""
        for view, step in ((before, -1), (now, 1)):
            for device in view.node.devices if view else ():
                self._times[device.uuid] += step
                if self._times[device.uuid] > 1:
                    self._listed_twice.add(device.uuid)
                else:
                    self._listed_twice.discard(device.uuid)
                if not self._times[device.uuid]:
                    del self._times[device.uuid]

    def settle(self, views: Mapping[str, NodeView], written: Mapping[str, NodeObject]) -> dict[str, Node]:
        """Return the nodes that are left with fewer devices than they list, and note why."""
        self.troubles = {}
        if not self._listed_twice:
            return {}
        listing: defaultdict[str, list[str]] = defaultdict(list)
        for name, view in views.items():
            for uuid in self._listed_twice.intersection(view.devices):
                listing[uuid].append(name)
        owners = {
            uuid: max(names, key=lambda name: (views[name].answers, written[name].metadata.creation_timestamp, name))
            for uuid, names in listing.items()
        }
        left: dict[str, Node] = {}
        for name in sorted({name for names in listing.values() for name in names}):
            node = views[name].node
            kept = tuple(device for device in node.devices if owners.get(device.uuid, name) == name)
            if len(kept) < len(node.devices):
                others = ", ".join(sorted({owners.get(device.uuid, name) for device in node.devices} - {name}))
                said = f"{len(node.devices) - len(kept)} are listed by {others} too and counted there"
                text = f"{said}; a node that was left behind is to be deleted"
                self.troubles[name] = Trouble(TroubleKind.UNUSABLE, DEVICES, text)
                left[name] = replace(node, devices=kept)
        return left
