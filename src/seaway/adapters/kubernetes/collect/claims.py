"""Resource claims, and which pods use each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from seaway.adapters.kubernetes.objects.claim import ResourceClaim
from seaway.adapters.kubernetes.objects.pod import PodObject


class Claims:
    """Keeps claims and their users, both by ``namespace/name``, whichever of them is heard of first."""

    def __init__(self) -> None:
        self._claims: dict[str, ResourceClaim] = {}
        self._users: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._used: dict[str, tuple[str, ...]] = {}

    @property
    def names(self) -> set[str]:
        """All claims."""
        return set(self._claims)

    def put(self, claim: ResourceClaim) -> list[str]:
        """Take a claim as it is now; return the pods that it says something new of."""
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        before = self._claims.get(name)
        self._claims[name] = claim
        return [] if before is not None and before.status == claim.status else self._users_of(name)

    def drop(self, name: str) -> list[str]:
        """Note that a claim is gone; return the pods that used it."""
        return [] if self._claims.pop(name, None) is None else self._users_of(name)

    def used_by(self, name: str, pod: PodObject) -> list[ResourceClaim]:
        """Note which claims a pod uses; return those of them that are known."""
        used = tuple(dict.fromkeys(_named(pod))) if pod.spec.resource_claims else ()
        if used != self._used.get(name, ()):
            self.forget(name)
            if used:
                self._used[name] = used
            for each in used:
                self._users[each][name] = None
        return [claim for each in used if (claim := self._claims.get(each))]

    def forget(self, name: str) -> None:
        """Note that a pod is gone."""
        for each in self._used.pop(name, ()):
            del self._users[each][name]
            if not self._users[each]:
                del self._users[each]

    def _users_of(self, claim: str) -> list[str]:
        return list(self._users.get(claim, ()))


def _named(pod: PodObject) -> Iterator[str]:
    """Yield the full names of the claims that a pod uses: by its spec, or made from a template."""
    named = [each.resource_claim_name for each in pod.spec.resource_claims]
    made = [each.resource_claim_name for each in pod.status.resource_claim_statuses]
    for name in filter(None, named + made):
        yield f"{pod.metadata.namespace}/{name}"
