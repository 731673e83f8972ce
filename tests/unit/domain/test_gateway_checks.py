from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest

from seaway.domain.gateway_checks import problems
from seaway.domain.gateway_paths import Room, overhead
from seaway.domain.gateways import Behaviour, GatewayConfig, Method, NetworkConfig, Pair, Path, ProbeConfig, Sid
from tests.fakes.gateways import make_gateway, make_network, make_path, with_gateway

END, DT6 = make_gateway(1).sids
DT4 = Sid(IPv6Address("fd00:51d:1::d4"), Behaviour.END_DT4)
TO_2 = make_path("direct", 2)
MIXED: dict[str, IPv4Address | IPv6Address] = {
    "a": IPv4Address("10.0.0.1"),
    "b": IPv4Address("10.0.0.2"),
    "c": IPv6Address("fd00::1"),
}


def ip(text: str) -> IPv6Address:
    """Read an address."""
    return IPv6Address(text)


def pair(*paths: Path, source: str = "gw-1", target: str = "gw-2") -> NetworkConfig:
    """Make a network with a pair of these paths."""
    return make_network(pairs=[Pair(source, target, paths)])


def gateway(**changes: object) -> NetworkConfig:
    """Make a network whose first gateway has other fields."""
    return with_gateway(make_network(), "gw-1", **changes)


def sid(behaviour: Behaviour, **fields: object) -> NetworkConfig:
    """Make a network whose first gateway has another SID."""
    return gateway(sids=(END, DT6, Sid(ip("fd00:51d:1::5"), behaviour, **fields)))  # type: ignore[arg-type]


