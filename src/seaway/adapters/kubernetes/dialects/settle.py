"""Giving devices that are known by number only to pods, so that what is held can be booked.

Which card a pod really has, nobody says; but as all cards of one resource are alike, it is enough that each share of
them has one holder, and that nobody's share moves while it is held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from seaway.adapters.kubernetes.dialects.views import Held, NodeView


def settle(
    view: NodeView, held: Mapping[str, Sequence[Held]], before: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Held, ...]]:
    """Name a device for every share that has none.

    Parameters
    ----------
    view
        The node.
    held
        By pod, what `read_pod` says that it holds.
    before
        By pod, the devices that were named for it earlier, or that Seaway placed it on; kept as far as they have room.

    Returns
    -------
    dict
        By pod, in the same order, all that it holds. Shares beyond what the node has stay without a device.
    """
    room: Counter[str] = Counter({uuid: max(device.share_limit, 1) for uuid, device in view.devices.items()})
    wishes = {pod: _wishes(view, shares, before.get(pod, ()), room) for pod, shares in held.items()}
    return {pod: _named(view, shares, wishes[pod], room) for pod, shares in held.items()}


def _wishes(view: NodeView, shares: Sequence[Held], uuids: Sequence[str], room: Counter[str]) -> list[str]:
    """Take the devices that shares had before; one for each share, empty where it has to change."""
    left = list(uuids)
    wishes = []
    for share in shares:
        wish = ""
        if not share.uuid:
            wish = next((uuid for uuid in left if room[uuid] > 0 and _counts(view, uuid, share.resource)), "")
        if wish:
            left.remove(wish)
            room[wish] -= 1
        wishes.append(wish)
    return wishes


def _named(view: NodeView, shares: Sequence[Held], wishes: Sequence[str], room: Counter[str]) -> tuple[Held, ...]:
    """Give the shares that are still without a device the emptiest one, the first of several."""
    named = []
    for share, wish in zip(shares, wishes, strict=True):
        uuid = share.uuid or wish or _emptiest(view, share.resource, room)
        if uuid and not share.uuid and not wish:
            room[uuid] -= 1
        named.append(replace(share, uuid=uuid))
    return tuple(named)


def _emptiest(view: NodeView, resource: str, room: Counter[str]) -> str:
    fitting = [uuid for uuid in view.devices if room[uuid] > 0 and _counts(view, uuid, resource)]
    return max(fitting, key=lambda uuid: (view.devices[uuid].healthy, room[uuid]), default="")


def _counts(view: NodeView, uuid: str, resource: str) -> bool:
    access = view.by_uuid.get(uuid)
    return access is not None and access.terms.count == resource
