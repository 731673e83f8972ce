"""A process that leads no more tells clusters nothing, and goes on with what it could not tell when it leads again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from seaway.application.control.reports import Answered
from seaway.application.ports.backend import Answer, Changes, Command, Removal
from seaway.application.records import Outgoing, Verb
from seaway.application.system_clock import SystemClock
from seaway.bootstrap.leading import FencedThreads
from seaway.domain.deployment import Deployment

PATIENCE_S = 10


class Cluster:
    """Notes what it is told."""

    cluster = "alpha"

    def __init__(self) -> None:
        self.told: list[Command] = []
        self.silence = threading.Event()

    def send(self, commands: Sequence[Command]) -> list[Answer]:
        """Note commands."""
        self.told += commands
        return [Answer(done=True)] * len(commands)

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Say nothing."""
        self.silence.wait(PATIENCE_S)
        return Changes(cursor, complete=False)

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Make none."""
        return []

    def logs(self, copy: str, replica: int, tail: int, container: str = "") -> Iterator[str]:
        """Have none."""
        return iter(())


def test_clusters_are_told_nothing_while_this_process_does_not_lead() -> None:
    """It is asked before every batch; what was held back is not lost, as the process may only have been late."""
    asked, told = threading.Semaphore(0), threading.Semaphore(0)
    leads, cluster = threading.Event(), Cluster()

    def holds() -> bool:
        asked.release()
        return leads.is_set()

    threads = FencedThreads(SystemClock(), 15, holds)
    threads.on_report = told.release
    threads.use([cluster])
    try:
        outgoing = Outgoing("01k9zj5q8e0ab", 1, "alpha", Verb.DELETE, 0)
        threads.give(outgoing, Removal("01k9zj5q8e0ab", 1, "alpha"))
        assert asked.acquire(timeout=PATIENCE_S)
        assert asked.acquire(timeout=PATIENCE_S), "it tries again"
        assert cluster.told == []
        assert threads.delays()[outgoing.job_id, 1, "alpha"] == "this process leads no more"
        leads.set()
        assert told.acquire(timeout=PATIENCE_S)
        assert cluster.told == [Removal("01k9zj5q8e0ab", 1, "alpha")]
        (report,) = threads.collect()
        assert isinstance(report, Answered)
    finally:
        threads.stop()
        cluster.silence.set()
