"""Invariants of jobs with data locality, for any policy, fleet and running jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.domain.cluster import Fleet
from seaway.domain.job import NO_DATA, DataSource, Job
from seaway.scheduling.columns import NODE_CLUSTER, PLAN_NODE
from seaway.scheduling.data_locality import locality_tiers
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from tests.property.strategies import DATA, fleets, jobs

EXAMPLES = settings().max_examples // 6
POLICIES = ("bestfit", "spread")
places = st.sampled_from([each for each in DATA if each.location])


def planned(fleet: Fleet, held: list[Job], asked: Job, policy: str) -> Plan:
    """Schedule a job while others already run."""
    snapshot, profile = Snapshot(fleet), make_policy(policy)
    decide(snapshot, JobQueue(snapshot, held), profile)
    return decide(snapshot, JobQueue(snapshot, [asked]), profile)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(most=6), data=places)
def test_no_one_is_refused_for_data(policy: str, fleet: Fleet, queue: list[Job], data: DataSource) -> None:
    """A job with data is placed whenever it would be placed without."""
    *held, asked = queue
    if planned(fleet, held, replace(asked, data=NO_DATA), policy).jobs_placed[0]:
        assert planned(fleet, held, replace(asked, data=data), policy).jobs_placed[0]


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(most=6), data=places)
def test_data_goes_no_farther_than_needed(policy: str, fleet: Fleet, queue: list[Job], data: DataSource) -> None:
    """If a job is whole in one cluster, no cluster that is nearer to its data by a ring could have held it.

    For a job without a gang this is checked with one replica.
    """
    *held, asked = queue
    asked = replace(asked, data=data, replicas=asked.replicas if asked.gang else 1)
    plan = planned(fleet, held, asked, policy)
    homes = {int(c) for c in plan.snapshot.arrays.nodes[NODE_CLUSTER, plan.decisions[plan.placed, PLAN_NODE]]}
    if not plan.jobs_placed[0] or len(homes) > 1 or not plan.pulls:
        return
    around = locality_tiers(plan.pulls[0]).argmax(axis=0)
    for near in (each for c, each in enumerate(fleet.clusters) if around[c] < around[homes.copy().pop()]):
        rules = replace(asked.demand.nodes, clusters=frozenset({near.name}))
        there = replace(asked, demand=replace(asked.demand, nodes=rules))
        assert not planned(fleet, held, there, policy).jobs_placed[0]
