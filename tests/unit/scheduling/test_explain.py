from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from seaway.application.control.rejections import Refusals
from seaway.domain.device import Device
from seaway.domain.job import Demand, GpuTopology, Job
from seaway.domain.network import Link, NetworkNeed
from seaway.domain.node import Taint
from seaway.domain.placement import Explanation, Remedy
from seaway.scheduling.columns import CLUSTERS_RESERVED, NODE_OPEN
from seaway.scheduling.engine import decide, trial_placements
from seaway.scheduling.explain import Keeper, Limitation, combined_remedies, explain, summary
from seaway.scheduling.framework import Codes, Cycle, Scores, Status, Verdict
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plain import choose, run_filters, total_score
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.policies.bestfit import BestFit
from seaway.scheduling.profile import Profile, WeightedPlugin
from seaway.scheduling.remedies import changes
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_node, remove_node
from seaway.testing.plugins import cluster, fleet, gpu, job, mig_gpu, node
from tests.unit.scheduling.requesting import PROFILE, cycle_for, place, snapshot_of


@dataclass(frozen=True)
class ByIndex:
    """A score that prefers nodes with a higher index."""

    name: str = "ByIndex"

    def score(self, cycle: Cycle) -> Scores:
        """Return the index."""
        return np.arange(len(cycle.snapshot.nodes))


@dataclass(frozen=True)
class Closed:
    """A plugin that rejects every replica and node."""

    name: str = "Closed"

    def pre_filter(self, cycle: Cycle) -> Status:
        """Reject."""
        return Status(Verdict.REJECT, "closed for today")


@dataclass(frozen=True)
class OnlyLast:
    """A filter that rejects all nodes but the last."""

    name: str = "OnlyLast"
    reasons: tuple[str, ...] = ("never", "not the last")

    def filter(self, cycle: Cycle) -> Codes:
        """Return 2 for all nodes but the last."""
        codes = np.full(len(cycle.snapshot.nodes), 2, np.uint8)
        codes[-1] = 0
        return codes


def changed(asked: Job, field: str, value: int) -> Job:
    """Return a job with one changed field of its demand."""
    demand: Demand = asked.demand
    if field == "models":
        return replace(asked, demand=replace(demand, devices=replace(demand.devices, models=frozenset())))
    part = "request" if hasattr(demand.request, field) else "network"
    new = replace(getattr(demand, part), **{field: value})
    return replace(asked, demand=replace(demand, **{part: new}))


admits = partial(trial_placements, policy=PROFILE, overdue=True)


def explained(snapshot: Snapshot, asked: Job, profile: Profile) -> Explanation:
    """Explain a job, with remedies."""
    return explain(snapshot, asked, profile, admits=partial(trial_placements, policy=profile, overdue=True))


def fits(snapshot: Snapshot, asked: Job) -> bool:
    """Report whether a job would be placed now."""
    return choose(PROFILE, cycle_for(snapshot, asked)) >= 0


def test_nodes_count_for_the_first_filter_that_rejects_them() -> None:
    """Rejections name the filter and the number of nodes, most nodes first, and add up."""
    tainted = node(gpu(memory_mib=1), taints=(Taint("x"),))
    small = node(gpu(memory_mib=10))
    reported = explained(snapshot_of(tainted, small, small, node()), job(gpus=1, gpu_memory_mib=20), PROFILE)
    assert not reported.fits
    assert [(each.plugin, each.nodes) for each in reported.refusals] == [
        ("DeviceFit", 2),
        ("TaintToleration", 1),
        ("DeviceFit", 1),
    ]
    assert sum(each.nodes for each in reported.refusals) == reported.nodes == 4


def test_rejections_are_counted_per_cluster() -> None:
    """Clusters without rejections are left out."""
    small, large = node(gpu(memory_mib=10)), node(gpu(memory_mib=100))
    parts = (cluster(small, small, name="a"), cluster(large, name="b"), cluster(small, large, name="c"))
    (refused,) = explained(snapshot_of(*parts), job(gpus=1, gpu_memory_mib=20), PROFILE).refusals
    assert (refused.nodes, refused.clusters) == (3, (("a", 2), ("c", 1)))


