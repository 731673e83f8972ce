"""Which shares of devices pods hold, also where only their number is known, or claims say it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from seaway.adapters.kubernetes.dialects.pods import read_pod
from seaway.adapters.kubernetes.dialects.settle import settle
from seaway.adapters.kubernetes.dialects.views import Held, NodeView, PodView
from seaway.adapters.kubernetes.objects.claim import ResourceClaim
from seaway.adapters.kubernetes.objects.pod import PodObject


class Shares:
    """Reads what pods hold, and remembers what it takes to go on doing so."""

    def __init__(self) -> None:
        self._claims: dict[str, ResourceClaim] = {}
        self._claiming: dict[str, PodObject] = {}
        self._numbered: defaultdict[str, dict[str, tuple[Held, ...]]] = defaultdict(dict)
        self._named: dict[str, tuple[str, ...]] = {}

    def read(self, pod: PodObject, view: NodeView | None) -> PodView:
        """Read a pod; shares known by number alone get devices, and keep them while they are held."""
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        claims = [claim for each in _claims_of(pod) if (claim := self._claims.get(each))]
        if pod.spec.resource_claims:
            self._claiming[name] = pod
        found = read_pod(pod, view, claims)
        if view is None or not found.alive or all(each.uuid for each in found.held):
            self._unnumber(name)
            return found
        there = self._numbered[found.node]
        there[name] = found.held
        held = settle(view, there, self._named)[name]
        self._named[name] = tuple(each.uuid for each in held if each.uuid)
        return replace(found, held=held)

    def forget(self, name: str) -> None:
        """Forget a pod, ``namespace/name``, that is gone."""
        self._claiming.pop(name, None)
        self._unnumber(name)

    def put_claim(self, claim: ResourceClaim) -> list[PodObject]:
        """Take a claim as it is now; return the pods that have to be read again."""
        meta = claim.metadata
        name = f"{meta.namespace}/{meta.name}"
        self._claims[name] = claim
        return self._users(name)

    def drop_claim(self, name: str) -> list[PodObject]:
        """Note that a claim, ``namespace/name``, is gone; return the pods that have to be read again."""
        self._claims.pop(name, None)
        return self._users(name)

    @property
    def claims(self) -> set[str]:
        """Names of all claims."""
        return set(self._claims)

    def _users(self, claim: str) -> list[PodObject]:
        return [pod for pod in self._claiming.values() if claim in _claims_of(pod)]

    def _unnumber(self, name: str) -> None:
        if self._named.pop(name, None) is not None:
            for node in [node for node, pods in self._numbered.items() if name in pods]:
                del self._numbered[node][name]
                if not self._numbered[node]:
                    del self._numbered[node]


def _claims_of(pod: PodObject) -> Iterator[str]:
    """Yield the full names of the claims that a pod uses."""
    for each in pod.spec.resource_claims:
        if each.resource_claim_name:
            yield f"{pod.metadata.namespace}/{each.resource_claim_name}"
    for made in pod.status.resource_claim_statuses:
        if made.resource_claim_name:
            yield f"{pod.metadata.namespace}/{made.resource_claim_name}"
