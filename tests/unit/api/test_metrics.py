"""Metrics over HTTP."""

from __future__ import annotations

import re

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from seaway import __version__
from seaway.domain.deployment import UnmanagedPod
from seaway.domain.placement import DeviceSlice
from seaway.learning.policies.monitor import Reason
from seaway.wire.metrics import METRICS
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

BUCKETS = ("0.00025", "0.001", "1", "+Inf")
"""Some bounds of the histograms of decision times."""

LABELS = {
    *("channel", "cluster", "direction", "gateway", "kind", "le", "operation", "outcome", "policy"),
    *("python", "queue", "reason", "resource", "rule", "source", "stage", "state", "status", "version"),
}

OWN = (
    ("seaway_ready",),
    ("seaway_jobs", "state"),
    ("seaway_jobs_reached_total", "state"),
    ("seaway_jobs_unschedulable", "rule"),
    ("seaway_jobs_placed_total", "policy"),
    ("seaway_queue_usage", "queue", "resource"),
    ("seaway_queue_longest_wait_seconds", "queue"),
    ("seaway_queue_wait_seconds_bucket", "queue", "le"),
    ("seaway_stage_seconds_bucket", "stage", "le"),
    ("seaway_deployments_total", "cluster", "outcome"),
    ("seaway_pending_commands", "cluster"),
    ("seaway_pending_commands_retrying", "cluster"),
    ("seaway_pending_command_oldest_seconds", "cluster"),
    ("seaway_loop_failures_total",),
    ("seaway_transaction_seconds_bucket", "le"),
    ("seaway_transaction_failures_total",),
    ("seaway_changes_waiting",),
    ("seaway_store_failing",),
    ("seaway_unreadable_rows",),
    ("seaway_nodes_not_ready", "cluster"),
    ("seaway_gpus_unhealthy", "cluster"),
    ("seaway_http_requests_total", "operation", "status"),
    ("seaway_build_info", "version", "python"),
)
"""Some of the control plane's own metrics, and their labels."""


async def test_metrics_are_there_as_text_and_as_json(rig: Rig) -> None:
    """Both have the same series; the text also has Seaway's own metrics."""
    await rig.submit()
    rig.step(3)
    async with rig.client("admin") as client:
        text = await client.get("/metrics")
        body = (await client.get("/api/v1/metrics")).json()
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {each.name: each.samples for each in text_string_to_metric_families(text.text)}
    assert {"seaway_jobs", "seaway_cluster_last_seen_seconds", *METRICS} <= found.keys()
    assert body["code"] == 200
    rows = body["data"]["GPUDeviceMemoryAllocated"]
    assert [one.value for one in found["GPUDeviceMemoryAllocated"]] == [row["value"] for row in rows]
    assert sum(row["value"] for row in rows) == 8 << 30
    assert {"cluster", "nodeid", "deviceidx", "deviceuuid", "zone", "value"} == rows[0].keys()
    assert {row["cluster"] for row in rows} == {"a", "b"}
    (vgpu,) = body["data"]["vGPUMemoryAllocated"]
    assert vgpu["value"] == 8 << 30
    assert vgpu["pod"]


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/metrics"])
async def test_one_metric_or_one_cluster_can_be_asked_for(rig: Rig, path: str) -> None:
    """Other metrics are left out, including Seaway's own."""
    async with rig.client("viewer") as client:
        one = (await client.get(path, params={"metric": "GPUDeviceCoreLimit"})).text
        assert "GPUDeviceMemoryLimit" not in one
        assert one.count("deviceuuid") == 8
        there = (await client.get(path, params={"cluster": "b", "metric": "GPUDeviceCoreLimit"})).text
        assert there.count("deviceuuid") == 4
        both = (await client.get(path, params={"cluster": "b"})).text
        assert "GPUDeviceMemoryLimit" in both
        assert "seaway_jobs" not in both


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/metrics"])
async def test_unknown_names_are_refused_with_the_nearest(rig: Rig, path: str) -> None:
    """The error names the parameter and a suggestion."""
    async with rig.client("viewer") as client:
        answer = await client.get(path, params={"metric": "GPUDeviceCoresLimit"})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "metric"
        assert "'GPUDeviceCoreLimit'" in answer.json()["detail"]
        assert (await client.get(path, params={"cluster": "c"})).status_code == 422


