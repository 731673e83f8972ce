"""Store and clusters that kill the process at a given step: before or after a change is stored or sent."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seaway.application.changes import Change, Outcome
from seaway.application.ports.backend import Answers, Backend, Backends, Changes, Command, Removal
from seaway.application.ports.store import Store
from seaway.application.records import Attempt, JobRecord
from seaway.domain.deployment import Deployment
from seaway.domain.network import Gateway, Link


class Fate:
    """Counter of steps that kills the process at one of them.

    Parameters
    ----------
    fatal
        Number of the step, from 1; 0 for none.
    grave
        File to which the kind of the last step is appended.
    """

    def __init__(self, fatal: int, grave: Path) -> None:
        self._fatal = fatal
        self._grave = grave
        self._lock = threading.Lock()
        self._steps = 0

    def step(self, kind: str) -> None:
        """Count a step; kill the process if it is the fatal one."""
        with self._lock:
            self._steps += 1
            if self._steps != self._fatal:
                return
            with self._grave.open("a", encoding="utf-8") as file:
                file.write(f"{kind}\n")
            os.kill(os.getpid(), signal.SIGKILL)


class DeadlyStore:
    """Store in which every commit is two steps; other methods are passed through."""

    def __init__(self, store: Store, fate: Fate) -> None:
        self._store = store
        self._fate = fate

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store changes, with a step before and after."""
        kind = _kind(changes)
        self._fate.step(f"before storing {kind}")
        outcomes = self._store.commit(changes)
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
        kind = "+".join(sorted({"removal" if isinstance(each, Removal) else "deployment" for each in commands}))
        self._fate.step(f"before sending {kind}")
        answers = self._backend.send(commands)
        self._fate.step(f"after sending {kind}")
        return answers

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Call the backend."""
        return self._backend.manifests(deployment)

    def logs(self, copy: str, replica: int, tail: int, container: str = "") -> Iterator[str]:
        """Call the backend."""
        return self._backend.logs(copy, replica, tail, container)


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


def _kind(changes: Sequence[Change]) -> str:
    """Return the kind of a commit: the new states of jobs and attempts."""
    found = set()
    for change in changes:
        for record in (*change.insert, *change.update, *change.put):
            if isinstance(record, JobRecord):
                found.add(f"job {record.state.value}")
            elif isinstance(record, Attempt):
                found.add(f"attempt {record.state.value}")
    return "+".join(sorted(found)) or "something else"
