"""What is looked at of the network to tell whether something is wrong: what links lose, and how full interfaces are."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from seaway.application.network.bandwidth import Interface
from seaway.application.network.views import FRESH, LinkView, Side
from seaway.domain.network import PPM

NS = 1_000_000_000

LOSSY_WITHIN_S = 600
"""What a link loses is its mean over so long."""

Ends = tuple[str, str]
"""The gateways at which a link begins and ends."""


@dataclass(frozen=True, slots=True)
class NetworkFigures:
    """How the network is now.

    Attributes
    ----------
    losses
        Share of probes that were not answered in the latest round, 0-1, of links that end at a cluster's gateway.
    full
        What interfaces carry of what they can, the fuller way, by gateway; of those of which both are known.
    unread
        Gateways whose interfaces are looked at in vain.
    """

    losses: Mapping[Ends, float] = field(default_factory=dict)
    full: Mapping[str, float] = field(default_factory=dict)
    unread: Sequence[str] = ()


def network_figures(
    links: Sequence[LinkView], sides: Mapping[str, Side], interfaces: Sequence[Interface]
) -> NetworkFigures:
    """Pick out what is looked at: of links what has metrics, of interfaces what is measured."""
    losses = {}
    for each in links:
        target = sides.get(each.target)
        if not each.path and each.state in FRESH and target and target.cluster and each.latest and each.source in sides:
            losses[each.source, each.target] = each.latest.loss_ppm / PPM
    full = {
        each.gateway: max(each.traffic.in_used_mbps, each.traffic.out_used_mbps) / each.traffic.speed_mbps
        for each in interfaces
        if each.traffic and each.traffic.speed_mbps and each.traffic.age_s is not None
    }
    return NetworkFigures(losses, full, [each.gateway for each in interfaces if each.unread])


def dead(losses: Mapping[Ends, float]) -> list[str]:
    """Return the gateways that answer nobody."""
    least: dict[str, float] = {}
    for (_, target), loss in losses.items():
        least[target] = min(loss, least.get(target, loss))
    return [target for target, loss in least.items() if loss >= 1]


class Losses:
    """What links lost of late."""

    def __init__(self) -> None:
        self._seen: dict[Ends, deque[tuple[int, float]]] = {}

    def note(self, now_ns: int, losses: Mapping[Ends, float]) -> None:
        """Take in what links lose now, and forget what is too old."""
        for ends, loss in losses.items():
            self._seen.setdefault(ends, deque()).append((now_ns, loss))
        for ends, seen in list(self._seen.items()):
            while seen and seen[0][0] < now_ns - LOSSY_WITHIN_S * NS:
                seen.popleft()
            if not seen:
                del self._seen[ends]

    def means(self) -> dict[Ends, float]:
        """Return what each link lost on average, 0-1."""
        return {ends: sum(loss for _, loss in seen) / len(seen) for ends, seen in self._seen.items()}
