"""The search by blocks against a plain search of every node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.domain.cluster import Fleet
from seaway.domain.job import GpuTopology, Job
from seaway.domain.node import Node
from seaway.scheduling.columns import BLOCK_NODES, PLAN_NODE
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import Level, PolicyOptions, make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, job
from tests.property.strategies import REQUESTS, jobs, nodes
from tests.unit.scheduling.requesting import cycle_for, refusals

EXAMPLES = settings().max_examples // 10
POLICIES: list[tuple[str, Level]] = [
    ("greedy", "node"),
    ("bestfit", "node"),
    ("random", "node"),
    ("utilization", "node"),
    ("spread", "node"),
    ("bestfit", "cluster"),
]


@dataclass(frozen=True)
class Sketch:
    """Three clusters with several blocks of nodes, of a few kinds in no order."""

    kinds: tuple[Node, ...]
    seed: int

    def fleet(self) -> Fleet:
        """Make the fleet."""
        order = np.random.default_rng(self.seed).integers(len(self.kinds), size=4 * BLOCK_NODES + 9)
        kinds = [self.kinds[kind] for kind in order]
        members = [replace(kind, cpu_milli=kind.cpu_milli + at % 7) for at, kind in enumerate(kinds)]
        cuts = (0, BLOCK_NODES // 2, 2 * BLOCK_NODES, len(members))
        return fleet(*(cluster(*members[first:end]) for first, end in pairwise(cuts)))


SKETCHES = st.builds(Sketch, st.lists(nodes(), min_size=3, max_size=8).map(tuple), st.integers(0, 99))


def crowd() -> st.SearchStrategy[list[Job]]:
    """Create many jobs, so that blocks fill up, then a few of any kind."""
    many = st.sampled_from(REQUESTS).map(lambda request: [job("many", cpu_milli=500, replicas=300, **request)])
    return st.tuples(many, jobs(most=4)).map(lambda parts: [*parts[0], *(bare(each) for each in parts[1])])


def bare(each: Job) -> Job:
    """Return a job of one replica without network bounds, which these clusters cannot meet."""
    made = job(each.name)
    network = replace(each.demand, gateway="", network=made.demand.network)
    return replace(each, demand=network, replicas=1, gang=False, ring=False, between_replicas=made.between_replicas)


def without_preferences(each: Job) -> Job:
    """Return a job for which no part of the fleet is tried first."""
    rules = each.demand.devices
    if rules.topology is GpuTopology.BEST_EFFORT:
        rules = replace(rules, topology=GpuTopology.ANY)
    return replace(each, demand=replace(each.demand, devices=rules), data=job(each.name).data)


def best_by_looking_everywhere(snapshot: Snapshot, each: Job, policy: Profile) -> int:
    """Return the first of the nodes with the highest score among all that fit; -1 for none."""
    [(plugin, _)] = policy.scores()
    scores = plugin.score(cycle_for(snapshot, each))
    fitting = [n for n, refusal in enumerate(refusals(snapshot, each)) if not refusal]
    return max(fitting, key=lambda n: (scores[n], -n), default=-1)


@pytest.mark.parametrize(("name", "level"), POLICIES)
@settings(max_examples=EXAMPLES)
@given(large=SKETCHES, queue=crowd())
def test_block_search_equals_full_search(name: str, level: Level, large: Sketch, queue: list[Job]) -> None:
    """Over several blocks with closed nodes, machine code takes the nodes that plugins take."""
    plans = []
    for plain in (False, True):
        snapshot = Snapshot(large.fleet())
        policy = make_policy(name, PolicyOptions(level=level, plain=plain))
        plans.append(decide(snapshot, JobQueue(snapshot, queue), policy))
    np.testing.assert_array_equal(plans[0].decisions[:, PLAN_NODE], plans[1].decisions[:, PLAN_NODE])


@settings(max_examples=EXAMPLES)
@given(large=SKETCHES, queue=crowd())
def test_bestfit_is_the_first_of_the_highest(large: Sketch, queue: list[Job]) -> None:
    """The chosen node has the highest score of all that fit, and the lowest index among equals."""
    snapshot, policy = Snapshot(large.fleet()), make_policy("bestfit")
    assert isinstance(policy, Profile)
    for each in map(without_preferences, queue):
        expected = best_by_looking_everywhere(snapshot, replace(each, replicas=1), policy)
        plan = decide(snapshot, JobQueue(snapshot, [each]), policy)
        assert plan.decisions[0, PLAN_NODE] == expected
