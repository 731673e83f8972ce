"""Scenarios as data, from clusters and jobs to placements, in the TOML files beside this one.

A file is a list of scenarios:

- `rule`: the sentence that it states;
- `clusters`: tables of the fields of `Cluster`; `nodes` is a list of nodes, each a list of its devices' memory in GiB,
  and `cpu_milli` applies to each node;
- `gateways`: ``"gateway Mbit/s"``, the capacity of interfaces in each direction; others have no limit;
- `links`: ``"gateway gateway milliseconds Mbit/s"``, for both directions;
- `jobs`: tables of the arguments of `seaway.testing.plugins.job`; `between` limits the links between replicas, `data`
  names the location of its data;
- `policy` and `level`, best fit by default, or `weights` for the cluster score alone;
- `placed`: the place of each replica of each job, ``"cluster/node"`` or ``"-"``, one after the other;
- `counted`: the jobs that count as placed, all jobs by default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.job import DataSource, Job
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.scheduling.engine import Policy, decide
from seaway.scheduling.framework import Plugin
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.plugins.clusters import ClusterScore, ClusterWeights
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.profile import Profile, WeightedPlugin
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node

MIB_PER_GIB = 1024
NO_WEIGHTS = {"free": 0, "location": 0, "topology": 0, "hardware": 0, "price": 0}
Scenario = dict[str, Any]


def scenarios() -> Iterator[Any]:
    """Read every scenario of every file."""
    for file in sorted(Path(__file__).parent.glob("*.toml")):
        for scenario in tomllib.loads(file.read_text())["scenario"]:
            yield pytest.param(scenario, id=f"{file.stem}: {scenario['rule']}")


def fleet_of(scenario: Scenario) -> Fleet:
    """Create a scenario's fleet."""
    lines = [line.split() for line in scenario.get("links", ())]
    links = [
        Link(*ends, latency_ns=int(milliseconds) * 1_000_000, bandwidth_mbps=int(mbps))
        for first, second, milliseconds, mbps in lines
        for ends in ((first, second), (second, first))
    ]
    speeds = [line.split() for line in scenario.get("gateways", ())]
    gateways = [Gateway(name, speed_mbps=int(mbps)) for name, mbps in speeds]
    return fleet(*(cluster_of(dict(table)) for table in scenario["clusters"]), links=links, gateways=gateways)


def cluster_of(table: dict[str, Any]) -> Cluster:
    """Create a cluster."""
    cpu_milli = table.pop("cpu_milli", 64_000)
    nodes = [
        node(*(gpu(memory_mib=gib * MIB_PER_GIB) for gib in devices), cpu_milli=cpu_milli)
        for devices in table.pop("nodes")
    ]
    return cluster(*nodes, **{**table, "hardware": frozenset(table.get("hardware", ()))})


def job_of(table: Scenario) -> Job:
    """Create a job."""
    figures: Scenario = {key: set(value) if isinstance(value, list) else value for key, value in table.items()}
    between, data = NetworkNeed(**figures.pop("between", {})), figures.pop("data", {})
    return job(**figures, between_replicas=between, data=DataSource(**data))


def policy_of(scenario: Scenario, *, plain: bool) -> Profile | Policy:
    """Create a scenario's policy."""
    if "weights" in scenario:
        score = ClusterScore(ClusterWeights(**NO_WEIGHTS | scenario["weights"]))
        plugins: tuple[Plugin, ...] = (*rules_of_fit(), score)
        return Profile("scenario", tuple(WeightedPlugin(plugin) for plugin in plugins))
    options = PolicyOptions(level=scenario.get("level", "node"), plain=plain)
    return make_policy(scenario.get("policy", "bestfit"), options)


def whereabouts(plan: Plan, number: int) -> list[str]:
    """Return the places of the replicas of one job."""
    rows = [int(row) for row in plan.rows_of(number)]
    found = [plan.placement(row) if plan.placed[row] else None for row in rows]
    return [f"{each.cluster}/{each.node}" if each else "-" for each in found]


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("scenario", list(scenarios()))
def test_scenario(scenario: Scenario, *, plain: bool) -> None:
    """Jobs are placed as the scenario states."""
    snapshot = Snapshot(fleet_of(scenario))
    jobs = [job_of(table) for table in scenario["jobs"]]
    plan = decide(snapshot, JobQueue(snapshot, jobs), policy_of(scenario, plain=plain))
    assert {each.name: whereabouts(plan, number) for number, each in enumerate(jobs)} == scenario["placed"]
    counted = [each.name for each, placed in zip(jobs, plan.jobs_placed, strict=True) if placed]
    assert counted == scenario.get("counted", [each.name for each in jobs])
