from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.application.control.allocations import Own, amounts_of_cluster
from seaway.application.control.attempt_totals import Held
from seaway.application.control.device_claims import DuplicateDevices
from seaway.domain.deployment import UnmanagedPod
from seaway.domain.placement import DeviceSlice
from seaway.scheduling.columns import DEVICE_CORE_FREE, DEVICE_MEMORY_FREE, NODE_CPU_FREE, NODE_MEMORY_FREE
from seaway.scheduling.snapshot.snapshot import Snapshot
from tests.unit.application.control.test_fleet import ALPHA, BETA, fits, live

GPU = "GPU-beta-node-0-0"


def pod(name: str, node: str = "node-0", uuid: str = GPU, core_milli: int = 500) -> UnmanagedPod:
    """Create a pod with half a GPU, a CPU core and a GiB."""
    taken = (DeviceSlice(uuid, 40_960, core_milli),) if node else ()
    return UnmanagedPod(name, node, taken, 1000, 1024)


def test_what_pods_of_others_hold_is_stored_from_jobs_until_they_are_gone() -> None:
    """A job that requests a whole GPU waits for both halves to be freed."""
    made = live(BETA)
    made.occupy("beta", [pod("a"), pod("b")], complete=True)
    assert not fits(made)
    made.occupy("beta", [pod("a", node="")], complete=False)
    assert not fits(made)
    made.occupy("beta", [], complete=True)
    assert fits(made) == "beta/node-0"


def test_pods_of_others_use_gpus_by_their_larger_share() -> None:
    """A slice of half the memory without cores counts as half a GPU; a pod without slices as none."""
    made = live(BETA)
    made.occupy("beta", [pod("a", core_milli=0), UnmanagedPod("b", "node-0")], complete=True)
    sums = amounts_of_cluster(made.clusters["beta"], Held(), Own(BETA.nodes, DuplicateDevices()))
    assert (sums.gpus_used_milli, sums.gpu_milli.used) == (500, 0)


def test_a_pod_reported_twice_is_reserved_once() -> None:
    """A repeated report without changes has no effect."""
    made = live(BETA)
    made.occupy("beta", [pod("a")], complete=False)
    version, before = made.version, made.snapshot.arrays.devices.copy()
    made.occupy("beta", [pod("a")], complete=False)
    assert made.version == version
    np.testing.assert_array_equal(made.snapshot.arrays.devices, before)


def test_pods_on_a_node_that_no_one_informed_of_are_reserved_when_it_is() -> None:
    """A cluster may report its pods before its nodes."""
    made = live()
    made.know(["beta"], 0)
    made.occupy("beta", [pod("a"), pod("b")], complete=True)
    made.tell(BETA)
    assert not fits(made)
    made.occupy("beta", [], complete=True)
    assert made.clusters["beta"].occupied.nodes == set()


def test_pods_of_others_take_the_place_of_a_jobs() -> None:
    """Every pod counts against its node's pod limit, whatever its request; a finished one does not."""
    full = replace(BETA, nodes=(replace(BETA.nodes[0], pods=2),))
    made = live(full)
    others = [UnmanagedPod(name, "node-0") for name in "ab"]
    made.occupy("beta", others, complete=True)
    assert not fits(made)
    made.occupy("beta", [replace(others[0], pods=0)], complete=False)
    assert fits(made) == "beta/node-0"
    made.tell(replace(full, nodes=(replace(full.nodes[0], pods=1),)))
    assert not fits(made)


def test_pods_that_hold_more_than_there_can_be_leave_nothing() -> None:
    """Excessive sums never wrap around to look free, and all is free when the pods are gone."""
    made = live(BETA)
    before = made.snapshot.arrays.devices.copy(), made.snapshot.arrays.nodes.copy()
    most = (1 << 31) - 1
    huge = [UnmanagedPod(name, "node-0", (DeviceSlice(GPU, most, most),) * 2, most, most) for name in "abc"]
    made.occupy("beta", huge, complete=True)
    arrays = made.snapshot.arrays
    assert arrays.devices[[DEVICE_MEMORY_FREE, DEVICE_CORE_FREE], 0].max() < 0
    assert arrays.nodes[[NODE_CPU_FREE, NODE_MEMORY_FREE], 0].max() < 0
    assert not fits(made)
    made.occupy("beta", [], complete=True)
    np.testing.assert_array_equal(made.snapshot.arrays.devices, before[0])
    np.testing.assert_array_equal(made.snapshot.arrays.nodes, before[1])


STEPS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["", "node-0", "node-1", "elsewhere"]),
        st.integers(0, 1),
        st.integers(0, 700),
        st.booleans(),
    ),
    max_size=12,
)


@given(STEPS)
@settings(deadline=None)
def test_bookings_are_those_of_the_pods_that_are_there_now(steps: list[tuple[str, str, int, int, bool]]) -> None:
    """After any reports, the allocations equal a new computation."""
    made = live(ALPHA)
    there: dict[str, UnmanagedPod] = {}
    for name, node, device, core_milli, complete in steps:
        each = pod(name, node, f"GPU-alpha-{node}-{device}", core_milli)
        there = {name: each} if complete else there | {name: each}
        made.occupy("alpha", [each], complete=complete)
    fresh = live(ALPHA)
    fresh.occupy("alpha", there.values(), complete=True)
    for table in ("nodes", "devices", "blocks", "clusters"):
        np.testing.assert_array_equal(
            getattr(made.snapshot.arrays, table), getattr(fresh.snapshot.arrays, table), table
        )
    again = Snapshot(made.fleet())
    made.empty()
    assert made.snapshot.fleet == again.fleet
    np.testing.assert_array_equal(made.snapshot.arrays.devices, fresh.snapshot.arrays.devices)
