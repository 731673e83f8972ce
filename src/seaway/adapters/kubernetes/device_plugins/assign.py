"""Assignment of devices to pods whose device plugin reports only the number of devices.

The real card of such a pod is unknown, but all cards of a resource are equal. It is therefore enough that each share
has one holder. A Seaway pod gets the devices that were reserved for it. Other assignments do not change while the pod
holds the device, unless a reservation for this pod or another takes precedence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from seaway.adapters.kubernetes.device_plugins.views import Held, NodeView

NONE: Mapping[str, Sequence[str]] = {}


def assign_devices(
    view: NodeView,
    held: Mapping[str, Sequence[Held]],
    before: Mapping[str, Sequence[str]],
    allocated: Mapping[str, Sequence[str]] = NONE,
) -> dict[str, tuple[Held, ...]]:
    """Assign a device to every share without one.

    Parameters
    ----------
    view
        The node.
    held
        Shares by pod, from `read_pod`.
    before
        Previously assigned devices by pod; kept unless they are reserved for another pod.
    allocated
        Devices by pod that Seaway chose for it, or for it and similar pods, on this node or others.

    Returns
    -------
    dict
        Shares by pod, in the same order. Shares beyond the capacity of the node stay without a device.
    """
    assignment = _Assignment(view, held)
    for pod in held:
        assignment.give(pod, [uuid for uuid in before.get(pod, ()) if uuid in allocated.get(pod, ())])
    for preferred in (allocated, before):
        for pod in held:
            assignment.give(pod, preferred.get(pod, ()))
    for pod in held:
        assignment.fill(pod)
    return {
        pod: tuple(replace(share, uuid=uuid) for share, uuid in zip(shares, assignment.given[pod], strict=True))
        for pod, shares in held.items()
    }


class _Assignment:
    """Current state of the assignment.

    Attributes
    ----------
    given
        Device of each share by pod; empty if none is assigned yet.
    """

    def __init__(self, view: NodeView, held: Mapping[str, Sequence[Held]]) -> None:
        self._view = view
        self._held = held
        self._free = Counter({uuid: max(device.share_limit, 1) for uuid, device in view.devices.items()})
        self.given = {pod: [share.uuid for share in shares] for pod, shares in held.items()}

    def give(self, pod: str, uuids: Sequence[str]) -> None:
        """Assign the named devices to unassigned shares of a pod, each as often as named, within capacity."""
        given, left = self.given[pod], list(uuids)
        for uuid in given:
            if uuid in left:
                left.remove(uuid)
        for at in self._open(pod):
            if uuid := next((each for each in left if self._fits(each, pod, at)), ""):
                left.remove(uuid)
                self._take(pod, at, uuid)

    def fill(self, pod: str) -> None:
        """Assign the emptiest device to each unassigned share of a pod; prefer healthy devices."""
        devices = self._view.devices
        for at in self._open(pod):
            fitting = [uuid for uuid in devices if self._fits(uuid, pod, at)]
            if fitting:
                self._take(pod, at, max(fitting, key=lambda uuid: (devices[uuid].healthy, self._free[uuid])))

    def _open(self, pod: str) -> list[int]:
        return [at for at, uuid in enumerate(self.given[pod]) if not uuid]

    def _fits(self, uuid: str, pod: str, at: int) -> bool:
        access = self._view.by_uuid.get(uuid)
        return access is not None and access.resources.count == self._held[pod][at].resource and self._free[uuid] > 0

    def _take(self, pod: str, at: int, uuid: str) -> None:
        self.given[pod][at] = uuid
        self._free[uuid] -= 1
