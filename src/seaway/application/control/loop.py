"""The control loop: collect, decide, execute, observe."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from seaway.application.changes import Change, Outcome
from seaway.application.control.dispatch import Dispatcher
from seaway.application.control.housekeeping import Housekeeping
from seaway.application.control.observe import Observer
from seaway.application.control.overload import DatabaseHealth, Overload
from seaway.application.control.paths import Steering
from seaway.application.control.reports import Report
from seaway.application.control.scaling import Scaler
from seaway.application.control.scheduler.changes import claim_changes, resize_change
from seaway.application.control.scheduler.forecast import Forecast
from seaway.application.control.scheduler.scheduler import Decision, ProfileFactory, Scheduler
from seaway.application.control.settings import ControlSettings
from seaway.application.control.slo import SloMonitor
from seaway.application.control.stages import Stage
from seaway.application.control.standbys import Standbys
from seaway.application.control.state import ControlState
from seaway.application.control.stored import read
from seaway.application.control.tenancy import Names
from seaway.application.control.topology import Map, Topology, with_network
from seaway.application.network.link_table import LOOK_NS
from seaway.application.ports.backend import Backend, Backends, Recreating
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.writer import Writer
from seaway.domain.errors import UnavailableError
from seaway.domain.job_record import JobRecord
from seaway.domain.reasons import Reason


class FairLock:
    """Lock for one thread that holds it most of the time and others that need it occasionally.

    With a plain lock, a thread that releases and reacquires it usually wins against all waiting threads. Here, waiting
    threads go first. The lock is not reentrant.
    """

    def __init__(self) -> None:
        self._next = threading.Lock()
        self._held = threading.Lock()

    def __enter__(self) -> None:
        """Wait for the lock and acquire it."""
        with self._next:  # held by the next thread in line
            self._held.acquire()

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self._held.release()


log = logging.getLogger(__name__)

PART = 512
"""Number of changes or records that the loop applies before it releases the lock once."""

MAX_REST_S = 0.5
"""Maximum pause after a part of a cycle, seconds."""

LONGEST_NS = 150_000_000
"""Nanoseconds of decisions after which a cycle ends. The next one continues with the other jobs."""


class Controller:
    """The control loop, which moves jobs through their states.

    A command is stored before it is sent. If the database does not respond, the loop reloads its state afterwards.
    `Topology` updates the list of clusters in another thread; a failed update does not stop the loop. The loop ends and
    sends no more commands when another process becomes the leader.

    Attributes
    ----------
    lock
        Protects the control-plane state. Other threads acquire it to read. Long work is done in parts, and waiting
        threads get the lock in between.
    half_read
        Whether only part of the stored records is loaded.
    failures
        Number of failed cycles since the start, for example because the database did not respond.
    database_health
        Periodic health check of the database, without a lock.
    overload
        Detection of overload.
    forecast
        Expected starts of waiting jobs.
    names
        Stored queues, pools and tenants, used by admission. They are updated before the storing request returns, even
        if the loop applies them later.
    """

    def __init__(  # all parts of the control loop
        self,
        store: Store,
        writer: Writer,
        backends: Backends,
        dispatcher: Dispatcher,
        make: ProfileFactory,
        clock: Clock,
        settings: ControlSettings,
    ) -> None:
        self._store = store
        self._writer = writer
        self.names = Names(settings.max_unfinished_mib)
        self._topology = Topology(backends, self._with_network)
        self._topology.on_change = self.wake
        self._dispatcher = dispatcher
        self._settings = settings
        self.lock = FairLock()
        self.database_health = DatabaseHealth(self._check_database, clock)
        self.overload = Overload(clock)
        self.live = ControlState(dispatcher, clock, settings)
        self.observer = Observer(self.live, store)
        self.scheduler = Scheduler(self.live, make)
        self.scaler = Scaler(self.live, self.lock, lambda: self.backends)
        self.housekeeping = Housekeeping(self.live, self.observer)
        self.steering = Steering(self.live, self.scheduler.ready)
        self.standbys = Standbys(self.live, self.scheduler.ready)
        self.slo_violations = SloMonitor(self.live, self.scheduler.ready, self.scheduler.reservations)
        self.forecast = Forecast(self.live, self.scheduler, self.names, self.lock)
        self._clock = clock
        self.half_read = False
        self.failures = 0
        self._telling = threading.Lock()  # keeps stored changes in order
        self._loaded = False
        self._met: tuple[Backend, ...] = ()
        self._connected: Map | None = None
        self._connected_ns = 0
        self._reload = threading.Event()
        self._unsettled: list[Report] = []
        self._inbox: deque[Sequence[Change]] = deque()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        writer.listen(self._stored, self._request_reload)
        writer.on_superseded(self._give_up)

    def _check_database(self) -> None:
        """Read and write. A database that answers and stores nothing, as on a full disk, does not stop the loop."""
        self._store.ping()
        self._writer.test()

    @property
    def loaded(self) -> bool:
        """True while the state in memory matches the database."""
        return self._loaded and not self._reload.is_set()

    def unready(self) -> str:
        """Return the reason why no job can be placed; empty if jobs can be placed."""
        if self._writer.superseded:
            return self._writer.superseded
        if trouble := self.database_health.trouble:
            return trouble
        if not self.loaded:
            return self._writer.trouble or "the control loop is still reading the database"
        if self._topology.known is None:
            return f"the clusters are not known yet: {self._topology.trouble or 'no cluster has responded'}"
        return ""

    def backend(self, cluster: str) -> Backend | None:
        """Return the backend of a cluster; None while it is unknown."""
        known = self._topology.known
        return next((each for each in known.backends if each.cluster == cluster), None) if known else None

    def wait_for_logs(self, seconds: float) -> None:
        """Let the pods of failed programs stay for some seconds, unless `logs_read` is called before."""
        self.live.log_wait_ns = int(seconds * 1e9)

    def logs_read(self, job_id: str, attempt: int) -> None:
        """Remove the pods of an attempt that failed, because its logs were read. Thread-safe."""
        if (job_id, attempt) in self.live.unread_logs:
            with self.lock:
                self.live.logs_read((job_id, attempt))

    def require_read(self) -> None:
        """Check that all running workloads are loaded. The caller holds the lock.

        Raises
        ------
        UnavailableError
            While the state is being reloaded, so that allocations may be missing.
        """
        if self.half_read:
            raise UnavailableError(Reason("workloads_read"), retry_after_s=1)

    def standby_obstacle(self, job: JobRecord, standby: JobRecord | None) -> str:
        """Return the reason why a service cannot switch to its standby, None for a cold one; empty if it can."""
        with self.lock:
            return self.standbys.unready(standby) if standby else self.standbys.unverified(job)

    def step(self) -> bool:
        """Run one cycle; report whether anything happened.

        Raises
        ------
        UnavailableError
            If the database does not respond (the next step reloads everything), or if another process became the
            leader.
        """
        if self._writer.superseded:
            raise UnavailableError(self._writer.superseded)
        if not self._topology.runs:
            self._topology.refresh()
        if not self.scaler.runs:
            self.scaler.read_if_due()
        try:
            if not self.loaded:
                self._load()
            with self.lock:
                self._connect()
            self._take_over()
            happened = self._observe()
            happened |= self._follow_changes()
            self._steer()
            happened |= self._schedule()
        except BaseException:
            self._loaded = False
            self.failures += 1
            raise
        return happened

    @property
    def backends(self) -> Sequence[Backend]:
        """Clusters of the last successful refresh; sends no request."""
        known = self._topology.known
        return known.backends if known else ()

    # The parts of a cycle.

    def _load(self) -> None:
        """Reload the state. A change that is stored during the read is in the result, in the inbox, or in both."""
        self._loaded = False
        self._reload.clear()
        self._inbox.clear()
        self._unsettled.clear()
        stored = read(self._store, self.live.history.since_ns(), runs=self.live.settings.learn_durations)
        with self._telling:
            self.names.reset(stored.queues, stored.pools, stored.tenants, stored.reservations)
            self.names.waiting.reset(each for each in stored.records if isinstance(each, JobRecord))
            for changes in self._inbox:  # stored since the read began, so the result may lack it
                self.names.take(changes)
        with self.lock:
            self.half_read = True
            self.live.reset(stored)
            self.scaler.restore(stored.windows)
        self._apply([Change(put=[record]) for record in stored.records])
        with self.lock:
            self.housekeeping.reset()
            self.live.stages.go_on()
            self.half_read = False
        self._loaded = True

    def _connect(self) -> None:
        """Connect to the clusters of the last refresh, and update the network."""
        known, fleet = self._topology.known, self.live.fleet
        if known is None:
            return
        before, names = list(fleet.clusters), [backend.cluster for backend in known.backends]
        met = {backend.cluster: backend for backend in self._met}
        exchanged = {each.cluster for each in known.backends if met.get(each.cluster, each) != each}
        if names != before or not fleet.met or exchanged:
            self._met = known.backends
            fleet.know(names, self._clock.monotonic_ns())
            self.live.last_reports.restore()
            self._dispatcher.use(known.backends)
            again = (each for each in known.backends if isinstance(each, Recreating) and each.recreates)
            self.live.recreating = frozenset(each.cluster for each in again)
            self.live.resend_commands(set(names).difference(before) | exchanged)
            for changed in set(before).symmetric_difference(names):
                self.live.reconsider(changed)
        now_ns = self._clock.monotonic_ns()
        if known is not self._connected or (fleet.settling and now_ns - self._connected_ns >= LOOK_NS):
            today_ns = self._clock.now_ns()
            since_ns = self.live.link_table.measured_since_ns(today_ns)
            fleet.connect(known.gateways, known.links, known.network_snapshot, since_ns, today_ns)
            self._connected, self._connected_ns = known, now_ns

    def push_network(self) -> None:
        """Apply new measurements of the network now. Thread-safe."""
        self._topology.push()

    def _with_network(self, reported: Map) -> Map:
        return with_network(reported, self.live.link_table.network_snapshot(self._clock.now_ns()))

    def _take_over(self) -> None:
        """Apply the changes stored since the last call, by other threads and by the loop itself."""
        for _ in range(len(self._inbox)):
            with self._yielding_to_submits():
                self._apply(self._inbox.popleft())

    def _apply(self, changes: Sequence[Change]) -> None:
        for first in range(0, len(changes), PART):
            with self.lock:
                self.live.apply(changes[first : first + PART])

    def _observe(self) -> bool:
        reports = [*self._unsettled, *self._dispatcher.collect()]
        known = self.observer.orphans.look_up(reports)
        with self._yielding_to_submits(), self.lock:
            changes = self.observer.changes(reports, known)
        outcomes = self._store_all(changes)
        # If a user changed a job at the same time, process its reports again: clusters send them only once.
        self._unsettled = reports if Outcome.CONFLICT in outcomes else []
        return bool(outcomes)

    def _follow_changes(self) -> bool:
        predecessors = self.live.dependencies.look_up(self.live.jobs, self._store)
        counts = self.live.arrays.look_up(self._store)
        with self.lock:
            self.live.grant_tasks()
            now_ns = self._clock.now_ns()
            changes = [
                *self.housekeeping.changes(),
                *self.standbys.changes(),
                *self.slo_violations.changes(),
                *self.scaler.changes(),
                *self.live.dependencies.changes(predecessors, now_ns),
                *self.live.arrays.changes(counts, self.live.latest, now_ns),
            ]
        return bool(self._store_all(changes))

    def _steer(self) -> None:
        """Select the paths that jobs need. Waiting jobs are tried again when the gateways use the paths."""
        if not self.steering.due():
            return
        self.steering.fail_over()
        crossings = self.steering.crossings()
        with self.lock:
            choices = self.steering.choices(crossings)
        self.steering.steer(choices)

    def _schedule(self) -> bool:
        """Decide about all waiting jobs, unless that takes long; then jobs that did not fit displace others.

        Changes of others are applied before and afterwards, so that the size of batches has no effect on decisions.
        """
        happened, until_ns = False, self._clock.monotonic_ns() + LONGEST_NS
        with self._yielding_to_submits(), self.lock:
            self.scheduler.begin()
        if self.scheduler.needs_plan():
            self.scheduler.use_plan(self.forecast.plan())
        changes: list[Change] = []
        while True:
            with self._yielding_to_submits(), self.lock:
                decisions = self.scheduler.next()
                idle = self.live.waiting.idle
            if decisions:
                changes += self._start(decisions)
                happened = True
            if idle or self._clock.monotonic_ns() >= until_ns:
                break
        happened |= bool(self._store_all(changes))
        with self.lock:
            claims = self.scheduler.cycle.claims()
            changes = claim_changes(self.live, claims)
        if claims:
            outcomes = self._store_all(changes)
            with self.lock:
                self.scheduler.preemptor.settle(claims, [each is Outcome.STORED for each in outcomes])
            happened = True
        happened |= self._resize()
        with self.lock:
            changes = [*self.scheduler.take_in(), *self.scheduler.shadows.changes()]
        return bool(self._store_all(changes)) or happened or not self.live.waiting.idle

    def _start(self, decisions: Sequence[Decision]) -> list[Change]:
        """Store decisions; return the changes of those that plugins refused."""
        bound, refused = self.scheduler.bind(decisions)
        bound = self.scheduler.annotate(bound)
        began_ns = self._clock.monotonic_ns()
        outcomes = self._writer.commit([decision.change for decision in bound]) if bound else []
        self.live.stages.took(Stage.STORE, began_ns)
        with self._yielding_to_submits(), self.lock:
            self.scheduler.settle(bound, outcomes)
            changes = self.scheduler.send_back(refused)
        starts = (each for each, outcome in zip(bound, outcomes, strict=True) if outcome is Outcome.STORED)
        self.forecast.started(each.attempt for each in starts)
        self.scheduler.post_bind(bound, outcomes)
        return changes

    def _resize(self) -> bool:
        """Resize running jobs. They get more replicas only if no waiting job fits now, or once others make room."""
        with self._yielding_to_submits(), self.lock:
            grows = self.live.waiting.idle and not self.scheduler.preemptor.awaited
            resizes = self.scheduler.resizer.next(grows=grows)
        if not resizes:
            return False
        bound = [each for each in resizes if self.scheduler.resizer.bind(each)]
        with self.lock:
            changes = [resize_change(self.live, each) for each in bound]
        outcomes = self._writer.commit(changes) if bound else []
        with self._yielding_to_submits(), self.lock:
            self.scheduler.resizer.settle(resizes, bound, [each is Outcome.STORED for each in outcomes])
        self._take_over()
        return True

    def _store_all(self, changes: Sequence[Change]) -> Sequence[Outcome]:
        """Store changes. A change of a job that a user changed concurrently is not stored."""
        outcomes: list[Outcome] = []
        size = self._settings.batch_size  # small transactions, so that concurrent submits do not wait for a large one
        for first in range(0, len(changes), size):
            outcomes += self._writer.commit(changes[first : first + size])
        self._take_over()
        return outcomes

    # The thread.

    def start(self) -> None:
        """Start the loop, the refresh of the topology, and the health check, each in a thread."""
        self._topology.start()
        self.database_health.start()
        self.scaler.start()
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the cycle and end the threads."""
        self._stopping.set()
        self._topology.stop()
        self.database_health.stop()
        self.scaler.stop()
        self._wake.set()
        if self._thread:
            self._thread.join()

    def renew_policy(self, name: str) -> None:
        """Use the new version of this policy. Calls from any thread are allowed, but not concurrent ones."""
        self.scheduler.renew(name)
        self.wake()

    def wake(self) -> None:
        """Run the next cycle without the usual pause."""
        self._wake.set()

    def _stored(self, changes: Sequence[Change]) -> None:
        with self._telling:
            self._inbox.append(changes)
            self.names.take(changes)
        self._wake.set()

    def _request_reload(self) -> None:
        """Reload the state, since a change may have been stored without a notification."""
        self._reload.set()
        self._wake.set()

    def _give_up(self) -> None:
        """Stop immediately: another process is the leader and sends the commands."""
        self._stopping.set()
        self._topology.stop()
        self.database_health.stop()
        self.scaler.stop()
        self._dispatcher.stop()
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                with self.overload.round() as now:
                    happened = now.found = self.step()
            except UnavailableError as error:
                if self._writer.superseded:
                    return
                log.warning("%s; trying again in %d s", error, error.retry_after_s)
                self._stopping.wait(error.retry_after_s)
                continue
            except Exception:
                log.exception("the control loop failed; the state is reloaded")
                self._stopping.wait(1)
                continue
            if not happened:
                self._wake.wait(self._pause_s())
            self._stopping.wait(self._settings.cycle_interval_s)

    @contextmanager
    def _yielding_to_submits(self) -> Iterator[None]:
        """Pause after a piece of work while many clients submit jobs.

        Pauses are short and frequent, so that clients wait only briefly.
        """
        began_ns, asked = self._clock.monotonic_ns(), self._writer.soon
        yield
        took_s = (self._clock.monotonic_ns() - began_ns) / 1e9
        if self._thread and self._writer.soon - asked > took_s * self._settings.overload_submits_per_s:
            self._stopping.wait(min(took_s * self._settings.overload_pause_cycles, MAX_REST_S))

    def _pause_s(self) -> float:
        due_ns = self.live.deadlines.next_ns()
        if due_ns is None:
            return self._settings.poll_interval_s
        return max(0.0, min(self._settings.poll_interval_s, (due_ns - self._clock.monotonic_ns()) / 1e9))
