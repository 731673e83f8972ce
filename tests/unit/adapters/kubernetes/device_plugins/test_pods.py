"""Devices of pods in the records of HAMi and Volcano, and their other resources."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from seaway.adapters.kubernetes.device_plugins.assign import assign_devices
from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.pods import MAX_COUNTED, node_of, read_pod
from seaway.adapters.kubernetes.device_plugins.views import Held, PluginOptions, ProblemKind
from seaway.domain.placement import DeviceSlice
from tests.unit.adapters.kubernetes.device_plugins.samples import (
    CARDS,
    MIG_CARD,
    RECORD,
    A,
    B,
    C,
    hami,
    node,
    pod,
    recorded,
)

MIG_RECORD = "hami.io/vgpu-mig-allocations"
INIT = {"name": "i0"}
SIDECAR = {"name": "i0", "restartPolicy": "Always"}


def short(held: Iterable[Held]) -> list[tuple[int, str, int, int]]:
    """Return shares as tuples."""
    return [(each.container, each.uuid, each.memory_mib, each.core_milli) for each in held]


def test_a_record_lists_devices_container_by_container() -> None:
    """Init containers come first; percent of cores become thousandths; the last semicolon ends the last container."""
    text = f";{A},NVIDIA,8000,30:{B},NVIDIA,8000,30:;;{A},NVIDIA,4000,10:;"
    view = read_pod(pod(recorded(text), apps=3, init=[INIT]), hami())
    assert short(view.held) == [(1, A, 8000, 300), (1, B, 8000, 300), (3, A, 4000, 100)]
    assert (view.node, view.alive, view.problems) == ("n1", True, ())


def test_containers_that_a_record_leaves_out_do_not_hide_allocations() -> None:
    """HAMi v2.10.0 writes no empty slots, so the one slot here is the app's and not the init container's."""
    done = {"initContainerStatuses": [{"name": "i0", "state": {"terminated": {"exitCode": 0}}}]}
    view = read_pod(pod(recorded(f"{A},NVIDIA,8000,30:;"), init=[INIT], status=done), hami())
    assert short(view.held) == [(-1, A, 8000, 300)]


@pytest.mark.parametrize(
    ("init", "app", "held"), [((8000, 30), (4000, 50), (8000, 500)), ((1000, 0), (4000, 50), (4000, 500))]
)
def test_init_containers_share_with_the_others(
    init: tuple[int, int], app: tuple[int, int], held: tuple[int, int]
) -> None:
    """They run before: of each card the larger counts, memory and cores separately, and as one share."""
    text = f"{A},NVIDIA,{init[0]},{init[1]}:;{A},NVIDIA,{app[0]},{app[1]}:;"
    assert short(read_pod(pod(recorded(text), init=[INIT]), hami()).held) == [(1, A, *held)]


ENDED = {"initContainerStatuses": [{"name": "i0", "state": {"terminated": {"exitCode": 0}}}]}


@pytest.mark.parametrize("status", [{}, ENDED], ids=["running", "ended"])
def test_under_hami_2_9_init_containers_add_to_the_others(status: dict[str, Any]) -> None:
    """Its scheduler reserves their devices while the pod lives; its register has scores of pairs in every card."""
    text = f"{A},NVIDIA,8000,30:;{A},NVIDIA,4000,50:;"
    older: list[dict[str, Any]] = [{**card, "devicepairscore": {}} for card in CARDS]
    view = read_pod(pod(recorded(text), init=[INIT], status=status), hami(older))
    assert short(view.held) == [(0, A, 8000, 300), (1, A, 4000, 500)]


def test_a_register_with_a_broken_card_tells_its_version_too() -> None:
    """Cards that are decoded one by one report it too."""
    text = f"{A},NVIDIA,8000,30:;{A},NVIDIA,4000,50:;"
    cards = [{**CARDS[0], "devicepairscore": {"uuid": A, "score": {B: 1}}}, {**CARDS[1], "id": 7}]
    assert short(read_pod(pod(recorded(text), init=[INIT]), hami(cards)).held) == [(0, A, 8000, 300), (1, A, 4000, 500)]


def test_where_no_one_tells_the_version_init_containers_add_too() -> None:
    """Other vendors' registers are alike in v2.9 and v2.10: resources free by the sum are free for both."""
    register = {
        "hami.io/node-register-Ascend910B3": json.dumps([{**CARDS[0], "id": "n1-Ascend910B3-0", "devcore": 20}])
    }
    view = read_node("alpha", node(register, {"huawei.com/Ascend910B3": "10"}))
    text = "n1-Ascend910B3-0,Ascend910B3,8000,5:;n1-Ascend910B3-0,Ascend910B3,4000,5:;"
    held = read_pod(pod(recorded(text, "hami.io/Ascend910B3-devices-allocated"), init=[INIT], status=ENDED), view).held
    assert [each.memory_mib for each in held] == [8000, 4000]


