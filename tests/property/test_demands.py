"""Tables of demands that drop lines: remaining lines stay, and new ones are written as in a new table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.domain.cluster import Fleet
from seaway.domain.job import GpuTopology, Job
from seaway.scheduling.columns import (
    DEMAND_MASK,
    DEMAND_NEAR,
    DEMAND_NETWORK,
    DEMAND_STRICTER,
    PLAN_DEMAND,
    STRICTER_ROWS,
)
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.demands import DemandTable, stricter_rules
from seaway.scheduling.snapshot.snapshot import Snapshot
from tests.property.strategies import fleets, jobs


def meant(table: DemandTable, line: int) -> list[list[int]]:
    """Return the meaning of a line, independent of the numbers of its masks."""
    arrays = table.arrays
    amounts = arrays.amounts[line].copy()
    mask = amounts[DEMAND_MASK]
    of_clusters = [
        arrays.cluster_ok[line] if line >= 0 else np.ones(0, np.uint8)
        for line in amounts[[DEMAND_NETWORK, DEMAND_NEAR]]
    ]
    amounts[[DEMAND_MASK, DEMAND_NETWORK, DEMAND_NEAR]] = 0
    amounts[DEMAND_STRICTER : DEMAND_STRICTER + STRICTER_ROWS] = 0
    return [each.tolist() for each in (amounts, arrays.node_ok[mask], arrays.device_ok[mask], *of_clusters)]


def tried_first(known: Iterable[Job]) -> int:
    """Return the number of further lines: with the topology `BEST_EFFORT`, stricter demands are tried first."""
    demands = {job.demand for job in known}
    wide = [each for each in demands if each.devices.topology is GpuTopology.BEST_EFFORT]
    stricter = {replace(each, devices=rules) for each in wide for rules in stricter_rules(each.devices)}
    return len(stricter - demands)


@given(fleets(), st.lists(st.tuples(jobs(), st.sets(st.integers(0, 20))), min_size=2, max_size=4))
def test_stored_data_keeps_its_line_and_its_meaning(parts: Fleet, rounds: list[tuple[list[Job], set[int]]]) -> None:
    """However often lines are dropped and added, each has the meaning that it has in a table of its own."""
    table = DemandTable(parts)
    known: dict[int, Job] = {}
    for coming, forgotten in rounds:
        known |= {table.index(job.demand): job for job in coming}
        assert len(table) == len(known) + tried_first(known.values())
        for line, job in known.items():
            alone = DemandTable(parts)
            assert meant(table, line) == meant(alone, alone.index(job.demand))
            assert table.demand(line) == job.demand
        known = {line: job for line, job in known.items() if line not in forgotten}
        table.retain(known)
        assert len(table) == len(known) + tried_first(known.values())
        assert max(known, default=0) < len(table.arrays.amounts)


@pytest.mark.parametrize("name", ["bestfit", "seaway", "fgd"])
@settings(max_examples=settings().max_examples // 3)
@given(fleets(), jobs(), jobs(), jobs())
def test_forgetting_changes_no_decision(
    name: str, parts: Fleet, held: list[Job], gone: list[Job], new: list[Job]
) -> None:
    """Decisions and releases after dropping all unused lines equal those without dropping."""
    plans, free = [], []
    for forgets in (False, True):
        snapshot, policy = Snapshot(parts), make_policy(name, PolicyOptions(mix=held))
        retained = decide(snapshot, JobQueue(snapshot, held), policy)
        left = decide(snapshot, JobQueue(snapshot, gone), policy)
        snapshot.release(left.decisions, left.slices, np.arange(len(left.decisions)))
        if forgets:
            snapshot.retain_demands(set(retained.decisions[:, PLAN_DEMAND].tolist()))
        plan = decide(snapshot, JobQueue(snapshot, new), policy)
        plans.append([str(each) for each in plan.placements()])
        snapshot.release(retained.decisions, retained.slices, np.arange(len(retained.decisions)))
        free.append((snapshot.arrays.nodes.tolist(), snapshot.arrays.devices.tolist()))
    assert plans[0] == plans[1]
    assert free[0] == free[1]
