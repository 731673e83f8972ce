"""Reading cluster objects never raises, and reading a well-formed one restores its values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.kubernetes.device_plugins.assign import assign_devices
from seaway.adapters.kubernetes.device_plugins.dra import read_claim
from seaway.adapters.kubernetes.device_plugins.findings import MAX_CORE_MILLI, MAX_MIB, unhealthy
from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.pods import read_pod
from seaway.adapters.kubernetes.device_plugins.vendors import ENFLAME_KEY, METAX_KEY
from seaway.adapters.kubernetes.device_plugins.views import NodeView, ProblemKind
from seaway.adapters.kubernetes.objects.core import NodeObject, Part, PodObject
from seaway.adapters.kubernetes.objects.decode import Broken, UndecodableError, read_event, read_item, read_page
from seaway.adapters.kubernetes.objects.dra import ResourceClaim, ResourceSlice
from seaway.adapters.kubernetes.quantities import LARGEST, exact, integer, mebibytes, milli
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import MILLI_PER_PERCENT_POINT, Device, DeviceMode, MigProfile
from seaway.domain.errors import RejectedError
from seaway.scheduling.columns import NODE_CPU, NODE_GPU_CORE, NODE_GPU_MEMORY, NODE_LEFT
from seaway.scheduling.snapshot.snapshot import Snapshot

REGISTERS = [
    "hami.io/node-nvidia-register",
    "hami.io/node-dcu-register",
    "hami.io/node-amd-register",
    "hami.io/node-va-register",
    "hami.io/node-MR-V100-register",
    "hami.io/node-register-Ascend910B3",
    "hami.io/node-register-xpu",
    "volcano.sh/node-vgpu-register",
    METAX_KEY,
    ENFLAME_KEY,
]
RECORDS = ["hami.io/vgpu-devices-allocated", "hami.io/dcu-devices-allocated", "hami.io/kunlun-allocated"]
MIG_RECORD = "hami.io/vgpu-mig-allocations"
RESOURCES = [
    "cpu",
    "memory",
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-1g.10gb",
    "volcano.sh/vgpu-number",
    "cambricon.com/mlu.smlu.vcore",
    "cambricon.com/mlu.smlu.vmemory",
    "mthreads.com/sgpu-core",
    "kunlunxin.com/xpu",
    "metax-tech.com/gpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
]
LABELS = [
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.replicas",
    "nvidia.com/mig.strategy",
    "nvidia.com/mig-1g.10gb.memory",
    "nvidia.com/mig-1g.10gb.replicas",
]
WORDS = [
    "id", "uuid", "index", "count", "devmem", "devcore", "type", "numa", "mode", "mig", "health", "migProfiles", "name",
    "memoryMB", "core", "sliceCount", "placements", "placement", "start", "size", "containerIndex", "deviceIndex",
    "gpuUUID", "profile", "profiles", "devices", "capacity", "totalDevCount", "totalVRam", "1g.5gb", "hami-core",
    "GPU-a",
]  # fmt: skip

words = st.sampled_from(WORDS) | st.text(max_size=6)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=8),
    max_leaves=25,
)
lines = st.lists(st.text(",:;[]-0123456789aGPU", max_size=25) | words, max_size=8).map(",".join)
anything = st.text(max_size=60) | lines | json_values.map(json.dumps)
amounts = st.text("0123456789.-+eEmkKMGi", max_size=8) | st.integers(-5, 5000).map(str) | st.integers() | st.floats()
numbers = st.integers(0, 100).map(str) | st.text(max_size=8)
ids = st.uuids().map(lambda uuid: f"GPU-{uuid}")
int32 = st.integers(0, (1 << 31) - 1)


def decoded(value: Any, kind: type[Part]) -> Any:  # noqa: ANN401
    """Decode an object; invalid values are left to the tests of decoding."""
    return msgspec.convert(value, kind)


def noted(annotations: dict[str, str], allocatable: dict[str, Any], labels: dict[str, str]) -> NodeView:
    """Read a node; the result must be valid for a fleet."""
    node = NodeObject()
    value = {
        "metadata": {"name": "n1", "annotations": annotations, "labels": labels},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    node = decoded(value, NodeObject)
    view = read_node("alpha", node)
    countable(view)
    assert [access.uuid for access in view.accesses] == [device.uuid for device in view.node.devices]
    return view


def countable(view: NodeView) -> None:
    """Create a snapshot of a node: no value or sum may be too large for the engine.

    A node that accepts no new jobs has a reason, and no other node has one.
    """
    arrays = Snapshot(Fleet((Cluster("alpha", (view.node,)),))).arrays
    usable = [each for each in view.node.devices if each.healthy and not each.cordoned] if view.node.ready else []
    assert arrays.nodes[NODE_GPU_MEMORY, 0] == sum(each.memory_mib for each in usable)
    assert arrays.nodes[NODE_GPU_CORE, 0] == sum(each.core_milli for each in usable)
    assert arrays.nodes[NODE_CPU, 0] <= arrays.nodes[NODE_LEFT, 0]
    assert all((each.healthy and not each.cordoned) == (not each.reason) for each in view.node.devices)


def with_cards(register: str, shares: int) -> NodeView:
    """Read a node with this register of NVIDIA's cards."""
    return noted({REGISTERS[0]: register}, {"nvidia.com/gpu": str(shares)}, {})


