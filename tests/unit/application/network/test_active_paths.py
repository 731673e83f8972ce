"""Active paths, and the targets of measurements."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address

import pytest

from seaway.application.network.targets import assignment
from seaway.application.ports.agent import Target
from seaway.domain.errors import RejectedError, UnknownError
from seaway.domain.gateways import Method, Pair, Path
from tests.unit.application.network.scene import Scene, gateway, network


@pytest.fixture
def scene() -> Scene:
    """Create a network of three gateways."""
    scene = Scene()
    scene.configuration.put(network(), "ada")
    return scene


def test_without_a_choice_the_path_that_is_liked_best_is_taken(scene: Scene) -> None:
    """It is the first with the largest weight, in a mesh the direct one; shared traffic has none."""
    assert scene.active.of("gw-1") == {"gw-2": "straight", "gw-3": "direct"}
    (pair,) = network().pairs
    heavy = replace(pair, paths=(pair.paths[0], replace(pair.paths[1], weight=2)))
    scene.configuration.put(network(pairs=(heavy,)), "ada")
    assert scene.active.of("gw-1")["gw-2"] == "around"
    scene.configuration.put(network(pairs=(replace(pair, load_balance=True),)), "ada")
    assert scene.active.of("gw-1") == {"gw-3": "direct"}
    with pytest.raises(UnknownError):
        scene.active.of("gw-9")


def test_a_choice_is_stored_and_reported(scene: Scene) -> None:
    """A chosen path is active from then on, also after a restart; followers get it, and an event has the reason."""
    received: list[object] = []
    scene.active.follow(received.append)
    scene.active.choose("gw-1", "gw-2", "around", "train needs it")
    scene.active.choose("gw-1", "gw-2", "around", "again")
    for active in (scene.active, scene.again().active):
        assert active.of("gw-1")["gw-2"] == "around"
        assert active.chosen() == {("gw-1", "gw-2"): "around"}
    assert received[0] == {}
    assert received[-1] == {("gw-1", "gw-2"): "around"}
    assert scene.reported("path") == ["traffic from gw-1 to gw-2 takes around: train needs it"]
    with pytest.raises(RejectedError):
        scene.active.choose("gw-1", "gw-2", "scenic", "")


def test_a_choice_that_is_gone_is_not_taken(scene: Scene) -> None:
    """When the chosen path is removed, the preferred one is active; the choice applies again when it returns."""
    scene.active.choose("gw-1", "gw-2", "around", "")
    scene.configuration.put(network(pairs=()), "ada")
    assert (scene.active.of("gw-1")["gw-2"], scene.active.chosen()) == ("direct", {})
    scene.configuration.put(network(), "ada")
    assert scene.active.of("gw-1")["gw-2"] == "around"


def test_what_a_gateway_has_written_is_taken_down(scene: Scene) -> None:
    """Confirmed paths are stored beside the wanted ones; an unknown path rejects the whole confirmation."""
    scene.active.choose("gw-1", "gw-2", "around", "")
    scene.active.confirm("gw-1", {"gw-2": "straight", "gw-3": "direct"})
    again = scene.again().active
    assert again.applied("gw-1") == {"gw-2": "straight", "gw-3": "direct"}
    assert (again.applied("gw-2"), again.of("gw-1")["gw-2"]) == ({}, "around")
    stored = len(scene.store.commits)
    scene.active.confirm("gw-1", {"gw-3": "direct"})
    assert len(scene.store.commits) == stored  # it was known
    with pytest.raises(RejectedError) as caught:
        scene.active.confirm("gw-1", {"gw-2": "around", "gw-3": "scenic", "gw-9": "direct"})
    assert [each.where for each in (caught.value, *caught.value.also)] == ["active.gw-3", "active.gw-9"]
    assert scene.active.applied("gw-1")["gw-2"] == "straight"


def test_a_path_counts_once_its_gateway_has_written_it(scene: Scene) -> None:
    """Followers get a choice immediately, and confirmed paths from the first confirmation on."""
    received: list[object] = []
    scene.active.confirm("gw-1", {"gw-2": "straight"})
    scene.active.follow(received.append)
    scene.active.choose("gw-1", "gw-2", "around", "train needs it")
    assert received[-1] == {("gw-1", "gw-2"): "straight"}
    scene.active.confirm("gw-1", {"gw-2": "around"})
    assert received[-1] == {("gw-1", "gw-2"): "around"}


def test_only_a_gateway_that_follows_can_be_steered(scene: Scene) -> None:
    """Its gateway must have polled recently, and have confirmed the last change."""
    pair = ("gw-1", "gw-2")
    scene.active.confirm("gw-1", {"gw-2": "straight"})
    assert scene.active.steerable() == {}
    scene.active.asked("gw-1")
    assert scene.active.steerable() == {pair: "straight"}
    scene.active.choose("gw-1", "gw-2", "around", "")
    assert scene.active.steerable() == {}
    scene.active.confirm("gw-1", {"gw-2": "around"})
    assert scene.active.steerable() == {pair: "around"}
    scene.clock.advance_s(61)
    assert scene.active.steerable() == {}


def test_each_gateway_and_each_path_is_measured() -> None:
    """Every other gateway is a target by the default route, and each path of pairs with paths of their own."""
    found = assignment(network(), 7, "gw-1")
    two, three = (IPv6Address(f"fd00:51d:{number}::1") for number in (2, 3))
    assert found.targets == (
        Target("gw-2", two),
        Target("gw-2", two, path="straight"),
        Target("gw-2", two, path="around", segments=(IPv6Address("fd00:51d:3::e"),)),
        Target("gw-3", three),
    )
    assert (found.version, found.how, found.reflect) == ("7", network().probe, 0)
    assert [each.path for each in assignment(network(), 7, "gw-2").targets] == ["", ""]
    with pytest.raises(UnknownError):
        assignment(network(), 7, "gw-9")


def test_paths_are_measured_only_where_packets_can_take_them() -> None:
    """A pair of one path is also measured along it, by its target's probe method; IPv4 cannot use IPv6 paths."""
    (pair,) = network().pairs
    one = network(pairs=(Pair("gw-1", "gw-2", pair.paths[1:]),))
    assert [each.path for each in assignment(one, 1, "gw-1").targets] == ["", "around", ""]
    udp = network()
    udp = replace(udp, gateways=(udp.gateways[0], gateway(2, method=Method.UDP, port=8627), udp.gateways[2]))
    along = assignment(udp, 1, "gw-1").targets[:3]
    assert [(each.path, each.method, each.port) for each in along] == [
        (path, Method.UDP, 8627) for path in ("", "straight", "around")
    ]
    assert assignment(udp, 1, "gw-2").reflect == 8627
    old = network()
    old = replace(old, gateways=(*old.gateways, gateway(4, address=IPv4Address("192.0.2.4"), locator=None, sids=())))
    assert "gw-4" not in {each.gateway for each in assignment(old, 1, "gw-1").targets}
    assert assignment(old, 1, "gw-4").targets == ()


