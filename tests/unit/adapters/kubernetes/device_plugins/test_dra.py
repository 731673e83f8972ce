"""Resource slices and claims of NVIDIA's and HAMi's drivers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from seaway.adapters.kubernetes.device_plugins.dra import read_claim
from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.pods import read_pod
from seaway.adapters.kubernetes.device_plugins.views import DevicePlugin, Held, NodeView, ProblemKind
from seaway.adapters.kubernetes.objects.dra import ResourceSlice
from seaway.domain.device import Device, DeviceMode, MigProfile
from seaway.domain.placement import DeviceSlice
from tests.unit.adapters.kubernetes.device_plugins.samples import (
    A100,
    A,
    B,
    claim,
    kinds,
    listed,
    node,
    pod,
    resource_slice,
)

DRIVER = "gpu.nvidia.com"
HAMI = "hami-core-gpu.project-hami.io"


def card(minor: int, uuid: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Create the entry of a whole card."""
    return listed(f"gpu-{minor}", type="gpu", uuid=uuid, productName=A100, **more)


def read(*slices: ResourceSlice) -> NodeView:
    """Read the node with these slices."""
    return read_node("alpha", node(), slices)


def test_a_card_is_a_device() -> None:
    """One claim uses all of it."""
    view = read(resource_slice([card(0, A), card(1, B)]))
    assert view.node.devices == (
        Device(A, 0, A100, 40960, share_limit=1, mode=DeviceMode.WHOLE, even_shares=True),
        Device(B, 1, A100, 40960, share_limit=1, mode=DeviceMode.WHOLE, even_shares=True),
    )
    assert [access.resources.plugin for access in view.accesses] == [DevicePlugin.DRA, DevicePlugin.DRA]


def test_attributes_may_name_their_domain() -> None:
    """The default domain is the driver's."""
    names = {f"{DRIVER}/type": "gpu", f"{DRIVER}/uuid": A, f"{DRIVER}/productName": A100}
    assert read(resource_slice([listed("gpu-0", **names)])).node.devices[0].uuid == A


def test_only_the_highest_generation_counts() -> None:
    """Slices of older generations are being removed."""
    old = resource_slice([card(0, A)], name="old", generation=1)
    new = resource_slice([card(1, B)], name="new", generation=2)
    assert [device.uuid for device in read(old, new).node.devices] == [B]


def test_a_pool_counts_when_it_is_complete() -> None:
    """An incomplete pool is being published."""
    half = resource_slice([card(0, A)], name="a", resourceSliceCount=2)
    other = resource_slice([card(1, B)], name="b", resourceSliceCount=2)
    assert read(half).node.devices == ()
    assert kinds(read(half)) == [ProblemKind.BROKEN]
    assert len(read(half, other).node.devices) == 2


def test_slices_of_other_nodes_are_passed_over() -> None:
    """Slices of other nodes are ignored, complete or not."""
    here = resource_slice([card(0, A)], resourceSliceCount=3)
    elsewhere = replace(here, spec=replace(here.spec, node_name="n2"))
    view = read(elsewhere)
    assert (view.node.devices, view.problems) == ((), ())