def test_what_a_pod_with_init_containers_holds_depends_on_its_node() -> None:
    """The pod is read again with its node, whose version decides how they count; others' records do not change."""
    text = f"{A},NVIDIA,8000,30:;{A},NVIDIA,4000,50:;"
    assert not read_pod(pod(recorded(text), init=[INIT]), None).final
    assert read_pod(pod(recorded(text), apps=2), None).final


def test_of_several_init_containers_the_largest_counts() -> None:
    """They run one after another; a card that only they use is one share."""
    text = f"{A},NVIDIA,1000,10:;{A},NVIDIA,3000,5:;;"
    assert short(read_pod(pod(recorded(text), init=[INIT, {"name": "i1"}]), hami()).held) == [(0, A, 3000, 100)]


def test_containers_that_run_together_add_up() -> None:
    """Each is a share of its own."""
    text = f"{A},NVIDIA,1000,10:;{A},NVIDIA,3000,5:;"
    assert short(read_pod(pod(recorded(text), apps=2), hami()).held) == [(0, A, 1000, 100), (1, A, 3000, 50)]


def test_init_containers_that_have_ended_hold_nothing() -> None:
    """All of them must have succeeded."""
    text = f"{A},NVIDIA,8000,30:;{B},NVIDIA,4000,10:;"
    for code, held in ((0, [(1, B, 4000, 100)]), (1, [(1, B, 4000, 100), (0, A, 8000, 300)])):
        ended = {"initContainerStatuses": [{"name": "i0", "state": {"terminated": {"exitCode": code}}}]}
        assert short(read_pod(pod(recorded(text), init=[INIT], status=ended), hami()).held) == held


def test_sidecars_run_beside_the_others() -> None:
    """They are listed among the init containers."""
    text = f"{A},NVIDIA,8000,30:;{A},NVIDIA,4000,10:;"
    held = read_pod(pod(recorded(text), init=[SIDECAR]), hami()).held
    assert short(held) == [(0, A, 8000, 300), (1, A, 4000, 100)]


def test_devices_without_an_id_are_passed_over() -> None:
    """HAMi v2.5 wrote them for containers without devices."""
    view = read_pod(pod(recorded(f",,0,0:;{A},NVIDIA,500,5:;"), apps=2), hami())
    assert short(view.held) == [(1, A, 500, 50)]
    assert view.problems == ()


def test_brackets_behind_a_card_name_an_instance() -> None:
    """HAMi up to v2.9 has this format; the whole card is used."""
    assert short(read_pod(pod(recorded(f"{A}[1-0],NVIDIA,10240,0:;")), hami()).held) == [(0, A, 10240, 0)]


def test_what_is_still_to_be_allocated_is_not_held() -> None:
    """It is a list of work, and the plugin empties it."""
    record = {"hami.io/vgpu-node": "n1", "hami.io/vgpu-devices-to-allocate": f"{A},NVIDIA,500,5:;"}
    assert read_pod(pod(record), hami()).held == ()


def test_a_record_without_a_node_is_not_held() -> None:
    """HAMi counts pods only after it chose a node."""
    assert read_pod(pod({RECORD: f"{A},NVIDIA,500,5:;"}), hami()).held == ()


