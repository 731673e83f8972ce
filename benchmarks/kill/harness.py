"""Kills of the control plane, and the check of the result."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random

import httpx

from benchmarks.kill.deadly import Fatal, bury, winner_of
from benchmarks.kill.load import QUEUES, Memory, User
from seaway.adapters.simulated.ledger import read_journals, violations
from seaway.adapters.sqlalchemy.maintenance import check
from seaway.adapters.sqlalchemy.store import open_store
from seaway.application.changes import Change
from seaway.application.ports.store import MAX_ROWS, Store
from seaway.application.records import Event
from seaway.domain.arrays import count_of, parse_indexes
from seaway.domain.job_state import JobState
from seaway.domain.tenancy import DEFAULT
from seaway.simulation.demo import demo_fleet
from tests.servers.databases import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
USERS = 4
PATIENCE_S = 300
"""Time for the last control plane, which is not killed, to finish everything."""

MAX_STEPS = 40
"""Range of the random step at which a control plane is killed."""

DISPLACES = "victim preempted"
"""Kind of the step that stores the victims of a waiting job."""

SINCE_START = 0.25
"""Share of the random steps that count from the start. The others count from the first one that displaces jobs."""

LONGEST_LIFE_S = 20
"""Time after which a control plane is killed that did not come to its step."""

MAX_TRIES = 5
"""Maximum number of additional kills at each wanted step."""

YIELDS = "its place goes to job"


@dataclass(frozen=True, slots=True)
class Aftermath:
    """Result of the kills.

    Attributes
    ----------
    kills
        Number of kills.
    accepted
        Number of accepted jobs.
    lost
        Accepted jobs that are missing or unfinished.
    duplicated
        Violations of uniqueness, in words: two live attempts, devices over capacity.
    broken
        Other violations: a confirmed cancellation undone, leftovers, a job missing in the audit log, a 5xx, a job
        displaced in vain.
    displaced, again
        Number of displaced jobs, and of jobs that displaced others again because another one had taken the room.
    resized
        Number of resizes of running jobs.
    reserved
        Number of kills while the place of a job was reserved until its victims had ended.
    steps
        Number of kills by kind of the last step.
    states
        Number of jobs by final state.
    """

    kills: int
    accepted: int
    lost: list[str]
    duplicated: list[str]
    broken: list[str]
    displaced: int
    again: int
    resized: int
    reserved: int
    steps: dict[str, int]
    states: dict[str, int]


class Nursery:
    """Client of the process that forks control planes."""

    def __init__(self, folder: Path, database: str, clusters: str, port: int) -> None:
        self._process = _python("benchmarks.kill.nursery", str(folder), database, clusters, str(port))
        self._expect("ready")

    def begin(self, fatal: Fatal) -> int:
        """Start a control plane that is killed at a step; return its process ID."""
        assert self._process.stdin
        self._process.stdin.write(f"{fatal}\n")
        self._process.stdin.flush()
        return int(self._expect("began").split()[1])

    def ended(self) -> str:
        """Wait for its end, and return the exit status."""
        return self._expect("ended").split()[1]

    def close(self) -> None:
        """End the process."""
        _close(self._process)

    def _expect(self, word: str) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line.startswith(word):
            raise RuntimeError(f"the nursery said {line!r}, not {word!r}")
        return line


def kill_over_and_over(
    fatal_steps: Iterable[Fatal],
    *,
    seed: int = 0,
    pause_s: float = 0.02,
    wanted: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> Aftermath:
    """Kill control planes under load at given steps, one after the other, then let one finish.

    Parameters
    ----------
    fatal_steps
        Steps at which control planes are killed.
    pause_s
        Pause of each user between two jobs.
    wanted
        Patterns of kinds of steps: further kills follow at those that were no last step.
    progress
        Called with the number of kills.
    """
    folder = Path(tempfile.mkdtemp(prefix="seaway-kill-"))
    database = f"sqlite:///{folder / 'seaway.db'}"
    port = free_port()
    memory = Memory()
    _set_queues(database)
    with simulated_clusters(folder / "clusters") as clusters:
        nursery = Nursery(folder, database, clusters, port)
        users = [User(f"http://127.0.0.1:{port}", seed * USERS + n, memory, pause_s) for n in range(USERS)]
        for user in users:
            user.start()
        kills, broken = 0, []
        for fatal in chain(fatal_steps, _missing_steps(folder, wanted)):
            process = nursery.begin(fatal)
            late = threading.Timer(LONGEST_LIFE_S, _kill_late, [process, folder])
            late.start()
            how = nursery.ended()
            late.cancel()
            if how != "killed":
                broken.append(f"a control plane ended by itself: {how}")
            kills += 1
            progress(kills)
        last = nursery.begin(Fatal(0))
        for user in users:
            user.stop()
        for user in users:
            user.join(PATIENCE_S)
        broken += _await_end(f"http://127.0.0.1:{port}")
        _signal(last, signal.SIGTERM)
        if (how := nursery.ended()) != "0":
            broken.append(f"the last control plane ended with {how}")
        nursery.close()
    aftermath = _look(folder, database, memory, kills, broken)
    shutil.rmtree(folder)
    return aftermath


def _set_queues(database: str) -> None:
    """Store the queues of the load."""
    store = open_store(database)
    store.lead("benchmark")
    store.commit([Change(put=list(QUEUES))])
    store.close()


def random_steps(count: int, seed: int) -> Iterator[Fatal]:
    """Yield random steps to kill at."""
    random = Random(seed)
    for _ in range(count):
        yield Fatal(random.randint(1, MAX_STEPS), "" if random.random() < SINCE_START else DISPLACES)


def _missing_steps(folder: Path, wanted: Sequence[str]) -> Iterator[Fatal]:
    """Yield each wanted step until it was a last one."""
    for pattern in wanted:
        for _ in range(MAX_TRIES):
            if any(re.search(pattern, kind) for _, kind in _last_steps(folder)):
                break
            yield Fatal(1, pattern)


def _last_steps(folder: Path) -> list[tuple[int, str]]:
    """Return the time and the kind of the last step of each control plane so far."""
    graves = folder / "graves"
    lines = graves.read_text(encoding="utf-8").splitlines() if graves.exists() else []
    return [(int(at_ns), kind) for at_ns, _, kind in (line.partition(" ") for line in lines)]


def _look(folder: Path, database: str, memory: Memory, kills: int, broken: list[str]) -> Aftermath:
    """Check the database and the clusters' own journals."""
    store = open_store(database)
    try:
        states: Counter[str] = Counter()
        lost, shared = [], set()
        for job_id in sorted(memory.accepted):
            job = store.job(job_id)
            states[job.state.value if job else "not there"] += 1
            if job and job.spec.queue != DEFAULT:
                shared.add(job_id)
            if job is None:
                lost.append(f"{job_id} is not there")
            elif not job.state.final:
                lost.append(f"{job_id} is {job.state.value}: {job.reason}")
            elif job_id in memory.cancelled and job.state is not JobState.CANCELLED:
                broken.append(f"{job_id} was cancelled, and is {job.state.value}")
        broken += _incomplete_arrays(store, memory.accepted)
        broken += [f"{job_id} is not in the audit log" for job_id in sorted(memory.accepted - _audited(store))]
        broken += _left_behind(store)
        events, last = list(_events(store)), _last_steps(folder)
    finally:
        store.close()
    displaced, again, in_vain = displacements(events, shared)
    fleet = demo_fleet()
    duplicated = violations(fleet, read_journals(fleet, folder / "clusters")) + check(database)
    return Aftermath(
        kills,
        len(memory.accepted),
        lost,
        duplicated,
        broken + in_vain + memory.refused,
        displaced,
        again,
        sum(each.kind == "resized" for each in events),
        kills_while_reserved(events, [at_ns for at_ns, _ in last]),
        dict(Counter(kind for _, kind in last).most_common()),
        dict(states),
    )


