from dataclasses import replace
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.gateways import Behaviour, NetworkConfig, Pair, Sid
from seaway.steering.difference import Add, Remove, Replace, Set, commands, difference, losses, notes
from seaway.steering.state import (
    FORWARDING,
    FORWARDING_IPV4,
    NOTHING,
    TUNNEL_SOURCE,
    CurrentState,
    ForeignRoute,
    PathRoute,
    SavedSetting,
    SidRoute,
    UnknownRoute,
    desired,
    mtu,
    sysctl,
)
from tests.fakes.gateways import make_network, make_path, with_gateway
from tests.fakes.kernel import ROUTER, carried_out, make_present

PATHS = make_path("direct", 2), make_path("round", 3, 2)
NETWORK = make_network(3, [Pair("gw-1", "gw-2", PATHS)])
WANTED = desired(NETWORK, "gw-1")
BEFORE = make_present()
APPLIED = carried_out(difference(WANTED, BEFORE), BEFORE)


def refused(present: CurrentState, wanted: object = WANTED) -> list[str]:
    """Return all that is in the way."""
    with pytest.raises(RejectedError) as caught:
        difference(wanted, present)  # type: ignore[arg-type]
    return [str(caught.value), *map(str, caught.value.also)]


def test_what_leads_packets_to_a_gateway_comes_after_what_receives_them() -> None:
    """Settings first, then SIDs, then routes that wrap; and away with them in the reverse order."""
    kinds = [type(getattr(each, "route", each)) for each in difference(WANTED, BEFORE).changes]
    assert kinds == [Set] * 5 + [SidRoute] * 2 + [PathRoute] * 2
    kinds = [type(getattr(each, "route", each)) for each in difference(NOTHING, APPLIED).changes]
    assert kinds == [PathRoute] * 2 + [SidRoute] * 2 + [Set] * 5


def test_a_change_of_path_is_one_replacement() -> None:
    """Nothing but the route of that target is touched, in one step."""
    (change,) = difference(desired(NETWORK, "gw-1", {"gw-2": "round"}), APPLIED).changes
    assert isinstance(change, Replace)
    assert change.route.destination == IPv6Network("fd00:a:2::/64")


def test_what_a_user_put_in_the_place_of_a_route_of_ours_is_replaced() -> None:
    """A route with our number that we would not write so becomes what it must be."""
    odd = UnknownRoute(IPv6Network("fd00:a:3::/64"), "blackhole")
    routes = (*(each for each in APPLIED.routes if each.destination != odd.destination), odd)
    (change,) = difference(WANTED, replace(APPLIED, routes=routes)).changes
    assert isinstance(change, Replace)
    assert change.before == odd


def test_a_route_of_ours_with_another_metric_goes_by_that_metric() -> None:
    """It stands beside the route that is wanted, which is left alone, and hides none of what is to be done."""
    right_aligned = UnknownRoute(IPv6Network("fd00:a:3::/64"), "a route of metric 5", 5)
    alone = UnknownRoute(IPv6Network("fd00:ee::/64"), "a route of metric 2048", 2048)
    present = replace(APPLIED, routes=(*APPLIED.routes, right_aligned, alone))
    found = difference(WANTED, present)
    assert found.changes == (Remove(right_aligned), Remove(alone))
    assert commands(found.changes) == (
        "ip -6 route del fd00:a:3::/64 proto 151 metric 5",
        "ip -6 route del fd00:ee::/64 proto 151 metric 2048",
    )
    assert carried_out(difference(NOTHING, present), present).routes == ()