@pytest.mark.parametrize(
    ("phase", "alive"),
    [("Pending", True), ("Running", True), ("Unknown", True), ("Succeeded", False), ("Failed", False)],
)
def test_devices_are_held_until_the_pod_ends(phase: str, alive: bool) -> None:
    """Earlier devices stay known; bind-phase and deletion do not matter."""
    record = recorded(f"{A},NVIDIA,500,5:;", **{"hami.io/bind-phase": "failed"})
    view = read_pod(pod(record, status={"phase": phase}), hami())
    assert view.alive is alive
    assert len(view.held) == 1
    assert len(view.holding) == alive


def test_devices_are_held_before_the_pod_is_bound() -> None:
    """They count from HAMi's decision."""
    waiting = pod(recorded(f"{A},NVIDIA,500,5:;"), nodeName="", status={"phase": "Pending"})
    assert node_of(waiting) == "n1"
    assert short(read_pod(waiting, hami()).holding) == [(0, A, 500, 50)]


@pytest.mark.parametrize("broken", ["x", "GPU-1,NVIDIA,5", "GPU-1,NVIDIA,many,5", "GPU-1,NVIDIA,-1,5", "GPU 1,N,1,1"])
def test_a_broken_device_hides_no_neighbour(broken: str) -> None:
    """It is left out and reported."""
    view = read_pod(pod(recorded(f"{A},NVIDIA,500,5:{broken}:{B},NVIDIA,500,5:;")), hami())
    assert [each.uuid for each in view.held] == [A, B]
    assert [trouble.kind for trouble in view.problems] == [ProblemKind.BROKEN]


def test_more_of_a_device_than_there_can_be_is_left_out_alone() -> None:
    """It is reported, as is more CPU or memory than any node has."""
    text = f"{A},NVIDIA,8000,300000000:{B},NVIDIA,8000,30:;"
    view = read_pod(pod(recorded(text), limits={"cpu": "2M", "memory": "3Pi"}), hami())
    assert short(view.held) == [(0, B, 8000, 300)]
    assert (view.cpu_milli, view.memory_mib) == (0, 0)
    assert [(each.kind, each.where) for each in view.problems] == [
        (ProblemKind.BROKEN, where) for where in (A, "cpu", "memory")
    ]


def test_devices_that_the_node_does_not_know_are_held() -> None:
    """All of them count if the node is not known."""
    record = recorded(f"GPU-gone,NVIDIA,500,5:{C},NVIDIA,500,5:;")
    for view in (hami(), None):
        assert short(read_pod(pod(record), view).held) == [(0, "GPU-gone", 500, 50), (0, C, 500, 50)]


