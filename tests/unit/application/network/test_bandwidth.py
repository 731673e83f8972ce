from __future__ import annotations

import logging
from collections.abc import Sequence
from ipaddress import ip_address
from math import inf, nan

import pytest

from seaway.application.network.bandwidth import Bandwidths, Interface
from seaway.application.ports.traffic import Missed, Outcome, Reading, Traffic
from seaway.domain.gateways import GatewayConfig
from seaway.probing.rounds import NS_PER_S, Rates
from seaway.testing.clocks import VirtualClock

STALE_S = 30
UNREACHABLE = Missed(Outcome.UNREACHABLE, "no answer\nwithin 5 s")


def gateway(
    name: str = "gw-1", speed_mbps: int = 0, exporter: str = "http://there/", interface: str = "wan"
) -> GatewayConfig:
    """Return a gateway."""
    return GatewayConfig(name, ip_address("::1"), interface=interface, speed_mbps=speed_mbps, exporter=exporter)


class Reported:
    """Sees what a test says."""

    def __init__(self) -> None:
        self.sees: Reading | Missed = UNREACHABLE

    def covers(self, gateway: GatewayConfig) -> bool:
        """See `TrafficMeter`."""
        return bool(gateway.exporter)

    def read(self, gateways: Sequence[GatewayConfig]) -> dict[str, Reading | Missed]:
        """See `TrafficMeter`."""
        return {each.name: self.sees for each in gateways}


class ActivePathController:
    """Bandwidths, and what decides what they see."""

    def __init__(self) -> None:
        self.meter, self.clock = Reported(), VirtualClock()
        self.bandwidths = Bandwidths(self.meter, STALE_S, self.clock)

    def see(self, seen: Reading | Missed, where: GatewayConfig) -> Traffic | None:
        """Look at a gateway; return what can be reported of it then."""
        self.meter.sees = seen
        self.bandwidths.look([where])
        return self.bandwidths.of(where)


def test_what_was_measured_is_reported_until_it_is_too_old() -> None:
    """In whole Mbit/s, with its age, also while looks fail; then nothing is."""
    path_controller, where = ActivePathController(), gateway(speed_mbps=100)
    assert path_controller.see(Reading(Rates(10.4, 99.6), 1000), where) == Traffic(10, 100, 1000, 0)
    path_controller.clock.advance_s(STALE_S)
    assert path_controller.see(UNREACHABLE, where) == Traffic(10, 100, 1000, STALE_S)
    path_controller.clock.advance(1)
    assert path_controller.bandwidths.of(where) is None


def test_what_was_old_when_it_was_read_is_as_old() -> None:
    """The latest sample of a Prometheus has an age of its own."""
    path_controller, where = ActivePathController(), gateway()
    assert path_controller.see(Reading(Rates(1, 2), None, 7.5), where) == Traffic(1, 2, None, 7.5)
    assert path_controller.see(Reading(Rates(1, 2), None, STALE_S + 1), where) is None


def test_a_look_that_knows_no_rate_yet_leaves_the_last_figures() -> None:
    """Nothing before any; what was known after a reset."""
    path_controller, where = ActivePathController(), gateway(speed_mbps=100)
    assert path_controller.see(Reading(None, 1000), where) is None
    assert path_controller.see(Reading(Rates(1, 2), 1000), where) == Traffic(1, 2, 1000, 0)
    path_controller.clock.advance_s(10)
    assert path_controller.see(Reading(None, 1000), where) == Traffic(1, 2, 1000, 10)


def test_a_configured_speed_replaces_one_that_is_not_reported() -> None:
    """Anything that the interface says of itself goes before it."""
    path_controller, where = ActivePathController(), gateway(speed_mbps=100)
    assert path_controller.see(Reading(Rates(1, 2), None), where) == Traffic(1, 2, 100, 0)


def test_a_configured_speed_does_not_replace_a_look_that_fails() -> None:
    """The way how much of it is in use is not known."""
    path_controller = ActivePathController()
    assert path_controller.see(UNREACHABLE, gateway(speed_mbps=100)) is None


@pytest.mark.parametrize("mbps", [1e300, 1e25, 2.0**32, inf, nan, -1.0])
def test_what_no_interface_carries_is_not_read(mbps: float) -> None:
    """The last figures stand, and it is counted with what makes no sense."""
    path_controller, where = ActivePathController(), gateway(speed_mbps=100)
    good = path_controller.see(Reading(Rates(10, 20), 1000), where)
    assert path_controller.see(Reading(Rates(mbps, 20), 1000), where) == good
    assert path_controller.see(Reading(Rates(10, mbps), 1000), where) == good
    assert path_controller.bandwidths.counts()["unreadable"] == 2
    assert "no interface carries" in path_controller.bandwidths.trouble(where)


