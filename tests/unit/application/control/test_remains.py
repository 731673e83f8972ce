"""Remaining objects of an attempt that never ran are removed, also after a restart."""

from __future__ import annotations

import pytest

from seaway.application.control.reports import Observation
from seaway.application.ports.backend import Changes, Command, Removal
from seaway.application.records import PendingCommand
from seaway.domain.deployment import Workload, WorkloadPhase
from tests.fakes.records import IDS, NOW_NS
from tests.unit.application.scene import Scene, scene


def reported_to_do(
    made: Scene, monkeypatch: pytest.MonkeyPatch, copy: Workload, *, complete: bool = True
) -> list[Command]:
    """Have a cluster report remaining objects of a workload; return the following commands."""
    commands: list[Command] = []

    def give(pending_commands: PendingCommand, command: Command, due_ns: int = 0) -> None:
        assert not due_ns
        assert (pending_commands.job_id, pending_commands.attempt, pending_commands.cluster) == (
            copy.job_id,
            copy.attempt,
            copy.cluster,
        )
        commands.append(command)

    live = made.plane.controller.live
    monkeypatch.setattr(live.dispatcher, "give", give)
    reported = Observation(copy.cluster, Changes("x", complete=complete, workloads=(copy,)), made.clock.monotonic_ns())
    live.apply(made.plane.controller.observer.changes([reported]))
    return commands


def test_what_is_left_of_a_job_that_is_over_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a full report counts: a deletion is also reported while the removal is in progress."""
    made = scene()
    job_id = made.submit()
    made.plane.run(5)
    where = made.where(job_id)
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.run(5)
    left = Workload(job_id, 1, where, WorkloadPhase.GONE)
    assert reported_to_do(made, monkeypatch, left) == [Removal(job_id, 1, where)]
    assert not reported_to_do(made, monkeypatch, left, complete=False)


def test_what_is_left_of_an_attempt_that_lives_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is re-created, as if nothing were left of it."""
    made = scene()
    job_id = made.submit()
    made.plane.run(5)
    (command,) = reported_to_do(made, monkeypatch, Workload(job_id, 1, made.where(job_id), WorkloadPhase.GONE))
    assert not isinstance(command, Removal)
    assert made.plane.controller.live.jobs[job_id].reason.endswith("are gone; it is re-created")


def test_what_is_left_of_a_job_that_no_one_knows_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may belong to another Seaway that is just creating it."""
    made = scene()
    assert not reported_to_do(made, monkeypatch, Workload(IDS.generate(NOW_NS), 1, "alpha", WorkloadPhase.GONE))
