from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.gateway_checks import problems
from seaway.domain.gateways import Behaviour, GatewayConfig, NetworkConfig, Pair, Path, Sid
from seaway.steering.state import (
    FORWARDING,
    FORWARDING_IPV4,
    NOTHING,
    TUNNEL_SOURCE,
    GatewayState,
    Hop,
    PathRoute,
    SidRoute,
    desired,
    mtu,
    sysctl,
)
from tests.fakes.gateways import make_network, make_path, with_gateway

DIRECT, ROUND = make_path("direct", 2), make_path("round", 3, 2)


def hops(state: GatewayState, prefix: str) -> tuple[Hop, ...]:
    """Return the hops of a route."""
    (route,) = (each for each in state.routes if each.destination == ip_network(prefix))
    assert isinstance(route, PathRoute)
    return route.hops


def pair(*, share: bool = False, weights: tuple[int, int] = (1, 1)) -> NetworkConfig:
    """Make a network with two paths from gw-1 to gw-2."""
    paths = replace(DIRECT, weight=weights[0]), replace(ROUND, weight=weights[1])
    return make_network(pairs=[Pair("gw-1", "gw-2", paths, share)])


def test_a_mesh_leads_to_every_network_behind_others() -> None:
    """Each SID has its route, and each network behind another gateway one that wraps packets for that gateway."""
    state = desired(make_network(3), "gw-1")
    assert [str(each.destination) for each in state.routes] == [
        "fd00:51d:1::e/128",
        "fd00:51d:1::d6/128",
        "fd00:a:2::/64",
        "fd00:a:3::/64",
    ]
    assert hops(state, "fd00:a:2::/64") == (Hop(DIRECT.segments),)


def test_settings_are_the_few_that_srv6_needs() -> None:
    """Forwarding, SRv6 on the interface and in general, the tunnels' source, and the MTU where one is given."""
    settings = {
        FORWARDING: "1",
        sysctl("all", "seg6_enabled"): "1",
        sysctl("wan", "seg6_enabled"): "1",
        TUNNEL_SOURCE: "fd00:51d:1::1",
    }
    network = make_network()
    assert desired(network, "gw-1").settings == settings | {mtu("wan"): "9000"}
    assert desired(with_gateway(network, "gw-1", mtu=0), "gw-1").settings == settings


@pytest.mark.parametrize(
    ("weights", "active", "taken"),
    [((1, 1), {}, DIRECT), ((1, 2), {}, ROUND), ((1, 2), {"gw-2": "direct"}, DIRECT)],
)
def test_one_path_is_taken(weights: tuple[int, int], active: dict[str, str], taken: object) -> None:
    """The chosen path is taken, else the one with the largest weight, else the first."""
    assert hops(desired(pair(weights=weights), "gw-1", active), "fd00:a:2::/64") == (
        Hop(getattr(taken, "segments")),  # noqa: B009
    )


def test_shared_paths_are_all_taken() -> None:
    """Traffic that is shared takes all paths, by their weights."""
    found = hops(desired(pair(share=True, weights=(3, 2)), "gw-1"), "fd00:a:2::/64")
    assert found == (Hop(DIRECT.segments, 3), Hop(ROUND.segments, 2))


def test_a_sid_is_at_its_own_interface_or_the_gateways() -> None:
    """A neighbour may be behind another interface than the one towards the gateways."""
    sids = (
        Sid(IPv6Address("fd00:51d:1::7"), Behaviour.END_DX6, next_hop=IPv6Address("fd00:a:1::2"), interface="lan"),
        Sid(IPv6Address("fd00:51d:1::8"), Behaviour.END_DT6, 100),
    )
    state = desired(with_gateway(make_network(1), "gw-1", sids=sids), "gw-1")
    assert state.routes == (
        SidRoute(IPv6Network("fd00:51d:1::7/128"), "lan", Behaviour.END_DX6, next_hop=IPv6Address("fd00:a:1::2")),
        SidRoute(IPv6Network("fd00:51d:1::8/128"), "wan", Behaviour.END_DT6, 100),
    )


def test_a_gateway_without_locator_has_to_have_nothing() -> None:
    """One that is only probed needs no set-up."""
    network = NetworkConfig((GatewayConfig("a", IPv6Address("fd00::1"), site="here"),))
    assert desired(network, "a") == NOTHING


@pytest.mark.parametrize(
    ("name", "active", "why"),
    [
        ("gw-9", {}, "gateway 'gw-9' not found; available: gw-1, gw-2, gw-3, gw-4"),
        ("gw-1", {"gw-2": "x"}, "path 'x' not found from gw-1 to gw-2; available: direct, round"),
        ("gw-1", {"gw-7": "x"}, "gw-1 has no paths to gw-7; it has some to: gw-2, gw-3, gw-4"),
    ],
)
def test_what_is_not_there_cannot_be_chosen(name: str, active: dict[str, str], why: str) -> None:
    """An unknown gateway, target or path is an error that says which there are."""
    with pytest.raises(RejectedError) as caught:
        desired(pair(), name, active)
    assert str(caught.value) == why


