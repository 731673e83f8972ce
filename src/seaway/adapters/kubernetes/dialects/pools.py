"""Resource pools: which slices of them count, and what a device of one says of itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from sys import intern

from seaway.adapters.kubernetes import quantities
from seaway.adapters.kubernetes.dialects.findings import MOST_SAID, Findings
from seaway.adapters.kubernetes.objects.slice import ResourceSlice, SliceDevice
from seaway.domain.errors import RejectedError


@dataclass(frozen=True, slots=True)
class Listed:
    """A device of a pool."""

    driver: str
    pool: str
    device: SliceDevice

    @property
    def where(self) -> str:
        """Its identity."""
        return f"{self.driver}/{self.pool}/{self.device.name}"

    def text(self, name: str) -> str:
        """Return an attribute that is a text; empty when there is none."""
        attribute = self.device.attributes.get(name) or self.device.attributes.get(f"{self.driver}/{name}")
        return (attribute.text or "") if attribute else ""

    def number(self, name: str) -> int | None:
        """Return an attribute that is a number; None when there is none."""
        attribute = self.device.attributes.get(name) or self.device.attributes.get(f"{self.driver}/{name}")
        return attribute.whole if attribute else None

    def memory_mib(self) -> int:
        """Return its memory, rounded down.

        Raises
        ------
        RejectedError
            When it has none, or one that cannot be read.
        """
        amount = self.device.capacity.get("memory") or self.device.capacity.get(f"{self.driver}/memory")
        if amount is None:
            raise RejectedError("no capacity of memory")
        return quantities.mebibytes(amount.value, down=True)

    @property
    def taints(self) -> str:
        """The taints that keep new work away, as drivers mark bad devices; empty without one."""
        if not self.device.taints:
            return ""
        keep = [each for each in self.device.taints if each.effect in {"NoSchedule", "NoExecute"}]
        written = [
            f"{each.key}={each.value}:{each.effect}" if each.value else f"{each.key}:{each.effect}" for each in keep
        ]
        return intern(f"tainted {', '.join(written)}"[:MOST_SAID]) if keep else ""


def listed(node: str, slices: Iterable[ResourceSlice], findings: Findings) -> Iterator[Listed]:
    """Yield the devices on a node, of the highest generation of each pool, where all its slices are there."""
    pools: defaultdict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for each in slices:
        pools[each.spec.driver, each.spec.pool.name].append(each)
    for (driver, pool), found in sorted(pools.items()):
        if not any(_here(node, each, device) for each in found for device in each.spec.devices):
            continue
        newest = max(each.spec.pool.generation for each in found)
        kept = [each for each in found if each.spec.pool.generation == newest]
        wanted = max(each.spec.pool.resource_slice_count for each in kept)
        if len({each.metadata.name for each in kept}) != wanted:
            text = f"generation {newest} has {len(kept)} of {wanted} slices; the pool is left out until it is complete"
            findings.broken(f"{driver}/{pool}", text)
            continue
        for each in sorted(kept, key=lambda one: one.metadata.name):
            yield from (Listed(driver, pool, device) for device in each.spec.devices if _here(node, each, device))


def _here(node: str, each: ResourceSlice, device: SliceDevice) -> bool:
    return (device.node_name or each.spec.node_name) == node
