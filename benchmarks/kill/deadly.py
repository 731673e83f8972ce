"""Store and clusters that kill the process at a given step: before or after a change is stored or sent."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seaway.application.changes import Change, Outcome
from seaway.application.ports.backend import Answers, Backend, Backends, Changes, Command, Removal
from seaway.application.ports.store import Store
from seaway.application.records import Event
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import Deployment
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.network import Gateway, Link
from seaway.domain.reasons import Reason

PREEMPTED_BY = re.compile(r"preempted by job (\w+)")


def winner_of(reason: str) -> str:
    """Return the ID of the job that displaced another one, from the reason; empty for other reasons."""
    by = reason.params.get("winner") if isinstance(reason, Reason) else None
    if isinstance(by, Reason) and "job_id" in by.params:
        return str(by.params["job_id"])
    found = PREEMPTED_BY.match(reason)
    return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Fatal:
    """Step at which a process is killed.

    Attributes
    ----------
    step
        Number of the step, from 1; 0 for none.
    since
        Pattern of the kind of the step that counts as the first one; by default, that is the first of all.
    """

    step: int
    since: str = ""

    def __str__(self) -> str:
        """Return one line that `of` reads."""
        return f"{self.step} {self.since}".strip()

    @classmethod
    def of(cls, line: str) -> Fatal:
        """Read a line."""
        step, _, since = line.strip().partition(" ")
        return cls(int(step), since)


class Fate:
    """Counter of steps that kills the process at one of them.

    Parameters
    ----------
    grave
        File to which the time and the kind of the last step are appended.

    Attributes
    ----------
    victims
        Attempts that this process displaced.
    winners
        Jobs for which it did, without a place so far.
    """

    def __init__(self, fatal: Fatal, grave: Path) -> None:
        self._fatal = fatal
        self._grave = grave
        self._lock = threading.Lock()
        self._steps = 0
        self.victims: set[tuple[str, int]] = set()
        self.winners: set[str] = set()

    def step(self, kind: str) -> None:
        """Count a step; kill the process if it is the fatal one."""
        with self._lock:
            self._steps += bool(self._steps or re.search(self._fatal.since, kind))
            if self._steps and self._steps == self._fatal.step:
                bury(self._grave, kind)
                os.kill(os.getpid(), signal.SIGKILL)

    def follow(self, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> None:
        """Update the victims and winners after a commit."""
        stored = [change for change, outcome in zip(changes, outcomes, strict=True) if outcome is Outcome.STORED]
        for job in (each for change in stored for each in change.update if isinstance(each, JobRecord)):
            if job.state is not JobState.QUEUED:
                self.winners.discard(job.id)
            if winner := _winner(job):
                self.victims.add((job.id, job.attempt))
                self.winners.add(winner)


def bury(grave: Path, kind: str) -> None:
    """Record the last step of a process."""
    with grave.open("a", encoding="utf-8") as file:
        file.write(f"{time.time_ns()} {kind}\n")


class DeadlyStore:
    """Store in which every commit is two steps; other methods are passed through."""

    def __init__(self, store: Store, fate: Fate) -> None:
        self._store = store
        self._fate = fate

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store changes, with a step before and after."""
        kind = _kind(changes, self._fate.winners)
        self._fate.step(f"before storing {kind}")
        outcomes = self._store.commit(changes)
        self._fate.follow(changes, outcomes)
        self._fate.step(f"after storing {kind}")
        return outcomes

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any attribute of the store
        return getattr(self._store, name)


class DeadlyBackend:
    """Cluster in which every batch of commands is two steps."""

    def __init__(self, backend: Backend, fate: Fate) -> None:
        self._backend = backend
        self._fate = fate

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return self._backend.cluster

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Call the backend."""
        return self._backend.changes(cursor, wait_s)

    def send(self, commands: Sequence[Command]) -> Answers:
        """Send commands, with a step before and after."""
        kind = "+".join(sorted({_kind_of_command(each, self._fate.victims) for each in commands}))
        self._fate.step(f"before sending {kind}")
        answers = self._backend.send(commands)
        self._fate.step(f"after sending {kind}")
        return answers

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Call the backend."""
        return self._backend.manifests(deployment)

    def logs(
        self, copy: str, replica: int, tail: int, container: str = "", since_ns: int = 0, *, times: bool = False
    ) -> Iterator[str]:
        """Call the backend."""
        return self._backend.logs(copy, replica, tail, container, since_ns, times=times)


class DeadlyBackends:
    """Clusters, each as a `DeadlyBackend`."""

    def __init__(self, backends: Backends, fate: Fate) -> None:
        self._backends = backends
        self._fate = fate
        self._known: dict[str, DeadlyBackend] = {}

    def clusters(self) -> Sequence[Backend]:
        """Return the clusters."""
        return [
            self._known.setdefault(each.cluster, DeadlyBackend(each, self._fate)) for each in self._backends.clusters()
        ]

    def gateways(self) -> Sequence[Gateway]:
        """Return the gateways."""
        return self._backends.gateways()

    def links(self) -> Sequence[Link]:
        """Return the links."""
        return self._backends.links()


def _kind(changes: Sequence[Change], winners: Collection[str]) -> str:
    """Return the kind of a commit: the new states of jobs and attempts, and resizes."""
    found = set()
    for change in changes:
        found |= {"resize" for each in change.insert if isinstance(each, Event) and each.kind == "resized"}
        for record in (*change.insert, *change.update, *change.put):
            if isinstance(record, JobRecord):
                found.add(_kind_of_job(record, winners))
            elif isinstance(record, Attempt):
                found.add(f"attempt {record.state.value}")
    return "+".join(sorted(found)) or "something else"


def _kind_of_job(job: JobRecord, winners: Collection[str]) -> str:
    """Return the new state of a job, and whether it is displaced or gets the place of displaced jobs."""
    if job.state is JobState.SCHEDULED and job.id in winners:
        return "winner scheduled"
    return f"{'victim' if _winner(job) else 'job'} {job.state.value}"


def _winner(job: JobRecord) -> str:
    """Return the job for which another one is displaced; empty if it is not."""
    return winner_of(job.reason) if job.state is JobState.PREEMPTED else ""


def _kind_of_command(command: Command, victims: Collection[tuple[str, int]]) -> str:
    if not isinstance(command, Removal):
        return "deployment"
    return "removal of a victim" if (command.job_id, command.attempt) in victims else "removal"