def test_shared_paths_name_the_neighbour_by_which_their_segments_are_reached() -> None:
    """The kernel takes several hops only with a neighbour: that of the longest route to the first segment."""
    near = ForeignRoute(IPv6Network("fd00:51d:3::/48"), 1024, 4, "wan", IPv6Address("fd00:c::3"))
    elsewhere = ForeignRoute(IPv6Network("fd00:51d:3::/56"), 1024, 4, "lan", IPv6Address("fd00:a::9"))
    present = replace(BEFORE, foreign=(*BEFORE.foreign, near, elsewhere))
    wanted = desired(make_network(3, [Pair("gw-1", "gw-2", PATHS, load_balance=True)]), "gw-1")
    found = difference(wanted, present)
    (route,) = (
        each.route for each in found.changes if isinstance(each, Add) and str(each.route.destination) == "fd00:a:2::/64"
    )
    assert isinstance(route, PathRoute)
    assert [hop.via for hop in route.hops] == [ROUTER, near.via]
    assert difference(wanted, carried_out(found, present)).changes == ()


def test_shared_paths_without_a_neighbour_are_refused() -> None:
    """Where no route names a neighbour, sharing cannot be set up, which is reported."""
    wanted = desired(make_network(3, [Pair("gw-1", "gw-2", PATHS, load_balance=True)]), "gw-1")
    assert refused(replace(BEFORE, foreign=()), wanted)[0].startswith("sharing the traffic to fd00:a:2::/64 needs a")


def test_a_foreign_route_is_never_touched() -> None:
    """Another user's route to the same network is an error that says whose; one that ranks below is none."""
    foreign = ForeignRoute(IPv6Network("fd00:a:3::/64"), 256, 2, "lan")
    (reported,) = refused(replace(BEFORE, foreign=(foreign,)))
    assert reported.startswith(
        "another program's route to fd00:a:3::/64 dev lan (set by the kernel, metric 256) is in the way"
    )
    below = replace(BEFORE, foreign=(replace(foreign, metric=2048),))
    assert len(difference(WANTED, below).changes) == 9


def test_an_address_of_the_machine_is_no_sid() -> None:
    """The kernel would take such packets itself and never do what the SID says."""
    (reported,) = refused(replace(BEFORE, addresses=frozenset({IPv6Address("fd00:51d:1::e")})))
    assert reported.startswith("fd00:51d:1::e is an address of this machine")


def test_interfaces_that_are_missing_are_reported_with_those_that_are_there() -> None:
    """A slip in a name shows at once."""
    assert refused(make_present(["lo", "eth0"])) == ["interface 'wan' not found; available: eth0, lo"]


def test_a_kernel_without_srv6_is_reported() -> None:
    """Without segment routing nothing can be set up."""
    settings = {knob: value for knob, value in BEFORE.settings.items() if not knob.name.endswith("seg6_enabled")}
    assert refused(replace(BEFORE, settings=settings))[0].startswith("this kernel knows no SRv6")


def test_a_setting_that_is_missing_is_reported() -> None:
    """An interface without IPv6 has no such setting."""
    settings = {knob: value for knob, value in BEFORE.settings.items() if knob != sysctl("wan", "seg6_enabled")}
    (reported,) = refused(replace(BEFORE, settings=settings))
    assert reported == "this kernel has no setting net.ipv6.conf.wan.seg6_enabled: has the interface IPv6?"


def test_settings_return_as_they_were() -> None:
    """Forwarding of all interfaces changes each; what was on before is on again after, and new ones follow all."""
    before = make_present(settings={sysctl("lan", "forwarding"): "1", mtu("wan"): "1400"})
    applied = carried_out(difference(WANTED, before), before)
    assert applied.settings[sysctl("lo", "forwarding")] == "1"
    new = {sysctl("new", "forwarding"): "1"}
    again = replace(applied, settings={**applied.settings, **new})
    again = carried_out(difference(WANTED, again), again)
    after = carried_out(difference(NOTHING, again), again)
    assert after.settings == {**before.settings, sysctl("new", "forwarding"): "0"}
    assert after.saved == {}


def test_a_setting_that_a_user_changed_in_the_meantime_stays() -> None:
    """Anything that is not as Seaway left it is not Seaway's any more."""
    changed = replace(APPLIED, settings={**APPLIED.settings, mtu("wan"): "8000", TUNNEL_SOURCE: "fd00::9"})
    after = carried_out(difference(NOTHING, changed), changed)
    assert after.settings == {**BEFORE.settings, mtu("wan"): "8000", TUNNEL_SOURCE: "fd00::9"}