def instance(container: int, place: int, profile: str, start: int, uuid: str = A, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Create an entry of HAMi's record of MIG instances."""
    size = 4 if profile.startswith("3g") else 1
    return {
        "containerIndex": container,
        "deviceIndex": place,
        "gpuUUID": uuid,
        "profile": profile,
        "placement": {"start": start, "size": size},
        **more,
    }


def test_mig_instances_have_profile_and_start() -> None:
    """They are known before and after the plugin creates them; several may be on one card."""
    made: dict[str, Any] = {"migUUID": "MIG-1", "gpuInstanceID": 4, "computeInstanceID": 0}
    entries = [instance(0, 0, "3g.20gb", 4, **made), instance(0, 1, "1g.5gb", 0)]
    record = recorded(f"{A},NVIDIA,20096,43:{A},NVIDIA,4864,15:;", **{MIG_RECORD: json.dumps(entries)})
    held = read_pod(pod(record), hami([MIG_CARD])).held
    assert [each.slice for each in held] == [
        DeviceSlice(A, 20096, 430, "3g.20gb", 4),
        DeviceSlice(A, 4864, 150, "1g.5gb", 0),
    ]


def test_mig_instances_are_found_by_their_card_when_places_do_not_fit() -> None:
    """Slots may have been left out."""
    record = recorded(f"{A},NVIDIA,4864,15:;", **{MIG_RECORD: json.dumps([instance(1, 0, "1g.5gb", 6)])})
    view = read_pod(pod(record, apps=2), hami([MIG_CARD]))
    assert [(each.mig_profile, each.mig_start) for each in view.held] == [("1g.5gb", 6)]
    assert view.problems == ()


def test_a_mig_instance_alone_is_held() -> None:
    """Its profile defines its amounts."""
    record = recorded(";", **{MIG_RECORD: json.dumps([instance(0, 0, "1g.5gb", 6)])})
    view = read_pod(pod(record), hami([MIG_CARD]))
    assert [each.slice for each in view.held] == [DeviceSlice(A, 4864, 150, "1g.5gb", 6)]
    assert [trouble.kind for trouble in view.problems] == [ProblemKind.UNCERTAIN]


@pytest.mark.parametrize("broken", ["{", "{}", "[3]", '[{"gpuUUID":"x"}]', '[{"placement":{}}]'])
def test_a_broken_record_of_instances_leaves_the_devices(broken: str) -> None:
    """They count, without profile."""
    view = read_pod(pod(recorded(f"{A},NVIDIA,4864,15:;", **{MIG_RECORD: broken})), hami([MIG_CARD]))
    assert [(each.uuid, each.mig_profile) for each in view.held] == [(A, "")]
    assert [trouble.kind for trouble in view.problems] == [ProblemKind.BROKEN]


@pytest.mark.parametrize(
    "key",
    [
        "hami.io/dcu-devices-allocated",
        "hami.io/cambricon-mlu-devices-allocated",
        "hami.io/xpu-devices-allocated",
        "hami.io/Ascend910B3-devices-allocated",
        "hami.io/kunlun-allocated",
        "hami.io/aws-neuron-devices-allocated",
    ],
)
def test_every_vendor_has_a_record_of_its_own(key: str) -> None:
    """All use the same format."""
    assert short(read_pod(pod(recorded("X1,DCU,500,5:;", key)), None).held) == [(0, "X1", 500, 50)]


def test_cores_of_other_vendors_are_a_share_of_their_card() -> None:
    """A card of 20 cores, of which 5 are used, is used to a quarter; ids have their node as prefix."""
    register = '[{"id":"Ascend910B3-0","count":4,"devmem":65536,"devcore":20,"type":"Ascend910B3","health":true}]'
    view = read_node("alpha", node({"hami.io/node-register-Ascend910B3": register}))
    record = recorded("Ascend910B3-0,Ascend910B3,16384,5:;", "hami.io/Ascend910B3-devices-allocated")
    assert short(read_pod(pod(record), view).held) == [(0, "alpha/n1/Ascend910B3-0", 16384, 250)]


def test_cores_of_neuron_are_a_mask() -> None:
    """Each core has one bit."""
    view = read_node("alpha", node(allocatable={"aws.amazon.com/neuron": "1", "aws.amazon.com/neuroncore": "2"}))
    record = recorded("n1-AWSNeuron-0,AWSNeuron,0,2:;", "hami.io/aws-neuron-devices-allocated")
    assert short(read_pod(pod(record), view).held) == [(0, "alpha/n1-AWSNeuron-0", 0, 500)]


def test_volcano_has_no_semicolon_behind_the_last_container() -> None:
    """Its memory has units of its factor."""
    register = {"volcano.sh/node-vgpu-register": f"{A},10,160,NVIDIA A10,true,hami-core:"}
    view = read_node(
        "a", node(register, {"volcano.sh/vgpu-number": "10"}), options=PluginOptions(volcano_memory_factor=100)
    )
    record = {"volcano.sh/vgpu-node": "n1", "volcano.sh/vgpu-ids-new": f"{A},NVIDIA,40,25:;"}
    assert short(read_pod(pod(record, apps=2), view).held) == [(0, A, 4000, 250)]


def test_nvidias_plugin_tells_numbers_only() -> None:
    """A bound pod uses as many shares of unknown cards."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-A10", "nvidia.com/gpu.memory": "24000", "nvidia.com/gpu.count": "2"}
    whole = read_node("alpha", node(allocatable={"nvidia.com/gpu": "2"}, labels=labels))
    asked = pod(limits={"nvidia.com/gpu": "2"})
    assert read_pod(asked, whole).held == (Held(0, "", 24000, 1000, resource="nvidia.com/gpu"),) * 2
    sliced = read_node(
        "alpha", node(allocatable={"nvidia.com/gpu": "8"}, labels={**labels, "nvidia.com/gpu.replicas": "4"})
    )
    assert read_pod(asked, sliced).held == (Held(0, "", 6000, 250, resource="nvidia.com/gpu"),) * 2
    assert read_pod(pod(limits={"nvidia.com/gpu": "2"}, nodeName=""), whole).held == ()


@pytest.mark.parametrize(
    ("init", "sidecars", "apps", "holders"),
    [
        (0, 0, (1, 0), [2]),
        (0, 0, (0, 1), [3]),
        (0, 0, (1, 2), [2, 3, 3]),
        (1, 0, (1, 0), [2]),
        (2, 0, (1, 0), [2, 0]),
        (1, 0, (0, 0), [0]),
        (1, 1, (1, 0), [2, 1]),
    ],
)
def test_counted_devices_are_held_by_the_containers_that_ask_for_them(
    init: int, sidecars: int, apps: tuple[int, int], holders: list[int]
) -> None:
    """Each has its own request; an init container also has what it requests beyond the others."""
    asked = [{"resources": {"limits": {"nvidia.com/gpu": number}}} for number in (init, sidecars, *apps)]
    first, sidecar, *others = ({"name": f"c{at}", **each} for at, each in enumerate(asked))
    view = read_node("alpha", node(allocatable={"nvidia.com/gpu": "4"}))
    held = read_pod(pod(init=[first, {**sidecar, "restartPolicy": "Always"}], containers=others), view).held
    assert [each.container for each in held] == holders


def test_a_container_that_requests_for_more_than_there_can_be_fills_no_memory() -> None:
    """It takes no time either; the number is limited."""
    view = read_node("alpha", node(allocatable={"nvidia.com/gpu": "4"}))
    assert len(read_pod(pod(limits={"nvidia.com/gpu": "2000000000"}), view).held) == MAX_COUNTED


def test_shares_of_unknown_cards_are_spread_and_stay() -> None:
    """Each share gets a card, healthy and emptier ones first; a pod keeps its earlier cards."""
    view = read_node("alpha", node(allocatable={"nvidia.com/gpu": "2"}))
    one, two = "alpha/n1/gpu-0", "alpha/n1/gpu-1"
    share = Held(-1, "", 0, 1000, resource="nvidia.com/gpu")
    first = assign_devices(view, {"p": [share]}, {})
    assert [each.uuid for each in first["p"]] == [one]
    later = assign_devices(view, {"q": [share], "p": [share], "r": [share]}, {"p": [one]})
    assert {pod: held[0].uuid for pod, held in later.items()} == {"q": two, "p": one, "r": ""}


def amounts(**requests: str) -> dict[str, Any]:
    """Create a container with these requests."""
    return {"name": "x", "resources": {"requests": requests}}


@pytest.mark.parametrize(
    ("init", "apps", "cpu_milli", "mib"),
    [
        ([], [amounts(cpu="500m", memory="1Gi"), amounts(cpu="1", memory="512Mi")], 1500, 1536),
        ([amounts(cpu="4", memory="1Mi")], [amounts(cpu="1", memory="2Gi")], 4000, 2048),
        ([{**amounts(cpu="1"), "restartPolicy": "Always"}, amounts(cpu="3")], [amounts(cpu="2")], 4000, 0),
        ([amounts(cpu="3"), {**amounts(cpu="1"), "restartPolicy": "Always"}], [amounts(cpu="1")], 3000, 0),
        ([], [{"name": "x", "resources": {"limits": {"cpu": "2"}}}], 2000, 0),
        ([], [amounts(cpu="lots", memory="1Gi")], 0, 1024),
    ],
)
def test_cpu_and_memory_are_what_kubernetes_reserves(
    init: list[dict[str, Any]], apps: list[dict[str, Any]], cpu_milli: int, mib: int
) -> None:
    """The larger of init containers and the others counts; sidecars count from their position."""
    view = read_pod(pod(initContainers=init, containers=apps), None)
    assert (view.cpu_milli, view.memory_mib) == (cpu_milli, mib)


def test_overhead_comes_on_top() -> None:
    """Amounts of the whole pod replace those of its containers."""
    view = read_pod(
        pod(
            containers=[amounts(cpu="1", memory="1Gi")], overhead={"cpu": "250m"}, resources={"requests": {"cpu": "3"}}
        ),
        None,
    )
    assert (view.cpu_milli, view.memory_mib) == (3250, 1024)
