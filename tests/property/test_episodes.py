"""Invariants of every episode, for any fleet, jobs and choices."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.learning.episodes.episode import Episode, EpisodeOptions
from seaway.learning.instances.instance import Instance
from seaway.scheduling.columns import (
    CLUSTERS_ALLOWED,
    DEVICE_CORE_FREE,
    DEVICE_MEMORY_FREE,
    DEVICE_SLOTS_FREE,
    NODE_CLUSTER,
    NODE_CPU_FREE,
    NODE_MEMORY_FREE,
    NODE_PODS_FREE,
)
from seaway.scheduling.framework import Filter, Mask
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from tests.property.strategies import fleets, jobs

EXAMPLES = settings().max_examples // 2

TABLES = ("nodes", "devices", "blocks", "clusters", "bandwidth", "gateways")
"""The tables of total and free resources."""

CHOICES = st.lists(st.integers(0, 11), min_size=1, max_size=40)
"""Actions for one job after another, repeated: even numbers choose clusters, odd ones nodes; 8 to 11 wait."""


def begun(fleet: Fleet, queue: list[Job], *, departures: bool) -> Episode:
    """Begin an episode; with departures, one job arrives per second, and later names run longer."""
    if departures:
        queue = [
            Job(job.name, job.demand, priority=at % 2, arrives_s=at, expected_duration_s=at * 3 % 7)
            for at, job in enumerate(queue)
        ]
    return Episode(Instance("drawn", fleet, tuple(queue)), EpisodeOptions(departures=departures))


def decide(episode: Episode, choice: int) -> None:
    """Decide the current job."""
    if choice >= 8:
        episode.wait()
    elif choice % 2:
        legal = np.flatnonzero(episode.legal_nodes())
        if legal.size:
            assert episode.place_on_node(int(legal[choice % legal.size]))
        else:
            episode.lose()
    else:
        c = choice // 2 % len(episode.snapshot.clusters)
        assert episode.legal_clusters()[c] == episode.place_in_cluster(c)


def finished(episode: Episode, choices: list[int]) -> Episode:
    """Decide every job."""
    at = 0
    while not episode.done:
        decide(episode, choices[at % len(choices)])
        at += 1
    return episode


def by_filters(episode: Episode) -> Mask:
    """Return the mask of the current job the slow way: with the engine's own plugins, one after the other."""
    policy = make_policy("greedy")
    assert isinstance(policy, Profile)
    cycle = episode.cycle()
    cycle.feasible[:] = True
    cycle.usable[:] = episode.snapshot.arrays.clusters_open[CLUSTERS_ALLOWED] != 0
    for each in policy.at(Filter):  # type: ignore[type-abstract]
        cycle.feasible &= each.filter(cycle) == 0
    return cycle.feasible


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(most_replicas=1), choices=CHOICES, departures=st.booleans())
def test_nothing_is_over_capacity(fleet: Fleet, queue: list[Job], choices: list[int], departures: bool) -> None:
    """After every decision no node, device, link or gateway has allocated more than it has."""
    episode = begun(fleet, queue, departures=departures)
    at = 0
    while not episode.done:
        decide(episode, choices[at % len(choices)])
        arrays = episode.snapshot.arrays
        assert (arrays.nodes[[NODE_CPU_FREE, NODE_MEMORY_FREE, NODE_PODS_FREE]] >= 0).all()
        assert (arrays.devices[[DEVICE_MEMORY_FREE, DEVICE_CORE_FREE, DEVICE_SLOTS_FREE]] >= 0).all()
        assert (arrays.bandwidth >= 0).all()
        assert (arrays.gateways >= 0).all()
        at += 1


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(most_replicas=1), choices=CHOICES)
def test_what_is_legal_is_what_the_plugins_let_pass(fleet: Fleet, queue: list[Job], choices: list[int]) -> None:
    """The mask of nodes equals the plugins' result, and that of clusters the first of their nodes."""
    episode = begun(fleet, queue, departures=False)
    at = 0
    while not episode.done:
        fits = by_filters(episode)
        assert episode.legal_nodes().tolist() == fits.tolist()
        cluster_of = episode.snapshot.arrays.nodes[NODE_CLUSTER]
        firsts = [
            next((n for n in np.flatnonzero(fits).tolist() if cluster_of[n] == c), -1)
            for c in range(len(fleet.clusters))
        ]
        assert episode.first_nodes().tolist() == firsts
        assert episode.fits == bool(fits.any())
        decide(episode, choices[at % len(choices)])
        at += 1


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(most_replicas=1), choices=CHOICES, departures=st.booleans())
def test_a_reset_leaves_nothing_behind(fleet: Fleet, queue: list[Job], choices: list[int], departures: bool) -> None:
    """The fleet is empty again, and the same choices have the same result."""
    episode = finished(begun(fleet, queue, departures=departures), choices)
    plan, counts, use = episode.plan(), episode.outcome("").counts, episode.outcome("").use
    episode.reset()
    empty = Snapshot(fleet).arrays
    for name in TABLES:
        np.testing.assert_array_equal(getattr(episode.snapshot.arrays, name), getattr(empty, name), err_msg=name)
    finished(episode, choices)
    np.testing.assert_array_equal(episode.plan().decisions, plan.decisions)
    assert list(episode.plan().placements()) == list(plan.placements())
    assert (episode.outcome("").counts, episode.outcome("").use) == (counts, use)


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(most_replicas=1), choices=CHOICES, departures=st.booleans())
def test_every_job_comes_to_one_end(fleet: Fleet, queue: list[Job], choices: list[int], departures: bool) -> None:
    """Each job is placed, rejected or failed; no more than the configured number are offered, and the episode ends."""
    counts = finished(begun(fleet, queue, departures=departures), choices).outcome("").counts
    assert counts.jobs == len(queue) == counts.placed + counts.refused + counts.failed
    assert min(counts.placed, counts.refused, counts.failed) >= 0
