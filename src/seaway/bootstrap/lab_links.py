"""What the links of a lab are like when nobody says: as in the demo, so that there is something to weigh."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from seaway.domain.network import Ends
from seaway.probing.conditions import Conditions
from seaway.simulation.demo import LINKS

NEAR_NS, STEP_NS = 2_000_000, 1_500_000
"""Of links that the demo does not have: a round trip between neighbours, and what every one further adds."""


def default_links(gateways: Sequence[str]) -> dict[Ends, Conditions]:
    """Return the conditions of each link, one way: half of the round trip's delay, jitter and loss."""
    found = {}
    for source, target in permutations(range(len(gateways)), 2):
        distance = abs(source - target)
        ring = min(distance, len(gateways) - distance)
        found[gateways[source], gateways[target]] = Conditions(NEAR_NS + (ring - 1) * STEP_NS // 2)
    for link in LINKS:
        way = Conditions((link.latency_ns or 0) // 2, link.jitter_ns // 2, link.loss_ppm // 2, link.bandwidth_mbps)
        for ends in ((link.source, link.target), (link.target, link.source)):
            if ends in found:
                found[ends] = way
    return found