def _incomplete_arrays(store: Store, jobs: Iterable[str]) -> Iterator[str]:
    """Yield the arrays of which tasks are missing, or have not ended."""
    for job_id in sorted(jobs):
        array = store.job(job_id)
        tasks = array.spec.array if array and array.is_array else None
        if array is None or tasks is None:
            continue
        states = store.task_counts([job_id])[job_id]
        total = sum(states.values()) + array.unstarted_count
        if total != count_of(parse_indexes(tasks.indexes)):
            yield f"array {job_id} has {total} tasks"
        if array.unstarted and array.state not in (JobState.CANCELLED, JobState.SKIPPED):
            yield f"array {job_id} is {array.state.value}, but its tasks {array.unstarted} never started"
        yield from (f"array {job_id} has a task that is {state.value}" for state in states if not state.final)


def _audited(store: Store) -> set[str]:
    """Return the jobs whose submits are in the audit log."""
    found: set[str] = set()
    before = 0
    while entries := store.audit(before, MAX_ROWS):
        found |= {entry.target.rpartition("/")[2] for entry in entries if entry.verb == "POST submit_job"}
        before = entries[-1].id
    return found


def _events(store: Store) -> Iterator[Event]:
    last = 0
    while events := store.events(last, MAX_ROWS):
        yield from events
        last = events[-1].id