WRONG = {
    "name twice": (gateway(name="gw-2"), "gateways[1].name: another gateway has the name gw-2"),
    "address twice": (gateway(address=ip("fd00:51d:2::1")), "gateways[1].address: another gateway has the address"),
    "site twice": (
        with_gateway(gateway(cluster="", site="office"), "gw-2", cluster="", site="office"),
        "gateways[1].site: another gateway has the site office",
    ),
    "cluster and site": (gateway(site="office"), "gateways[0]: must belong to a cluster or to a site"),
    "neither": (gateway(cluster=""), "gateways[0]: must belong to a cluster or to a site"),
    "odd address": (
        gateway(address=ip("ff02::1")),
        "gateways[0].address: ff02::1 is not an address that other machines",
    ),
    "IPv4 with SRv6": (gateway(address=IPv4Address("10.0.0.1")), "gateways[0].address: 10.0.0.1 cannot be the source"),
    "no interface": (gateway(interface=""), "gateways[0].interface: is missing"),
    "small MTU": (gateway(mtu=1343), "gateways[0].mtu: must be 1344 to 65535"),
    "UDP without port": (gateway(method=Method.UDP), "gateways[0].probe.port: is missing: udp needs one"),
    "ICMP with port": (gateway(port=7), "gateways[0].probe.port: ICMP has no ports"),
    "UDP where only root may answer": (
        gateway(method=Method.UDP, port=862),
        "gateways[0].probe.port: must be 1024 at least",
    ),
    "IPv4 among IPv6": (
        with_gateway(
            make_network(), "gw-2", address=IPv4Address("10.0.0.1"), locator=None, sids=(), prefixes=(), mtu=0
        ),
        "gateways[1].address: 10.0.0.1 is IPv4, so that it and gw-1, gw-3, gw-4 cannot reach each other",
    ),
    "IPv6 among IPv4": (
        NetworkConfig(tuple(GatewayConfig(name, address, site=name) for name, address in MIXED.items())),
        "gateways[2].address: fd00::1 is IPv6, so that it and a, b cannot reach each other: give it an IPv4 address",
    ),
    "locators overlap": (
        gateway(locator=IPv6Network("fd00:51d::/32")),
        "gateways[1].locator: fd00:51d:2::/48 overlaps fd00:51d::/32, the locator of gw-1",
    ),
    "SIDs without locator": (gateway(locator=None, prefixes=(), mtu=0), "gateways[0].sids: needs a locator"),
    "SID outside": (
        gateway(sids=(END, DT6, Sid(ip("fd00:77::e"), Behaviour.END))),
        "gateways[0].sids[2].sid: fd00:77::e is not within the locator fd00:51d:1::/48",
    ),
    "SID twice": (gateway(sids=(END, DT6, END)), "gateways[0].sids[2].sid: fd00:51d:1::e is a SID of gw-1 already"),
    "SID is an address": (
        gateway(address=ip("fd00:51d:1::e")),
        "gateways[0].sids[0].sid: fd00:51d:1::e is the address of gw-1",
    ),
    "End.X without neighbour": (sid(Behaviour.END_X), "gateways[0].sids[2].next_hop: is missing: End.X needs"),
    "odd neighbour": (
        sid(Behaviour.END_DX6, next_hop=ip("::1")),
        "gateways[0].sids[2].next_hop: ::1 is not the address of a neighbour",
    ),
    "itself as neighbour": (
        sid(Behaviour.END_X, next_hop=ip("fd00:51d:1::1")),
        "gateways[0].sids[2].next_hop: fd00:51d:1::1 is of gw-1 itself",
    ),
    "own SID as neighbour": (
        sid(Behaviour.END_DX6, next_hop=ip("fd00:51d:1::e")),
        "gateways[0].sids[2].next_hop: fd00:51d:1::e is of gw-1 itself",
    ),
    "End with neighbour": (
        sid(Behaviour.END, next_hop=ip("fd00::2")),
        "gateways[0].sids[2].next_hop: End has no neighbour",
    ),
    "End with table": (sid(Behaviour.END, table=7), "gateways[0].sids[2].table: End has no table"),
    "no such table": (sid(Behaviour.END_DT6, table=0), "gateways[0].sids[2].table: must be 1 to"),
    "prefix twice": (
        gateway(prefixes=(IPv6Network("fd00:a:2::/64"),)),
        "gateways[1].prefixes[0]: fd00:a:2::/64 is behind gw-1 already",
    ),
    "prefix twice behind one": (
        gateway(prefixes=(IPv6Network("fd00:a:1::/64"),) * 2),
        "gateways[0].prefixes[1]: fd00:a:1::/64 is behind gw-1 already",
    ),
    "IPv4 that no SID decapsulates": (
        gateway(prefixes=(IPv4Network("10.1.0.0/24"),)),
        "gateways[0].prefixes[0]: no SID of gw-1 decapsulates IPv4 packets: give it an End.DT4 or End.DX4",
    ),
    "IPv6 that no SID decapsulates": (
        gateway(sids=(END, DT4)),
        "gateways[0].prefixes[0]: no SID of gw-1 decapsulates IPv6 packets: give it an End.DT6 or End.DX6",
    ),
    "IPv4 within another's": (
        with_gateway(
            gateway(sids=(END, DT6, DT4), prefixes=(IPv4Network("10.0.0.0/8"),)),
            "gw-2",
            prefixes=(IPv4Network("10.2.0.0/24"),),
        ),
        "gateways[1].prefixes[0]: 10.2.0.0/24 is within 10.0.0.0/8, which is behind gw-1",
    ),
    "IPv6 neighbour for IPv4": (
        sid(Behaviour.END_DX4, next_hop=ip("fd00:a:1::2")),
        "gateways[0].sids[2].next_hop: End.DX4 needs the IPv4 address of the neighbour",
    ),
    "IPv4 neighbour for IPv6": (
        sid(Behaviour.END_DX6, next_hop=IPv4Address("10.1.0.2")),
        "gateways[0].sids[2].next_hop: End.DX6 needs the IPv6 address of the neighbour",
    ),
    "End.DT4 with table": (sid(Behaviour.END_DT4, table=7), "gateways[0].sids[2].table: End.DT4 uses the main table"),
    "prefix within another's": (
        gateway(prefixes=(IPv6Network("fd00:a::/40"),)),
        "gateways[1].prefixes[0]: fd00:a:2::/64 is within fd00:a::/40, which is behind gw-1",
    ),
    "prefix within another's that is not the nearest": (
        with_gateway(make_network(), "gw-3", prefixes=tuple(map(IPv6Network, ("fd00:a:2::/80", "fd00:a:2::/72")))),
        "gateways[2].prefixes[0]: fd00:a:2::/80 is within fd00:a:2::/64, which is behind gw-2",
    ),
    "prefix contains the network": (
        gateway(prefixes=(IPv6Network("fd00:51d:2::/64"),)),
        "gateways[0].prefixes[0]: fd00:51d:2::/64 contains the locator of gw-2 and the address of gw-2",
    ),
    "prefix within a locator": (
        gateway(prefixes=(IPv6Network("fd00:51d:2:5::/64"),)),
        "gateways[0].prefixes[0]: fd00:51d:2:5::/64 contains the locator of gw-2: packets",
    ),
    "prefix around everything": (
        gateway(prefixes=(IPv6Network("::/0"),)),
        "gateways[0].prefixes[0]: ::/0 contains the locator of gw-1 and the locator of gw-2 and the locator of gw-3:",
    ),
    "source unknown": (pair(TO_2, source="gw-9"), "paths[0].from: gateway 'gw-9' not found; available: gw-1, gw-2"),
    "to itself": (pair(make_path("x", 2, 1), target="gw-1"), "paths[0].to: paths lead from one gateway to another"),
    "no path": (pair(), "paths[0].paths: is empty"),
    "pair twice": (
        make_network(pairs=[Pair("gw-1", "gw-2", (TO_2,))] * 2),
        "paths[1]: the paths from gw-1 to gw-2 are given already",
    ),
    "path twice": (pair(TO_2, make_path("direct", 3, 2)), "paths[0].paths[1].name: another path of this pair"),
    "same segments": (pair(TO_2, make_path("b", 2)), "paths[0].paths[1].segments: has the same segments as direct"),
    "no weight": (pair(replace(TO_2, weight=0)), "paths[0].paths[0].weight: must be 1 to 255"),
    "no segment": (pair(Path("x", ())), "paths[0].paths[0].segments: must have 1 to 32 segments"),
    "unknown segment": (
        pair(Path("x", (ip("fd00:51d:3::99"), *TO_2.segments))),
        "paths[0].paths[0].segments[0]: fd00:51d:3::99 is not a SID of any gateway",
    ),
    "unwrapped on the way": (
        pair(Path("x", (ip("fd00:51d:3::d6"), *TO_2.segments))),
        "paths[0].paths[0].segments[0]: fd00:51d:3::d6 of gw-3 is End.DT6, which ends the path here",
    ),
    "ends elsewhere": (pair(make_path("x", 2, 3)), "paths[0].paths[0].segments[1]: ends at gw-3, not at gw-2"),
    "never unwrapped": (
        pair(Path("x", (ip("fd00:51d:2::e"),))),
        "paths[0].paths[0].segments[0]: fd00:51d:2::e is End, but the last segment has to unwrap",
    ),
    "back to its source": (pair(make_path("x", 1, 2)), "paths[0].paths[0].segments: is a loop: it leads back to gw-1"),
    "in circles": (pair(make_path("x", 3, 4, 3, 2)), "paths[0].paths[0].segments: is a loop: it passes gw-3 more"),
    "path too long for the MTU": (
        with_gateway(pair(make_path("x", 3, 4, 2)), "gw-4", mtu=1360),
        "paths[0].paths[0]: leaves packets of 1264 bytes, since encapsulation adds 96",
    ),
    "no one unwraps": (
        gateway(sids=(END,)),
        "gateways[0]: gw-1 cannot be reached from gw-2, gw-3, gw-4: it has no End.DT6",
    ),
    "no way back": (
        make_network(pairs=[Pair("gw-1", "gw-2", (TO_2,))], mesh=False),
        "gateways[0]: gw-1 cannot be reached from gw-2: there are paths in the other direction only",
    ),
    "answers too late": (
        replace(make_network(), probe=ProbeConfig(interval_s=1, timeout_s=2)),
        "probe.timeout: is longer than a round",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_is_reported_with_its_place(case: str) -> None:
    """Each mistake is found, and reported with where it is in the document."""
    network, reported = WRONG[case]
    assert [str(each) for each in problems(network) if str(each).startswith(reported)], [*map(str, problems(network))]


@pytest.mark.parametrize(
    "network",
    [
        NetworkConfig(),
        make_network(),
        pair(TO_2, make_path("round", 3, 4, 2)),
        pair(Path("x", (ip("fd00:51d:2::e"), *TO_2.segments))),
        make_network(pairs=[Pair("gw-1", "gw-2", (TO_2,)), Pair("gw-2", "gw-1", (make_path("x", 1),))], mesh=False),
        sid(Behaviour.END_DX6, next_hop=ip("fd00:a:1::2"), interface="lan"),
        gateway(
            sids=(END, DT6, Sid(ip("fd00:51d:1::d4"), Behaviour.END_DX4, next_hop=IPv4Address("10.1.0.2"))),
            prefixes=(IPv6Network("fd00:a:1::/64"), IPv4Network("10.1.0.0/24")),
        ),
        gateway(sids=(END, DT4), prefixes=(IPv4Network("10.1.0.0/24"),)),
        with_gateway(gateway(cluster="cluster-2"), "gw-2", prefixes=(IPv6Network("fd00:a:1::/64"),)),
        NetworkConfig((GatewayConfig("a", IPv4Address("10.0.0.1"), site="here"),)),
        gateway(method=Method.UDP, port=1024),
        gateway(method=Method.TCP, port=22),
        gateway(prefixes=tuple(map(IPv6Network, ("fd00:b::/48", "fd00:b:0:1::/64", "fd00:b:0:2::/64", "fd00:c::/64")))),
    ],
)
def test_what_makes_sense_has_no_problem(network: NetworkConfig) -> None:
    """A sound configuration passes."""
    assert problems(network) == ()


def test_all_problems_are_reported_at_once() -> None:
    """A user who corrects a file sees every mistake, not only the first."""
    network = with_gateway(gateway(mtu=5), "gw-2", interface="")
    assert [each.where for each in problems(network)] == ["gateways[0].mtu", "gateways[1].interface"]


class Counted(tuple[GatewayConfig, ...]):
    """Gateways that count how often they are looked through."""

    __slots__ = ()
    times = 0

    def __iter__(self) -> Iterator[GatewayConfig]:
        """Go through them once more."""
        Counted.times += 1
        return super().__iter__()


def test_checking_looks_the_gateways_through_as_often_for_many_paths_as_for_one() -> None:
    """With hundreds of gateways there are some ten thousand paths: each has to cost what it is long."""
    looks = []
    for paths in ((TO_2,), tuple(make_path(f"by-{way}", way, 2) for way in range(3, 13))):
        network = make_network(12, [Pair("gw-1", "gw-2", paths)])
        Counted.times, counted = 0, replace(network, gateways=Counted(network.gateways))
        assert problems(counted) == ()
        looks.append(Counted.times)
    assert looks[0] == looks[1]


def test_the_smallest_mtu_on_the_way_counts_less_what_wrapping_adds() -> None:
    """A packet has room for the outer header, 8 bytes of the routing header, and 16 for each segment."""
    network = with_gateway(make_network(), "gw-3", mtu=2000)
    assert overhead(2) == 80
    assert Room(network).inner_mtu("gw-1", make_path("x", 2)) == 9000 - 64
    assert Room(network).inner_mtu("gw-1", make_path("x", 3, 2)) == 2000 - 80
    assert Room(with_gateway(make_network(2), "gw-1", mtu=0)).inner_mtu("gw-1", make_path("x", 2)) == 9000 - 64