def test_candidates_are_the_best_nodes_in_order() -> None:
    """At most five candidates are listed, and the first is the node that the policy would choose."""
    snapshot = snapshot_of(*(node(gpu(), cpu_milli=10_000 * (9 - at)) for at in range(8)))
    asked = job(gpus=1, cpu_milli=500)
    reported = explained(snapshot, asked, PROFILE)
    names = [each.node for each in reported.candidates]
    assert names == ["node-7", "node-6", "node-5", "node-4", "node-3"]
    assert names[0] == snapshot.nodes[choose(PROFILE, cycle_for(snapshot, asked))].name
    assert [each.total for each in reported.candidates] == sorted((c.total for c in reported.candidates), reverse=True)


@pytest.mark.parametrize("scores", [[(BestFit(), 1)], [(BestFit(), 3), (ByIndex(), 2)]])
def test_scores_add_up_to_the_total(scores: list[tuple[BestFit | ByIndex, int]]) -> None:
    """Each plugin's weighted score is listed, and the total decides."""
    weighted = [WeightedPlugin(plugin, weight) for plugin, weight in scores]
    profile = Profile("mixed", (*(WeightedPlugin(each) for each in rules_of_fit()), *weighted))
    snapshot = snapshot_of(*(node(gpu(), cpu_milli=1_000 * at) for at in range(1, 5)))
    asked = job(gpus=1, cpu_milli=2_000)
    cycle = cycle_for(snapshot, asked)
    run_filters(profile, cycle)
    total = total_score(profile, cycle)
    for candidate in explained(snapshot, asked, profile).candidates:
        assert candidate.total == sum(candidate.scores.values())
        assert candidate.total == total[snapshot.node_index[candidate.cluster, candidate.node]]


NARROW = (
    node(gpu(memory_mib=8_000), gpu(memory_mib=16_000), cpu_milli=4_000, memory_mib=2_000),
    node(gpu(memory_mib=8_000, core_milli=700), cpu_milli=8_000, memory_mib=1_000),
    node(mig_gpu(), cpu_milli=2_000, memory_mib=3_000),
)
LINKS = (
    Link("user", "a", latency_ns=50, jitter_ns=9, loss_ppm=3, bandwidth_mbps=100),
    Link("user", "b", latency_ns=70, jitter_ns=4, loss_ppm=5, bandwidth_mbps=300),
)


@pytest.mark.parametrize(
    ("latency_ns", "admits", "written"), [(12_283_987, 12_300_000, "12.3ms"), (283_987, 284_000, "284us")]
)
def test_suggested_latency_is_rounded_up_to_readable_time(latency_ns: int, admits: int, written: str) -> None:
    """It is rounded up to tenths of a millisecond, or to microseconds, so that the link stays within it."""
    around = snapshot_of(cluster(*NARROW, gateway="a"), links=(Link("user", "a", latency_ns),))
    reported = explained(around, job(gateway="user", max_latency_ns=100_000), PROFILE)
    [remedy] = [each for each in reported.remedies if each.field == "max_latency_ns" and each.required]
    assert remedy.required == admits
    assert f"with max_latency {written} instead of 100us" in summary(reported)


