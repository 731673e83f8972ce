"""Device filters of the vGPU layer for devices that are not in MIG mode."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seaway.domain.device import Device, DeviceMode
from seaway.domain.job import GpuTopology, Job
from seaway.testing.plugins import gpu, job, node
from tests.unit.scheduling.requesting import place, refusals, slices, snapshot_of

FITS = ""
MEMORY = "not enough free GPU memory on one device"
CORES = "not enough free GPU cores on one device"
TYPE = "GPU model or mode not allowed"
UUID = "GPU excluded by its UUID"
WHOLE = "GPUs in use"
SMALL = "too little memory on each GPU"


def refusal(device: Device, asked: Job, *running: Job) -> str:
    """Return the reason of a node with just `device`, which `running` jobs use, to reject `demand`."""
    snapshot = snapshot_of(node(device))
    assert len(place(snapshot, *running)) == len(running)
    return refusals(snapshot, asked)[0]


def test_job_without_gpu_needs_no_device() -> None:
    """A job without GPUs fits on a node without devices."""
    assert refusals(snapshot_of(node()), job(cpu_milli=1)) == [FITS]


def test_node_without_devices_rejects_gpu_job() -> None:
    """The reason is the number of GPUs."""
    assert refusals(snapshot_of(node()), job(gpus=1)) == ["no GPU"]


def test_container_never_gets_a_device_twice() -> None:
    """A node with too few devices rejects the job, even when one device has enough room."""
    assert refusal(gpu(), job(gpus=2, gpu_memory_mib=1)) == "too few GPUs"


@pytest.mark.parametrize("closed", [{"healthy": False}, {"cordoned": True}])
def test_closed_device_rejects_slices(closed: dict[str, bool]) -> None:
    """A device that is unhealthy or cordoned takes no new slice."""
    assert refusal(gpu(**closed), job(gpus=1, gpu_memory_mib=1)) == "GPU not healthy or cordoned"


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"use_types": ["a100"]}, FITS),
        ({"use_types": ["H100", "sxm4"]}, FITS),
        ({"use_types": ["H100"]}, TYPE),
        ({"avoid_types": ["A100"]}, TYPE),
        ({"avoid_types": ["H100"]}, FITS),
        ({"models": {"nvidia a100-sxm4-80gb"}}, FITS),
        ({"models": {"A100"}}, FITS),
        ({"models": {"A1000", "A10"}}, TYPE),
        ({"excluded": frozenset({"nvidia a100-sxm4-80gb"})}, TYPE),
        ({"vendors": {"NVIDIA"}}, FITS),
        ({"vendors": {"Ascend"}}, TYPE),
        ({"modes": {DeviceMode.HAMI_CORE}}, FITS),
        ({"modes": {DeviceMode.MIG, DeviceMode.MPS}}, TYPE),
    ],
)
def test_device_kind(rules: dict[str, Any], reason: str) -> None:
    """Names of types and models cover products, without case; excluded products match as a whole."""
    assert refusal(gpu(), job(gpus=1, **rules)) == reason


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"use_uuids": {"GPU-1"}}, FITS),
        ({"use_uuids": {"GPU-2"}}, UUID),
        ({"avoid_uuids": {"GPU-1"}}, UUID),
        ({"avoid_uuids": {"GPU-2"}}, FITS),
        ({"use_uuids": {"GPU-2"}, "use_types": ["H100"]}, TYPE),
        ({"use_uuids": {"GPU-2"}, "use_types": ["A100"]}, UUID),
    ],
)
def test_device_uuid(rules: dict[str, Any], reason: str) -> None:
    """UUIDs are compared as a whole, and the type is checked first."""
    assert refusal(gpu(uuid="GPU-1"), job(gpus=1, **rules)) == reason


def test_share_limit_counts_containers() -> None:
    """A device with the maximum number of containers has no free slot."""
    small = job(gpus=1, gpu_memory_mib=1)
    assert refusal(gpu(share_limit=2), small, small) == FITS
    assert refusal(gpu(share_limit=2), small, small, small) == "no slot left on one GPU"


def test_exclusive_job_needs_an_idle_device() -> None:
    """The policy mutex rejects a device that any container uses."""
    small, alone = job(gpus=1, gpu_memory_mib=1), job(gpus=1, gpu_memory_mib=1, exclusive=True)
    assert refusal(gpu(), alone) == FITS
    assert refusal(gpu(), alone, small) == "GPU in use, but requested exclusively"


def test_later_jobs_may_share_the_device_of_an_exclusive_job() -> None:
    """Exclusive use is checked at placement only."""
    small, alone = job(gpus=1, gpu_memory_mib=1), job(gpus=1, gpu_memory_mib=1, exclusive=True)
    assert refusal(gpu(), small, alone) == FITS


def test_slice_fits_in_free_memory_of_one_device() -> None:
    """A slice fits up to exactly the free memory."""
    half = job(gpus=1, gpu_memory_mib=600)
    assert refusal(gpu(memory_mib=1_000), job(gpus=1, gpu_memory_mib=400), half) == FITS
    assert refusal(gpu(memory_mib=1_000), job(gpus=1, gpu_memory_mib=401), half) == MEMORY


def test_memory_of_two_devices_does_not_add_up() -> None:
    """A slice is on one device."""
    snapshot = snapshot_of(node(gpu(memory_mib=1_000), gpu(memory_mib=1_000)))
    assert refusals(snapshot, job(gpus=1, gpu_memory_mib=1_001)) == [SMALL]


def test_percent_is_of_each_device_and_rounded_down() -> None:
    """A percentage refers to the device's own memory, in whole MiB."""
    [taken] = slices(snapshot_of(node(gpu(memory_mib=1_999))), job(gpus=1, gpu_memory_percent=50))
    assert (taken.memory_mib, taken.core_milli) == (999, 0)


