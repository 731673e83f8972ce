"""Policy `balanced`: each aim, its treatment of unknown facts, and its weights."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from seaway.domain.cluster import Cluster
from seaway.domain.errors import RejectedError
from seaway.domain.facts import Location
from seaway.domain.job import Job
from seaway.domain.network import Gateway, Link
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plugins import RULES_OF_FIT
from seaway.scheduling.policies.balanced import Distance, MemoryMatch, Price, SpareHardware, Topology
from seaway.scheduling.policies.registry import PolicyOptions, make_policy, make_profile, split_spec, with_options
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import check_plugin, cluster, fleet, gpu, job, mig_gpu, node

BERLIN, PARIS, TOKYO = Location(52.52, 13.4), Location(48.86, 2.35), Location(35.68, 139.69)
ONLY = dict.fromkeys(("free", "distance", "topology", "hardware", "price"), 0)


def chosen(
    parts: list[Cluster],
    asked: Job,
    weights: Mapping[str, int],
    links: tuple[Link, ...] = (),
    gateways: tuple[Gateway, ...] = (),
) -> list[str]:
    """Return the cluster and node of each replica."""
    snapshot = Snapshot(fleet(*parts, links=links, gateways=gateways))
    policy = make_policy("balanced", PolicyOptions(weights=weights))
    plan = decide(snapshot, JobQueue(snapshot, [asked]), policy)
    return [f"{each.cluster}/{each.node}" for each in plan.placements()]


@pytest.mark.parametrize(
    "plugin", [Distance(), MemoryMatch(), Price(), SpareHardware(), Topology()], ids=lambda each: each.name
)
def test_plugins_keep_the_rules(plugin: Distance | MemoryMatch | Price | SpareHardware | Topology) -> None:
    """Each aim is a plugin like those of other packages."""
    check_plugin(plugin)


def test_the_lowest_price_of_a_node_counts() -> None:
    """By the models of the node and by spot capacity; an unknown price counts as the highest."""
    spot = {"karpenter.sh/capacity-type": "spot"}
    parts = [
        cluster(node(gpu()), name="unknown"),
        cluster(node(gpu(model="A100")), node(gpu(uuid="s", model="A100"), labels=spot), name="mixed",
                prices={"A100": 5}, spot_prices={"A100": 2}),
        cluster(node(gpu(model="T4")), name="middle", prices={"T4": 3}),
    ]  # fmt: skip
    assert chosen(parts, job(gpus=1), ONLY | {"price": 1}) == ["mixed/node-1"]
    assert chosen(parts[:1] + parts[2:], job(gpus=1), ONLY | {"price": 1}) == ["middle/node-0"]
    assert chosen(parts[:1], job(gpus=1), ONLY | {"price": 1}) == ["unknown/node-0"]


def test_the_nearest_cluster_counts_measured_or_by_location() -> None:
    """A measured round-trip time precedes the great circle; a cluster of unknown distance is the last."""
    parts = [
        cluster(node(gpu()), name="unknown", gateway="gw-u"),
        cluster(node(gpu()), name="tokyo", gateway="gw-t", location=TOKYO),
        cluster(node(gpu()), name="paris", gateway="gw-p", location=PARIS),
    ]
    users = (Gateway("users", location=BERLIN),)
    asked = job(gpus=1, gateway="users")
    assert chosen(parts, asked, ONLY | {"distance": 1}, (), users) == ["paris/node-0"]
    slow = (Link("users", "gw-p", 900_000_000),)
    assert chosen(parts, asked, ONLY | {"distance": 1}, slow, users) == ["tokyo/node-0"]
    assert chosen(parts, job(gpus=1), ONLY | {"distance": 1}, slow, users) == ["unknown/node-0"]


def test_replicas_stay_in_one_zone() -> None:
    """The same zone first, then the same cluster, then the same region."""
    zone = "topology.kubernetes.io/zone"
    two = cluster(
        node(gpu(), labels={zone: "a"}), node(gpu(), labels={zone: "b"}), node(gpu(), labels={zone: "a"}),
        name="one", region="eu",
    )  # fmt: skip
    others = [cluster(node(gpu()), name="us", region="us"), cluster(node(gpu()), name="eu", region="eu")]
    placed = chosen([two, *others], job(gpus=1, replicas=4), ONLY | {"topology": 1})
    assert placed == ["one/node-0", "one/node-2", "one/node-1", "eu/node-0"]


def test_special_hardware_is_left_for_those_who_request_it() -> None:
    """A job that requests it gets it."""
    parts = [
        cluster(node(gpu()), name="special", hardware=frozenset({"rdma"})),
        cluster(node(gpu()), name="usual", hardware=frozenset()),
    ]
    assert chosen(parts, job(gpus=1), ONLY | {"hardware": 1}) == ["usual/node-0"]
    assert chosen(parts, job(gpus=1, hardware={"rdma"}), ONLY | {"hardware": 1}) == ["special/node-0"]


def test_weights_decide_and_the_explanation_shows_each_aim() -> None:
    """Price against distance: the aim with the larger weight wins; the scores of both are shown."""
    parts = [
        cluster(node(gpu()), name="near", gateway="gw-n", prices={"*": 4}, location=PARIS),
        cluster(node(gpu()), name="cheap", gateway="gw-c", prices={"*": 1}, location=TOKYO),
    ]
    users, asked = (Gateway("users", location=BERLIN),), job(gpus=1, gateway="users")
    assert chosen(parts, asked, {"distance": 2}, (), users) == ["near/node-0"]
    assert chosen(parts, asked, {"price": 2}, (), users) == ["cheap/node-0"]
    snapshot = Snapshot(fleet(*parts, gateways=users))
    first = explain(snapshot, asked, make_profile("balanced", PolicyOptions(weights={"price": 2}))).candidates[0]
    assert (first.scores["Price"], first.scores["Distance"]) == (200, 0)


@pytest.mark.parametrize(
    ("name", "given", "where"),
    [
        ("balanced", {"weights": {"price": -1}}, "weights.price"),
        ("balanced", {"weights": {"prize": 1}}, "weights.prize"),
        ("balanced", {"weights": ONLY}, "weights"),
        ("balanced", {"weights": 3}, "weights"),
        ("balanced", {"level": "cluster"}, "level"),
        ("utilization", {"level": "rack"}, "level"),
        ("random", {"seed": -1}, "seed"),
        ("fgd", {"level": "node"}, "level"),
    ],
)
def test_options_are_checked(name: str, given: dict[str, object], where: str) -> None:
    """An option that the policy does not have, or a wrong value, is refused with its name."""
    with pytest.raises(RejectedError) as refused:
        with_options(name, given, PolicyOptions())
    assert refused.value.where == where


def test_a_policy_with_options_has_a_text() -> None:
    """The text of a queue's policy gives its name and options again."""
    assert split_spec('utilization{"level":"cluster"}') == ("utilization", {"level": "cluster"})
    assert split_spec("bestfit") == ("bestfit", {})
    with pytest.raises(RejectedError):
        split_spec("utilization{level}")


