"""Giving devices that are known by number only to pods, so that what is held can be booked.

Which card a pod really has, no one says; but as all cards of one resource are alike, it is enough that each share of
them has one holder, that a pod of Seaway's has those that were booked for it, and that no one's share moves while it
is held, unless it turns out to be on a device that was booked.
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
    """Name a device for every share that has none.

    Parameters
    ----------
    view
        The node.
    held
        By pod, what `read_pod` says that it holds.
    before
        By pod, the devices that were named for it earlier; kept as far as no one else has them booked.
    allocated
        By pod, the devices that Seaway chose for it, or for it and others like it, on this node or others.

    Returns
    -------
    dict
        By pod, in the same order, all that it holds. Shares beyond what the node has stay without a device.
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
    """Who was given what so far.

    Attributes
    ----------
    given
        By pod, the device of each share; empty while it has none.
    """

    def __init__(self, view: NodeView, held: Mapping[str, Sequence[Held]]) -> None:
        self._view = view
        self._held = held
        self._free = Counter({uuid: max(device.share_limit, 1) for uuid, device in view.devices.items()})
        self.given = {pod: [share.uuid for share in shares] for pod, shares in held.items()}

    def give(self, pod: str, uuids: Sequence[str]) -> None:
        """Give shares of a pod that have none yet some devices, as far as these have room, each as often as named."""
        given, left = self.given[pod], list(uuids)
        for uuid in given:
            if uuid in left:
                left.remove(uuid)
        for at in self._open(pod):
            if uuid := next((each for each in left if self._fits(each, pod, at)), ""):
                left.remove(uuid)
                self._take(pod, at, uuid)

    def fill(self, pod: str) -> None:
        """Give shares of a pod that have none yet the emptiest device, a healthy one, the first of several."""
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
