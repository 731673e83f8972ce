from dataclasses import replace
from ipaddress import IPv6Address, IPv6Network

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.gateways import Behaviour, GatewayConfig, NetworkConfig, Pair, Sid
from seaway.steering.state import (
    FORWARDING,
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
    (route,) = (each for each in state.routes if each.destination == IPv6Network(prefix))
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