@given(
    st.dictionaries(st.sampled_from([*REGISTERS, "hami.io/node-handshake", "hami.io/device-cordon"]), anything),
    st.dictionaries(st.sampled_from(RESOURCES), amounts),
    st.dictionaries(st.sampled_from(LABELS), numbers | st.just("NVIDIA-A100-MIG-1g.10gb")),
)
def test_no_node_raises(annotations: dict[str, str], allocatable: dict[str, Any], labels: dict[str, str]) -> None:
    """Reading a node accepts any annotations, status and labels."""
    noted(annotations, allocatable, labels)


@given(
    st.dictionaries(st.sampled_from([*RECORDS, MIG_RECORD, "volcano.sh/vgpu-ids-new"]), anything),
    st.dictionaries(st.sampled_from(RESOURCES), amounts),
    st.integers(0, 3),
    st.booleans(),
)
def test_no_pod_raises(annotations: dict[str, str], requests: dict[str, Any], init: int, known: bool) -> None:
    """Reading a pod accepts any records and requests."""
    view = with_cards("GPU-a,10,100,100,T4,0,true,0,hami-core:", 10) if known else None
    notes = {"hami.io/vgpu-node": "n1", "volcano.sh/vgpu-node": "n1", **annotations}
    containers = [{"name": "c", "resources": {"limits": requests}}]
    spec = {"nodeName": "n1", "containers": containers, "initContainers": containers * init, "overhead": requests}
    found = read_pod(decoded({"metadata": {"annotations": notes}, "spec": spec}, PodObject), view)
    assert all(each.memory_mib >= 0 and each.core_milli >= 0 for each in found.held)