@pytest.mark.parametrize(
    ("asked", "field", "admits"),
    [
        ({"gpus": 1, "gpu_memory_mib": 50_000}, "gpu_memory_mib", 40_448),
        ({"gpus": 1, "gpu_memory_mib": 50_000, "avoid_types": ["40GB"]}, "gpu_memory_mib", 16_000),
        ({"gpus": 3, "gpu_memory_mib": 20_000}, "gpus", 2),
        ({"gpus": 3, "gpu_memory_mib": 20_000}, "gpu_memory_mib", 9_984),
        ({"gpus": 2, "gpu_memory_mib": 8_000, "cpu_milli": 6_000}, "cpu_milli", 4_000),
        ({"gpus": 2, "gpu_memory_mib": 8_000, "cpu_milli": 6_000}, "gpus", 1),
        ({"gpus": 1, "gpu_memory_mib": 8_000, "memory_mib": 3_001}, "memory_mib", 3_000),
        ({"gpus": 1, "cpu_milli": 5_000}, "gpu_milli", 700),
        ({"gpus": 1, "cpu_milli": 5_000, "gpu_memory_mib": 1, "gpu_milli": 900}, "gpu_milli", 700),
        ({"gpus": 1, "gpu_milli": 1_000, "cpu_milli": 5_000}, "cpu_milli", 4_000),
        ({"gateway": "user", "max_latency_ns": 10}, "max_latency_ns", 50),
        ({"gateway": "user", "max_latency_ns": 10, "min_bandwidth_mbps": 200}, "max_latency_ns", 70),
        ({"gateway": "user", "max_jitter_ns": 3}, "max_jitter_ns", 4),
        ({"gateway": "user", "max_loss_ppm": 1}, "max_loss_ppm", 3),
        ({"gateway": "user", "max_loss_ppm": 3, "min_bandwidth_mbps": 200}, "min_bandwidth_mbps", 100),
        ({"gateway": "b", "max_latency_ns": 10, "clusters": {"cluster-0"}}, "max_latency_ns", 0),
        ({"gpus": 1, "gpu_memory_mib": 1, "models": {"NVIDIA L4"}}, "models", ""),
    ],
)
def test_remedy_is_the_smallest_change_of_its_field(asked: dict[str, Any], field: str, admits: int | str) -> None:
    """With the change the job fits where the remedy names; with one unit less it does not."""
    snapshot = snapshot_of(
        cluster(*NARROW, gateway="a"), cluster(node(cpu_milli=1, memory_mib=1), gateway="b"), links=LINKS
    )
    waiting = job(**asked)
    reported = explained(snapshot, waiting, PROFILE)
    assert not reported.fits
    remedy = next(each for each in reported.remedies if each.field == field)
    assert remedy.required == admits
    mended = changed(waiting, field, int(admits or 0))
    [placement] = place(snapshot.copy(), mended)
    assert (placement.cluster, placement.node) == (remedy.cluster, remedy.node)
    if isinstance(admits, int) and admits:
        less = admits + (1 if admits < int(remedy.current) else -1)
        assert not fits(snapshot, changed(waiting, field, less))


def test_remedies_come_smallest_change_first() -> None:
    """Changes are sorted by their relative size."""
    snapshot = snapshot_of(node(gpu(memory_mib=900)), node(gpu(memory_mib=1_000), cpu_milli=500))
    reported = explained(snapshot, job(gpus=1, gpu_memory_mib=1_000, cpu_milli=2_000), PROFILE)
    assert reported.remedies == (
        Remedy("gpu_memory_mib", 1_000, 900, "cluster-0", "node-0"),
        Remedy("cpu_milli", 2_000, 500, "cluster-0", "node-1"),
    )


def test_remedy_of_a_gang_admits_all_its_replicas() -> None:
    """A change that lets one replica fit is no remedy. Fewer replicas are one, and the smallest sufficient change."""
    snapshot = snapshot_of(*(node(gpu(memory_mib=30_000)) for _ in range(4)))
    place(snapshot, job(gpus=1, gpu_memory_mib=10_000))
    gang = job(gpus=1, gpu_memory_mib=25_000, replicas=4, gang=True)
    reported = explained(snapshot, gang, PROFILE)
    assert reported.fits, "three nodes have room for one replica each"
    assert reported.remedies == (
        Remedy("gpu_memory_mib", 25_000, 20_000, "cluster-0", "node-0", 4, 4),
        Remedy("replicas", 4, 3, "cluster-0", "node-1", 3, 3),
    )
    assert summary(reported).endswith(
        "it would fit with gpu_memory 20000Mi instead of 25000Mi (cluster-0/node-0 and 3 other nodes)"
    )
    wide = job(gpus=1, gpu_memory_mib=25_000, replicas=12, gang=True)
    assert [(each.field, each.required) for each in explained(snapshot, wide, PROFILE).remedies] == [
        ("gpu_memory_mib", 7_500),
        ("replicas", 3),
    ]


