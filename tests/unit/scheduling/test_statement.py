"""Statements and their rollback in plugins."""

from __future__ import annotations

import pytest

from seaway.domain.errors import InvariantError
from seaway.domain.placement import Placement
from seaway.scheduling.engine import decide
from seaway.scheduling.framework import PASS, Cycle, Plugin, Status
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.policies.greedy import Greedy
from seaway.scheduling.profile import Profile, WeightedPlugin
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.statement import Statement
from seaway.testing.plugins import cluster, fleet, gpu, job, node


class Ledger:
    """A plugin that records reservations."""

    name = "Ledger"

    def __init__(self) -> None:
        self.held: list[tuple[str, int]] = []

    def reserve(self, cycle: Cycle, placement: Placement) -> Status:
        """Add a placement."""
        self.held.append((placement.node, placement.replica))
        return PASS

    def unreserve(self, cycle: Cycle, placement: Placement) -> None:
        """Remove a placement."""
        self.held.remove((placement.node, placement.replica))


@pytest.mark.parametrize("clusters", [1, 2])
def test_plugins_unreserve_a_rolled_back_gang(clusters: int) -> None:
    """A plugin releases its reservations of a gang that does not fit, in one cluster or several."""
    ledgers = Ledger()
    plugins: tuple[Plugin, ...] = (*rules_of_fit(), Greedy(), ledgers)
    profile = Profile("test", tuple(WeightedPlugin(plugin) for plugin in plugins))
    snapshot = Snapshot(fleet(*(cluster(node(gpu())) for _ in range(clusters))))
    jobs = [job("gang", gpus=1, replicas=3, gang=True), job("alone", gpus=1)]
    plan = decide(snapshot, JobQueue(snapshot, jobs), profile)
    assert list(plan.jobs_placed) == [False, True]
    assert ledgers.held == [("node-0", 0)]


def test_committed_statement_cannot_be_rolled_back() -> None:
    """A committed statement is released through its plan."""
    snapshot = Snapshot(fleet(node()))
    statement = Statement(snapshot, JobQueue(snapshot, [job()]))
    statement.mark_unplaced(0)
    assert not statement.commit().placed.any()
    with pytest.raises(InvariantError, match="release its plan"):
        statement.rollback()