def test_devices_of_the_requested_size_are_preferred() -> None:
    """A small job leaves large devices free; full and forbidden devices do not count, and MIG profiles do."""
    large, middle, small = gpu(), gpu(memory_mib=46_068), gpu(memory_mib=23_034)
    parts = [cluster(node(large, small), node(middle), node(large), node(mig_gpu()), name="a")]
    match = ONLY | {"memory": 1}
    assert chosen(parts, job(gpus=1, gpu_memory_mib=20_000), match) == ["a/node-3"]
    assert chosen(parts, job(gpus=1, gpu_memory_mib=22_000), match) == ["a/node-0"]
    assert chosen(parts, job(gpus=1, gpu_memory_mib=45_000), match) == ["a/node-1"]
    assert chosen(parts, job(gpus=1, gpu_memory_mib=60_000), match) == ["a/node-0"]
    assert chosen(parts, job(gpus=1, gpu_memory_mib=20_000, replicas=5), match)[2:] == ["a/node-0"] + ["a/node-1"] * 2
    assert chosen(parts, job(gpus=1, gpu_memory_percent=10), match) == ["a/node-0"]
    assert chosen(parts, job(), match) == ["a/node-0"]


def test_size_of_devices_counts_only_if_the_queue_sets_its_weight() -> None:
    """By default `balanced` decides as before."""
    parts = [cluster(node(gpu(memory_mib=46_068), cpu_milli=2_000), node(gpu(memory_mib=23_034)), name="a")]
    asked = job(gpus=1, gpu_memory_mib=10_000)
    assert chosen(parts, asked, {}) == ["a/node-0"]
    assert chosen(parts, asked, {"memory": 9}) == ["a/node-1"]


@pytest.mark.parametrize(
    ("weights", "device"),
    [
        ({"price": 1}, "tight"),
        ({"free": 1}, "tight"),
        ({"memory": 1}, "small"),
        ({"free": 9, "memory": 1}, "tight"),
        ({"free": 1, "memory": 9}, "small"),
    ],
)
def test_devices_of_a_node_are_chosen_by_the_weights_of_free_and_memory(weights: dict[str, int], device: str) -> None:
    """The tightest, the smallest or a weighted mean; by other aims alone the tightest too."""
    parts = [cluster(node(gpu(uuid="tight"), gpu(uuid="small", memory_mib=46_068)), name="a")]
    snapshot = Snapshot(fleet(*parts))
    before = job(gpus=1, gpu_memory_mib=60_000, gpu_milli=700)
    policy = make_policy("balanced", PolicyOptions(weights=ONLY | weights))
    plan = decide(snapshot, JobQueue(snapshot, [before, job(gpus=1, gpu_memory_mib=10_000, gpu_milli=100)]), policy)
    assert [each.slices[0].uuid for each in plan.placements()] == ["tight", device]


def test_only_free_is_best_fit() -> None:
    """It is compiled, because no other aim counts."""
    profile = make_profile("balanced", PolicyOptions(weights=ONLY | {"free": 3}))
    assert profile.compiled(RULES_OF_FIT) is not None
    assert make_profile("balanced", PolicyOptions()).compiled(RULES_OF_FIT) is None