def test_two_shortages_have_no_single_remedy() -> None:
    """A job that has to change two fields gets no remedy."""
    snapshot = snapshot_of(node(gpu(memory_mib=900), cpu_milli=500))
    reported = explained(snapshot, job(gpus=1, gpu_memory_mib=1_000, cpu_milli=2_000), PROFILE)
    assert (reported.fits, reported.remedies) == (False, ())


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"gpus": 1, "gpu_memory_mib": 50_000, "cpu_milli": 9_000}, {"gpu_memory_mib": 40_448, "cpu_milli": 2_000}),
        ({"gpus": 3, "gpu_memory_mib": 20_000, "cpu_milli": 9_000}, {"gpu_memory_mib": 9_984, "cpu_milli": 2_000}),
        ({"gpus": 3, "gpu_memory_mib": 20_000, "models": {"NVIDIA L4"}}, {"gpu_memory_mib": 9_984, "models": 0}),
        ({"cpu_milli": 9_000, "memory_mib": 4_000}, {"cpu_milli": 8_000, "memory_mib": 1_000}),
        ({"cpu_milli": 9_000, "gateway": "user", "max_latency_ns": 60, "min_bandwidth_mbps": 200}, None),
        ({"cpu_milli": 9_000, "regions": {"moon"}, "node_labels": {"a": "b"}}, None),
    ],
)
def test_nearest_candidate_has_minimal_changes(asked: dict[str, Any], found: dict[str, int] | None) -> None:
    """With all changes the job fits; without one of them, or with a unit less, it does not."""
    snapshot = snapshot_of(
        cluster(*NARROW, gateway="a"), cluster(node(cpu_milli=1, memory_mib=1), gateway="b"), links=LINKS
    )
    waiting = job(**asked)
    assert not explained(snapshot, waiting, PROFILE).remedies
    remedies = combined_remedies(snapshot, waiting, PROFILE, admits)
    values = {remedy.field: int(remedy.required) for remedy in remedies}
    assert found is None or values == found
    assert len(values) > 1
    known = {change.field: change for change in changes(waiting, LINKS)}

    def with_all(values: dict[str, int]) -> Job:
        result = waiting
        for field, value in values.items():
            result = known[field].apply(result, value)
        return result

    [placement] = place(snapshot.copy(), with_all(values))
    assert {(placement.cluster, placement.node)} == {(each.cluster, each.node) for each in remedies}
    for field, value in values.items():
        others = {name: each for name, each in values.items() if name != field}
        assert not fits(snapshot, with_all(others))
        if (at := list(known[field].values).index(value)) > 0:
            assert not fits(snapshot, with_all({**others, field: known[field].values[at - 1]}))


def test_nearest_candidate_is_empty_when_no_change_helps() -> None:
    """No field of a job helps against taints that it does not tolerate."""
    snapshot = snapshot_of(node(gpu(), taints=(Taint("x"),)))
    assert combined_remedies(snapshot, job(gpus=2), PROFILE, admits) == ()


@pytest.mark.parametrize(
    "asked",
    [
        {"use_types": ["RTX2080TI"]},
        {"models": {"A100-80GB-PCIE"}},
        {"mig": "1g.5gb"},
        {"vendors": {"NVIDIA"}},
        {"vendors": {"NVIDIA"}, "models": {"A100"}},
        {"vendors": {"NVIDIA"}, "use_types": ["H100"], "gpu_memory_mib": 40_000},
    ],
)
def test_no_remedy_changes_the_vendor(asked: dict[str, Any]) -> None:
    """A job for NVIDIA cards is offered no AMD card, also where only the model or a MIG profile says whose it needs."""
    amd = node(gpu(vendor="AMD", model="AMD Instinct MI300X", uuid="amd"), name="amd")
    assert combined_remedies(snapshot_of(amd), job(gpus=1, **asked), PROFILE, admits) == ()
    assert not explained(snapshot_of(amd), job(gpus=1, **asked), PROFILE).remedies
    small = gpu(vendor="NVIDIA", model="Tesla T4", memory_mib=15_360, uuid="t4")
    both = snapshot_of(amd, node(small, name="nvidia"))
    found = explained(both, job(gpus=1, **asked), PROFILE).remedies
    assert {each.node for each in found} <= {"nvidia"}