async def test_names_of_others_stay_hidden_from_tenants(rig: Rig) -> None:
    """A viewer of a tenant sees others' amounts without names; operators see all."""
    await rig.submit("other", queue="theirs", name="secret")
    rig.step(2)
    live = rig.plane.controller.live.fleet
    reported = live.clusters["a"].cluster
    assert reported is not None
    node = reported.nodes[0]
    taken = DeviceSlice(node.devices[0].uuid, 1024, 100)
    live.occupy("a", [UnmanagedPod("hidden-namespace/hidden-pod", node.name, (taken,))], complete=True)
    for path in ("/metrics", "/api/v1/metrics"):
        async with rig.client("viewer") as client:
            seen = (await client.get(path, params={"metric": "vGPUMemoryAllocated"})).text
        assert "hidden" not in seen
        assert "sw-" not in seen
        async with rig.client("other") as client:
            theirs = (await client.get(path, params={"metric": "vGPUMemoryAllocated"})).text
        assert "sw-" in theirs
        assert "hidden" not in theirs
        async with rig.client("operator") as client:
            everything = (await client.get(path, params={"metric": "vGPUMemoryAllocated"})).text
        assert "hidden-pod" in everything


async def test_fallbacks_of_trained_policies_are_counted_by_policy_and_reason(rig: Rig) -> None:
    """Fallback decisions are a counter, and decision times a histogram."""
    counts = rig.plane.policies.counts
    for took_ns in (200_000, 700_000, 2_000_000_000):
        counts.decided("pilot", took_ns)
    counts.fell_back("pilot", Reason.SLOW, "slower than 5 ms")
    async with rig.client("admin") as client:
        text = (await client.get("/metrics")).text
    found = {
        (one.name, *sorted(one.labels.items())): one.value
        for each in text_string_to_metric_families(text)
        for one in each.samples
    }
    assert found["seaway_policy_fallbacks_total", ("policy", "pilot"), ("reason", "slow")] == 1
    buckets = [found["seaway_policy_decision_seconds_bucket", ("le", le), ("policy", "pilot")] for le in BUCKETS]
    assert buckets == [1, 2, 2, 3]
    assert found["seaway_policy_decision_seconds_count", ("policy", "pilot")] == 3
    assert found["seaway_policy_decision_seconds_sum", ("policy", "pilot")] == pytest.approx(2.0009)


