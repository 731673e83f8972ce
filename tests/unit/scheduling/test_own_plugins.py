"""The built-in scores and sorters pass the suite for third-party plugins."""

from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.scheduling.framework import Plugin
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plugins.clusters import ClusterScore, ClusterWeights
from seaway.scheduling.plugins.network import NetworkScore
from seaway.scheduling.plugins.priority_sort import PrioritySort
from seaway.scheduling.policies.cluster_level import ClusterLevel, ClusterRule
from seaway.scheduling.policies.greedy import Greedy
from seaway.scheduling.policies.random import Random
from seaway.scheduling.policies.spread import Spread
from seaway.scheduling.policies.utilization import Utilization
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import check_plugin, fleet, job, node

PLUGINS: list[Plugin] = [
    Greedy(),
    Random(),
    Spread(),
    Utilization(),
    ClusterScore(),
    NetworkScore(),
    PrioritySort(),
    *(ClusterLevel(rule) for rule in ClusterRule),
]


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_plugin_passes_the_suite(plugin: Plugin) -> None:
    """The suite of `seaway.testing` finds no error."""
    check_plugin(plugin)


def test_queue_order_is_priority_then_arrival_then_position() -> None:
    """Higher priority goes first, then earlier arrival, then earlier position."""
    snapshot = Snapshot(fleet(node()))
    jobs = [
        job("late", arrives_s=9),
        job("urgent", priority=5, arrives_s=20),
        job("early", arrives_s=1),
        job("early too", arrives_s=1),
    ]
    order = PrioritySort().order(JobQueue(snapshot, jobs))
    assert [jobs[j].name for j in order] == ["urgent", "early", "early too", "late"]


@pytest.mark.parametrize(
    "weights", [{"free": -1}, dict.fromkeys(("free", "location", "topology", "hardware", "price"), 0)]
)
def test_weights_have_to_be_positive_in_sum(weights: dict[str, int]) -> None:
    """Negative weights, and weights that are all 0, are rejected."""
    with pytest.raises(RejectedError, match="from 0 up"):
        ClusterWeights(**weights)