attributes = st.dictionaries(
    st.sampled_from(["type", "uuid", "profile", "productName", "minor", "numa"]),
    st.sampled_from(["gpu", "mig", "hami-gpu", "1g.5gb", "", "x y"]).map(lambda text: {"string": text})
    | st.integers().map(lambda number: {"int": number}),
)
listed = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["gpu-0", "gpu-1", "gpu-0-mig-1g5gb-19-0", "hami-gpu-0", "gpu-99999", ""]),
        "attributes": attributes,
        "capacity": st.dictionaries(st.sampled_from(["memory", "cores"]), amounts.map(lambda value: {"value": value})),
        "consumesCounters": st.lists(
            st.dictionaries(st.sampled_from([f"memory-slice-{i}" for i in range(9)]), st.just({"value": "1"})).map(
                lambda counters: {"counterSet": "gpu-0-counter-set", "counters": counters}
            ),
            max_size=2,
        ),
        "allowMultipleAllocations": st.booleans(),
    }
)
slices = st.fixed_dictionaries(
    {
        "metadata": st.sampled_from(["a", "b"]).map(lambda name: {"name": name}),
        "spec": st.fixed_dictionaries(
            {
                "driver": st.sampled_from(["gpu.nvidia.com", "hami-core-gpu.project-hami.io", "x"]),
                "nodeName": st.just("n1"),
                "pool": st.fixed_dictionaries(
                    {"name": st.just("n1"), "generation": st.integers(0, 1), "resourceSliceCount": st.just(1)}
                ),
                "devices": st.lists(listed, max_size=6),
            }
        ),
    }
)
results = st.lists(
    st.fixed_dictionaries(
        {
            "driver": st.sampled_from(["gpu.nvidia.com", "hami-core-gpu.project-hami.io"]),
            "pool": st.just("n1"),
            "device": st.sampled_from(["gpu-0", "gpu-1", "gpu-0-mig-1g5gb-19-0", "hami-gpu-0"]),
            "consumedCapacity": st.dictionaries(st.sampled_from(["memory", "cores"]), amounts),
        }
    )
)


@given(st.lists(slices, max_size=3), results)
def test_no_slice_and_no_claim_raises(found: Sequence[Any], given_devices: Sequence[Any]) -> None:
    """Reading accepts any slices of drivers, and any allocations of claims."""
    node = decoded({"metadata": {"name": "n1"}}, NodeObject)
    view = read_node("alpha", node, [decoded(each, ResourceSlice) for each in found])
    countable(view)
    claim = decoded({"status": {"allocation": {"devices": {"results": given_devices}}}}, ResourceClaim)
    held = read_claim(claim, view).held
    assert {each.uuid for each in held} <= view.devices.keys()


@given(st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()))
def test_no_item_raises(data: bytes) -> None:
    """An item is decoded or broken; a page or an event is valid or not."""
    for kind in (NodeObject, PodObject, ResourceSlice, ResourceClaim):
        assert isinstance(read_item(data, kind), kind | Broken)
        try:
            page = read_page(b'{"items":[%s]}' % data, kind)
            read_event(data)
        except UndecodableError:
            continue
        assert len(page.items) + len(page.broken) <= max(1, data.count(b",") + 1)


