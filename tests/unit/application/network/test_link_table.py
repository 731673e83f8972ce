from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from random import Random
from threading import Barrier, Thread
from time import process_time
from unittest.mock import Mock

import pytest

from seaway.application.network.active_paths import ActivePathController
from seaway.application.network.bandwidth import Bandwidths
from seaway.application.network.link_table import MAX_SAMPLED, LinkTable
from seaway.application.network.path_state import BY_QUANTILE, LinkSettings
from seaway.application.network.views import LinkState
from seaway.application.ports.agent import Reported
from seaway.application.ports.traffic import Traffic
from seaway.domain.facts import Location
from seaway.domain.gateways import GatewayConfig, Method, NetworkConfig, Pair, Path
from seaway.domain.network import PPM, Gateway, Link
from seaway.testing.clocks import START_NS, VirtualClock

S = 1_000_000_000
MS = 1_000_000
EVERY_S = 10


def gateway(name: str, **fields: object) -> GatewayConfig:
    """Make a gateway before the cluster that has its number."""
    number = int(name.rpartition("-")[2])
    given = {"address": IPv6Address(f"fd00:51d:{number:x}::1"), "cluster": f"cluster-{number}", **fields}
    return GatewayConfig(name, **given)  # type: ignore[arg-type]  # fields of a gateway


def network(*names: str, pairs: tuple[Pair, ...] = ()) -> NetworkConfig:
    """Make a network of gateways."""
    return NetworkConfig(tuple(gateway(name) for name in names), pairs)


def answered(
    target: str, second: float, latency_ms: float | None = 10.0, *, path: str = "", received: int | None = None
) -> Reported:
    """Make a round of five probes."""
    if latency_ms is None:
        return Reported(target, path, START_NS + int(second * S), 5, 0, None)
    return Reported(
        target, path, START_NS + int(second * S), 5, 5 if received is None else received, int(latency_ms * MS), MS
    )


class Table:
    """A book of a few gateways, and a time of its own."""

    def __init__(self, *names: str, settings: LinkSettings | None = None, pairs: tuple[Pair, ...] = ()) -> None:
        self.link_table = LinkTable(settings)
        self.link_table.use(network(*(names or ("gw-1", "gw-2")), pairs=pairs), START_NS)
        self.second = 0.0

    @property
    def now_ns(self) -> int:
        """The time of day."""
        return START_NS + int(self.second * S)

    def take(self, *latencies_ms: float | None, path: str = "") -> None:
        """Let gw-1 report rounds to gw-2, ten seconds apart, each at once."""
        for latency_ms in latencies_ms:
            self.link_table.take("gw-1", [answered("gw-2", self.second, latency_ms, path=path)], self.now_ns)
            self.second += EVERY_S

    def link(self, source: str = "gw-1", target: str = "gw-2") -> Link | None:
        """Return what decisions go by of a link."""
        links = self.link_table.links(self.now_ns)
        return next((each for each in links if (each.source, each.target) == (source, target)), None)

    def state(self) -> LinkState:
        """Say how much the known state from gw-1 to gw-2 is worth."""
        views = self.link_table.views(self.now_ns)
        return next(each.state for each in views if (each.source, each.target) == ("gw-1", "gw-2"))


def test_without_a_network_there_is_nothing() -> None:
    """Reports of anyone who are passed over, and nothing is surveyed, seen or written down."""
    link_table = LinkTable()
    link_table.take("gw-1", [answered("gw-2", 0)], START_NS)
    assert link_table.links(START_NS) == ()
    assert link_table.views(START_NS) == []
    assert link_table.samples(START_NS + 100 * S) == []
    assert link_table.network_snapshot(START_NS).gateways == ()


def test_gateways_have_the_location_of_the_configuration() -> None:
    """Policies estimate distances that are not measured from it."""
    link_table, here = LinkTable(), Location(52.5, 13.4)
    link_table.use(NetworkConfig((gateway("gw-1", location=here), gateway("gw-2"))), START_NS)
    assert [each.location for each in link_table.network_snapshot(START_NS).gateways] == [here, None]