def test_what_cannot_be_set_back_is_reported() -> None:
    """A renamed interface retains its settings; a removal reports that once."""
    there = {knob: value for knob, value in APPLIED.settings.items() if "wan" not in knob.name}
    renamed = replace(APPLIED, settings=there, interfaces=frozenset({"lo", "lan", "wan9"}))
    found = difference(NOTHING, renamed)
    assert found.lost == {
        mtu("wan"): SavedSetting("1500", "9000"),
        sysctl("wan", "seg6_enabled"): SavedSetting("0", "1"),
    }
    reported = list(losses(found.lost))
    assert all("cannot be restored" in each for each in reported)
    assert "MTU of wan was 1500 and became 9000" in " ".join(reported)
    assert difference(NOTHING, carried_out(found, renamed)).lost == {}
    assert difference(NOTHING, APPLIED).lost == {}


def test_a_setting_that_is_not_wanted_any_more_goes_back_at_once() -> None:
    """A file that no longer gives an MTU gives the interface its old one back."""
    found = difference(desired(with_gateway(NETWORK, "gw-1", mtu=0), "gw-1"), APPLIED)
    assert found.changes == (Set(mtu("wan"), "9000", "1500", restores=True),)
    assert mtu("wan") not in found.saved


def test_what_was_before_is_remembered_over_many_changes() -> None:
    """However often a setting is changed, it goes back to what it was before the first time."""
    second = carried_out(difference(desired(with_gateway(NETWORK, "gw-1", mtu=8000), "gw-1"), APPLIED), APPLIED)
    assert second.settings[mtu("wan")] == "8000"
    assert carried_out(difference(NOTHING, second), second) == BEFORE


def test_settings_that_were_right_before_are_left_after() -> None:
    """Anything that Seaway did not change it does not change back."""
    before = make_present(settings={knob: "1" for knob in BEFORE.settings if knob.name.endswith("forwarding")})
    applied = carried_out(difference(WANTED, before), before)
    assert FORWARDING not in applied.saved
    assert carried_out(difference(NOTHING, applied), applied) == before


def test_a_default_route_from_a_router_outlives_forwarding() -> None:
    """Linux drops a default route that a router advertised once it forwards, unless it is asked to keep it."""
    route = ForeignRoute(IPv6Network("::/0"), 1024, 9, "wan", IPv6Address("fe80::1"))
    found = difference(WANTED, replace(BEFORE, foreign=(route,)))
    assert found.changes[:2] == (Set(sysctl("wan", "accept_ra"), "1", "2"), Set(FORWARDING, "0", "1"))


def test_commands_do_the_same_for_people() -> None:
    """Each change is one command, with the namespace where one is meant, and segments in the order of travel."""
    assert commands(difference(WANTED, BEFORE).changes)[:6] == (
        "sysctl -w net.ipv6.conf.all.forwarding=1",
        "sysctl -w net.ipv6.conf.all.seg6_enabled=1",
        "sysctl -w net.ipv6.conf.wan.seg6_enabled=1",
        "ip sr tunsrc set fd00:51d:1::1",
        "ip link set dev wan mtu 9000",
        "ip -6 route add fd00:51d:1::e/128 proto 151 metric 1024 encap seg6local action End dev wan",
    )
    moved = difference(desired(NETWORK, "gw-1", {"gw-2": "round"}), APPLIED).changes
    assert commands(moved, "blue") == (
        "ip -n blue -6 route replace fd00:a:2::/64 proto 151 metric 1024 encap seg6 mode encap "
        "segs fd00:51d:3::e,fd00:51d:2::d6 dev wan",
    )
    (gone,) = difference(desired(make_network(2), "gw-1"), APPLIED).changes
    assert isinstance(gone, Remove)
    assert commands([gone]) == ("ip -6 route del fd00:a:3::/64 proto 151 metric 1024",)
    dotted = Set(sysctl("eth0.7", "seg6_enabled"), "0", "1")
    assert commands([dotted], "blue") == ("ip netns exec blue sysctl -w net/ipv6/conf/eth0.7/seg6_enabled=1",)


