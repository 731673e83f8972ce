"""Agreement of the compiled filters, the plugin filters and a plain reference on all fleets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device, DeviceMode, MigProfile
from seaway.domain.job import GpuTopology, Job
from seaway.domain.network import Link
from seaway.domain.node import Node, Taint, TaintEffect, Toleration
from seaway.scheduling.arrays import DemandArrays, FleetArrays, UInt8
from seaway.scheduling.columns import CLUSTERS_RESERVED, CLUSTERS_USABLE, NODE_CLUSTER
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.decide import find_usable_clusters
from seaway.scheduling.kernels.fit import node_fits
from seaway.scheduling.kernels.shared_arrays import borrowed
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import A100_40GB_PROFILES, cluster, fleet, gpu, job, mig_gpu, node
from tests.unit.scheduling.requesting import place, refusals
from tests.unit.scheduling.twin import GROUPS, Twin, card_takes, holds_two

ODD_PROFILES = (
    MigProfile("2g.x", 300, 400, 2, 3, (0, 1, 5)),
    MigProfile("1g.x", 100, 150, 1, 1, (0, 3, 4, 7)),
    MigProfile("3g.x", 300, 300, 3, 2, (2, 6)),
)
MEMORIES = (100, 250, 600, 1_000)
MODELS = ("NVIDIA A100", "NVIDIA A10", "Ascend910B")
SELDOM = st.sampled_from([False] * 9 + [True])
OFTEN = st.sampled_from([False] * 2 + [True])
MIB = st.sampled_from([0, 0, 1, 99, 100, 101, 250, 300, 4_864, 9_000])
MILLI = st.sampled_from([0, 0, 1, 300, 500, 999, 1_000, 1_500])


@compiled
def fit_column(arrays: FleetArrays, demands: DemandArrays, k: int) -> UInt8:
    """Run the compiled filters on every node, shape (N,)."""
    lent, asked = borrowed(arrays), borrowed(demands)
    find_usable_clusters(lent, asked, k)
    fits = np.zeros(arrays.nodes.shape[1], np.uint8)
    for n in range(fits.shape[0]):
        usable = lent.clusters_open[CLUSTERS_USABLE, lent.nodes[NODE_CLUSTER, n]]
        fits[n] = usable and node_fits(lent, asked, k, n)
    return fits


@st.composite
def devices(draw: st.DrawFn) -> Device:
    """Draw a device with few distinct values, so that requests often just fit or just fail."""
    figures = {
        "numa": draw(st.integers(0, 1)),
        "island": draw(st.integers(-1, 1)),
        "pcie_switch": draw(st.integers(-1, 1)),
        "healthy": not draw(SELDOM),
        "cordoned": draw(SELDOM),
        "model": draw(st.sampled_from(MODELS)),
        "share_limit": draw(st.sampled_from([1, 2, 7, 7, 7])),
        "core_steps": draw(st.sampled_from([1_000, 1_000, 100, 20, 7])),
    }
    if draw(OFTEN):
        memory, profiles = draw(st.sampled_from([(40_960, A100_40GB_PROFILES), (1_000, ODD_PROFILES)]))
        figures["mig_single_device"] = draw(st.booleans())
        return mig_gpu(**figures, memory_mib=memory, mig_profiles=profiles)
    cores = draw(st.sampled_from([1_000, 1_000, 1_000, 2_000, 500, 0]))
    figures["memory_step_mib"] = draw(st.sampled_from([1, 1, 50]))
    figures["even_shares"] = draw(OFTEN)
    return gpu(**figures, memory_mib=draw(st.sampled_from(MEMORIES)), core_milli=cores)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    """Draw a node."""
    return node(
        *draw(st.lists(devices(), max_size=3)),
        cpu_milli=draw(st.sampled_from([1_000, 2_000])),
        memory_mib=draw(st.sampled_from([1_000, 2_000])),
        labels={"zone": draw(st.sampled_from("ab"))},
        taints=draw(st.sampled_from([(), (), (Taint("x"),), (Taint("x", "", TaintEffect.PREFER_NO_SCHEDULE),)])),
        ready=not draw(SELDOM),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw a cluster."""
    return cluster(
        *draw(st.lists(nodes(), min_size=1, max_size=3)),
        gateway=draw(st.sampled_from(["", "east", "west", "user"])),
        region=draw(st.sampled_from(["north", "south"])),
        hardware=draw(st.sampled_from([None, frozenset(), frozenset({"nvlink"})])),
        labels=draw(st.sampled_from([{}, {"team": "a"}])),
        prices=draw(st.sampled_from([{}, {"*": 3}, {"A100": 2, "*": 1}])),
    )


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Draw a fleet of up to three clusters."""
    figure = st.integers(1, 4)
    links = [
        Link("user", target, draw(figure), draw(figure), draw(figure), draw(figure), draw(st.integers(0, 2)))
        for target in draw(st.sets(st.sampled_from(["east", "west"])))
    ]
    parts = draw(st.lists(clusters(), min_size=1, max_size=3))
    return fleet(*parts, links=links, gateways=["user"])


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Draw a job."""
    asked: dict[str, Any] = {
        "cpu_milli": draw(st.sampled_from([0, 0, 1, 500, 1_000])),
        "memory_mib": draw(st.sampled_from([0, 0, 1, 500, 1_000])),
        "replicas": draw(st.integers(1, 2)),
    }
    if draw(st.booleans()) or draw(st.booleans()):
        asked |= {
            "gpus": draw(st.sampled_from([1, 1, 1, 2, 3])),
            "gpu_memory_mib": draw(MIB),
            "gpu_memory_percent": draw(st.sampled_from([0, 0, 1, 50, 100])),
            "gpu_milli": draw(MILLI),
            "same_numa": draw(OFTEN),
            "exclusive": draw(OFTEN),
        }
    if asked.get("gpus") and not asked["same_numa"]:
        asked["topology"] = draw(st.sampled_from([GpuTopology.ANY, *GpuTopology]))
    if asked.get("gpus") and draw(OFTEN):
        name = draw(st.sampled_from(["1g.5gb", "2g.10gb", "3g.20gb", "1g.x", "3g.x", "2g.20gb"]))
        asked |= {"mig": name, "gpu_memory_mib": 0, "gpu_memory_percent": 0, "gpu_milli": 0}
    if draw(SELDOM):
        asked |= {
            "use_types": draw(st.sampled_from([(), ("a10",), ("A100", "ascend")])),
            "avoid_types": draw(st.sampled_from([(), ("A100",)])),
            "models": draw(st.sampled_from([frozenset(), frozenset({"nvidia a10"})])),
            "modes": draw(st.sampled_from([frozenset(), frozenset({DeviceMode.HAMI_CORE})])),
            "use_uuids": draw(st.sampled_from([frozenset(), frozenset({"GPU-cluster-0-node-0-0"})])),
            "avoid_uuids": draw(st.sampled_from([frozenset(), frozenset({"GPU-cluster-0-node-0-1"})])),
        }
    if draw(SELDOM):
        asked |= {
            "node_labels": draw(st.sampled_from([{}, {"zone": "a"}])),
            "tolerations": draw(st.sampled_from([(), (Toleration("x"),)])),
            "clusters": draw(st.sampled_from([frozenset(), frozenset({"cluster-0"})])),
            "regions": draw(st.sampled_from([frozenset(), frozenset({"north"})])),
            "hardware": draw(st.sampled_from([frozenset(), frozenset({"nvlink"})])),
            "cluster_labels": draw(st.sampled_from([(), (("team", "a"),)])),
            "max_microprice": draw(st.sampled_from([None, 0, 2])),
            "avoid": draw(
                st.sets(st.tuples(st.sampled_from(["cluster-0", "cluster-1"]), st.sampled_from(["", "node-0"])))
            ),
        }
    if draw(SELDOM):
        bound = st.integers(0, 4)
        bounds = ("max_latency_ns", "max_jitter_ns", "max_loss_ppm", "min_bandwidth_mbps")
        asked |= {name: draw(bound) for name in bounds} | {"gateway": "user"}
    return job(**asked)


