"""Small fleets with every kind of restriction, and jobs for them."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.job import NO_DATA, DataSource, GpuTopology, Job
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.domain.node import Node, Taint, Toleration
from seaway.testing.plugins import cluster, fleet, gpu, job, mig_gpu, node

GATEWAYS = ("gw-0", "gw-1", "gw-2")
USER = "user"
A100, L4 = "NVIDIA A100-SXM4-80GB", "NVIDIA L4"
RESERVED = Taint("reserved")

DEVICES: tuple[Callable[[], Device], ...] = (
    gpu,
    gpu,
    lambda: gpu(island=0),
    lambda: gpu(island=0, pcie_switch=1),
    lambda: gpu(island=1, pcie_switch=1, numa=1),
    lambda: gpu(model=L4, memory_mib=23_034, numa=1),
    lambda: gpu(model=L4, memory_mib=23_034, share_limit=2),
    lambda: gpu(model=L4, memory_mib=23_033, share_limit=2, even_shares=True),
    lambda: gpu(core_milli=2_000, memory_mib=40_000),
    lambda: gpu(cordoned=True),
    lambda: gpu(healthy=False),
    mig_gpu,
)


def nodes() -> st.SearchStrategy[Node]:
    """Nodes with up to four devices; a few closed, tainted, short of CPU or with few free pod slots."""
    devices = st.lists(st.sampled_from(DEVICES), max_size=4).map(lambda kinds: [kind() for kind in kinds])
    return st.builds(
        lambda parts, cpu, memory, ready, taints, zone, pods: node(
            *parts, cpu_milli=cpu, memory_mib=memory, ready=ready, taints=taints, labels={"zone": zone}, pods=pods
        ),
        devices,
        st.sampled_from((6_000, 24_000, 64_000)),
        st.sampled_from((16_000, 262_144)),
        st.sampled_from((True, True, True, False)),
        st.sampled_from(((), (), (RESERVED,))),
        st.sampled_from(("a", "b")),
        st.sampled_from((None, None, None, 0, 1, 3)),
    )


def clusters() -> st.SearchStrategy[Cluster]:
    """Clusters of up to three nodes, behind one of few gateways or none."""
    return st.builds(
        lambda parts, gateway, region: cluster(*parts, gateway=gateway, region=region),
        st.lists(nodes(), max_size=3),
        st.sampled_from((*GATEWAYS, "")),
        st.sampled_from(("north", "south")),
    )


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Fleets of up to four clusters, with some of the links between gateways."""
    pairs = [(a, b) for a in (*GATEWAYS, USER) for b in GATEWAYS if a != b]
    measured = draw(st.lists(st.sampled_from(pairs), unique=True))
    links = [
        Link(
            source,
            target,
            latency_ns=draw(st.sampled_from((1_000_000, 1_000_000, 5_000_000, 5_000_000, 30_000_000, None))),
            loss_ppm=draw(st.sampled_from((0, 20_000))),
            bandwidth_mbps=draw(st.sampled_from((100, 1_000))),
        )
        for source, target in measured
    ]
    gateways_by_cluster = [
        Gateway(name, speed_mbps=draw(st.sampled_from((0, 0, 500))), used_in_mbps=draw(st.sampled_from((0, 100))))
        for name in (*GATEWAYS, USER)
    ]
    return fleet(*draw(st.lists(clusters(), min_size=1, max_size=4)), links=links, gateways=gateways_by_cluster)


def needs() -> st.SearchStrategy[NetworkNeed]:
    """Bounds on a link; most jobs set none."""
    bounds = st.builds(
        NetworkNeed,
        max_latency_ns=st.sampled_from((0, 5_000_000)),
        max_loss_ppm=st.sampled_from((0, 10_000)),
        min_bandwidth_mbps=st.sampled_from((0, 60, 400)),
    )
    return st.one_of(st.just(NetworkNeed()), st.just(NetworkNeed()), bounds)


REQUESTS: tuple[dict[str, int | str], ...] = (
    {},
    {"gpus": 1, "gpu_memory_mib": 4_000, "gpu_milli": 200},
    {"gpus": 1, "gpu_memory_mib": 17_000, "gpu_milli": 600},
    {"gpus": 1, "gpu_memory_percent": 50, "gpu_milli": 500},
    {"gpus": 1},
    {"gpus": 2, "gpu_memory_mib": 9_000, "gpu_milli": 300},
    {"gpus": 2},
    {"gpus": 1, "mig": "2g.10gb"},
    {"gpus": 2, "mig": "3g.20gb"},
)

RULES: tuple[dict[str, object], ...] = (
    {},
    {},
    {},
    {"models": {L4}},
    {"avoid_types": ["L4"]},
    {"exclusive": True},
    {"same_numa": True},
    {"topology": GpuTopology.SAME_ISLAND},
    {"topology": GpuTopology.BEST_EFFORT},
    {"topology": GpuTopology.BEST_EFFORT},
    {"node_labels": {"zone": "a"}},
    {"regions": {"north"}},
    {"tolerations": [Toleration()]},
)


DATA = (NO_DATA, NO_DATA, DataSource("gw-0", 20_000), DataSource("cluster-1", 400_000), DataSource("north", 90_000))
"""Locations of data; most jobs set none."""


@st.composite
def jobs(draw: st.DrawFn, most: int = 12, most_replicas: int = 4) -> list[Job]:
    """Queues of jobs: CPU only, slices, whole devices, gangs, bounds on the network, data."""
    count = draw(st.integers(1, most))
    return [_job(draw, f"job-{number}", most_replicas) for number in range(count)]


def _job(draw: st.DrawFn, name: str, most_replicas: int) -> Job:
    need = draw(needs())
    gang = draw(st.booleans())
    return job(
        name,
        cpu_milli=draw(st.sampled_from((0, 1_000, 5_000, 20_000))),
        memory_mib=draw(st.sampled_from((0, 4_000, 60_000))),
        replicas=draw(st.integers(1, most_replicas)),
        gang=gang,
        ring=gang and draw(st.booleans()),
        between_replicas=draw(needs()),
        network=need,
        data=draw(st.sampled_from(DATA)),
        gateway=USER if need.any or draw(st.booleans()) else "",
        **draw(st.sampled_from(REQUESTS)),
        **draw(st.sampled_from(RULES)),
    )