def test_memory_in_mib_overrides_percent() -> None:
    """A percentage is ignored when there is an amount in MiB."""
    asked = job(gpus=1, gpu_memory_mib=10, gpu_memory_percent=100)
    [taken] = slices(snapshot_of(node(gpu(memory_mib=1_000))), asked)
    assert (taken.memory_mib, taken.core_milli) == (10, 0)


def test_default_memory_is_the_whole_device() -> None:
    """Without either amount of memory a job takes all memory, and all cores with it."""
    [taken] = slices(snapshot_of(node(gpu(memory_mib=1_000))), job(gpus=1))
    assert (taken.memory_mib, taken.core_milli) == (1_000, 1_000)


def test_explicit_cores_remain_with_default_memory() -> None:
    """Cores have a default only when they are not set."""
    [taken] = slices(snapshot_of(node(gpu(memory_mib=1_000))), job(gpus=1, gpu_milli=300))
    assert (taken.memory_mib, taken.core_milli) == (1_000, 300)


def test_slice_fits_in_free_cores_of_one_device() -> None:
    """A slice fits up to exactly the free cores."""
    running = job(gpus=1, gpu_memory_mib=1, gpu_milli=600)
    assert refusal(gpu(), job(gpus=1, gpu_memory_mib=1, gpu_milli=400), running) == FITS
    assert refusal(gpu(), job(gpus=1, gpu_memory_mib=1, gpu_milli=401), running) == CORES


def test_excess_cores_count_as_the_whole_device() -> None:
    """More than 1,000 thousandths mean one whole device."""
    [taken] = slices(snapshot_of(node(gpu())), job(gpus=1, gpu_memory_mib=1, gpu_milli=5_000))
    assert taken.core_milli == 1_000


@pytest.mark.parametrize(
    ("steps", "asked", "taken"), [(1_000, 333, 333), (100, 333, 340), (100, 1, 10), (20, 301, 350), (7, 300, 428)]
)
def test_cores_are_allocated_in_steps_of_the_device(steps: int, asked: int, taken: int) -> None:
    """A part of a step allocates all of it."""
    [share] = slices(snapshot_of(node(gpu(core_steps=steps))), job(gpus=1, gpu_memory_mib=1, gpu_milli=asked))
    assert share.core_milli == taken


def test_rounded_up_cores_have_to_fit() -> None:
    """Two slices of 33.3 % in whole points leave 32 points, which is less than a third slice needs."""
    third = job(gpus=1, gpu_memory_mib=1, gpu_milli=333)
    assert refusal(gpu(), third, third, third) == FITS
    assert refusal(gpu(core_steps=100), third, third) == FITS
    assert refusal(gpu(core_steps=100), third, third, third) == CORES


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ({"gpu_memory_mib": 1}, 256),
        ({"gpu_memory_mib": 256}, 256),
        ({"gpu_memory_mib": 300}, 512),
        ({"gpu_memory_percent": 60}, 512),
        ({"gpu_memory_percent": 1}, 256),
    ],
)
def test_memory_is_allocated_in_steps_of_the_device(asked: dict[str, Any], taken: int) -> None:
    """MiB are rounded up; percentages down, but to at least one step."""
    [share] = slices(snapshot_of(node(gpu(memory_mib=1_024, memory_step_mib=256))), job(gpus=1, **asked))
    assert share.memory_mib == taken


