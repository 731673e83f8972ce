"""The plugin passes Seaway's suite for plugins, and prefers warm nodes."""

from __future__ import annotations

from seaway_warm_nodes import WarmNodes, warm_nodes

from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import check_plugin, fleet, gpu, job, node


def test_plugin_keeps_the_rules() -> None:
    """The rules for Seaway's own plugins also apply to this one."""
    check_plugin(WarmNodes())


def test_tenant_returns_to_its_node() -> None:
    """A tenant's next replica goes to the node of the last one, although best fit would choose another."""
    snapshot = Snapshot(fleet(node(gpu(), name="large"), node(gpu(), name="small", cpu_milli=8000)))
    pinned = job(name="first", gpus=1, gpu_memory_mib=1000, cpu_milli=16_000, tenant="a")
    free = job(name="second", gpus=1, gpu_memory_mib=1000, cpu_milli=1000, tenant="a")
    plan = decide(snapshot, JobQueue(snapshot, [pinned, free]), warm_nodes(PolicyOptions()))
    assert [placement.node for placement in plan.placements()] == ["large", "large"]
