"""The member clusters of a Karmada control plane.

References
----------
cluster.karmada.io/v1alpha1 Cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from seaway.adapters.kubernetes.collect.reflect import Source
from seaway.adapters.kubernetes.objects.meta import Meta
from seaway.adapters.kubernetes.objects.page import Broken
from seaway.adapters.kubernetes.objects.part import Part


class MemberSpec(Part, frozen=True):
    """What is wanted of a member."""

    region: str = ""


class MemberObject(Part, frozen=True):
    """A member."""

    metadata: Meta = Meta()
    spec: MemberSpec = MemberSpec()


MEMBERS = Source("/apis/cluster.karmada.io/v1alpha1/clusters", MemberObject)


def proxy(name: str) -> str:
    """Return the path of the proxy to a member."""
    return f"{MEMBERS.path}/{name}/proxy"


class Members:
    """Keeps which members there are, for any thread."""

    def __init__(self) -> None:
        self._regions: dict[str, str] = {}

    def regions(self) -> dict[str, str]:
        """Return the members' regions, by name; empty where none is known."""
        return dict(self._regions)

    async def replace(self, items: Sequence[MemberObject]) -> None:
        """Take these for all members."""
        self._regions = {each.metadata.name: each.spec.region for each in items}

    def put(self, item: MemberObject) -> None:
        """Take a member as it is now."""
        self._regions = self._regions | {item.metadata.name: item.spec.region}

    def drop(self, item: MemberObject) -> None:
        """Note that a member left."""
        self._regions = {name: region for name, region in self._regions.items() if name != item.metadata.name}

    def broken(self, what: Broken) -> None:
        """Leave a member as it was."""