def test_job_that_fits_gets_no_remedy() -> None:
    """Only infeasible jobs have remedies."""
    reported = explained(snapshot_of(node(gpu()), node()), job(gpus=1), PROFILE)
    assert (reported.fits, reported.remedies) == (True, ())


def test_remedy_for_percent_is_in_percent() -> None:
    """A job that requests a percentage gets the largest percentage that fits."""
    snapshot = snapshot_of(node(mig_gpu()))
    [remedy] = explained(snapshot, job(gpus=1), PROFILE).remedies
    assert (remedy.field, remedy.current, remedy.required) == ("gpu_memory_percent", 100, 98)


def test_explanation_leaves_the_snapshot_unchanged() -> None:
    """It changes no column and adds no demand."""
    snapshot = snapshot_of(node(mig_gpu(), gpu()))
    place(snapshot, job(gpus=1, gpu_memory_mib=4_000))
    before, lines = snapshot.copy(), len(snapshot.demands)
    explained(snapshot, job(gpus=9, gpu_memory_mib=20_000), PROFILE)
    for table in snapshot.arrays._fields:
        assert np.array_equal(getattr(before.arrays, table), getattr(snapshot.arrays, table))
    assert len(snapshot.demands) == lines


def test_bandwidth_of_previous_job_does_not_count() -> None:
    """The next replica is explained as the first of its job, without reserved bandwidth."""
    snapshot = snapshot_of(cluster(node(), gateway="a"), links=LINKS[:1])
    snapshot.arrays.clusters_open[CLUSTERS_RESERVED, 0] = 1
    reported = explained(snapshot, job(gateway="user", min_bandwidth_mbps=101), PROFILE)
    assert [each.reason for each in reported.refusals] == ["not enough free bandwidth"]


def test_removed_nodes_do_not_count() -> None:
    """Columns of removed or replaced nodes are no nodes."""
    snapshot = snapshot_of(cluster(node(name="a"), node(name="b"), name="c"))
    remove_node(snapshot, "c", "a")
    put_node(snapshot, "c", node(gpu(uuid="new"), name="b"))
    reported = explained(snapshot, job(gpus=2), PROFILE)
    assert reported.nodes == sum(each.nodes for each in reported.refusals) == 1


def test_profile_determines_the_filters() -> None:
    """The rejections are those of the profile's own plugins."""
    profile = Profile("own", (WeightedPlugin(OnlyLast()), WeightedPlugin(BestFit())))
    reported = explained(snapshot_of(node(), node(), node(ready=False)), job(), profile)
    assert [(each.plugin, each.reason, each.nodes) for each in reported.refusals] == [("OnlyLast", "not the last", 2)]
    assert [each.node for each in reported.candidates] == ["node-2"]


def test_pre_filter_rejection_counts_for_every_node() -> None:
    """A PreFilter plugin rejects the whole replica."""
    profile = Profile("shut", (WeightedPlugin(Closed()), *PROFILE.plugins))
    reported = explained(snapshot_of(node(), node()), job(), profile)
    assert [(each.plugin, each.reason, each.nodes) for each in reported.refusals] == [("Closed", "closed for today", 2)]
    assert (reported.candidates, reported.remedies) == ((), ())


def test_empty_fleet_is_explained() -> None:
    """Without a report of any cluster, none answers; clusters that report no nodes answer, but have none."""
    assert summary(explained(snapshot_of(), job(gpus=1), PROFILE)) == "no cluster answers"
    assert summary(explained(snapshot_of(cluster(name="a")), job(gpus=1), PROFILE)) == "no cluster has nodes"


