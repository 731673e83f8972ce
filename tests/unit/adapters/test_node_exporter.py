from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seaway.adapters.node_exporter import Counted, NodeExporters, read_counters
from seaway.application.ports.traffic import Missed, NoPage, Outcome, Page, Reading
from seaway.domain.gateways import GatewayConfig
from seaway.probing.rounds import NS_PER_S, Rates

PAGE = """\
# HELP node_network_receive_bytes_total Network device statistic receive_bytes.
# TYPE node_network_receive_bytes_total counter
node_network_receive_bytes_total{{device="lan"}} 5
node_network_receive_bytes_total{{device="wan"}} {received}
node_network_receive_bytes_total{{device="wan0"}} 6
# HELP node_network_speed_bytes Network device property: speed_bytes
# TYPE node_network_speed_bytes gauge
node_network_speed_bytes{{device="lan"}} -125000
node_network_speed_bytes{{device="wan"}} 1.25e+09
node_network_transmit_bytes_total{{device="wan"}} {transmitted}
"""


def page(received: object = 0, transmitted: object = 0) -> bytes:
    """Return a page of a node-exporter."""
    return PAGE.format(received=received, transmitted=transmitted).encode()


@dataclass
class Reported:
    """Pages that a test provides."""

    pages: list[Page | NoPage]
    asked: list[str] = field(default_factory=list)

    def read(self, addresses: Sequence[str]) -> list[Page | NoPage]:
        """See `Pages`."""
        self.asked += addresses
        return [self.pages.pop(0) for _ in addresses]


GATEWAY = GatewayConfig("gw-1", ip_address("fd00::1"), interface="wan", exporter="http://[fd00::1]:9100/metrics")


def seen(*pages: Page | NoPage, interface: str = "wan") -> list[Reading | Missed]:
    """Measure a gateway once per page."""
    meter = NodeExporters(Reported(list(pages)), 30)
    gateway = GatewayConfig("gw-1", ip_address("fd00::1"), interface=interface, exporter="http://there/metrics")
    return [meter.read([gateway])["gw-1"] for _ in pages]


def test_two_looks_make_a_rate_of_the_interface_that_is_meant() -> None:
    """1,250,000 bytes in and ten times as many out, in a second, over 10 Gbit/s; other interfaces do not count."""
    first, second = seen(Page(200, page(), 7), Page(200, page("1.25e+06", 12_500_000), 7 + NS_PER_S))
    assert first == Reading(None, 10_000)
    assert second == Reading(Rates(10.0, 100.0), 10_000)


def test_an_interface_that_returns_is_not_measured_across_the_gap() -> None:
    """Its counters restarted in between, and may be higher than before."""
    gone = b'node_network_receive_bytes_total{device="lan"} 5\n'
    found = seen(*(Page(200, each, n * NS_PER_S) for n, each in enumerate([page(5, 5), gone, page(9, 9), page(9, 9)])))
    assert isinstance(found[1], Missed)
    assert found[1].outcome is Outcome.MISSING
    assert found[2:] == [Reading(None, 10_000), Reading(Rates(0.0, 0.0), 10_000)]


def test_an_exporter_that_was_unreachable_for_long_begins_again() -> None:
    """A mean over more than the longest interval is useless; a single failed read does no harm."""
    unreachable = NoPage("no answer within 5 s")
    assert seen(Page(200, page(), 0), unreachable, Page(200, page(1_250_000), 10 * NS_PER_S))[2] == Reading(
        Rates(1.0, 0.0), 10_000
    )
    assert seen(Page(200, page(), 0), unreachable, Page(200, page(1_250_000), 31 * NS_PER_S))[2] == Reading(
        None, 10_000
    )


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (NoPage("refused"), Outcome.UNREACHABLE),
        (NoPage("too long", answered=True), Outcome.UNREADABLE),
        (Page(401, b"", 0), Outcome.REFUSED),
        (Page(200, b"<html>", 0), Outcome.MISSING),
        (Page(200, page("NaN"), 0), Outcome.UNREADABLE),
        (Page(200, page(-1), 0), Outcome.UNREADABLE),
        (Page(200, page(1e30), 0), Outcome.UNREADABLE),
        (Page(200, page("much"), 0), Outcome.UNREADABLE),
        (Page(200, page() + page(), 0), Outcome.UNREADABLE),
        (Page(200, page("1" * 2000), 0), Outcome.UNREADABLE),
    ],
)
def test_a_look_that_sees_nothing_says_why(answer: Page | NoPage, outcome: Outcome) -> None:
    """It distinguishes no answer, a rejection, an invalid page and a missing interface, and names the exporter."""
    (found,) = seen(answer)
    assert isinstance(found, Missed)
    assert found.outcome is outcome
    assert "http://there/metrics" in found.why


@pytest.mark.parametrize(("exporter", "interface"), [("", "wan"), ("http://there/metrics", "")])
def test_a_gateway_without_exporter_or_interface_is_not_looked_at(exporter: str, interface: str) -> None:
    """Both are required."""
    meter = NodeExporters(Reported([]), 30)
    assert not meter.covers(GatewayConfig("gw-1", ip_address("fd00::1"), interface=interface, exporter=exporter))
    assert meter.covers(GATEWAY)


def test_a_gateway_whose_exporter_is_another_begins_again() -> None:
    """The counters of one exporter are not compared with another's."""
    reported = Reported([Page(200, page(1, 1), 0), Page(200, page(2, 2), NS_PER_S)])
    meter = NodeExporters(reported, 30)
    moved = GatewayConfig("gw-1", ip_address("fd00::1"), interface="wan", exporter="http://elsewhere/metrics")
    meter.read([GATEWAY])
    assert meter.read([moved])["gw-1"] == Reading(None, 10_000)
    assert reported.asked == [GATEWAY.exporter, moved.exporter]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1, max_size=15))
@example('w"a\\n')
def test_an_interface_may_be_called_anything(name: str) -> None:
    """Kernels accept all names without spaces and slashes, and node-exporter escapes them."""
    written = name.replace("\\", "\\\\").replace('"', '\\"')
    line = f'node_network_receive_bytes_total{{device="{written}"}} 42\n'
    assert read_counters(line.encode(), name) == Counted(42, None, None)


@given(st.binary(max_size=300), st.integers(0, 400))
def test_whatever_a_page_says_it_is_read_or_refused(noise: bytes, at: int) -> None:
    """It raises nothing but ValueError, and read values are possible."""
    whole = page(3, 4)
    try:
        counted = read_counters(whole[:at] + noise + whole[at:], "wan")
    except ValueError:
        return
    assert all(each is None or 0 <= each <= 2**64 for each in (counted.received_bytes, counted.transmitted_bytes))
