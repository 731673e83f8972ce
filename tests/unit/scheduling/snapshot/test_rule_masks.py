"""What is worked out of a fleet once."""

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


def test_copies_share_what_hangs_on_the_fleet_alone() -> None:
    """It is worked out once for a snapshot and its copies, and again once the fleet of one has changed."""
    count = itertools.count(1)
    known = FleetCache(lambda _: next(count))
    snapshot = Snapshot(FLEET)
    twin = snapshot.copy()
    assert [known(each) for each in (snapshot, twin, twin.copy())] == [1, 1, 1]
    put_node(twin, twin.clusters[0].name, replace(ONE, labels={"zone": "east"}))
    assert [known(each) for each in (snapshot, twin)] == [1, 2]


def test_what_is_written_to_is_each_ones_own() -> None:
    """A copy decides another job next: it may not write where the snapshot remembers."""
    retained: SnapshotCache[list[int]] = SnapshotCache(lambda _: [])
    snapshot = Snapshot(FLEET)
    twin = snapshot.copy()
    retained(snapshot).append(1)
    assert (retained(snapshot), retained(twin)) == ([1], [])


@pytest.mark.parametrize("policy", [Seaway(MIX), Fgd(MIX)], ids=lambda policy: policy.name)
def test_policies_share_tables_between_copies_and_no_scratch(policy: Seaway | Fgd) -> None:
    """What a compiled policy reads is the same array for a copy; what it writes is not."""
    snapshot = Snapshot(FLEET)
    ours, theirs = policy.params(snapshot), policy.params(snapshot.copy())
    assert ours.kind is theirs.kind
    for mine, other in zip(ours.cache, theirs.cache, strict=True):
        assert not np.shares_memory(mine, other)