def test_sentence_counts_names_the_reasons_and_the_remedy() -> None:
    """One sentence has the number of feasible nodes, the reasons of the others and the smallest remedy."""
    nodes = [node(gpu(memory_mib=8_000))] * 3 + [node(taints=(Taint("x"),))]
    reported = explained(snapshot_of(*nodes), job(gpus=1, gpu_memory_mib=9_000), PROFILE)
    assert summary(reported) == (
        "0 of 4 nodes fit: 3 nodes have too little memory on each GPU, 1 node: taint not tolerated; "
        "it would fit with gpu_memory 8000Mi instead of 9000Mi (cluster-0/node-0)"
    )
    reported = explained(snapshot_of(*nodes), job(gpus=1, models={"NVIDIA L4"}), PROFILE)
    assert summary(reported).endswith("; it would fit without gpu_model (cluster-0/node-0)")
    assert [(each.field, each.current, each.required) for each in reported.remedies] == [("models", "NVIDIA L4", "")]
    reported = explained(snapshot_of(*nodes), job(gpus=1), PROFILE)
    assert summary(reported) == "3 of 4 nodes fit, best cluster-0/node-0; refused: 1 node: taint not tolerated"


def test_what_can_never_be_mended_is_named_first() -> None:
    """A node of another model counts for its model, also if it is full and its cluster is closed; reservations last."""
    a10, h100 = gpu(model="NVIDIA A10G"), gpu(model="NVIDIA H100")
    parts = (
        cluster(node(a10, cpu_milli=1), node(a10), name="a"),
        cluster(node(h100), node(h100), node(h100), name="b"),
    )
    snapshot = snapshot_of(*parts)
    asked = job(gpus=1, models={"NVIDIA H100"}, cpu_milli=1)
    taken = snapshot.nodes[snapshot.node_index["b", "node-0"]].devices[0].uuid
    apart = Refusals(0, frozenset({taken}), frozenset({("a", ""), ("b", "node-1")}))
    limited = replace(asked, demand=apart.retained(asked.demand))
    keepers = [Keeper("reserved_for_maintenance", {"name": "m", "begin": BEGIN, "end": BEGIN})]
    shut = [Keeper("under_maintenance", {"name": "fw", "until": BEGIN}, {("b", "node-2")})]
    snapshot.arrays.nodes[NODE_OPEN, snapshot.node_index["b", "node-2"]] = 0
    limits = [Limitation("Reservations", snapshot, asked, keepers)]
    reported = explain(snapshot, limited, PROFILE, limitations=limits, closed=shut)
    assert [(each.reason, each.nodes) for each in reported.refusals] == [
        ("GPU model or mode not allowed", 2),
        ("under maintenance fw until 2026-11-27 14:05 UTC", 1),
        ("reserved for maintenance m from 2026-11-27 14:05 UTC to 2026-11-27 14:05 UTC", 2),
    ]


BEGIN = "2026-11-27T14:05:00Z"


def linked() -> Snapshot:
    """Create three clusters behind gateways: one with high latency, one unreachable, one with little bandwidth."""
    ties = [
        Link("user", "a", 31_000_000, bandwidth_mbps=100),
        Link("user", "b", None),
        Link("user", "c", 5_000_000, loss_ppm=20_000, bandwidth_mbps=10),
        Link("a", "c", 25_000_000, bandwidth_mbps=100),
    ]
    return Snapshot(fleet(*(cluster(node(), name=name, gateway=name) for name in ("a", "b", "c", "d")), links=ties))


def test_links_that_violate_bounds_are_listed_with_values() -> None:
    """Clusters are in order, each with its link, the violated bound and the excess."""
    asked = job(gateway="user", max_latency_ns=20_000_000, max_loss_ppm=1_000, min_bandwidth_mbps=50)
    found = explained(linked(), asked, PROFILE)
    assert found.links == (
        "user to a: latency 31 ms, bound 20 ms",
        "user to b: nothing answers",
        "user to c: loss 2%, bound 0.1%, 10Mbps free, bound 50Mbps",
        "user to d: not measured",
    )
    assert f"({'; '.join(found.links[:3])}; 1 more link)" in summary(found)