@pytest.mark.parametrize(
    ("shares", "asked", "taken"),
    [
        (1, {}, (81_559, 1_000)),
        (1, {"gpu_memory_mib": 8_000}, (81_559, 1_000)),
        (1, {"gpu_memory_mib": 81_559, "gpu_milli": 300}, (81_559, 1_000)),
        (1, {"gpu_memory_percent": 10}, (81_559, 1_000)),
        (4, {"gpu_memory_mib": 8_000}, (20_389, 250)),
        (4, {"gpu_memory_mib": 20_389}, (20_389, 250)),
        (4, {"gpu_memory_mib": 20_390, "gpu_milli": 251}, (40_779, 500)),
        (4, {"gpu_memory_percent": 30}, (40_779, 250)),
        (4, {}, (81_559, 1_000)),
    ],
)
def test_even_shares_are_indivisible(shares: int, asked: dict[str, Any], taken: tuple[int, int]) -> None:
    """A slice of such a device takes whole shares of memory and cores, at least one.

    Unmanaged pods hold whole shares too: with a single share, all of it.
    """
    card = gpu(memory_mib=81_559, share_limit=shares, even_shares=True)
    [share] = slices(snapshot_of(node(card)), job(gpus=1, **asked))
    assert (share.memory_mib, share.core_milli) == taken


def test_even_shares_can_all_be_allocated() -> None:
    """As many jobs fit as there are shares, with the remainder of the last MiB, and no more."""
    small = job(gpus=1, gpu_memory_mib=8_000)
    card = gpu(memory_mib=81_559, share_limit=4, even_shares=True)
    assert refusal(card, small, small, small, small) == FITS
    assert refusal(card, small, small, small, small, small) == "no slot left on one GPU"


@pytest.mark.parametrize("shares", [1, 4])
def test_demand_beyond_even_shares_is_rejected(shares: int) -> None:
    """Excess memory is rejected as memory, and cores beyond an instance as cores."""
    card = gpu(memory_mib=9_856, core_milli=142, share_limit=shares, even_shares=True)
    assert refusal(card, job(gpus=1, gpu_memory_mib=9_857)) == SMALL
    assert refusal(card, job(gpus=1, gpu_memory_mib=9_856, gpu_milli=143)) == CORES
    assert refusal(card, job(gpus=1, gpu_memory_mib=9_856, gpu_milli=142)) == FITS


def test_device_of_unknown_memory_is_allocated_whole() -> None:
    """Without known memory a job that requests no memory gets a device, and others are rejected."""
    card = gpu(memory_mib=0, share_limit=1, even_shares=True)
    assert refusal(card, job(gpus=1)) == FITS
    assert refusal(card, job(gpus=1, gpu_memory_mib=1)) == SMALL


def test_all_cores_need_an_idle_device() -> None:
    """A job for all cores is rejected where another container has a slice, even one without cores."""
    coreless = job(gpus=1, gpu_memory_mib=1)
    assert refusal(gpu(), job(gpus=1, gpu_memory_mib=1, gpu_milli=1_000), coreless) == WHOLE


def test_whole_device_is_rejected_for_its_use() -> None:
    """A busy device rejects a job for a whole one for its use, not for memory or cores; a small device for memory."""
    small, whole = job(gpus=1, gpu_memory_mib=1, gpu_milli=100), job(gpus=1)
    assert refusal(gpu(), whole, small) == WHOLE
    assert refusal(gpu(), whole, whole) == WHOLE
    assert refusal(gpu(memory_mib=1_000), job(gpus=1, gpu_memory_mib=1_001, gpu_milli=1_000), small) == SMALL


def test_job_without_cores_needs_a_device_with_free_cores() -> None:
    """A device with all cores allocated rejects a job without cores too; with free cores it may be shared."""
    coreless = job(gpus=1, gpu_memory_mib=1)
    assert refusal(gpu(), coreless, job(gpus=1, gpu_memory_mib=1, gpu_milli=600)) == FITS
    assert refusal(gpu(), coreless, job(gpus=1, gpu_memory_mib=1, gpu_milli=1_000)) == "all GPU cores taken"


def test_scaled_cores_may_be_shared_by_jobs_for_all_cores() -> None:
    """With cores scaled to two devices' worth, two jobs for a whole device's cores share one."""
    whole = job(gpus=1, gpu_memory_mib=1, gpu_milli=1_000)
    assert refusal(gpu(core_milli=2_000), whole, whole) == FITS
    assert refusal(gpu(core_milli=2_000), whole, whole, whole) == CORES