@st.composite
def devices(draw: st.DrawFn) -> Device:
    """Generate a card as HAMi registers it."""
    mode = draw(st.sampled_from((DeviceMode.HAMI_CORE, DeviceMode.MIG, DeviceMode.MPS)))
    starts = draw(st.lists(st.integers(0, 6), min_size=1, max_size=7, unique=True))
    profile = MigProfile("1g.5gb", draw(st.integers(1, 90_000)), draw(st.integers(0, 100)) * 10, 1, 1, tuple(starts))
    return Device(
        draw(ids),
        draw(int32),
        f"NVIDIA {draw(st.text('ABCX0123456789', min_size=1, max_size=9))}",
        draw(st.integers(0, MAX_MIB)),
        core_milli=draw(st.integers(0, MAX_CORE_MILLI // 10)) * 10,
        share_limit=draw(st.integers(1, 100)),
        numa=draw(st.integers(0, 7)),
        healthy=(healthy := draw(st.booleans())),
        mode=mode,
        mig_profiles=(profile,) if mode is DeviceMode.MIG else (),
        mig_single_device=mode is DeviceMode.MIG,
        core_steps=100,
        reason="" if healthy else unhealthy(REGISTERS[0]),
    )


def as_json(device: Device) -> dict[str, Any]:
    """Write a card as HAMi v2.8 and later do: without zero and false values."""
    fields = {
        "id": device.uuid,
        "index": device.index,
        "count": device.share_limit,
        "devmem": device.memory_mib,
        "devcore": device.core_milli // MILLI_PER_PERCENT_POINT,
        "type": device.model,
        "numa": device.numa,
        "mode": device.mode.value,
        "health": device.healthy,
        "migProfiles": [
            {
                "name": profile.name,
                "memoryMB": profile.memory_mib,
                "core": profile.core_milli // 10,
                "sliceCount": profile.slice_count,
                "placements": [{"start": start, "size": profile.size} for start in profile.starts],
            }
            for profile in device.mig_profiles
        ],
    }
    return {key: value for key, value in fields.items() if value}


def as_line(device: Device) -> str:
    """Write a card as HAMi v2.5 to v2.7 did."""
    health = str(device.healthy).lower()
    return (
        f"{device.uuid},{device.share_limit},{device.memory_mib},{device.core_milli // MILLI_PER_PERCENT_POINT},"
        f"NVIDIA-{device.model},"
        f"{device.numa},{health},{device.index},{device.mode.value}:"
    )


@given(st.lists(st.tuples(int32, int32), max_size=9), st.sampled_from(["hami-core", "mig"]))
def test_a_card_too_large_to_count_with_is_left_out_alone(sizes: list[tuple[int, int]], mode: str) -> None:
    """The sum of the other cards can be counted, whatever the values; each card left out is reported."""
    cut = {"name": "1g.5gb", "sliceCount": 1, "placements": [{"start": 0, "size": 1}]}
    found = [
        {"id": f"GPU-{at}", "count": 10, "devmem": memory, "devcore": 100, "mode": mode, "health": True}
        | {"migProfiles": [cut | {"memoryMB": 4864, "core": cores}]}
        for at, (memory, cores) in enumerate(sizes)
    ]
    view = with_cards(json.dumps(found), 10 * len(sizes))
    fits = [memory <= MAX_MIB and (mode == "hami-core" or cores * 10 <= MAX_CORE_MILLI) for memory, cores in sizes]
    assert [each.uuid for each in view.node.devices] == [f"GPU-{at}" for at, each in enumerate(fits) if each]
    broken = [each for each in view.problems if each.kind is ProblemKind.BROKEN]
    assert len(broken) == fits.count(False)


cards = st.lists(devices(), max_size=6, unique_by=lambda device: device.uuid)


@given(cards)
def test_a_register_of_json_reads_back(written: list[Device]) -> None:
    """Every card reads back unchanged."""
    view = with_cards(json.dumps([as_json(device) for device in written]), 10_000)
    assert list(view.node.devices) == written


@given(cards)
def test_a_register_of_lines_reads_back(written: list[Device]) -> None:
    """Every card reads back unchanged; those in MIG mode have no profiles in lines."""
    written = [device for device in written if device.mode is not DeviceMode.MIG]
    view = with_cards("".join(as_line(device) for device in written), 10_000)
    assert list(view.node.devices) == written


@given(cards, json_values, st.integers(0, 6))
def test_a_broken_card_of_json_hides_no_neighbour(written: list[Device], junk: object, at: int) -> None:
    """A broken card between valid ones does not hide them, whatever it contains."""
    found: list[object] = [as_json(device) for device in written]
    found.insert(at, junk)
    view = with_cards(json.dumps(found), 10_000)
    assert set(written) <= set(view.node.devices)


@given(cards, st.text(st.characters(exclude_characters=":[", exclude_categories=["Cs"])), st.integers(0, 6))
def test_a_broken_line_hides_no_neighbour(written: list[Device], junk: str, at: int) -> None:
    """A broken line between valid ones does not hide them, whatever it contains."""
    written = [device for device in written if device.mode is not DeviceMode.MIG]
    found = [as_line(device) for device in written]
    found.insert(at, f"{junk}:")
    view = with_cards("".join(found), 10_000)
    assert set(written) <= set(view.node.devices)


taken = st.tuples(ids, int32, st.integers(0, 100))


@given(st.lists(st.lists(taken, max_size=3), min_size=1, max_size=4))
def test_a_record_adds_up_whatever_slots_are_left_out(slots: list[list[tuple[str, int, int]]]) -> None:
    """All containers that run in parallel count, whether empty slots are written or not."""
    texts = ["".join(f"{uuid},NVIDIA,{memory},{cores}:" for uuid, memory, cores in slot) + ";" for slot in slots]
    spec = {"containers": [{"name": f"c{i}"} for i in range(len(slots))]}
    expected = sorted((uuid, memory, cores * 10) for slot in slots for uuid, memory, cores in slot)
    for retained in (texts, [text for text in texts if text != ";"]):
        notes = {"hami.io/vgpu-node": "n1", RECORDS[0]: "".join(retained)}
        found = read_pod(decoded({"metadata": {"annotations": notes}, "spec": spec}, PodObject), None)
        assert sorted((each.uuid, each.memory_mib, each.core_milli) for each in found.held) == expected
        assert found.problems == ()


@given(st.lists(st.tuples(ids, int32), max_size=4), st.lists(st.tuples(ids, int32), max_size=4))
def test_init_containers_never_make_a_pod_hold_less(init: list[tuple[str, int]], app: list[tuple[str, int]]) -> None:
    """Of each card the larger count applies: never less than either, never more than both."""
    text = ";".join("".join(f"{uuid},NVIDIA,{memory},1:" for uuid, memory in slot) for slot in (init, app)) + ";"
    spec = {"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]}
    notes = {"hami.io/vgpu-node": "n1", RECORDS[0]: text}
    found = read_pod(decoded({"metadata": {"annotations": notes}, "spec": spec}, PodObject), None)
    for uuid in {uuid for uuid, _ in init + app}:
        held = sum(each.memory_mib for each in found.held if each.uuid == uuid)
        largest = max((memory for card, memory in init if card == uuid), default=0)
        together = sum(memory for card, memory in app if card == uuid)
        assert held == max(largest, together)


@given(st.lists(st.integers(0, 4), max_size=6), st.integers(0, 8), st.integers(1, 4))
def test_settling_gives_no_device_beyond_its_shares(pods: list[int], count: int, replicas: int) -> None:
    """Settling never exceeds the shares of a device, and gives the same result again."""
    amount = {"nvidia.com/gpu": str(count * replicas)}
    view = noted({}, amount, {"nvidia.com/gpu.replicas": str(replicas)})
    asked = {}
    for at, shares in enumerate(pods):
        containers = [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": str(shares)}}}]
        pod = decoded({"spec": {"nodeName": "n1", "containers": containers}}, PodObject)
        asked[str(at)] = read_pod(pod, view).held
    first = assign_devices(view, asked, {})
    names = {pod: [each.uuid for each in held] for pod, held in first.items()}
    given_out = [uuid for uuids in names.values() for uuid in uuids if uuid]
    assert all(given_out.count(uuid) <= replicas for uuid in view.devices)
    assert len(given_out) == min(sum(map(len, asked.values())), count * replicas)
    assert assign_devices(view, asked, names) == first


@given(amounts)
def test_no_quantity_raises_but_what_is_wrong(amount: str | float) -> None:
    """Rounding up and down never differ by more than one."""
    try:
        value = exact(amount)
    except RejectedError:
        return
    assert 0 <= value <= LARGEST
    for read in (integer, milli, mebibytes):
        assert read(amount) - read(amount, down=True) in {0, 1}


@given(st.integers(0, LARGEST), st.sampled_from(["", "Ki", "Mi"]))
def test_whole_quantities_read_back(number: int, unit: str) -> None:
    """A whole quantity reads back exactly."""
    size = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20}[unit]
    number //= size
    assert integer(f"{number}{unit}") == number * size
