"""What only Karmada's control plane has of attempts, as policies whose workload is gone: of that no member tells."""

from __future__ import annotations

from collections.abc import Mapping

from seaway.adapters.kubernetes.collect.owned import Key, Owned
from seaway.adapters.kubernetes.collect.view import ClusterView

LOOK_S = 30.0
"""How often it is looked for, seconds."""


class Left:
    """Has members tell of it, as of what never ran there. For one event loop.

    Parameters
    ----------
    owned
        What is there of each attempt in Karmada's control plane.
    """

    def __init__(self, owned: Owned) -> None:
        self._owned = owned
        self._before: set[Key] = set()

    def look(self, views: Mapping[str, ClusterView]) -> None:
        """Look for it: what a member has nothing of for the second time in a row is not just being written.

        Nothing is left whose workload is there, as it comes to its member however long that takes.

        Parameters
        ----------
        views
            The members, by name.
        """
        idle = self._owned.idle()
        there = {name: views[name].known() for name in {key[2] for key in idle} & views.keys()}
        lacking = {key for key in idle if key[2] in there and key[:2] not in there[key[2]]}
        lasting = lacking & self._before
        for name, view in views.items():
            view.keep_left(frozenset(key[:2] for key in lasting if key[2] == name))
        self._before = lacking
