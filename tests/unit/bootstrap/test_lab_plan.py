"""Anything that a lab consists of."""

from __future__ import annotations

from collections import Counter

import pytest

from lab.links import default_links
from lab.plan import LabPlan, belongs
from seaway.domain.errors import RejectedError
from seaway.domain.gateway_checks import problems
from seaway.simulation.demo import demo_fleet
from seaway.wire.network_in import NetworkConfigIn, network_text
from seaway.wire.reading import read_value


@pytest.mark.parametrize("gateways", [2, 3, 4, 25, 250])
def test_the_network_of_a_lab_is_sound(gateways: int) -> None:
    """Nothing is wrong with the network document, and reading what is written gives the same again."""
    config = LabPlan("lab", gateways).config()
    assert list(problems(config)) == []
    assert read_value(NetworkConfigIn, network_text(config)).config() == config


def test_names_are_those_of_the_demo() -> None:
    """Gateways stand before the clusters of `seaway up`'s demo fleet, and the last one before its users."""
    fleet, config = demo_fleet(), LabPlan("lab", 4).config()
    assert [each.name for each in config.gateways] == [each.name for each in fleet.gateways]
    there = {each.cluster: each.name for each in config.gateways if each.cluster}
    assert there == {each.name: each.gateway for each in fleet.clusters}
    assert config.gateways[-1].site


@pytest.mark.parametrize("gateways", [2, 250])
def test_no_address_and_no_interface_is_there_twice(gateways: int) -> None:
    """Each wire has two interfaces of its own, by name, hardware address and address."""
    plan = LabPlan("lab", gateways)
    ends = [end for wire in plan.wires() for end, _ in wire.ends]
    for seen in (
        Counter((end.namespace, end.interface) for end in ends),
        Counter(end.hardware for end in ends),
        Counter(end.address.ip for end in ends),
    ):
        assert seen.most_common(1)[0][1] == 1
    assert (
        {end.namespace for end in ends}
        == {each.name for each in plan.namespaces()}
        == set(map(plan.namespace, plan.places))
    )


def test_the_core_knows_locators_only() -> None:
    """Anything that carries packets between gateways routes segments, and no network behind a gateway."""
    core, *_ = LabPlan("lab", 3).namespaces()
    assert [str(route.to) for route in core.routes] == ["fd00:51d:1::/48", "fd00:51d:2::/48", "fd00:51d:3::/48"]


@pytest.mark.parametrize(
    ("namespace", "name", "there"),
    [
        ("seaway-lab-core", "lab", True),
        ("seaway-lab-gw-12", "lab", True),
        ("seaway-lab-host-1", "lab", True),
        ("seaway-lab-gw-1", "lab-gw", False),
        ("seaway-lab-2-core", "lab", False),
        ("seaway-lab-2-gw-1", "lab", False),
        ("seaway-lab-gw-1-core", "lab", False),
        ("seaway-lab-mine", "lab", False),
        ("lab-core", "lab", False),
    ],
)
def test_a_namespace_is_of_one_lab_only(namespace: str, name: str, there: bool) -> None:
    """Labs whose names begin alike, and what others call their namespaces, stay apart."""
    assert belongs(namespace, name) is there


@pytest.mark.parametrize(
    ("name", "gateways"), [("lab", 1), ("lab", 251), ("Lab", 4), ("a" * 31, 4), ("../x", 4), ("", 4)]
)
def test_what_cannot_be_a_lab_is_refused(name: str, gateways: int) -> None:
    """A lab has a plain name and a size that addresses allow."""
    with pytest.raises(RejectedError):
        LabPlan(name, gateways)


def test_links_that_no_one_describes_are_those_of_the_demo() -> None:
    """A round trip in the lab takes as long as the demo's link, and links that the demo lacks have a delay too."""
    links = default_links([f"gw-{number}" for number in range(1, 7)])
    assert len(links) == 30
    for link in demo_fleet().links:
        back = links[link.target, link.source]
        assert links[link.source, link.target].delay_ns + back.delay_ns == link.latency_ns
    assert all(each.delay_ns for each in links.values())