def ipv4(network: NetworkConfig) -> NetworkConfig:
    """Make a network with an IPv4 network and an End.DT4 at each gateway."""
    for number, each in enumerate(network.gateways, 1):
        unwrap = Sid(IPv6Address(f"fd00:51d:{number}::d4"), Behaviour.END_DT4)
        prefixes = (*each.prefixes, IPv4Network(f"10.{number}.0.0/24"))
        network = with_gateway(network, each.name, sids=(*each.sids, unwrap), prefixes=prefixes)
    return network


def test_commands_for_ipv4_are_those_of_its_family() -> None:
    """Linux has no End.DT4 without a VRF: an End.DX4 to 0.0.0.0 looks the packet up in the main table."""
    found = commands(difference(desired(ipv4(make_network(2)), "gw-1"), BEFORE).changes)
    assert {
        "sysctl -w net.ipv4.conf.all.forwarding=1",
        "ip -6 route add fd00:51d:1::d4/128 proto 151 metric 1024 encap seg6local action End.DX4 nh4 0.0.0.0 dev wan",
        "ip -4 route add 10.2.0.0/24 proto 151 metric 1024 encap seg6 mode encap segs fd00:51d:2::d4 dev wan",
    } < set(found)
    shared = ipv4(make_network(3, [Pair("gw-1", "gw-2", PATHS, load_balance=True)]))
    (line,) = (each for each in commands(difference(desired(shared, "gw-1"), BEFORE).changes) if "10.2.0.0" in each)
    assert line.endswith(
        "nexthop encap seg6 mode encap segs fd00:51d:2::d4 dev wan weight 1 "
        "nexthop encap seg6 mode encap segs fd00:51d:3::e,fd00:51d:2::d4 dev wan weight 1"
    )


def test_forwarding_of_ipv4_is_restored_like_that_of_ipv6() -> None:
    """Each interface gets its own former setting of its own IP version again."""
    lan = replace(FORWARDING_IPV4, name="net/ipv4/conf/lan/forwarding")
    before = make_present(settings={lan: "1", sysctl("wan", "forwarding"): "1"})
    wanted = desired(ipv4(make_network(2)), "gw-1")
    applied = carried_out(difference(wanted, before), before)
    assert difference(wanted, applied).changes == ()
    assert applied.settings[FORWARDING_IPV4] == applied.settings[lan] == "1"
    assert carried_out(difference(NOTHING, applied), applied) == before


def test_the_page_shows_the_commands_as_they_are() -> None:
    """Anything that docs/gateways.md prints for a mesh of two is what `plan --commands` prints."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "gateways.md").read_text(encoding="utf-8")
    found = commands(difference(desired(make_network(2), "gw-1"), BEFORE).changes)
    assert "```\n" + "\n".join(found) + "\n```" in page


def test_what_its_owner_should_know_of_a_gateway() -> None:
    """An address that no one can probe, and packets that will not fit, are reported though they stop nothing."""
    assert list(notes(NETWORK, "gw-1", {}, APPLIED)) == []
    bare = replace(APPLIED, addresses=frozenset())
    assert "ip addr add fd00:51d:1::1/128 dev lo" in next(notes(NETWORK, "gw-1", {}, bare))
    small = with_gateway(with_gateway(NETWORK, "gw-1", mtu=0), "gw-2", mtu=0)
    (reported,) = notes(small, "gw-1", {"gw-2": "round"}, BEFORE)
    assert reported.startswith(
        "packets of more than 1420 bytes do not fit when they are wrapped, fewer than hosts usually send"
    )
    assert "to 1580" in reported