def test_unknown_bandwidth_differs_from_reserved_bandwidth() -> None:
    """Users can remedy either, but in different ways."""
    ties = [Link("user", "a", 5_000_000), Link("user", "b", 5_000_000, bandwidth_mbps=50)]
    parts = [cluster(node(cpu_milli=64_000), name=name, gateway=name) for name in ("a", "b")]
    snapshot, asked = Snapshot(fleet(*parts, links=ties)), job(gateway="user", min_bandwidth_mbps=50)
    assert decide(snapshot, JobQueue(snapshot, [asked]), PROFILE).jobs_placed[0]
    assert explained(snapshot, asked, PROFILE).links == (
        "user to a: bandwidth not known, bound 50Mbps",
        "user to b: 0Mbps free, bound 50Mbps",
    )


def test_links_between_replicas_are_listed() -> None:
    """A job that may not spread gets the clusters of the link; reserved bandwidth is not free."""
    snapshot = linked()
    between = NetworkNeed(max_latency_ns=30_000_000, min_bandwidth_mbps=60)
    wide = job(cpu_milli=40_000, replicas=2, gang=True, between_replicas=between, clusters={"a", "c"})
    assert explained(snapshot, wide, PROFILE).links == ()
    decide(snapshot, JobQueue(snapshot, [wide]), PROFILE)
    assert explained(snapshot, wide, PROFILE).links == ("a to c: 40Mbps free, bound 60Mbps",)


def test_jobs_without_bounds_get_no_links() -> None:
    """Only violated bounds are listed."""
    assert explained(linked(), job(gateway="user"), PROFILE).links == ()


@pytest.mark.parametrize(
    ("asked", "offered", "nearest"),
    [
        ("3g.40gb", mig_gpu(), "7g.40gb"),
        ("4g.20gb", mig_gpu(), "7g.40gb"),
        ("7g.80gb", mig_gpu(), "7g.40gb"),
        ("2g.20gb", mig_gpu(mig_profiles=mig_gpu().mig_profiles[:3]), "3g.20gb"),
        ("1g.10gb", mig_gpu(mig_profiles=mig_gpu().mig_profiles[:2]), "2g.10gb"),
        ("1g.10gb", mig_gpu(mig_profiles=mig_gpu().mig_profiles[:1]), "1g.5gb"),
        ("3g.40gb", gpu(), ""),
    ],
)
def test_nearest_mig_profile_is_named(asked: str, offered: Device, nearest: str) -> None:
    """The next larger profile comes first, else the next smaller one, else a whole device without MIG."""
    snapshot = snapshot_of(node(offered))
    reported = explained(snapshot, job(gpus=1, mig=asked), PROFILE)
    assert [(each.field, each.current, each.required) for each in reported.remedies] == [("mig", asked, nearest)]
    change = f"with mig {nearest} instead of {asked}" if nearest else "without mig"
    assert f"it would fit {change}" in summary(reported)


def test_profile_without_room_is_skipped_for_the_next_nearest() -> None:
    """A profile that is not free now is not named, although it is nearer."""
    snapshot = snapshot_of(node(mig_gpu()))
    place(snapshot, job(gpus=1, mig="2g.10gb"))
    [remedy] = explained(snapshot, job(gpus=1, mig="4g.20gb"), PROFILE).remedies
    assert remedy.required == "3g.20gb"


def test_remedy_for_missing_links_is_another_topology() -> None:
    """A job for one island fits with fewer GPUs, or if it only prefers them to be connected."""
    snapshot = snapshot_of(node(gpu(island=0), gpu(island=0), gpu()))
    reported = explained(snapshot, job(gpus=3, topology=GpuTopology.SAME_ISLAND), PROFILE)
    assert [(each.field, each.required) for each in reported.remedies] == [("gpus", 2), ("gpu_topology", "best-effort")]


def test_candidates_with_closer_devices_come_first() -> None:
    """Nodes without connected devices follow, by score, as they would be chosen."""
    parts = (node(gpu(), gpu(numa=1), cpu_milli=1_000), node(gpu(numa=1), gpu()), node(gpu(island=0), gpu(island=0)))
    reported = explained(snapshot_of(*parts), job(gpus=2, topology=GpuTopology.BEST_EFFORT), PROFILE)
    assert [each.node for each in reported.candidates] == ["node-2", "node-0", "node-1"]
