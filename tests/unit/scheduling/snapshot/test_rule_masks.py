"""Tables of a fleet that snapshots share."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from seaway.scheduling.policies.fgd import Fgd
from seaway.scheduling.policies.seaway.plugin import Seaway
from seaway.scheduling.snapshot.rule_masks import FleetCache, SnapshotCache
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_node
from seaway.testing.plugins import cluster, fleet, gpu, job, node

ONE = node(gpu(), name="one")
FLEET = fleet(cluster(ONE, node(gpu(), gpu(), name="two")))
MIX = [job("small", gpus=1), job("wide", gpus=2)]


def test_clones_share_tables_of_the_fleet() -> None:
    """A table is computed once for a snapshot and its clones, and again after a change of the fleet of one."""
    count = itertools.count(1)
    known = FleetCache(lambda _: next(count))
    snapshot = Snapshot(FLEET)
    twin = snapshot.copy()
    assert [known(each) for each in (snapshot, twin, twin.copy())] == [1, 1, 1]
    put_node(twin, twin.clusters[0].name, replace(ONE, labels={"zone": "east"}))
    assert [known(each) for each in (snapshot, twin)] == [1, 2]


def test_clones_have_separate_writable_tables() -> None:
    """A clone plans another job next and must not write to cached tables of the snapshot."""
    retained: SnapshotCache[list[int]] = SnapshotCache(lambda _: [])
    snapshot = Snapshot(FLEET)
    twin = snapshot.copy()
    retained(snapshot).append(1)
    assert (retained(snapshot), retained(twin)) == ([1], [])


@pytest.mark.parametrize("policy", [Seaway(MIX), Fgd(MIX)], ids=lambda policy: policy.name)
def test_policies_share_tables_of_clones_but_no_scratch(policy: Seaway | Fgd) -> None:
    """Arrays that a compiled policy reads are shared with clones; arrays that it writes are not."""
    snapshot = Snapshot(FLEET)
    ours, theirs = policy.params(snapshot), policy.params(snapshot.copy())
    assert ours.kind is theirs.kind
    for mine, other in zip(ours.cache, theirs.cache, strict=True):
        assert not np.shares_memory(mine, other)
