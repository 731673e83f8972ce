from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from random import Random
from threading import Event
from time import sleep

import pytest

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.changes import Change
from seaway.application.control.cluster_threads import Threads
from seaway.application.control.loop import LONGEST_NS, PART, Controller, FairLock
from seaway.application.control.scheduler.scheduler import Decision
from seaway.application.control.settings import ControlSettings
from seaway.application.control.state import ControlState
from seaway.application.jobs import Jobs
from seaway.application.ports.clock import SystemClock
from seaway.application.records import Verb
from seaway.application.writer import Writer
from seaway.domain.deployment import WorkloadPhase
from seaway.domain.errors import InvariantError, UnavailableError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.queues import Queue
from seaway.scheduling.cycle.cycle import Start
from seaway.scheduling.cycle.jobs import Entry
from tests.fakes.control_plane import make_policy
from tests.fakes.memory_store import MemoryStore
from tests.unit.application.scene import Scene, scene, spec, two_clusters


class _Ran:
    """Notices when a job runs."""

    def __init__(self) -> None:
        self.running = Event()

    def listen(self, changes: Sequence[Change]) -> None:
        """Check the stored changes."""
        for change in changes:
            for record in change.update:
                if isinstance(record, JobRecord) and record.state is JobState.RUNNING:
                    self.running.set()

    @staticmethod
    def submit(jobs: Jobs) -> str:
        """Submit a job."""
        return asyncio.run(jobs.submit([spec()], "ada"))[0][0].id


def crash(made: Scene) -> None:
    """Lose all state in memory."""
    made.plane.restart()


def test_a_crash_between_storing_and_telling_loses_nothing() -> None:
    """Stored commands are sent by the next process, once."""
    made = scene()
    job_id = made.plane.submit(spec(expected_duration_s=5))[0]
    made.plane.controller.step()
    assert made.state(job_id) == "scheduled"
    crash(made)
    made.plane.run(20)
    assert (made.state(job_id), made.job(job_id).attempt) == ("completed", 1)


def test_a_crash_between_telling_and_the_answer_doubles_nothing() -> None:
    """A command that was carried out without an observed answer is sent again and changes nothing."""
    made = scene()
    job_id = made.plane.submit(spec())[0]
    made.plane.controller.step()
    made.plane.store.fail_next()
    with pytest.raises(UnavailableError):
        made.plane.controller.step()
    assert made.phase(made.where(job_id), job_id) is WorkloadPhase.STARTING
    assert [each.verb for each in made.plane.store.pending_commands()] == [Verb.CREATE]
    crash(made)
    made.plane.run(5)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)


def test_a_removal_under_way_holds_its_place_over_a_crash() -> None:
    """After a restart a job is not placed again before the removal of its old workload is confirmed."""
    made = scene()
    job_id = made.submit()
    made.plane.run(5)
    where = made.where(job_id)
    made.cluster(where).disconnect()
    made.plane.jobs.suspend(job_id, "ada")
    made.plane.jobs.resume(job_id, "ada")
    crash(made)
    made.plane.run(5)
    assert (made.state(job_id), made.job(job_id).attempt) == ("queued", 1)
    made.cluster(where).reconnect()
    made.plane.run(20)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 2)


def test_without_a_database_nothing_moves_and_nothing_is_lost() -> None:
    """For thirty seconds every step is unavailable; then all continues, and ends in between are observed."""
    made = scene()
    ends, waits = made.submit(gpus=2, expected_duration_s=10), made.submit(gpus=2)
    blocked = made.submit(gpus=2)
    made.plane.run(5)
    made.plane.store.set_available(False)
    for _ in range(30):
        made.clock.advance_s(1)
        with suppress(UnavailableError):
            made.plane.controller.step()
    assert not made.plane.controller.loaded
    made.plane.store.set_available(True)
    made.plane.run(5)
    assert [made.state(each) for each in (ends, waits, blocked)] == ["completed", "running", "running"]


def test_a_queue_that_is_stored_while_everything_is_read_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is applied after the read; so is a queue's removal in between."""
    made = scene()
    made.plane.writer.commit([Change(put=[Queue("old")])])
    made.plane.settle()
    made.plane.store.set_available(False)
    with suppress(UnavailableError):
        made.plane.writer.commit([Change(put=[Queue("lost")])])
    made.plane.store.set_available(True)
    read = made.plane.store.live_jobs

    def meanwhile() -> Iterable[JobRecord]:
        monkeypatch.undo()
        made.plane.writer.commit([Change(put=[Queue("new")], delete=[Queue("old")])])
        return read()

    monkeypatch.setattr(made.plane.store, "live_jobs", meanwhile)
    made.plane.controller.step()
    assert set(made.plane.controller.names.queues) == {"default", "new"}


def test_while_the_database_is_away_names_stay_known() -> None:
    """Readers get the last known state meanwhile, not nothing."""
    made = scene()
    job_id = made.submit()
    made.plane.store.set_available(False)
    for _ in range(3):
        made.clock.advance_s(5)
        with suppress(UnavailableError):
            made.plane.controller.step()
    assert not made.plane.controller.loaded
    live = made.plane.controller.live
    assert set(live.queues) == set(live.tenants) == set(live.pools) == {"default"}
    assert job_id in live.jobs


def test_a_commit_in_doubt_is_read_again() -> None:
    """When a user's change was stored and only the answer was lost, the loop still finds it."""
    made = scene()
    made.plane.store.fail_next(after=True)
    with pytest.raises(UnavailableError):
        made.plane.submit(spec())
    assert not made.plane.controller.loaded
    made.plane.run(5)
    jobs = list(made.plane.store.live_jobs())
    assert [job.state.value for job in jobs] == ["running"]