def test_a_round_makes_a_link() -> None:
    """The first round counts as it is, for the direction that was probed only."""
    reported = Table()
    reported.take(10.0)
    assert reported.link_table.links(reported.now_ns) == (Link("gw-1", "gw-2", 10 * MS, MS),)


def test_changed_links_are_pushed() -> None:
    """Reports that change a link, a new configuration and new active paths each cause one call after the change."""
    reported, seen = Table(), []
    reported.link_table.on_change = lambda: seen.append(reported.link())
    reported.take(10.0)
    reported.take(10.0)
    assert seen == [Link("gw-1", "gw-2", 10 * MS, MS)]
    reported.link_table.choose({})
    reported.link_table.use(None, START_NS)
    assert len(seen) == 3
    reported.link_table.take("gw-1", [answered("gw-2", 30)], START_NS)
    assert len(seen) == 3


def test_a_link_without_an_answer_has_lost_everything() -> None:
    """Loss of the whole, and no latency: not 0, which would be the best there is."""
    reported = Table()
    reported.take(None)
    assert reported.link() == Link("gw-1", "gw-2", None, 0, PPM)


def test_a_link_that_falls_unreachable_is_dead_after_two_rounds_and_back_after_two() -> None:
    """One round may be chance. What it had is not what it has when it returns."""
    reported = Table()
    reported.take(*[10.0] * 30, None)
    assert reported.link() == Link("gw-1", "gw-2", 10 * MS, MS, PPM // 30)
    reported.take(None)
    assert reported.link() == Link("gw-1", "gw-2", None, 0, PPM)
    reported.take(50.0)
    assert reported.link() == Link("gw-1", "gw-2", None, 0, PPM)
    reported.take(50.0)
    link = reported.link()
    assert link is not None
    assert (link.latency_ns, link.loss_ppm) == (50 * MS, 2 * PPM // 30), "what was lost in the window stays lost"


@pytest.mark.parametrize(
    ("received", "loss_ppm", "bound_ppm"),
    [
        ([5], 0, 200_000),
        ([5] * 30, 0, 6_667),
        ([5] * 60, 0, 6_667),
        ([5] * 29 + [4], 0, 13_334),
        ([5] * 28 + [4, 4], 2 * PPM // 150, None),
        ([0], PPM, None),
    ],
)
def test_a_loss_too_small_to_see_has_an_upper_bound(received: list[int], loss_ppm: int, bound_ppm: int | None) -> None:
    """One more lost probe of the window would be seen, so it bounds a published loss of 0, also with one lost."""
    reported = Table()
    for count in received:
        at = [answered("gw-2", reported.second, 10.0 if count else None, received=count)]
        reported.link_table.take("gw-1", at, reported.now_ns)
        reported.second += EVERY_S
    (view,) = reported.link_table.views(reported.now_ns, lambda source, _: source == "gw-1")
    assert view.link is not None
    assert (view.link.loss_ppm, view.loss_bound_ppm) == (loss_ppm, bound_ppm)


def test_the_bound_of_several_paths_is_the_largest() -> None:
    """Packets may take any of them, so the path with the fewest probes decides."""
    paths = tuple(Path(name, (IPv6Address(f"fd00:51d:2::{at}"),)) for at, name in enumerate(("one", "two"), 1))
    reported = Table(pairs=(Pair("gw-1", "gw-2", paths, load_balance=True),))
    reported.take(10.0, 10.0, path="one")
    reported.take(10.0, path="two")
    (view,) = reported.link_table.views(reported.now_ns, lambda source, _: source == "gw-1")
    assert view.loss_bound_ppm == 200_000


def test_small_changes_change_nothing() -> None:
    """Anything that decisions go by is the very same object as long as nothing leaves its band."""
    reported = Table()
    reported.take(10.0)
    before = reported.link_table.network_snapshot(reported.now_ns)
    reported.take(10.4, 9.7, 10.2)
    assert reported.link_table.network_snapshot(reported.now_ns) is before
    reported.take(*[20.0] * 10)
    assert reported.link_table.network_snapshot(reported.now_ns) is not before


def test_quantiles_decide_where_that_is_set() -> None:
    """Nine tenths of the window: with one slow round of five, the slow one weighs in at once."""
    reported = Table(settings=LinkSettings(smoothing=BY_QUANTILE, window=5, quantile=1.0))
    reported.take(10.0, 10.0, 90.0)
    link = reported.link()
    assert link is not None
    assert link.latency_ns == 90 * MS


def test_rounds_that_come_late_change_nothing_and_are_written_down() -> None:
    """Anything that an agent queued while no one was there is history by the time it comes, and not what is so now."""
    reported = Table()
    reported.second = 600
    reported.take(10.0)
    before = reported.link()
    reported.link_table.take(
        "gw-1", [answered("gw-2", second, 500.0) for second in range(300, 590, 10)], reported.now_ns
    )
    assert reported.link() == before
    reported.second = 700
    samples = reported.link_table.samples(reported.now_ns)
    assert [each.latency_ns for each in samples] == [500 * MS] * 5 + [10 * MS]
    assert [each.at_ns for each in samples] == sorted(each.at_ns for each in samples)
    assert samples[0].at_ns == START_NS + 350 * S, "each is as old as the latest round in it"


def test_rounds_of_one_report_count_in_the_order_of_their_time() -> None:
    """After the agent was away, its queue comes in order: each is later than the one before, and all count."""
    one, other = Table(), Table()
    rounds = [answered("gw-2", at * 10, 10.0 + at) for at in range(20)]
    one.link_table.take("gw-1", rounds, START_NS + 200 * S)
    for each in rounds:
        other.link_table.take("gw-1", [each], each.at_ns)
    one.second = other.second = 200
    assert one.link() == other.link()


def test_a_round_that_is_reported_twice_counts_once() -> None:
    """Once more the same round says nothing more of the link."""
    reported = Table()
    reported.take(10.0)
    again = answered("gw-2", 0, 10.0)
    reported.link_table.take("gw-1", [replace(again, received=0, latency_ns=None)] * 50, reported.now_ns)
    link = reported.link()
    assert link is not None
    assert link.reachable


def test_what_an_agent_knew_grows_stale_and_then_counts_no_more() -> None:
    """The last figures stand for a while, marked; then the link is one that no one measured."""
    reported = Table()
    reported.take(10.0)
    reported.second = 31
    assert (reported.state(), reported.link() is not None) == (LinkState.MEASURED, True)
    reported.second = 32
    assert (reported.state(), reported.link() is not None) == (LinkState.STALE, True)
    reported.second = 91
    assert (reported.state(), reported.link() is not None) == (LinkState.STALE, True)
    reported.second = 92
    assert (reported.state(), reported.link()) == (LinkState.UNKNOWN, None)
    reported.take(12.0)
    assert (reported.state(), reported.link() is not None) == (LinkState.MEASURED, True)


def test_one_link_grows_old_while_others_are_measured() -> None:
    """Each is as old as its own latest round."""
    reported = Table("gw-1", "gw-2", "gw-3")
    reported.link_table.take("gw-1", [answered("gw-2", 0), answered("gw-3", 0)], reported.now_ns)
    for second in range(10, 200, 10):
        reported.second = second
        reported.link_table.take("gw-1", [answered("gw-2", second)], reported.now_ns)
        reported.link_table.links(reported.now_ns)
    assert [each.target for each in reported.link_table.links(reported.now_ns)] == ["gw-2"]


def test_views_show_links_that_were_never_measured() -> None:
    """Anyone who looks sees what is missing, not only the present state."""
    reported = Table()
    reported.take(10.0)
    there, back = reported.link_table.views(reported.now_ns)
    assert (there.state, there.age_s, there.raw and there.raw.received) == (LinkState.MEASURED, 10.0, 5)
    assert (back.state, back.link, back.age_s, back.raw, back.smoothed) == (LinkState.UNKNOWN, None, None, None, None)
    assert reported.link_table.states(reported.now_ns) == {"measured": 1, "unknown": 1}


def test_views_have_raw_smoothed_and_published_figures_apart() -> None:
    """Raw is the latest round, smoothed follows it, published stays until that is worth it."""
    reported = Table()
    reported.take(10.0, 12.0)
    view = reported.link_table.views(reported.now_ns)[0]
    assert view.raw is not None
    assert view.smoothed is not None
    assert view.smoothed.latency_ns is not None
    assert view.link is not None
    assert (view.raw.latency_ns, view.link.latency_ns) == (12 * MS, 10 * MS)
    assert 10 * MS < view.smoothed.latency_ns < 11 * MS


def test_a_link_is_what_is_measured_of_the_path_that_it_takes() -> None:
    """The one that is liked best, until another is chosen; rounds along others change nothing meanwhile."""
    paths = (Path("long", (IPv6Address("fd00:51d:3::e"),)), Path("short", (IPv6Address("fd00:51d:2::d6"),), weight=2))
    reported = Table("gw-1", "gw-2", pairs=(Pair("gw-1", "gw-2", paths),))
    reported.take(1.0)
    assert (reported.link() or Link("", "", 0)).latency_ns == MS, "as routes lead, as long as no path was measured"
    reported.take(10.0, path="short")
    reported.take(30.0, path="long")
    assert (reported.link() or Link("", "", 0)).latency_ns == 10 * MS
    reported.link_table.choose({("gw-1", "gw-2"): "long"})
    assert (reported.link() or Link("", "", 0)).latency_ns == 30 * MS
    assert reported.link_table.views(reported.now_ns)[0].path == "long"
    reported.link_table.choose({})
    assert (reported.link() or Link("", "", 0)).latency_ns == 10 * MS


def test_what_is_not_of_the_network_is_passed_over() -> None:
    """Unknown gateways, unknown paths and oneself."""
    reported = Table()
    reported.link_table.take("gw-9", [answered("gw-1", 0)], reported.now_ns)
    reported.link_table.take(
        "gw-1", [answered("gw-9", 0), answered("gw-1", 0), answered("gw-2", 0, path="x")], reported.now_ns
    )
    assert reported.link_table.links(reported.now_ns) == ()


def test_a_network_that_changes_forgets_what_is_another_now() -> None:
    """A gateway that left, and one that has another address, are measured again; all others are kept."""
    reported = Table("gw-1", "gw-2", "gw-3", "gw-4")
    reported.link_table.take("gw-1", [answered(f"gw-{other}", 0) for other in (2, 3, 4)], reported.now_ns)
    retained = network("gw-1", "gw-2")
    moved = gateway("gw-3", address=IPv6Address("fd00::3"))
    reported.link_table.use(replace(retained, gateways=(*retained.gateways, moved)), reported.now_ns)
    assert [each.target for each in reported.link_table.links(reported.now_ns)] == ["gw-2"]
    reported.link_table.use(None, reported.now_ns)
    assert reported.link_table.network_snapshot(reported.now_ns).links == ()


TWO_PATHS = (Path("short", (IPv6Address("fd00:51d:2::d6"),)), Path("long", (IPv6Address("fd00:51d:3::e"),)))


@pytest.mark.parametrize("method", [Method.UDP, Method.TCP])
def test_a_target_that_is_probed_another_way_is_measured_again(method: Method) -> None:
    """Anything that was measured along its paths the old way does not hide what is measured as routes lead now."""
    pair = Pair("gw-1", "gw-2", TWO_PATHS)
    reported = Table(pairs=(pair,))
    for path in ("", "short", "long"):
        reported.take(10.0, path=path)
    other = gateway("gw-2", method=method, port=8627)
    reported.link_table.use(NetworkConfig((gateway("gw-1"), other), (pair,)), reported.now_ns)
    assert (reported.state(), reported.link()) == (LinkState.UNKNOWN, None)
    reported.take(20.0)
    assert (reported.state(), (reported.link() or Link("", "", 0)).latency_ns) == (LinkState.MEASURED, 20 * MS)


def test_a_path_that_probes_cannot_take_is_not_waited_for() -> None:
    """Between IPv4 addresses no segments lead: what is reported along paths is passed over, and a link is as routed."""
    ends = gateway("gw-1", address=IPv4Address("192.0.2.1")), gateway("gw-2", address=IPv4Address("192.0.2.2"))
    reported = Table()
    reported.link_table.use(NetworkConfig(ends, (Pair("gw-1", "gw-2", TWO_PATHS),)), reported.now_ns)
    reported.take(10.0, path="short")
    assert reported.link() is None
    reported.take(20.0)
    assert (reported.link() or Link("", "", 0)).latency_ns == 20 * MS
    active = Mock(steerable=lambda: {("gw-1", "gw-2"): "short"})
    assert ActivePathController(active, reported.link_table, VirtualClock()).crossings() == [], (
        "nor is there anything to choose from"
    )


def test_a_survey_says_where_clusters_and_users_are() -> None:
    """Clusters by the gateway that they stand behind, user sites by theirs, and addresses as they are written."""
    link_table = LinkTable()
    office = GatewayConfig("gw-4", IPv6Address("fd00:51d:4::1"), site="office")
    link_table.use(NetworkConfig((gateway("gw-1"), office)), START_NS)
    network_snapshot = link_table.network_snapshot(START_NS)
    assert network_snapshot.gateways == (Gateway("gw-1", "fd00:51d:1::1"), Gateway("gw-4", "fd00:51d:4::1"))
    assert (network_snapshot.gateways_by_cluster, network_snapshot.sites) == ({"cluster-1": "gw-1"}, {"gw-4": "office"})


def test_a_gateway_is_unreachable_since_its_agent_reported_or_it_is_known() -> None:
    """Also where no one ever reported, so that an agent that was never started is noticed."""
    reported = Table()
    reported.second = 20
    reported.take(10.0)
    reported.second = 50
    assert reported.link_table.last_seen_s(reported.now_ns) == {"gw-1": 30.0, "gw-2": 50.0}


class Carried(Bandwidths):
    """Interfaces that carry what a test says."""

    def __init__(self, **carried: Traffic | None) -> None:
        super().__init__(None, 30, VirtualClock())
        self.carried = carried

    def of(self, gateway: GatewayConfig) -> Traffic | None:
        """Return what it was reported."""
        return self.carried.get(gateway.name.replace("-", "_"))


def test_bandwidth_is_that_of_the_slower_end_less_what_the_fuller_carries() -> None:
    """Capacity is the least of both speeds, used the most of out there and in here."""
    link_table = LinkTable(bandwidths=Carried(gw_1=Traffic(1, 700, 10_000, 0), gw_2=Traffic(300, 2, 1_000, 0)))
    link_table.use(network("gw-1", "gw-2"), START_NS)
    link_table.take("gw-1", [answered("gw-2", 0)], START_NS)
    (link,) = link_table.links(START_NS)
    assert (link.bandwidth_mbps, link.used_mbps) == (1_000, 700)
    assert link_table.network_snapshot(START_NS).gateways[0] == Gateway("gw-1", "fd00:51d:1::1", 10_000, 1, 700)
    (view, _) = link_table.views(START_NS)
    assert view.free_mbps == 300


@pytest.mark.parametrize("end", ["gw_1", "gw_2"])
@pytest.mark.parametrize("known", [None, Traffic(1, 1, None, 0)])
def test_an_end_of_unknown_speed_leaves_the_bandwidth_unknown(end: str, known: Traffic | None) -> None:
    """No one knows what can pass where no one knows one end."""
    both: dict[str, Traffic | None] = {"gw_1": Traffic(0, 0, 1000, 0), "gw_2": Traffic(0, 0, 1000, 0), end: known}
    link_table = LinkTable(bandwidths=Carried(**both))
    link_table.use(network("gw-1", "gw-2"), START_NS)
    link_table.take("gw-1", [answered("gw-2", 0)], START_NS)
    assert link_table.links(START_NS)[0].bandwidth_mbps == 0
    assert link_table.views(START_NS)[0].free_mbps is None


def test_traffic_is_followed_when_it_is_off_by_a_twentieth_of_the_speed() -> None:
    """Anything that wavers by less changes nothing; it is looked at once a second."""
    carried = Carried(gw_1=Traffic(0, 100, 1000, 0), gw_2=Traffic(0, 0, 1000, 0))
    link_table = LinkTable(bandwidths=carried)
    link_table.use(network("gw-1", "gw-2"), START_NS)
    link_table.take("gw-1", [answered("gw-2", 0)], START_NS)
    first = link_table.network_snapshot(START_NS)
    carried.carried["gw_1"] = Traffic(0, 150, 1000, 0)
    assert link_table.network_snapshot(START_NS + 2 * S) is first
    carried.carried["gw_1"] = Traffic(0, 151, 1000, 0)
    assert link_table.network_snapshot(START_NS + 2 * S + S // 2) is first
    assert link_table.network_snapshot(START_NS + 4 * S).links[0].used_mbps == 151


def test_a_sample_adds_up_its_minute() -> None:
    """Latency is the mean of all answers, jitter the largest, loss what was lost of all that was sent."""
    reported = Table()
    reported.link_table.take(
        "gw-1", [answered("gw-2", 0, 10.0), answered("gw-2", 10, 40.0, received=2)], reported.now_ns
    )
    reported.link_table.take("gw-1", [answered("gw-2", 20, None)], reported.now_ns)
    assert reported.link_table.samples(START_NS + 59 * S) == [], "its minute has not passed"
    (sample,) = reported.link_table.samples(START_NS + 60 * S)
    assert (sample.source, sample.target, sample.at_ns) == ("gw-1", "gw-2", START_NS + 20 * S)
    assert (sample.latency_ns, sample.jitter_ns, sample.loss_ppm) == (round(130 * MS / 7), MS, 8 * PPM // 15)
    assert reported.link_table.samples(START_NS + 120 * S) == [], "it is written down once"


def test_paths_that_share_traffic_have_samples_of_their_own() -> None:
    """Measured at the same moment, they are distinguished by a nanosecond, as a link's samples are by their time."""
    paths = tuple(Path(name, (IPv6Address("fd00:51d:2::d6"),)) for name in ("one", "two"))
    reported = Table(pairs=(Pair("gw-1", "gw-2", paths, load_balance=True),))
    rounds = [answered("gw-2", second, 10.0, path=path.name) for second in (0, 10) for path in paths]
    reported.link_table.take("gw-1", rounds, reported.now_ns)
    samples = reported.link_table.samples(START_NS + 60 * S)
    assert [(each.path, each.at_ns - START_NS - 10 * S) for each in samples] == [("one", 0), ("two", 1)]


def test_a_sample_of_silence_has_no_latency() -> None:
    """As a link that answers nothing."""
    reported = Table()
    reported.take(None)
    (sample,) = reported.link_table.samples(START_NS + 60 * S)
    assert (sample.latency_ns, sample.loss_ppm) == (None, PPM)


def test_of_very_many_links_each_is_written_down_more_seldom() -> None:
    """At most a thousand rows a minute: 1,056 links take turns, each with all of its two minutes."""
    names = [f"gw-{number}" for number in range(1, 34)]
    reported = Table(*names)
    rows: list[tuple[int, int]] = []
    for second in range(0, 361, 30):
        if second and second % 60 == 0:
            samples = reported.link_table.samples(START_NS + second * S)
            assert len(samples) <= MAX_SAMPLED
            rows += [(second, each.jitter_ns) for each in samples]
        for name in names:
            others = [other for other in names if other != name]
            reported.link_table.take(name, [answered(other, second) for other in others], START_NS + second * S)
    assert [len([second for second, _ in rows if second == at]) for at in (60, 120, 180, 240, 300)] == [
        0,
        528,
        528,
        528,
        528,
    ]


def test_reports_may_come_from_many_threads() -> None:
    """Four agents report at once while a user looks, and nothing is lost or seen half."""
    names = [f"gw-{number}" for number in range(1, 5)]
    reported, together = Table(*names), Barrier(len(names))

    def report(name: str) -> None:
        for second in range(0, 300, 10):
            together.wait(10)  # all have the same clock
            rounds = [answered(other, second) for other in names if other != name]
            reported.link_table.take(name, rounds, START_NS + second * S)
            reported.link_table.network_snapshot(START_NS + second * S)

    threads = [Thread(target=report, args=(name,)) for name in names]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    reported.second = 300
    assert len(reported.link_table.links(reported.now_ns)) == 12
    assert sum(each.loss_ppm for each in reported.link_table.links(reported.now_ns)) == 0


def test_a_hundred_gateways_cost_little() -> None:
    """Reports of 100 agents on 9,900 links in ten seconds take far less than a second of CPU time."""
    random, names = Random(1), [f"gw-{number}" for number in range(1, 101)]
    reported = Table(*names)
    spent_s = 0.0
    for second in (0, 10):
        reports = {
            name: [answered(other, second, random.gauss(20, 1)) for other in names if other != name] for name in names
        }
        began_s = process_time()
        for name, rounds in reports.items():
            reported.link_table.take(name, rounds, START_NS + second * S)
        reported.link_table.network_snapshot(START_NS + second * S)
        spent_s = process_time() - began_s
    assert len(reported.link_table.network_snapshot(START_NS + 10 * S).links) == 9_900
    assert spent_s < 1.0


def test_of_several_gateways_of_a_cluster_one_carries_its_traffic() -> None:
    """The others are on standby, with links of their own."""
    reported = Table()
    gateways = gateway("gw-1"), gateway("gw-2"), gateway("gw-3", cluster="cluster-2")
    reported.link_table.use(NetworkConfig(gateways), START_NS)
    found = reported.link_table.network_snapshot(START_NS)
    assert found.gateways_by_cluster == {"cluster-1": "gw-1", "cluster-2": "gw-2"}
    assert found.standby == {"gw-3": "cluster-2"}
    reported.link_table.choose({("", "cluster-2"): "gw-3"})
    found = reported.link_table.network_snapshot(START_NS)
    assert found.gateways_by_cluster == {"cluster-1": "gw-1", "cluster-2": "gw-3"}
    assert found.standby == {"gw-2": "cluster-2"}


def test_a_gateway_answers_if_any_gateway_elsewhere_gets_an_answer() -> None:
    """Answers within its own cluster do not count, and gateways without measurements are unknown."""
    reported = Table()
    gateways = gateway("gw-1"), gateway("gw-2"), gateway("gw-3", cluster="cluster-2"), gateway("gw-4"), gateway("gw-5")
    reported.link_table.use(NetworkConfig(gateways), START_NS)
    for source, answers in (
        ("gw-1", {"gw-2": None, "gw-3": 1.0, "gw-4": None}),
        ("gw-3", {"gw-2": 1.0}),
        ("gw-5", {"gw-4": 1.0}),
    ):
        rounds = [answered(target, 0, latency_ms) for target, latency_ms in answers.items()]
        reported.link_table.take(source, rounds, START_NS)
    assert reported.link_table.answering(START_NS) == {"gw-2": False, "gw-3": True, "gw-4": True}
