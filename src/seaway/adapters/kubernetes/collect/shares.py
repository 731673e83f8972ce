"""Which shares of devices pods hold, also where only their number is known, or claims say it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from seaway.adapters.kubernetes.collect.claims import Claims
from seaway.adapters.kubernetes.collect.counted import Counted
from seaway.adapters.kubernetes.collect.kept import Kept
from seaway.adapters.kubernetes.collect.ours import booked_for
from seaway.adapters.kubernetes.dialects.pods import read_pod
from seaway.adapters.kubernetes.dialects.views import NodeView, PodView
from seaway.adapters.kubernetes.objects.claim import ResourceClaim
from seaway.adapters.kubernetes.objects.pod import PodObject


class Shares:
    """Reads what pods hold, and remembers what it takes to go on doing so: pods are named ``namespace/name``.

    Parameters
    ----------
    namespace
        Where Seaway's own pods are.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._claims = Claims()
        self._counted = Counted()
        self._kept = Kept()

    def read(self, pod: PodObject, view: NodeView | None) -> tuple[PodView, list[str]]:
        """Read a pod; shares known by number alone get devices, and keep them while they are held.

        Returns
        -------
        view, again
            What it takes of its node, and the pods that have to be read again for that.
        """
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        found = read_pod(pod, view, self._claims.used_by(name, pod))
        if found.final:
            self._kept.drop(name)
        else:
            self._kept.keep(name, pod)
        if view is None or not found.alive or all(each.uuid for each in found.held):
            return found, self._counted.drop(name)
        held, again = self._counted.put(name, found.held, view, booked_for(pod.metadata, self._namespace))
        return replace(found, held=held), again

    def forget(self, name: str) -> list[str]:
        """Forget a pod that is gone; return those that have to be read again for that."""
        self._claims.forget(name)
        self._kept.drop(name)
        return self._counted.drop(name)

    def put_claim(self, claim: ResourceClaim) -> list[str]:
        """Take a claim as it is now; return the pods that have to be read again."""
        return self._claims.put(claim)

    def drop_claim(self, name: str) -> list[str]:
        """Note that a claim, ``namespace/name``, is gone; return the pods that have to be read again."""
        return self._claims.drop(name)

    @property
    def claims(self) -> set[str]:
        """Names of all claims."""
        return self._claims.names

    def on(self, node: str) -> list[str]:
        """Return the pods that have to be read again when the devices of a node change."""
        return self._kept.on(node)

    def pods(self, names: Iterable[str]) -> Iterator[PodObject]:
        """Yield pods that have to be read again, as they were last heard."""
        return self._kept.read(names)