@given(
    fleets(),
    st.lists(jobs(), max_size=5),
    st.lists(jobs(), min_size=1, max_size=4),
    st.sets(st.integers(0, 2)),
)
def test_kernels_filters_and_reference_agree(
    whole: Fleet, running: list[Job], queue: list[Job], paid: set[int]
) -> None:
    """For all placements, compiled filters, plugin filters and the reference find the same feasible nodes."""
    snapshot, twin = Snapshot(whole), Twin(whole)
    for each in running:
        twin.place(each, place(snapshot, each))
    paid = {c for c in paid if c < len(whole.clusters)}
    snapshot.arrays.clusters_open[CLUSTERS_RESERVED] = [c in paid for c in range(len(whole.clusters))]
    owing_nothing = {whole.clusters[c].name for c in paid}
    for each in queue:
        line = snapshot.demands.index(each.demand)
        by_kernel = fit_column(snapshot.arrays, snapshot.demands.arrays, line)
        by_twin = list(twin.fitting(each.demand, owing_nothing))
        assert by_kernel.astype(bool).tolist() == by_twin
        assert [not reason for reason in refusals(snapshot, each)] == by_twin


@given(fleets(), st.lists(jobs(), min_size=1, max_size=8))
def test_replicas_get_the_slices_of_the_reference(whole: Fleet, running: list[Job]) -> None:
    """Each slice is that of the reference, on devices that are allowed together."""
    snapshot, twin = Snapshot(whole), Twin(whole)
    devices_of = {device.uuid: device for device in whole.devices}
    for each in running:
        for placement in place(snapshot, each):
            for taken in placement.slices:
                card = twin.card(placement, taken)
                assert card_takes(card, each.demand) == taken
                card.held.append(taken)
            given = [devices_of[taken.uuid] for taken in placement.slices]
            if any(device.mig_single_device and holds_two(device, each.demand) for device in given):
                assert len({device.uuid for device in given}) == 1
            cut = [device.uuid for device in given if device.mode is not DeviceMode.MIG]
            assert len(given) == each.demand.request.gpus
            assert len(set(cut)) == len(cut)
            assert not each.demand.devices.same_numa or len({device.numa for device in given}) <= 1
            if group := GROUPS.get(each.demand.devices.topology):
                assert len({group(device) for device in given}) <= 1
                assert -1 not in {group(device) for device in given}


@pytest.mark.parametrize(
    ("device", "first", "second"),
    [
        (gpu(memory_mib=0), {"gpu_milli": 300}, {"gpu_milli": 300}),
        (gpu(memory_mib=50), {"gpu_memory_percent": 1}, {"gpu_milli": 300}),
    ],
)
def test_whole_of_zero_memory_is_free_on_a_used_device(
    device: Device, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """A job for all memory fits beside slices without memory."""
    snapshot = Snapshot(fleet(node(device)))
    place(snapshot, job(gpus=1, **first))
    asked = job(gpus=1, **second)
    line = snapshot.demands.index(asked.demand)
    assert refusals(snapshot, asked) == [""]
    assert fit_column(snapshot.arrays, snapshot.demands.arrays, line).tolist() == [1]