@pytest.mark.parametrize("age_s", [1e300, inf, nan, -1.0])
def test_what_has_no_age_that_can_be_is_not_read(age_s: float) -> None:
    """It counts as what makes no sense."""
    path_controller, where = ActivePathController(), gateway()
    assert path_controller.see(Reading(Rates(10, 20), 1000, age_s), where) is None
    assert path_controller.bandwidths.counts()["unreadable"] == 1


def test_a_figure_is_of_the_time_since_the_one_before() -> None:
    """At the least of its window; the same read again is of the same time, and one that was missed makes it longer."""
    path_controller, where = ActivePathController(), gateway()
    path_controller.bandwidths = Bandwidths(path_controller.meter, STALE_S, path_controller.clock, 10)
    begun_ns = path_controller.clock.now_ns()
    assert path_controller.bandwidths.since_ns([where], begun_ns) == {}
    for seconds, age_s, since_s in ((0, 0, -10), (5, 0, -5), (5, 5, -5), (20, 0, 5)):
        path_controller.clock.advance_s(seconds)
        path_controller.see(Reading(Rates(1, 2), None, age_s), where)
        assert path_controller.bandwidths.since_ns([where], path_controller.clock.now_ns()) == {
            "gw-1": begun_ns + since_s * NS_PER_S
        }


def test_where_no_one_looks_the_configured_speed_is_all_there_is_to_say() -> None:
    """Of a gateway without exporter, or of any where nothing is measured; nothing without a speed."""
    path_controller, without, bare = ActivePathController(), gateway(speed_mbps=100, exporter=""), gateway(exporter="")
    assert path_controller.bandwidths.of(without) == Traffic(0, 0, 100, None)
    assert path_controller.bandwidths.of(bare) is None
    no_one = Bandwidths(None, STALE_S, VirtualClock())
    assert no_one.of(gateway(speed_mbps=100)) == Traffic(0, 0, 100, None)


@pytest.mark.parametrize(
    "other", [gateway(interface="lan"), gateway(exporter="http://elsewhere/"), gateway(name="gw-2")]
)
def test_figures_of_another_interface_are_not_taken_for_its_own(other: GatewayConfig) -> None:
    """After the configuration changed nothing is known until it was looked at."""
    path_controller = ActivePathController()
    path_controller.see(Reading(Rates(1, 2), 1000), gateway())
    assert path_controller.bandwidths.of(other) is None


def test_who_is_gone_is_forgotten() -> None:
    """One that returns is looked at first."""
    path_controller, stays, goes = ActivePathController(), gateway("stays"), gateway("goes")
    for each in (stays, goes):
        path_controller.see(Reading(Rates(1, 2), 1000), each)
    path_controller.bandwidths.forget_others([stays])
    assert path_controller.bandwidths.of(stays) is not None
    assert path_controller.bandwidths.of(goes) is None


def test_trouble_is_logged_when_it_begins_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    """In one line each, not at every look; another kind of trouble is reported, too."""
    path_controller, where = ActivePathController(), gateway()
    caplog.set_level(logging.INFO)
    for seen in (
        UNREACHABLE,
        UNREACHABLE,
        Missed(Outcome.REFUSED, "403"),
        UNREACHABLE,
        Reading(None, None),
        Reading(None, None),
    ):
        path_controller.see(seen, where)
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "the traffic of its interface wan is unknown: no answer within 5 s",
        "the traffic of its interface wan is unknown: 403",
        "the traffic of its interface wan is unknown: no answer within 5 s",
        "the traffic of its interface wan is known again",
    ]


def test_looks_are_counted_and_trouble_is_reported_while_it_lasts() -> None:
    """By the outcome of them; every outcome is there."""
    path_controller, where = ActivePathController(), gateway()
    path_controller.see(UNREACHABLE, where)
    assert path_controller.bandwidths.trouble(where) == UNREACHABLE.why
    path_controller.see(Reading(None, None), where)
    assert path_controller.bandwidths.trouble(where) == ""
    counts = path_controller.bandwidths.counts()
    assert counts == {"read": 1, "missing": 0, "unreadable": 0, "refused": 0, "unreachable": 1}


def test_people_see_of_each_interface_the_known_state_and_whether_it_is_looked_at_in_vain() -> None:
    """One of which no one could say anything is left out."""
    path_controller, reads, fails = ActivePathController(), gateway("reads"), gateway("fails")
    reported, bare = gateway("configured", speed_mbps=100, exporter=""), gateway("bare", exporter="")
    path_controller.see(UNREACHABLE, fails)
    path_controller.see(Reading(Rates(1, 2), 1000), reads)
    found = path_controller.bandwidths.interfaces([reads, fails, reported, bare])
    assert found == [
        Interface("reads", Traffic(1, 2, 1000, 0), covered=True),
        Interface("fails", None, covered=True),
        Interface("configured", Traffic(0, 0, 100, None), covered=False),
    ]
    assert [each.unread for each in found] == [False, True, False]
