"""Sets of clusters with good links between them."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seaway.scheduling.gang import ClusterNetwork, best_sets, grow_ring, grow_set
from seaway.scheduling.ring import best_ring

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
    found = list(best_sets(network, holds, replicas, seeds, grow_set))
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
    assert bool(list(best_sets(network, holds, replicas, seeds, grow_set))) == (holds.sum() >= replicas)


@given(MATRIX, st.integers(1, 8))
def test_rings_hold_the_gang(figures: tuple[list[int], list[bool], list[int]], replicas: int) -> None:
    """Every ring has several clusters, which hold all replicas, and its longest link orders it."""
    latency, allowed, counts = figures
    network, holds = between(latency, allowed, len(counts)), np.array(counts, np.int64)
    seeds = [c for c, count in enumerate(counts) if count]
    for each in best_sets(network, holds, replicas, seeds, grow_ring):
        links = list(zip(each.members, [*each.members[1:], each.members[0]], strict=True))
        assert len(set(each.members)) == len(each.members) > 1
        assert holds[list(each.members)].sum() >= replicas
        assert all(network.allowed[link] for link in links)
        assert each.latency_ns == max(network.latency_ns[link] for link in links)


@given(st.lists(st.integers(0, 9), min_size=25, max_size=25), st.lists(st.booleans(), min_size=25, max_size=25),
       st.permutations(range(5)), st.integers(1, 5))  # fmt: skip
def test_best_ring_is_that_of_all_orders(
    latency: list[int], allowed: list[bool], members: list[int], count: int
) -> None:
    """The longest link is the shortest possible, then their sum; links may differ by direction."""
    table, may = np.array(latency, np.int64).reshape(5, 5), np.array(allowed).reshape(5, 5)
    members = members[:count]
    merits = []
    for order in permutations(members[1:]):
        ring = (members[0], *order)
        links = list(zip(ring, [*ring[1:], ring[0]], strict=True)) if count > 1 else []
        if all(may[link] for link in links):
            merits.append((max((table[link] for link in links), default=0), sum(table[link] for link in links), ring))
    found = best_ring(table, may, members)
    if not merits:
        assert found is None
        return
    assert found is not None
    assert found[0] == members[0]
    links = list(zip(found, [*found[1:], found[0]], strict=True)) if count > 1 else []
    assert (max((table[link] for link in links), default=0), sum(table[link] for link in links)) == min(merits)[:2]
    assert all(may[link] for link in links)
