"""Sets of clusters with good links between them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seaway.scheduling.gang import ClusterNetwork, best_sets

MATRIX = st.integers(2, 5).flatmap(
    lambda count: st.tuples(
        st.lists(st.integers(1, 9), min_size=count * count, max_size=count * count),
        st.lists(st.booleans(), min_size=count * count, max_size=count * count),
        st.lists(st.integers(0, 3), min_size=count, max_size=count),
    )
)


def between(latency: list[int], allowed: list[bool], count: int) -> ClusterNetwork:
    """Create a network of `count` clusters, the same in both directions."""
    table = np.array(latency, np.int64).reshape(count, count)
    table = np.triu(table, 1) + np.triu(table, 1).T
    both = np.array(allowed).reshape(count, count)
    return ClusterNetwork(table, np.ones((count, count), np.int64), both | both.T | np.eye(count, dtype=np.bool_))


@given(MATRIX, st.integers(1, 8))
def test_sets_hold_the_gang_within_its_bounds(figures: tuple[list[int], list[bool], list[int]], replicas: int) -> None:
    """Every set holds all replicas, its clusters are allowed together, and better sets come first."""
    latency, allowed, counts = figures
    network, holds = between(latency, allowed, len(counts)), np.array(counts, np.int64)
    seeds = [c for c, count in enumerate(counts) if count]
    found = list(best_sets(network, holds, replicas, seeds))
    for each in found:
        pairs = list(combinations(each.members, 2))
        assert holds[list(each.members)].sum() >= replicas
        assert all(network.allowed[pair] for pair in pairs)
        assert each.latency_ns == max((network.latency_ns[pair] for pair in pairs), default=0)
    firsts = {each.rank: each for each in reversed(found)}
    if found:
        assert found[0] == min(firsts.values())


@given(MATRIX, st.integers(1, 8))
def test_feasible_pair_is_always_found(figures: tuple[list[int], list[bool], list[int]], replicas: int) -> None:
    """A set exists when one cluster or an allowed pair holds the gang."""
    latency, allowed, counts = figures
    network, holds = between(latency, allowed, len(counts)), np.array(counts, np.int64)
    network = ClusterNetwork(network.latency_ns, network.free_mbps, np.ones_like(network.allowed))
    seeds = [c for c, count in enumerate(counts) if count]
    assert bool(list(best_sets(network, holds, replicas, seeds))) == (holds.sum() >= replicas)
