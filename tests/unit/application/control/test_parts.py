"""Workloads with a missing part."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.changes import Change
from seaway.application.control.reports import Answered, Observation
from seaway.application.ports.backend import Answer, Changes
from seaway.application.records import Event, PendingCommand, Verb
from seaway.domain.deployment import Workload, WorkloadPhase
from seaway.domain.job_record import JobRecord
from seaway.domain.reasons import TEXTS
from tests.unit.application.scene import Scene, scene, spec


def two() -> tuple[Scene, Workload]:
    """Create a scene in which two replicas run in one cluster; return their workload, too."""
    made = scene()
    job_id = made.submit(replicas=2, gang=True, clusters=("alpha",))
    made.plane.run(5)
    assert made.state(job_id) == "running"
    copy = made.plane.controller.live.seen[job_id, 1]["alpha"]
    assert [each.replica for each in copy.replicas] == [0, 1]
    return made, copy


def receive(made: Scene, *workloads: Workload, complete: bool = False) -> list[Change]:
    """Have a cluster report workloads; return the resulting changes."""
    observer, live = made.plane.controller.observer, made.plane.controller.live
    reported = Observation("alpha", Changes("x", complete=complete, workloads=workloads), made.clock.monotonic_ns())
    changes = observer.changes([reported])
    live.apply(changes)
    return changes


def part(copy: Workload, *replicas: int) -> Workload:
    """Return a workload with these of its replicas."""
    return replace(copy, replicas=tuple(each for each in copy.replicas if each.replica in replicas))


def made_again(changes: list[Change]) -> list[Verb]:
    """Return the new commands to clusters."""
    return [each.verb for change in changes for each in change.put if isinstance(each, PendingCommand)]


def test_a_replica_that_vanishes_is_made_again() -> None:
    """After a user deletes one of several objects, the job no longer runs, and the event has the number."""
    made, copy = two()
    changes = receive(made, part(copy, 1))
    assert made_again(changes) == [Verb.CREATE]
    (job,) = [each for change in changes for each in change.update if isinstance(each, JobRecord)]
    assert (job.state.value, job.reason) == ("deploying", "1 of the 2 replicas in alpha is gone; it is re-created")
    assert "drift" in [each.kind for change in changes for each in change.insert if isinstance(each, Event)]
    pending_commands = made.plane.controller.live.pending_commands[copy.job_id, 1, "alpha"]
    made.plane.controller.live.apply(
        made.plane.controller.observer.changes([Answered(pending_commands, Answer(done=True))])
    )
    assert not receive(made, part(copy, 1))  # it is still in flight
    assert made.plane.controller.live.jobs[copy.job_id].state.value == "deploying"
    receive(made, copy)
    assert made.plane.controller.live.jobs[copy.job_id].state.value == "running"


def test_a_copy_runs_and_ends_only_as_a_whole() -> None:
    """While some replicas are starting, the state of the others is not that of the job; nothing is missing."""
    made, copy = two()
    job_id = made.plane.submit(spec(replicas=2, gang=True, clusters=("beta",)))[0]
    made.plane.controller.step()
    for phase in (WorkloadPhase.RUNNING, WorkloadPhase.SUCCEEDED):
        first = replace(part(copy, 0), job_id=job_id, cluster="beta", phase=phase)
        reported = Observation("beta", Changes("x", complete=False, workloads=(first,)), 0)
        assert not made.plane.controller.observer.changes([reported])


def test_a_replica_that_succeeded_may_go() -> None:
    """Its success is stored and frees its devices: nothing is re-created, and the job ends with the other replica."""
    made, copy = two()
    ended = replace(copy.replicas[0], phase=WorkloadPhase.SUCCEEDED)
    assert not made_again(receive(made, replace(copy, replicas=(ended, copy.replicas[1]))))
    (attempt,) = made.plane.controller.live.attempts.values()
    assert [each.completed for each in attempt.placements] == [True, False]
    assert not receive(made, part(copy, 1))
    last = replace(copy.replicas[1], phase=WorkloadPhase.SUCCEEDED)
    changes = receive(made, replace(copy, phase=WorkloadPhase.SUCCEEDED, replicas=(last,)))
    assert [each.state.value for change in changes for each in change.update if isinstance(each, JobRecord)] == [
        "completed"
    ]


@pytest.mark.parametrize("restarted", [False, True])
def test_the_pod_of_a_completed_replica_may_go_but_not_run_again(restarted: bool) -> None:
    """Nothing is re-created after its pod was deleted. A new pod would use devices of others, so the job restarts."""
    made = scene()
    job_id = made.plane.submit(spec(replicas=2, template="pytorchjob", gang=True, clusters=("alpha",)))[0]
    made.plane.run(5)
    copy = made.plane.controller.live.seen[job_id, 1]["alpha"]
    first, second = copy.replicas
    changes = receive(made, replace(copy, replicas=(replace(first, phase=WorkloadPhase.SUCCEEDED), second)))
    made.plane.writer.commit(changes)
    if restarted:
        made.cluster("alpha").disconnect()
        made.plane.restart()
        made.plane.controller.step()
    gone = replace(first, phase=WorkloadPhase.STARTING, pod="", slices=())
    second = replace(second, pod="seaway/second")
    assert not made_again(receive(made, replace(copy, phase=WorkloadPhase.STARTING, replicas=(gone, second))))
    live = made.plane.controller.live
    assert live.jobs[job_id].state.value == "running"
    assert live.seen[job_id, 1]["alpha"].phase is WorkloadPhase.RUNNING
    again = replace(gone, pod="seaway/first")
    changes = receive(made, replace(copy, phase=WorkloadPhase.STARTING, replicas=(again, second)))
    (job,) = [each for change in changes for each in change.update if isinstance(each, JobRecord)]
    assert (job.state.value, job.reason) == ("queued", TEXTS["completed_run_again"])


def test_a_replica_that_vanished_meanwhile_is_made_again() -> None:
    """After a restart the cluster reports everything: missing replicas of an acknowledged workload are gone."""
    made, copy = two()
    made.cluster("alpha").disconnect()
    made.plane.restart()
    made.plane.controller.step()
    assert made_again(receive(made, part(copy, 0), complete=True)) == [Verb.CREATE]


def test_a_replica_that_vanishes_before_its_making_is_confirmed_is_made_again() -> None:
    """The case equals that of the whole workload: the acknowledgement arrives after the report of the deletion."""
    made, copy = two()
    live = made.plane.controller.live
    pending_commands = PendingCommand(copy.job_id, 1, "alpha", Verb.CREATE, made.clock.now_ns())
    live.apply([Change(put=[pending_commands])])
    assert not made_again(receive(made, part(copy, 1)))
    assert made_again(made.plane.controller.observer.changes([Answered(pending_commands, Answer(done=True))])) == [
        Verb.CREATE
    ]


def test_the_whole_going_after_a_part_is_reported_as_that() -> None:
    """The rest is deleted, too: nothing of it counts any more."""
    made, copy = two()
    receive(made, part(copy, 1))
    live = made.plane.controller.live
    pending_commands = live.pending_commands[copy.job_id, 1, "alpha"]
    live.apply(made.plane.controller.observer.changes([Answered(pending_commands, Answer(done=True))]))
    receive(made, part(copy, 1))
    changes = receive(made, Workload(copy.job_id, 1, "alpha", WorkloadPhase.GONE))
    (job,) = [each for change in changes for each in change.update if isinstance(each, JobRecord)]
    assert job.reason == "all workloads in alpha are gone; it is re-created"


def test_a_copy_that_stays_without_a_part_is_reported_again() -> None:
    """A part that vanishes before a report is not missed: after a minute the whole workload is written again."""
    made, copy = two()
    job_id = made.plane.submit(spec(replicas=2, gang=True, clusters=("beta",)))[0]
    made.plane.controller.step()
    observer, live = made.plane.controller.observer, made.plane.controller.live
    pending_commands = live.pending_commands[job_id, 1, "beta"]
    live.apply(observer.changes([Answered(pending_commands, Answer(done=True))]))
    first = replace(part(copy, 0), job_id=job_id, cluster="beta")
    live.apply(observer.changes([Observation("beta", Changes("x", complete=False, workloads=(first,)), 0)]))
    made.clock.advance_s(59)
    assert not made_again(made.plane.controller.housekeeping.changes())
    made.clock.advance_s(2)
    changes = made.plane.controller.housekeeping.changes()
    assert made_again(changes) == [Verb.CREATE]
    live.apply(changes)
    assert live.jobs[job_id].reason == "1 of the 2 replicas in beta is gone or late; the command is sent again"
    live.apply(observer.changes([Answered(live.pending_commands[job_id, 1, "beta"], Answer(done=True))]))
    whole = replace(copy, job_id=job_id, cluster="beta")
    live.apply(observer.changes([Observation("beta", Changes("y", complete=False, workloads=(whole,)), 0)]))
    assert live.jobs[job_id].state.value == "running"
    made.clock.advance_s(61)
    assert not made_again(made.plane.controller.housekeeping.changes())