def test_a_decision_that_could_not_be_stored_holds_nothing() -> None:
    """When storing placements fails, their resources are free again."""
    made = scene()
    job_id = made.plane.submit(spec(gpus=2))[0]
    made.plane.store.fail_next()
    with pytest.raises(UnavailableError):
        made.plane.controller.step()
    made.plane.settle()
    assert made.state(job_id) == "deploying"
    assert made.state(made.submit(gpus=2)) == "deploying"
    assert made.plane.job(job_id).attempt == 1


def test_whatever_fails_is_followed_by_reading_again() -> None:
    """After an unexpected error the state is read again."""
    made = scene()
    made.plane.submit(spec())
    made.plane.store.fail_next(InvariantError("another process writes now"))
    with pytest.raises(InvariantError):
        made.plane.controller.step()
    assert not made.plane.controller.loaded
    made.plane.run(5)
    assert [each.state for each in made.plane.store.held_attempts()] == [AttemptState.RUNNING]


def test_many_jobs_are_placed_over_several_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that takes long decides a limited number before it checks for changes; it says that there is more."""
    made = scene(batch_size=1)
    scheduler = made.plane.controller.scheduler
    decide = scheduler.next

    def slowly() -> list[Decision]:
        made.clock.advance(LONGEST_NS // 4)
        return decide()

    monkeypatch.setattr(scheduler, "next", slowly)
    made.plane.submit(*[spec(cpu_milli=10, gpus=1, gpu_memory_mib=1000, gpu_milli=1) for _ in range(30)])
    placed = []
    while made.plane.controller.step():
        placed.append(scheduler.tally.placed.total())
    assert placed[0] == 4
    assert placed[-1] == 30


def test_a_round_that_takes_long_continues_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """While no job fits, a round ends after some time, so that clusters are observed. The next tries the others."""
    made = scene(batch_size=1)
    scheduler = made.plane.controller.scheduler
    decide = scheduler.cycle._decide  # noqa: SLF001  # the work that takes time

    def slowly(batch: Mapping[Entry, frozenset[str]]) -> list[Start]:
        made.clock.advance(LONGEST_NS // 3)
        return decide(batch)

    monkeypatch.setattr(scheduler.cycle, "_decide", slowly)
    made.plane.submit(*[spec(gpu_memory_mib=900_000 - at, gpu_milli=1) for at in range(7)])
    tried = []
    while made.plane.controller.step():
        tried.append(scheduler.tally.decided)
    assert tried[:3] == [3, 6, 7]


class _Watched(FairLock):
    """Counts the jobs that are added each time that it is released."""

    def __init__(self, live: ControlState) -> None:
        super().__init__()
        self.live, self.known = live, [0]

    def __exit__(self, *_: object) -> None:
        """Count, and release."""
        self.known.append(len(self.live.jobs))
        super().__exit__(*_)

    def most(self) -> int:
        """Return the largest number added at a time."""
        return max(after - before for before, after in pairwise(self.known))


def test_many_jobs_are_taken_over_in_parts() -> None:
    """However many jobs arrive together, or are read at the start, readers get the lock in between."""
    made = scene()
    controller = made.plane.controller
    controller.lock = watched = _Watched(controller.live)
    made.plane.submit(*[spec() for _ in range(3 * PART)])
    controller.step()
    assert (watched.most(), len(controller.live.jobs)) == (PART, 3 * PART)
    made.plane.restart()
    controller = made.plane.controller
    controller.lock = watched = _Watched(controller.live)
    controller.step()
    assert watched.most() <= PART
    assert len(controller.live.jobs) == 3 * PART


def test_who_looks_at_half_of_it_is_asked_to_come_again() -> None:
    """While everything is read again, no view of a fleet with incomplete allocations is returned."""
    made = scene()
    job_id = made.submit()
    made.plane.controller.half_read = True
    with pytest.raises(UnavailableError, match="read"):
        made.plane.overview.reason(made.job(job_id))
    made.plane.controller.half_read = False
    assert made.plane.overview.reason(made.job(job_id)).message


def test_it_runs_in_threads_of_its_own() -> None:
    """With real threads a job is admitted and deployed without steps of the test; then the loop idles, and stops."""
    clock, store = SystemClock(), MemoryStore()
    store.lead("test")
    writer = Writer(store)
    clusters = SimulatedBackends(two_clusters(), clock, Options(start_delay_s=0))
    threads = Threads(clock, Random(1))
    controller = Controller(store, writer, clusters, threads, make_policy, clock, ControlSettings(poll_interval_s=0.05))
    threads.on_report = controller.wake
    ran = _Ran()
    writer.listen(ran.listen)
    writer.start()
    controller.start()
    try:
        jobs = Jobs(store, writer, clock, Random(1), controller.names, controller.standby_obstacle)
        job_id = ran.submit(jobs)
        assert ran.running.wait(20)
        assert jobs.find(job_id).attempt == 1
        deadline_ns = clock.monotonic_ns() + 20_000_000_000
        while controller.overload.on and clock.monotonic_ns() < deadline_ns:
            sleep(0.01)
        assert not controller.overload.on
    finally:
        begun_ns = clock.monotonic_ns()
        controller.stop()
        threads.stop()
        writer.stop()
        clusters.close()
    assert clock.monotonic_ns() - begun_ns < 1_000_000_000
