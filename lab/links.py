"""Conditions of a lab's links: defaults, as in the demo, and files of users."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Annotated

from pydantic import Field

from lab.conditions import MAX_DELAY_NS, Conditions
from seaway.domain import units
from seaway.domain.errors import RejectedError
from seaway.domain.network import Ends
from seaway.simulation.demo import LINKS
from seaway.wire.fields import Amount, GatewayName, Rate, Unit, no_entries, rate_mbps, reader
from seaway.wire.message import Incoming

NEAR_NS, STEP_NS = 2_000_000, 1_500_000
"""Round trip of links that the demo does not have: between neighbours, and the addition for each further step."""


def default_links(gateways: Sequence[str]) -> dict[Ends, Conditions]:
    """Return the default conditions of each link, one way: half of the round trip's delay, jitter and loss."""
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


delay_ns = reader(units.duration_ns, MAX_DELAY_NS)
loss_ppm = reader(units.share_ppm, 10**6)

Delay = Annotated[Amount, Unit(delay_ns, "20ms")]
Share = Annotated[Amount, Unit(loss_ppm, "1%", 0.01)]


class ConditionsIn(Incoming):
    """Conditions of a link; omitted ones do not change."""

    delay: Delay | None = None
    """One-way delay."""
    jitter: Delay | None = None
    """Maximum deviation from the delay."""
    loss: Share | None = None
    """Share of lost packets."""
    rate: Rate | None = None
    """Rate limit; 0 for none."""

    def change(self, before: Conditions) -> Conditions:
        """Return other conditions with this change.

        Raises
        ------
        RejectedError
            If the result is impossible.
        """
        given = {
            "delay_ns": None if self.delay is None else delay_ns(self.delay),
            "jitter_ns": None if self.jitter is None else delay_ns(self.jitter),
            "loss_ppm": None if self.loss is None else loss_ppm(self.loss),
            "rate_mbps": None if self.rate is None else rate_mbps(self.rate),
        }
        return replace(before, **{name: value for name, value in given.items() if value is not None})


class LinkIn(ConditionsIn):
    """A link of a lab: one way with `from` and `to`, or both ways with `between`."""

    between: Annotated[list[GatewayName], Field(min_length=2, max_length=2)] | None = None
    """Both ways between two gateways."""
    source: Annotated[GatewayName | None, Field(alias="from", description="One way, from this gateway.")] = None
    target: Annotated[GatewayName | None, Field(alias="to", description="One way, to this gateway.")] = None

    def ends(self) -> Iterator[Ends]:
        """Yield the directions of the link, as pairs of gateways.

        Raises
        ------
        RejectedError
            If they are ambiguous or missing.
        """
        one_way = self.source is not None and self.target is not None
        both_ways = self.between is not None
        if one_way == both_ways or (both_ways and (self.source or self.target)):
            raise RejectedError("say `between: [A, B]` for both ways, or `from: A` and `to: B` for one")
        if self.between is not None:
            yield from ((source, target) for source, target in permutations(self.between))
        elif self.source is not None and self.target is not None:
            yield self.source, self.target


class LinksIn(Incoming):
    """Links of a lab."""

    default: ConditionsIn = ConditionsIn()
    """Conditions of links that are not listed, and of omitted conditions of those that are."""
    links: Annotated[list[LinkIn], Field(max_length=100_000)] = no_entries()
    """Links; a later entry overrides an earlier one."""

    def conditions(self, gateways: Collection[str]) -> dict[Ends, Conditions]:
        """Return the conditions of every link between some gateways.

        Raises
        ------
        RejectedError
            If links are invalid; names the first, and `also` has the others.
        """
        default = self.default.change(Conditions())
        found = dict.fromkeys(permutations(gateways, 2), default)
        wrong = []
        for at, link in enumerate(self.links):
            try:
                for ends in link.ends():
                    found[ends] = link.change(found[require_link(ends, gateways)])
            except RejectedError as error:
                where = f"links[{at}].{error.where}" if error.where else f"links[{at}]"
                wrong.append(RejectedError(error.message, where=where))
        if wrong:
            raise RejectedError(wrong[0].message, where=wrong[0].where, also=tuple(wrong[1:]))
        return found


def require_link(ends: Ends, gateways: Collection[str]) -> Ends:
    """Return the ends of a link between two of some gateways.

    Raises
    ------
    RejectedError
        If it is not such a link.
    """
    for each in ends:
        if each not in gateways:
            raise RejectedError(f"gateway {each!r} not found in this lab; available: {', '.join(gateways)}")
    if ends[0] == ends[1]:
        raise RejectedError(f"{ends[0]} has no link to itself")
    return ends