def test_where_traffic_is_shared_nothing_can_be_chosen() -> None:
    """A choice that would have no effect is refused."""
    with pytest.raises(RejectedError, match="spread over all its paths"):
        desired(pair(share=True), "gw-1", {"gw-2": "direct"})


def two_before_one() -> NetworkConfig:
    """Make a network in which gw-2 and gw-3 are before one cluster, with its network behind both."""
    network = with_gateway(make_network(4), "gw-3", cluster="cluster-2", prefixes=make_network().gateways[1].prefixes)
    assert problems(network) == ()
    return network


def test_the_gateway_that_carries_the_traffic_of_a_cluster_reaches_its_networks() -> None:
    """The first by default; another replaces the segments of the same route, so that no packet is lost."""
    network = two_before_one()
    assert hops(desired(network, "gw-1"), "fd00:a:2::/64") == (Hop(make_path("x", 2).segments),)
    for serving in ({"cluster-2": "gw-3"}, {"cluster-2": "gw-3", "cluster-9": "gw-9"}):
        assert hops(desired(network, "gw-1", serving=serving), "fd00:a:2::/64") == (Hop(make_path("x", 3).segments),)
    assert desired(network, "gw-1", serving={"cluster-2": "gw-4"}) == desired(network, "gw-1")


def test_a_gateway_reaches_its_own_cluster_without_the_others() -> None:
    """A route to its own network through another gateway would take the packets of its hosts away."""
    for name in ("gw-2", "gw-3"):
        routes = desired(two_before_one(), name, serving={"cluster-2": "gw-2"}).routes
        assert [str(each.destination) for each in routes if isinstance(each, PathRoute)] == [
            "fd00:a:1::/64",
            "fd00:a:4::/64",
        ]


def test_a_network_behind_one_of_several_gateways_is_reached_through_that_one() -> None:
    """Whichever of them carries the traffic of the networks that they share."""
    own = IPv6Network("fd00:b::/64")
    network = two_before_one()
    network = with_gateway(network, "gw-3", prefixes=(*network.gateways[2].prefixes, own))
    state = desired(network, "gw-1", serving={"cluster-2": "gw-2"})
    assert hops(state, "fd00:a:2::/64") == (Hop(make_path("x", 2).segments),)
    assert hops(state, "fd00:b::/64") == (Hop(make_path("x", 3).segments),)


def with_ipv4(*numbers: int, pairs: tuple[Pair, ...] = ()) -> NetworkConfig:
    """Make a network in which some gateways have an IPv4 network behind them, and an End.DT4."""
    network = make_network(pairs=pairs)
    for number in numbers:
        gateway = network.gateways[number - 1]
        unwrap = Sid(IPv6Address(f"fd00:51d:{number}::d4"), Behaviour.END_DT4)
        prefixes = (*gateway.prefixes, IPv4Network(f"10.{number}.0.0/24"))
        network = with_gateway(network, gateway.name, sids=(*gateway.sids, unwrap), prefixes=prefixes)
    assert problems(network) == ()
    return network


def test_ipv4_packets_take_the_path_of_ipv6_packets_to_a_sid_that_unwraps_them() -> None:
    """Only the last segment differs, and an End.DX4 that a path names stays."""
    network = with_ipv4(2, pairs=(Pair("gw-1", "gw-2", (ROUND,)),))
    state = desired(network, "gw-1")
    assert hops(state, "fd00:a:2::/64") == (Hop(ROUND.segments),)
    assert hops(state, "10.2.0.0/24") == (Hop((ROUND.segments[0], IPv6Address("fd00:51d:2::d4"))),)
    own = Sid(IPv6Address("fd00:51d:2::77"), Behaviour.END_DX4, next_hop=IPv4Address("10.2.0.2"), interface="lan")
    network = with_gateway(network, "gw-2", sids=(*network.gateways[1].sids, own))
    network = replace(network, pairs=(Pair("gw-1", "gw-2", (Path("own", (own.address,)),)),))
    assert problems(network) == ()
    state = desired(network, "gw-1")
    assert hops(state, "10.2.0.0/24") == (Hop((own.address,)),)
    assert hops(state, "fd00:a:2::/64") == (Hop(DIRECT.segments),)


def test_ipv4_is_forwarded_only_where_it_is_carried() -> None:
    """A gateway with an IPv4 network behind it or behind another needs it; others keep their setting."""
    assert FORWARDING_IPV4 not in desired(make_network(), "gw-1").settings
    assert desired(with_ipv4(2), "gw-1").settings[FORWARDING_IPV4] == "1"
    assert desired(with_ipv4(2), "gw-2").settings[FORWARDING_IPV4] == "1"
