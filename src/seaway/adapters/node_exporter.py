"""Traffic meter that reads the node-exporters of gateways and computes rates from their counters."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from prometheus_client.parser import text_string_to_metric_families

from seaway.application.ports.traffic import Missed, NoPage, Outcome, Page, Pages, Reading
from seaway.domain.gateways import GatewayConfig
from seaway.probing.rounds import NS_PER_S, Counters, rates, speed_mbps

RECEIVED = "node_network_receive_bytes_total"
TRANSMITTED = "node_network_transmit_bytes_total"
SPEED = "node_network_speed_bytes"

MAX_BYTES = 2**64
"""Maximum value of kernel counters."""

LONGEST_LINE = 1024
MAX_ESCAPES = 32
"""Maximum number of backslashes in a line. The parser's run time grows with the square of this number."""

_ESCAPES = re.compile(rb'[\\"]')


@dataclass(frozen=True, slots=True)
class Counted:
    """Counters and speed of an interface.

    Attributes
    ----------
    received_bytes, transmitted_bytes
        Counters; None if missing in the page.
    speed_bytes
        Speed in bytes per second as the driver reports it, possibly invalid; None if missing.
    """

    received_bytes: int | None
    transmitted_bytes: int | None
    speed_bytes: float | None


def read_counters(page: bytes, interface: str) -> Counted:
    """Parse the counters of an interface. A page of 1,500 lines takes a fraction of a millisecond.

    Raises
    ------
    ValueError
        When a value is duplicated or out of range.
    """
    found: dict[str, float] = {}
    starts = {name: f"{name}{{".encode() for name in (RECEIVED, TRANSMITTED, SPEED)}
    for name, start in starts.items():
        at = page.find(start)
        while at >= 0:
            end = page.find(b"\n", at)
            line = page[at : end if end >= 0 else len(page)]
            if at == 0 or page[at - 1 : at] == b"\n":
                _read_line(line, name, interface, found)
            at = page.find(start, at + len(line))
    return Counted(_counted(found.get(RECEIVED)), _counted(found.get(TRANSMITTED)), found.get(SPEED))


def _read_line(line: bytes, name: str, interface: str, found: dict[str, float]) -> None:
    """Add the value of a line to `found`, if it belongs to the interface."""
    if _ESCAPES.sub(rb"\\\g<0>", interface.encode()) not in line:  # parsing takes a hundred times as long as this check
        return
    if len(line) > LONGEST_LINE or line.count(b"\\") > MAX_ESCAPES:
        raise ValueError("a line is too long")
    try:
        (family,) = text_string_to_metric_families(line.decode())
        (sample,) = family.samples
    except Exception as error:  # the parser may raise any error for an invalid text
        raise ValueError("a line cannot be read") from error
    if sample.labels.get("device") != interface:
        return
    if name in found:
        raise ValueError(f"{name} is duplicated")
    found[name] = sample.value


def _counted(value: float | None) -> int | None:
    if value is None:
        return None
    if not math.isfinite(value) or not 0 <= value <= MAX_BYTES:
        raise ValueError("an impossible number of bytes")
    return int(value)


class NodeExporters:
    """Traffic meter for gateways with node-exporters, for one thread.

    Parameters
    ----------
    longest_s
        Maximum time between the two readings of a rate.
    """

    def __init__(self, pages: Pages, longest_s: float) -> None:
        self._pages = pages
        self._longest_ns = int(longest_s * NS_PER_S)
        self._before: dict[tuple[str, str], Counters] = {}

    def covers(self, gateway: GatewayConfig) -> bool:
        """Report whether the gateway has an exporter and an interface; see `TrafficMeter`."""
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
            outcome = Outcome.UNREADABLE if page.answered else Outcome.UNREACHABLE
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
            return Missed(Outcome.MISSING, f"{where} has no figures of that interface")
        now = Counters(page.at_ns, received, transmitted)
        self._before[_place(gateway)] = now
        known = rates(before, now, self._longest_ns) if before else None
        return Reading(known, speed_mbps(counted.speed_bytes))


def _place(gateway: GatewayConfig) -> tuple[str, str]:
    return gateway.exporter, gateway.interface
