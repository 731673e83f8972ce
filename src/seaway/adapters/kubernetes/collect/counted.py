"""Pods that got devices by number alone, and which devices they are taken to have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from seaway.adapters.kubernetes.dialects.settle import settle
from seaway.adapters.kubernetes.dialects.views import Held, NodeView


class Counted:
    """Keeps what such pods hold on each node, and names devices for it."""

    def __init__(self) -> None:
        self._held: defaultdict[str, dict[str, tuple[Held, ...]]] = defaultdict(dict)
        self._nodes: dict[str, str] = {}
        self._named: dict[str, tuple[str, ...]] = {}
        self._booked: dict[str, tuple[str, ...]] = {}

    def put(
        self, name: str, held: tuple[Held, ...], view: NodeView, booked: Sequence[str]
    ) -> tuple[tuple[Held, ...], list[str]]:
        """Take what a pod holds now.

        Parameters
        ----------
        name
            The pod, ``namespace/name``.
        view
            Its node.
        booked
            The devices that Seaway booked for it, where that is known.

        Returns
        -------
        held, others
            What it holds, each share with a device as far as there are any; and the pods of its node that are taken
            to have other devices than before.
        """
        node = view.node.name
        others = self.drop(name) if self._nodes.get(name, node) != node else []
        there = self._held[node]
        self._nodes[name], there[name], self._booked[name] = node, held, tuple(booked)
        found = settle(view, there, self._named, self._booked)
        for pod, shares in found.items():
            named = _named(shares)
            if named != self._named.get(pod, ()):
                self._named[pod] = named
                if pod != name:
                    others.append(pod)
        return found[name], others

    def drop(self, name: str) -> list[str]:
        """Note that a pod holds nothing by number; return those that have no device yet and may get one of its."""
        if (node := self._nodes.pop(name, None)) is None:
            return []
        there = self._held[node]
        del there[name], self._booked[name]
        self._named.pop(name, None)
        if not there:
            del self._held[node]
        return [pod for pod, held in there.items() if len(self._named.get(pod, ())) < len(held)]


def _named(held: Sequence[Held]) -> tuple[str, ...]:
    return tuple(each.uuid for each in held if each.uuid)