async def test_the_control_planes_own_figures_have_few_labels(rig: Rig) -> None:
    """Each has the labels in docs/metrics.md, none of which names a job, a pod or a user."""
    await rig.submit()
    rig.step(3)
    async with rig.client("operator") as client:
        text = (await client.get("/metrics")).text
    found = {
        sample.name: frozenset(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("seaway_")
    }
    assert set().union(*found.values()) <= LABELS
    for name, *labels in OWN:
        assert found[name] == frozenset(labels), name


VAGUE = re.compile(r"\b(?:of it|for that|they took)\b")
"""References to another text."""

FEWEST = 4
"""Minimum number of words in a help text."""


async def families(rig: Rig, role: str = "operator") -> dict[str, Metric]:
    """Return the metrics of a role, by name."""
    async with rig.client(role) as client:
        text = (await client.get("/metrics")).text
    return {each.name: each for each in text_string_to_metric_families(text)}


async def test_every_help_is_on_its_own(rig: Rig) -> None:
    """It is read alone: it names the subject, and the unit if there is one."""
    reported = await families(rig)
    ours = {name: each.documentation for name, each in reported.items() if name.startswith("seaway_")}
    assert [(name, says) for name, says in ours.items() if VAGUE.search(says) or len(says.split()) < FEWEST] == []
    timed = {name: says for name, says in ours.items() if name.endswith("_seconds")}
    assert len(timed) > 5
    assert [(name, says) for name, says in timed.items() if "seconds" not in says.lower()] == []


async def test_what_has_not_happened_yet_is_there_with_nothing(rig: Rig) -> None:
    """The first event then is an increase: placements of a policy, and waits and displaced jobs of each queue."""
    reported = await families(rig)
    placed = {one.labels["policy"]: one.value for one in reported["seaway_jobs_placed"].samples}
    queues = rig.plane.controller.live.queues.values()
    assert placed == dict.fromkeys((each.policy for each in queues), 0)
    waits = {
        one.labels["queue"] for one in reported["seaway_queue_wait_seconds"].samples if one.name.endswith("_count")
    }
    assert waits == {each.name for each in queues}
    preempted = {tuple(one.labels.values()): one.value for one in reported["seaway_preemptions"].samples}
    assert preempted == {(each.name, rule): 0 for each in queues for rule in ("priority", "reclaim")}
    assert {one.value for one in reported["seaway_queue_wait_seconds"].samples} == {0}


async def test_what_runs_and_what_it_takes_is_reported(rig: Rig) -> None:
    """Its version, and the process as Prometheus' own clients tell of it; to a tenant's viewer nothing of that."""
    reported = await families(rig)
    (build,) = reported["seaway_build_info"].samples
    assert (build.labels["version"], build.value) == (__version__, 1)
    process = {"process_cpu_seconds", "process_resident_memory_bytes", "process_start_time_seconds", "process_open_fds"}
    assert process <= reported.keys()
    assert not (process | {"seaway_build_info"}) & (await families(rig, "viewer")).keys()


async def test_stages_are_histograms_of_seconds(rig: Rig) -> None:
    """Every stage is there, also an unused one; the last bucket has the total count."""
    await rig.submit()
    rig.step(3)
    async with rig.client("operator") as client:
        text = (await client.get("/metrics")).text
    found = {
        (one.name, one.labels.get("stage", ""), one.labels.get("le", "")): one.value
        for each in text_string_to_metric_families(text)
        for one in each.samples
    }
    for stage in ("decide", "store", "dispatch", "start"):
        count = found["seaway_stage_seconds_count", stage, ""]
        assert count == found["seaway_stage_seconds_bucket", stage, "+Inf"] == 1, stage
    transactions = found["seaway_transactions_total", "", ""]
    assert found["seaway_transaction_seconds_bucket", "", "+Inf"] == transactions


async def test_amounts_of_queues_are_in_base_units(rig: Rig) -> None:
    """GPUs and CPU are numbers and memory is bytes, for parents too; a tenant's viewer sees no queue."""
    async with rig.client("operator") as client:
        for name, fields in (("all", {"limit": {"gpus": 3}}), ("a", {"parent": "all", "guarantee": {"memory": "4Gi"}})):
            assert (await client.put(f"/api/v1/queues/{name}", json=fields)).status_code == 200
    rig.step()
    await rig.submit("operator", queue="a", resources={"gpus": 2, "cpu": 0.5, "memory": "1Gi"})
    rig.step(3)
    reported = await families(rig)
    found = {
        name: {tuple(one.labels.values()): one.value for one in reported[f"seaway_queue_{name}"].samples}
        for name in ("usage", "guarantee", "limit")
    }
    assert {key: found["usage"]["all", key] for key in ("gpus", "cpu", "memory")} == {
        "gpus": 2, "cpu": 0.5, "memory": 1 << 30,
    }  # fmt: skip
    assert found["usage"]["default", "gpus"] == 0
    assert found["guarantee"] == {("a", "memory"): 4 << 30, ("all", "memory"): 4 << 30}
    assert found["limit"] == {("all", "gpus"): 3}
    assert "seaway_queue_usage" not in await families(rig, "viewer")


@pytest.mark.anyio
async def test_quotas_have_usage_guarantee_and_limit(rig: Rig) -> None:
    """Tenants with a quota have series for each resource of it, and for GPUs and jobs; others have none."""
    quota = {"guarantee": {"memory": "4Gi"}, "limit": {"gpus": 3, "jobs": 7}}
    async with rig.client("admin") as client:
        assert (await client.put("/api/v1/tenants/default", json={"quotas": {"default": quota}})).status_code == 200
    rig.step()
    await rig.submit("operator", resources={"gpus": 2, "cpu": 0.5, "memory": "1Gi"})
    rig.step(3)
    reported = await families(rig)
    found = {
        name: {
            (one.labels["tenant"], one.labels["pool"], one.labels["resource"]): one.value
            for one in reported[f"seaway_quota_{name}"].samples
        }
        for name in ("usage", "guarantee", "limit")
    }
    at = ("default", "default")
    assert {key[2]: value for key, value in found["usage"].items() if key[2] in ("gpus", "jobs", "memory")} == {
        "gpus": 2, "jobs": 1, "memory": 1 << 30,
    }  # fmt: skip
    assert found["guarantee"] == {(*at, "memory"): 4 << 30}
    assert found["limit"] == {(*at, "gpus"): 3, (*at, "jobs"): 7}