def test_a_tainted_card_is_not_healthy() -> None:
    """Drivers taint broken cards."""
    bad = {**card(0, A), "taints": [{"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}]}
    noted = {**card(1, B), "taints": [{"key": "x", "effect": "None"}]}
    assert [device.healthy for device in read(resource_slice([bad, noted])).node.devices] == [False, True]


@pytest.mark.parametrize(
    "broken",
    [listed("gpu-x", type="gpu", uuid=A), listed("gpu-0", type="gpu"), {"name": "gpu-0"}, listed("gpu-0", "?")],
)
def test_a_broken_device_hides_no_neighbour(broken: dict[str, Any]) -> None:
    """The broken device is left out and reported."""
    view = read(resource_slice([broken, card(1, B)]))
    assert [device.uuid for device in view.node.devices] == [B]
    assert kinds(view) == [ProblemKind.BROKEN]


def test_instances_that_are_there_for_good_are_devices() -> None:
    """A card that is listed beside its fixed instances is left out."""
    mig = {"type": "mig", "parentUUID": A, "profile": "1g.5gb", "productName": A100}
    view = read(
        resource_slice(
            [card(0, A), listed("gpu-0-mig-19-0-1", "4864Mi", uuid="MIG-1", **mig), card(1, B)],
        )
    )
    profile = MigProfile("1g.5gb", 4864, 142, 1, 1, (0,))
    assert view.node.devices == (
        Device("MIG-1", 0, A100, 4864, core_milli=142, share_limit=1, mode=DeviceMode.MIG, mig_profiles=(profile,)),
        Device(B, 1, A100, 40960, share_limit=1, mode=DeviceMode.WHOLE, even_shares=True),
    )


def partition(profile: str, memory: str, start: int, size: int) -> dict[str, Any]:
    """Create the entry of a possible instance of the first card."""
    name = f"gpu-0-mig-{profile.replace('.', '')}-19-{start}"
    counters = {f"memory-slice-{i}": {"value": "1"} for i in range(start, start + size)}
    use = {"counterSet": "gpu-0-counter-set", "counters": {**counters, "multiprocessors": {"value": "14"}}}
    return {**listed(name, memory, type="mig", profile=profile, productName=A100), "consumesCounters": [use]}


DIVISIBLE = [
    {**card(0, A), "consumesCounters": [{"counterSet": "gpu-0-counter-set", "counters": {}}]},
    *(partition("1g.5gb", "4864Mi", start, 1) for start in range(7)),
    *(partition("3g.20gb", "20096Mi", start, 4) for start in (0, 4)),
]


def test_a_card_that_can_be_cut_at_will_is_one_device() -> None:
    """It has the profiles of all possible instances, and one for the whole; slices may come separately."""
    counters = resource_slice([], name="counters", resourceSliceCount=2)
    (device,) = read(resource_slice(DIVISIBLE, resourceSliceCount=2), counters).node.devices
    assert (device.uuid, device.memory_mib, device.mode) == (A, 40960, DeviceMode.MIG)
    assert device.mig_profiles == (
        MigProfile("1g.5gb", 4864, 142, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
        MigProfile("3g.20gb", 20096, 428, 3, 4, (0, 4)),
        MigProfile("full", 40960, 1000, 7, 8, (0,)),
    )


def test_claims_hold_parts_of_a_card() -> None:
    """The name of the allocated device gives its part, an instance or the whole card."""
    view = read(resource_slice(DIVISIBLE))
    for name, held in (
        ("gpu-0-mig-1g5gb-19-3", DeviceSlice(A, 4864, 142, "1g.5gb", 3)),
        ("gpu-0", DeviceSlice(A, 40960, 1000, "full", 0)),
    ):
        (found,) = read_claim(claim([{"driver": DRIVER, "device": name}]), view).held
        assert found.slice == held


def shared_card() -> dict[str, Any]:
    """Create the entry of a card of HAMi's driver."""
    found = listed("hami-gpu-0", type="hami-gpu", uuid=A, minor=0, productName=A100)
    cores = {"value": "100", "requestPolicy": {"default": "100"}}
    return {**found, "allowMultipleAllocations": True, "capacity": {**found["capacity"], "cores": cores}}


def test_hamis_driver_shares_cards() -> None:
    """Claims use part of their memory and cores."""
    view = read(resource_slice([shared_card()], HAMI))
    assert view.node.devices == (Device(A, 0, A100, 40960, share_limit=100, core_steps=100),)
    used = {"driver": HAMI, "device": "hami-gpu-0", "consumedCapacity": {"cores": "30", "memory": "8Gi"}}
    assert read_claim(claim([used, used]), view).held == (Held(-1, A, 8192, 300, claim="default/gpu"),) * 2
    odd = {"driver": HAMI, "device": "hami-gpu-0", "consumedCapacity": {"memory": "much"}}
    broken = read_claim(claim([odd]), view)
    assert [each.memory_mib for each in broken.held] == [40960]
    assert [trouble.kind for trouble in broken.problems] == [ProblemKind.BROKEN]


def test_a_card_that_claims_share_without_hamis_driver_is_shared_by_rounds() -> None:
    """Nothing limits a claim to its share, unlike HAMi's driver; a card for one claim is whole."""
    both = {"allowMultipleAllocations": True}
    [shared], [ours], [whole] = (
        read(given).node.devices
        for given in (
            resource_slice([card(0, A) | both]),
            resource_slice([shared_card()], HAMI),
            resource_slice([shared_card() | {"allowMultipleAllocations": False}], HAMI),
        )
    )
    assert (shared.mode, ours.mode, whole.mode) == (DeviceMode.SHARED, DeviceMode.HAMI_CORE, DeviceMode.WHOLE)
    assert (shared.even_shares, ours.even_shares, whole.even_shares) == (False, False, True)


def test_claims_for_administration_hold_nothing() -> None:
    """Claims for devices elsewhere, or without allocation, also use nothing."""
    view = read(resource_slice([card(0, A)]))
    watch = {"driver": DRIVER, "device": "gpu-0", "adminAccess": True}
    elsewhere = {"driver": DRIVER, "device": "gpu-0", "pool": "n2"}
    assert read_claim(claim([watch, elsewhere]), view).held == ()
    assert read_claim(claim([]), view).held == ()


@pytest.mark.parametrize("made", [False, True], ids=["named", "made"])
@pytest.mark.parametrize(
    ("users", "container"), [([[], ["gpus"]], 1), ([["gpus"], []], 0), ([["gpus"], ["gpus"]], -1), ([[], ["x"]], -1)]
)
def test_a_claim_is_held_by_the_container_that_names_it(users: list[list[str]], container: int, made: bool) -> None:
    """The pod may name the claim or its template; of several containers the first one counts."""
    view = read(resource_slice([card(0, A)]))
    containers = [{"resources": {"claims": [{"name": name} for name in names]}} for names in users]
    mine = {"name": "gpus", "resourceClaimName": "gpu"}
    own, status = ({"name": "gpus"}, {"resourceClaimStatuses": [mine]}) if made else (mine, {})
    other = {"name": "x", "resourceClaimName": "other"}
    asked = pod(status=status, containers=containers, resourceClaims=[own, other])
    [held] = read_pod(asked, view, [claim([{"driver": DRIVER, "device": "gpu-0"}])]).held
    assert (held.uuid, held.container) == (A, container)


def test_a_claim_holds_until_it_is_deallocated() -> None:
    """A claim uses its device even after its pod has ended, or without a pod."""
    view = read(resource_slice([card(0, A)]))
    given = claim([{"driver": DRIVER, "device": "gpu-0"}])
    ended = read_pod(pod(status={"phase": "Succeeded"}), view, [given])
    assert [each.slice for each in ended.holding] == [DeviceSlice(A, 40960, 1000)]
    assert len(read_claim(claim([{"driver": DRIVER, "device": "gpu-0"}], users=[]), view).held) == 1


def test_a_claim_of_several_pods_is_held_by_the_first() -> None:
    """It is not counted twice."""
    view = read(resource_slice([card(0, A)]))
    shared = claim([{"driver": DRIVER, "device": "gpu-0"}], users=["pod-0", "pod-1"])
    assert read_pod(pod(), view, [shared]).held == ()


def test_slices_win_over_counting() -> None:
    """A card must not count twice; a node that offers both is reported."""
    view = read_node("alpha", node(allocatable={"nvidia.com/gpu": "1"}), [resource_slice([card(0, A)])])
    assert [device.uuid for device in view.node.devices] == [A]
    assert kinds(view) == [ProblemKind.UNCERTAIN]


def test_drivers_that_seaway_cannot_read_are_reported() -> None:
    """Other drivers, for example of network cards, are ignored."""
    view = read(resource_slice([listed("npu-0")], "ascend.project-hami.io"), resource_slice([listed("x")], "dra.net"))
    assert view.node.devices == ()
    assert kinds(view) == [ProblemKind.BROKEN]
