"""Example fleet and jobs."""

from __future__ import annotations

from random import Random

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.facts import Facts, Location
from seaway.domain.job import Demand, DeviceRules, Job, ResourceRequest
from seaway.domain.network import NO_NEED, Gateway, Link, NetworkNeed
from seaway.domain.node import Node

A100 = "NVIDIA A100-SXM4-80GB"
L40S = "NVIDIA L40S"
V100 = "NVIDIA V100-SXM2-32GB"
T4 = "NVIDIA T4"

MEMORY_MIB = {A100: 81_920, L40S: 46_068, V100: 32_768, T4: 15_360}

NEAR = Facts(
    "north", ("north-1",), location=Location(53.55, 9.99), hardware=frozenset({"nvlink"}),
    prices={"A100": 2_400_000, "T4": 400_000}, spot_prices={"A100": 1_000_000},
)  # fmt: skip
MIDDLE = Facts("north", ("north-2",), location=Location(52.52, 13.40), hardware=frozenset(), prices={"L40S": 1_500_000})
FAR = Facts(
    "south", ("south-1",), location=Location(41.39, 2.17), hardware=frozenset({"nvlink"}), prices={"V100": 900_000}
)
"""Facts of the three clusters."""

USERS_GATEWAY = "gw-4"
"""Gateway of the users' site, which has no cluster."""

LINKS = (
    Link("gw-1", "gw-2", 9_000_000, 600_000, 0, 10_000),
    Link("gw-1", "gw-3", 38_000_000, 2_500_000, 1_000, 2_000),
    Link("gw-2", "gw-3", 31_000_000, 1_800_000, 0, 2_000),
    Link("gw-4", "gw-1", 4_000_000, 300_000, 0, 10_000),
    Link("gw-4", "gw-2", 12_000_000, 900_000, 0, 5_000),
    Link("gw-4", "gw-3", 45_000_000, 4_000_000, 5_000, 2_000),
)
"""Links in one direction. Those in the other direction have the same values."""


def demo_fleet() -> Fleet:
    """Return three different clusters, each with a gateway, and a fourth gateway for the users."""
    near = [_node("cluster-1", n, A100, 4, 64_000, 524_288) for n in range(6)]
    near += [_node("cluster-1", n, T4, 4, 48_000, 196_608) for n in range(6, 12)]
    middle = [_node("cluster-2", n, L40S, 2, 32_000, 262_144) for n in range(12)]
    far = [_node("cluster-3", n, V100, 8, 96_000, 393_216) for n in range(5)]
    clusters = (
        Cluster("cluster-1", tuple(near), "gw-1", NEAR),
        Cluster("cluster-2", tuple(middle), "gw-2", MIDDLE),
        Cluster("cluster-3", tuple(far), "gw-3", FAR),
    )
    back = [Link(link.target, link.source, *_figures(link)) for link in LINKS]
    gateways = tuple(Gateway(f"gw-{number}") for number in range(1, 5))
    return Fleet(clusters, gateways, (*LINKS, *back))


def demo_jobs(count: int, seed: int = 0) -> tuple[Job, ...]:
    """Generate random jobs for `demo_fleet`: slices for serving, whole devices for training, and gangs.

    A third of the jobs have bounds on the network to their users. 300 jobs request about the capacity of the fleet.
    """
    random = Random(seed)  # not used for secrets
    return tuple(_job(f"job-{number:03}", random) for number in range(count))


def _node(cluster: str, number: int, model: str, gpus: int, cpu_milli: int, memory_mib: int) -> Node:
    name = f"{cluster}-n{number}"
    islands = [index // 4 if model in {A100, V100} else -1 for index in range(gpus)]
    devices = tuple(
        Device(f"{name}/{index}", index, model, MEMORY_MIB[model], island=island)
        for index, island in enumerate(islands)
    )
    return Node(name, cpu_milli, memory_mib, devices)


def _figures(link: Link) -> tuple[int | None, int, int, int]:
    return link.latency_ns, link.jitter_ns, link.loss_ppm, link.bandwidth_mbps


def _job(name: str, random: Random) -> Job:
    kind = random.choices(["serving", "training", "gang", "batch"], [68, 13, 4, 15])[0]
    if kind == "serving":
        memory_mib, core_milli = random.choice([(4_096, 150), (8_192, 200), (12_288, 350), (20_480, 450)])
        request = ResourceRequest(random.choice([1_000, 2_000, 4_000]), 8_192, 1, memory_mib, 0, core_milli)
        return Job(name, Demand(request, gateway=USERS_GATEWAY, network=_network_need(random)))
    if kind == "training":
        gpus = random.choice([1, 1, 1, 2])
        rules = DeviceRules(models=random.choice([frozenset(), frozenset({A100}), frozenset({V100, A100})]))
        return Job(name, Demand(ResourceRequest(6_000 * gpus, 32_768 * gpus, gpus, 0, 100, 1_000), rules))
    if kind == "gang":
        request = ResourceRequest(4_000, 24_576, 1, 16_384, 0, 500)
        return Job(name, Demand(request), replicas=random.choice([2, 4]), gang=True)
    return Job(name, Demand(ResourceRequest(random.choice([4_000, 8_000]), 16_384)))


def _network_need(random: Random) -> NetworkNeed:
    if random.random() < 0.5:
        return NO_NEED
    return NetworkNeed(
        max_latency_ns=random.choice([10_000_000, 20_000_000, 20_000_000, 50_000_000]),
        max_jitter_ns=random.choice([0, 0, 2_000_000]),
        max_loss_ppm=random.choice([0, 0, 2_000]),
        min_bandwidth_mbps=random.choice([50, 100, 200]),
    )