def test_same_numa_rejects_devices_of_different_numa_nodes() -> None:
    """With same_numa all devices have to be on one NUMA node; without, any will do."""
    snapshot = snapshot_of(node(gpu(numa=0), gpu(numa=1)), node(gpu(numa=0), gpu(numa=1), gpu(numa=1)))
    assert refusals(snapshot, job(gpus=2)) == [FITS, FITS]
    assert refusals(snapshot, job(gpus=2, same_numa=True)) == ["GPUs not on one NUMA node", FITS]


def test_same_numa_allocates_devices_of_one_numa_node() -> None:
    """The job gets devices of the lowest NUMA node that has enough."""
    snapshot = snapshot_of(node(gpu(uuid="a", numa=1), gpu(uuid="b", numa=0), gpu(uuid="c", numa=1)))
    assert {each.uuid for each in slices(snapshot, job(gpus=2, same_numa=True))} == {"a", "c"}


def test_node_reason_is_that_of_most_devices() -> None:
    """A wrong size goes before a device that is not healthy."""
    asked = job(gpus=4, gpu_memory_mib=500)
    sick, small, good = gpu(healthy=False), gpu(memory_mib=100), gpu()
    snapshot = snapshot_of(node(sick, small, small, good), node(good, small, sick, good))
    assert refusals(snapshot, asked) == [SMALL, SMALL]
    assert refusals(snapshot_of(node(sick, good, good, good, small)), asked) == ["GPU not healthy or cordoned"]


def test_another_model_goes_before_the_number_and_the_use_of_devices() -> None:
    """A node without the model is refused for its model, whatever it has too few of or is full with."""
    asked = job(gpus=4, models={"NVIDIA H100"}, gpu_memory_mib=500)
    nodes = node(gpu(model="NVIDIA A10G", memory_mib=100)), node(gpu(model="NVIDIA H100"))
    assert refusals(snapshot_of(*nodes), asked) == ["GPU model or mode not allowed", "too few GPUs"]


def test_same_island_rejects_devices_without_common_nvlinks() -> None:
    """All devices have to be in one NVLink island; devices without an island are in none."""
    pairs = node(gpu(island=0), gpu(island=1), gpu(island=0), gpu(island=1))
    snapshot = snapshot_of(node(gpu(), gpu()), node(gpu(island=0), gpu(island=1)), pairs)
    asked = job(gpus=2, topology=GpuTopology.SAME_ISLAND)
    assert refusals(snapshot, asked) == ["GPUs not in one NVLink island"] * 2 + [FITS]
    assert refusals(snapshot, job(gpus=3, topology=GpuTopology.SAME_ISLAND))[2] == "GPUs not in one NVLink island"
    assert refusals(snapshot, job(gpus=2, topology=GpuTopology.BEST_EFFORT)) == [FITS] * 3


def test_same_island_allocates_devices_of_one_island() -> None:
    """The job gets devices of an island that has enough free ones."""
    snapshot = snapshot_of(node(*(gpu(uuid=f"{at}", island=at % 2) for at in range(4))))
    place(snapshot, job(gpus=1, use_uuids={"0"}))
    assert {each.uuid for each in slices(snapshot, job(gpus=2, topology=GpuTopology.SAME_ISLAND))} == {"1", "3"}


@pytest.mark.parametrize(
    ("islands", "order"),
    [
        ([0, 0, 0, 1, 1, 1], "435012"),
        ([0, 1, 0, 1, -1, 0], "413025"),
        ([0, 0, 0, 1, 0, 1], "401235"),
        ([-1, -1, -1, -1, -1, -1], "401235"),
    ],
)
def test_single_gpus_leave_islands_whole(islands: list[int], order: str) -> None:
    """Equal devices are taken without an island, then from the island in use with the fewest idle ones."""
    snapshot = snapshot_of(node(*(gpu(uuid=f"{at}", island=each) for at, each in enumerate(islands))))
    first = slices(snapshot, job(gpus=1, use_uuids={order[0]}))[0].uuid
    assert first + "".join(slices(snapshot, job(gpus=1))[0].uuid for _ in order[1:]) == order


