"""Asks each gateway's node-exporter, and works rates out of what it counted since the last time."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from seaway.adapters.node_exporter.page import read_counters
from seaway.application.ports.pages import NoPage, Page, Pages
from seaway.application.ports.traffic import Missed, Outcome, Reading
from seaway.domain.gateways import GatewayConfig
from seaway.probing.counters import NS_PER_S, Counters, rates, speed_mbps


class NodeExporters:
    """Looks at gateways' interfaces through their node-exporters; for one thread.

    Parameters
    ----------
    longest_s
        Between two readings, for a rate to be worked out of them.
    """

    def __init__(self, pages: Pages, longest_s: float) -> None:
        self._pages = pages
        self._longest_ns = int(longest_s * NS_PER_S)
        self._before: dict[tuple[str, str], Counters] = {}

    def covers(self, gateway: GatewayConfig) -> bool:
        """See `TrafficMeter`: it takes the exporter's address and the interface's name."""
        return bool(gateway.exporter and gateway.interface)

    def read(self, gateways: Sequence[GatewayConfig]) -> dict[str, Reading | Missed]:
        """See `TrafficMeter`."""
        pages = self._pages.read([each.exporter for each in gateways])
        found = {gateway.name: self._seen(gateway, page) for gateway, page in zip(gateways, pages, strict=True)}
        newest_ns = max((each.at_ns for each in self._before.values()), default=0)
        self._before = {
            place: each for place, each in self._before.items() if newest_ns - each.at_ns <= self._longest_ns
        }
        return found

    def _seen(self, gateway: GatewayConfig, page: Page | NoPage) -> Reading | Missed:
        where = f"node-exporter at {gateway.exporter}"
        if isinstance(page, NoPage):
            outcome = Outcome.UNREADABLE if page.answered else Outcome.SILENT
            return Missed(outcome, f"{where}: {page.why}")
        if page.status != HTTPStatus.OK:
            return Missed(Outcome.REFUSED, f"{where} answers {page.status}")
        try:
            counted = read_counters(page.body, gateway.interface)
        except ValueError as error:
            return Missed(Outcome.UNREADABLE, f"{where}: {error}")
        received, transmitted = counted.received_bytes, counted.transmitted_bytes
        before = self._before.pop(_place(gateway), None)
        if received is None or transmitted is None:
            return Missed(Outcome.MISSING, f"{where} tells nothing of that interface")
        now = Counters(page.at_ns, received, transmitted)
        self._before[_place(gateway)] = now
        known = rates(before, now, self._longest_ns) if before else None
        return Reading(known, speed_mbps(counted.speed_bytes))


def _place(gateway: GatewayConfig) -> tuple[str, str]:
    return gateway.exporter, gateway.interface
