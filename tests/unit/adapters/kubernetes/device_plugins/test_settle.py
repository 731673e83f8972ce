"""Devices known only by number: each share has one holder, and Seaway's pods get their allocated devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.kubernetes.device_plugins.assign import assign_devices
from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.views import Held, NodeView
from tests.unit.adapters.kubernetes.device_plugins.samples import node

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.5gb"
ONE, TWO, THREE = (f"alpha/n1/gpu-{number}" for number in range(3))


def view(whole: int = 0, instances: int = 0, replicas: int = 1) -> NodeView:
    """Read a node with this many cards, each with replicas, and MIG instances."""
    amounts = {GPU: str(whole * replicas), MIG: str(instances)}
    labels = {"nvidia.com/gpu.replicas": str(replicas), "nvidia.com/mig.strategy": "mixed"}
    return read_node(
        "alpha", node(allocatable={key: text for key, text in amounts.items() if text != "0"}, labels=labels)
    )


def shares(number: int, resource: str = GPU) -> tuple[Held, ...]:
    """Return the shares of a pod that requests this many."""
    return (Held(-1, "", 0, 0, resource=resource),) * number


def names(with_template_traits: Mapping[str, Sequence[Held]]) -> dict[str, list[str]]:
    """Return the devices of each pod."""
    return {pod: [each.uuid for each in held] for pod, held in with_template_traits.items()}


def test_a_pod_of_seaway_gets_what_was_reserved_for_it() -> None:
    """In any order of events, other pods get the rest, and give up an assumed device."""
    held = {"theirs": shares(1), "mine": shares(1)}
    assert names(assign_devices(view(2), held, {}, {"mine": [ONE]})) == {"theirs": [TWO], "mine": [ONE]}
    moved = assign_devices(view(2), held, {"theirs": [ONE]}, {"mine": [ONE]})
    assert names(moved) == {"theirs": [TWO], "mine": [ONE]}


def test_no_one_moves_without_need() -> None:
    """A card for several pods may have room for both."""
    held = {"theirs": shares(1), "mine": shares(1)}
    assert names(assign_devices(view(2, replicas=2), held, {"theirs": [ONE]}, {"mine": [ONE]})) == {
        "theirs": [ONE],
        "mine": [ONE],
    }
    twice = assign_devices(view(2, replicas=2), {"p": shares(2)}, {"p": [TWO, TWO]})
    assert names(twice) == {"p": [TWO, TWO]}


def test_pods_that_share_a_template_share_what_was_reserved() -> None:
    """Each gets some of it, none of it twice, and keeps those; devices of other nodes do not matter."""
    reserved = ["alpha/n0/gpu-0", ONE, TWO, THREE]
    both = {"p": reserved, "q": reserved}
    first = assign_devices(view(3), {"p": shares(2)}, {}, both)
    assert names(first) == {"p": [ONE, TWO]}
    assert names(assign_devices(view(3), {"q": shares(1), "p": shares(2)}, names(first), both)) == {
        "q": [THREE],
        "p": [ONE, TWO],
    }


def test_cards_and_instances_are_stored_apart() -> None:
    """With mixed MIG, a share of one resource never gets a device of another, even if that was allocated."""
    small = "alpha/n1/mig-1g.5gb-0"
    held = {"mine": (*shares(1), *shares(1, MIG)), "theirs": shares(1, MIG)}
    found = assign_devices(view(2, 2), held, {}, {"mine": [small, TWO], "theirs": [ONE]})
    assert names(found) == {"mine": [TWO, small], "theirs": ["alpha/n1/mig-1g.5gb-1"]}


DEVICES = st.lists(st.sampled_from([ONE, TWO, THREE, "alpha/n1/mig-1g.5gb-0", "gone"]), max_size=3)
PODS = st.dictionaries(st.sampled_from("abcde"), st.tuples(st.integers(0, 2), st.integers(0, 2), DEVICES, DEVICES))


@given(PODS, st.integers(1, 3))
def test_no_device_has_more_holders_than_it_can_and_settling_again_changes_nothing(
    pods: dict[str, tuple[int, int, list[str], list[str]]], replicas: int
) -> None:
    """For any earlier allocations and names, each pod has a device while one has room."""
    there = view(3, 1, replicas)
    held = {pod: shares(whole) + shares(small, MIG) for pod, (whole, small, _, _) in pods.items()}
    before = {pod: each[2] for pod, each in pods.items()}
    reserved = {pod: each[3] for pod, each in pods.items()}
    found = assign_devices(there, held, before, reserved)
    used = Counter(uuid for each in names(found).values() for uuid in each if uuid)
    room = {uuid: device.share_limit for uuid, device in there.devices.items()}
    assert all(used[uuid] <= room[uuid] for uuid in used)
    for resource, number in ((GPU, 3 * replicas), (MIG, 1)):
        wanted = [each for held in found.values() for each in held if each.resource == resource]
        assert len([each for each in wanted if each.uuid]) == min(len(wanted), number)
    assert (
        assign_devices(
            there, held, {pod: [uuid for uuid in each if uuid] for pod, each in names(found).items()}, reserved
        )
        == found
    )