def test_a_path_says_by_name_which_is_first() -> None:
    """Of equal weights the first path is preferred, whatever its name."""
    scene = Scene()
    (pair,) = network().pairs
    paths: tuple[Path, ...] = pair.paths[::-1]
    scene.configuration.put(network(pairs=(replace(pair, paths=paths),)), "ada")
    assert scene.active.of("gw-1")["gw-2"] == "around"


def test_the_gateway_of_a_cluster_is_stored_and_reported(scene: Scene) -> None:
    """The first until another is selected, also after a restart, and as long as it is before the cluster."""
    both = network(gateways=(*network().gateways[:2], gateway(3, cluster="cluster-2")), pairs=())
    scene.configuration.put(both, "ada")
    assert scene.active.serving() == {"cluster-1": "gw-1", "cluster-2": "gw-2"}
    scene.active.serve("cluster-2", "gw-3", "gw-2 does not answer")
    for active in (scene.active, scene.again().active):
        assert active.serving() == {"cluster-1": "gw-1", "cluster-2": "gw-3"}
        assert active.taken() == {("", "cluster-2"): "gw-3"}
    assert scene.reported("path") == ["traffic of cluster cluster-2 takes gw-3: gw-2 does not answer"]
    scene.configuration.put(network(), "ada")
    assert scene.active.serving() == {"cluster-1": "gw-1", "cluster-2": "gw-2", "cluster-3": "gw-3"}