def displacements(events: Iterable[Event], shared: Collection[str]) -> tuple[int, int, list[str]]:
    """Return the number of displaced jobs, that of winners that displaced others again, and the violated rules.

    The rules: no job is displaced for a job that has ended. After jobs were displaced for a job, no further job is
    displaced for it before it starts, is changed, suspended or resumed, or a job of higher priority gets its place. If
    another job starts in between, which can have taken the room, this is no violation, but it is counted.

    Parameters
    ----------
    events
        All events, in order.
    shared
        IDs of the jobs that share the limits.
    """
    count, again, found = 0, 0, []
    displaced_ns: dict[str, int] = {}  # the last decision for each winner; one decision has one time
    passed: set[str] = set()  # winners before which another job started
    ended: set[str] = set()
    for each in events:
        if each.state == JobState.PREEMPTED.value:
            count += 1
            winner = winner_of(each.reason)
            assert winner, each.reason
            if winner in ended:
                found.append(f"{each.job_id} was displaced for {winner}, which had ended")
            if displaced_ns.setdefault(winner, each.at_ns) != each.at_ns:
                found.append(f"{each.job_id} was displaced for {winner}, which already had a place")
            again += winner in passed
            passed.discard(winner)
            continue
        if _gives_up(each):
            displaced_ns.pop(each.job_id, None)
            passed.discard(each.job_id)
        if each.state == JobState.SCHEDULED.value and each.job_id in shared:
            passed |= displaced_ns.keys()
            displaced_ns.clear()
        if each.state and JobState(each.state).final:
            ended.add(each.job_id)
    return count, again, found


def kills_while_reserved(events: Iterable[Event], kills_ns: Sequence[int]) -> int:
    """Return the number of kills between a decision to displace jobs and the next state of its winner.

    Parameters
    ----------
    events
        All events, in order.
    kills_ns
        Time of each kill.
    """
    count, left, winners = 0, sorted(kills_ns, reverse=True), set[str]()
    for each in events:
        while left and left[-1] < each.at_ns:
            left.pop()
            count += bool(winners)
        if each.state == JobState.PREEMPTED.value and (winner := winner_of(each.reason)):
            winners.add(winner)
        elif _gives_up(each):
            winners.discard(each.job_id)
    return count


def _gives_up(event: Event) -> bool:
    """Report whether a job no longer waits for its victims: it has its place, or is changed, or yields."""
    return event.kind in {"state", "updated"} or event.reason.startswith(YIELDS)


def _left_behind(store: Store) -> list[str]:
    found = [f"attempt {each.number} of {each.job_id} still holds devices" for each in store.held_attempts()]
    found += [f"{each.cluster} is still to {each.verb.value} {each.job_id}" for each in store.pending_commands()]
    return found


def _await_end(url: str) -> list[str]:
    """Wait until no job is live and no command is pending; return what is left after the timeout."""
    until = time.monotonic() + PATIENCE_S
    figures = ""
    while time.monotonic() < until:
        try:
            figures = httpx.get(f"{url}/metrics", timeout=5).text
        except httpx.HTTPError:
            time.sleep(0.1)
            continue
        left = [line for line in figures.splitlines() if line.startswith(("seaway_jobs{", "seaway_pending_commands{"))]
        if not any(float(line.rsplit(" ", 1)[1]) for line in left) and "seaway_jobs_decided_total" in figures:
            return []
        time.sleep(0.2)
    return [f"not everything ended in time: {left}"]


@contextmanager
def simulated_clusters(folder: Path) -> Iterator[str]:
    """Run the demo's clusters in a separate process; yield their URL."""
    process = _python("benchmarks.kill.clusters", str(folder))
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        _close(process)


def _close(process: subprocess.Popen[str]) -> None:
    """Close the pipes of a process that is ending, and wait for it."""
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    process.wait(30)


def _python(module: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _kill_late(process: int, folder: Path) -> None:
    with suppress(ProcessLookupError):  # it came to its step at this moment
        _signal(process, signal.SIGKILL)
        bury(folder / "graves", "the end of its time")


def _signal(process: int, what: signal.Signals) -> None:
    import os

    os.kill(process, what)