@given(
    st.lists(st.tuples(st.integers(-1, 2), st.booleans(), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 5),
    st.sampled_from([GpuTopology.ANY, GpuTopology.SAME_ISLAND]),
)
@example([(0, True, False), (0, True, False), (1, True, False), (1, True, False), (1, True, False)], 3, GpuTopology.ANY)
def test_as_many_islands_stay_whole_as_possible(
    devices: list[tuple[int, bool, bool]], gpus: int, topology: GpuTopology
) -> None:
    """No other equal devices, and no other island that fits, would leave more islands wholly idle."""
    snapshot = snapshot_of(
        node(*(gpu(uuid=f"{at}", island=each, healthy=healthy) for at, (each, healthy, _) in enumerate(devices)))
    )
    held = {f"{at}" for at, (_, healthy, busy) in enumerate(devices) if healthy and busy}
    place(snapshot, *(job(gpus=1, use_uuids={each}) for each in held))
    idle = {f"{at}" for at, (_, healthy, busy) in enumerate(devices) if healthy and not busy}
    islands = [{f"{at}" for at, (number, *_) in enumerate(devices) if number == each} for each in range(3)]
    groups = [members & idle for members in islands] if topology is GpuTopology.SAME_ISLAND and gpus > 1 else [idle]
    choices = [set(some) for members in groups for some in combinations(members, gpus)]

    def whole(used: set[str]) -> int:
        return sum(members <= idle - used for members in islands)

    topology = topology if gpus > 1 else GpuTopology.ANY
    taken = {each.uuid for each in slices(snapshot, job(gpus=gpus, topology=topology))}
    assert bool(taken) == bool(choices)
    assert not choices or whole(taken) == max(map(whole, choices))


def test_shares_are_taken_from_devices_in_use_before_islands_decide() -> None:
    """A device that is in use is better than an idle one of any island, because it loses nothing."""
    snapshot = snapshot_of(node(gpu(uuid="a", island=0), gpu(uuid="b", island=0), gpu(uuid="c", island=1)))
    place(snapshot, job(gpus=1, gpu_memory_mib=1_000, use_uuids={"b"}))
    assert [slices(snapshot, job(gpus=1, gpu_memory_mib=1_000))[0].uuid for _ in range(2)] == ["b", "b"]


@pytest.mark.parametrize(
    ("connected", "given"),
    [
        ([{"island": 0, "pcie_switch": 0}, {"numa": 1}, {"island": 0}, {"pcie_switch": 0}], {"0", "2"}),
        ([{"pcie_switch": 0}, {"numa": 1}, {"numa": 1}, {"pcie_switch": 0}], {"0", "3"}),
        ([{"numa": 2}, {"numa": 1}, {"numa": 3}, {"numa": 1}], {"1", "3"}),
        ([{"numa": 2}, {"numa": 1}, {"numa": 3}, {"numa": 4}], {"0", "1"}),
    ],
)
def test_best_effort_takes_the_closest_devices_of_a_node(connected: list[dict[str, int]], given: set[str]) -> None:
    """Devices of one island come first, then below one PCIe switch, then on one NUMA node, then any."""
    snapshot = snapshot_of(node(*(gpu(uuid=f"{at}", **each) for at, each in enumerate(connected))))
    assert {each.uuid for each in slices(snapshot, job(gpus=2, topology=GpuTopology.BEST_EFFORT))} == given


def test_best_effort_prefers_nodes_with_closer_devices() -> None:
    """The connection counts before the scores of the policy, which decides among equal nodes."""
    parts = [node(gpu(), gpu(), cpu_milli=1_000), node(gpu(island=0), gpu(island=0)), node(gpu(numa=1), gpu(numa=1))]
    snapshot = snapshot_of(*parts)
    asked = job(gpus=2, topology=GpuTopology.BEST_EFFORT)
    assert [place(snapshot, asked)[0].node for _ in range(3)] == ["node-1", "node-0", "node-2"]


def test_rows_of_best_effort_survive_the_removal_of_other_demands() -> None:
    """The stricter demands that it tries first stay with it, and are removed with it."""
    snapshot = snapshot_of(node(gpu(), gpu(island=0), gpu(island=0)))
    asked = job(gpus=2, topology=GpuTopology.BEST_EFFORT)
    line = snapshot.demands.index(asked.demand)
    snapshot.demands.index(job(gpus=1).demand)
    snapshot.demands.retain([line])
    assert len(snapshot.demands) == 4
    snapshot.demands.index(job(gpus=3).demand)
    assert {each.uuid for each in slices(snapshot, asked)} == {each.uuid for each in snapshot.devices[1:]}
    snapshot.demands.retain([])
    assert len(snapshot.demands) == 0
