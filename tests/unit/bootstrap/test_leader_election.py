"""A process that leads no more tells clusters nothing, and goes on with what it could not tell when it leads again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from seaway.application.control.reports import Answered
from seaway.application.ports.backend import Answer, Changes, Command, Removal
from seaway.application.ports.clock import SystemClock
from seaway.application.records import PendingCommand, Verb
from seaway.bootstrap.leader_election import FencedThreads, Leadership
from seaway.bootstrap.settings import LeaderSettings
from seaway.domain.deployment import Deployment
from tests.fakes.kubernetes import ApiServer

PATIENCE_S = 10


class Cluster:
    """Notes what it is reported."""

    cluster = "alpha"

    def __init__(self) -> None:
        self.reported: list[Command] = []
        self.silence = threading.Event()

    def send(self, commands: Sequence[Command]) -> list[Answer]:
        """Note commands."""
        self.reported += commands
        return [Answer(done=True)] * len(commands)

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Say nothing."""
        self.silence.wait(PATIENCE_S)
        return Changes(cursor, complete=False)

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Make none."""
        return []

    def logs(
        self, copy: str, replica: int, tail: int, container: str = "", since_ns: int = 0, *, times: bool = False
    ) -> Iterator[str]:
        """Have none."""
        return iter(())


def test_clusters_are_reported_nothing_while_this_process_does_not_lead() -> None:
    """It is asked before every batch; what was deferred is not lost, as the process may only have been late."""
    asked, reported = threading.Semaphore(0), threading.Semaphore(0)
    leads, cluster = threading.Event(), Cluster()

    def holds() -> bool:
        asked.release()
        return leads.is_set()

    threads = FencedThreads(SystemClock(), 15, holds)
    threads.on_report = reported.release
    threads.use([cluster])
    try:
        pending_commands = PendingCommand("01k9zj5q8e0ab", 1, "alpha", Verb.DELETE, 0)
        threads.give(pending_commands, Removal("01k9zj5q8e0ab", 1, "alpha"))
        assert asked.acquire(timeout=PATIENCE_S)
        assert asked.acquire(timeout=PATIENCE_S), "it tries again"
        assert cluster.reported == []
        assert threads.delays()[pending_commands.job_id, 1, "alpha"] == "this process is not the leader any more"
        leads.set()
        assert reported.acquire(timeout=PATIENCE_S)
        assert cluster.reported == [Removal("01k9zj5q8e0ab", 1, "alpha")]
        (report,) = threads.collect()
        assert isinstance(report, Answered)
    finally:
        threads.stop()
        cluster.silence.set()


class _LogHandler(logging.Handler):
    """Log handler that wakes waiting tests."""

    def __init__(self, what: str, then: threading.Event) -> None:
        super().__init__()
        self._what, self._then = what, then

    def emit(self, record: logging.LogRecord) -> None:
        """Look whether it is that."""
        if self._what in record.getMessage():
            self._then.set()


def test_what_keeps_the_pod_of_a_user_who_leads_from_being_marked_is_reported_until_it_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once each, whatever the tries are; and that it leads is reported once."""
    reported: list[bool] = []
    begins, ends = threading.Event(), threading.Event()
    logger = logging.getLogger("seaway.bootstrap.leader_election")
    handlers = [_LogHandler("the pod cannot be marked", begins), _LogHandler("the pod is marked now", ends)]
    with ApiServer("alpha", controllers=()) as server, caplog.at_level(logging.WARNING, logger.name):
        spec = {"containers": [{"name": "seaway", "image": "seaway"}]}
        server.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "me"}, "spec": spec})
        fault = server.faults.error(403, "*/pods/*", "PATCH")
        file = str(server.kubeconfig(tmp_path / "alpha"))
        settings = LeaderSettings(
            "seaway", "default", file, "me", lease_duration_s=60, renew_deadline_s=50, retry_period_s=0.02
        )
        for each in handlers:
            logger.addHandler(each)
        leadership = Leadership(settings, lambda: reported.append(True))
        leadership.start()
        try:
            assert begins.wait(PATIENCE_S)
            while fault.hits < 3:
                threading.Event().wait(0.01)
            server.faults.end(fault)
            assert ends.wait(PATIENCE_S)
            assert reported == [True]
        finally:
            leadership.close()
            for each in handlers:
                logger.removeHandler(each)
    messages = [record.getMessage()[:25] for record in caplog.records]
    assert [message for message in messages if message.startswith("the pod")] == [
        "the pod cannot be marked:",
        "the pod is marked now",
    ]
    assert len([message for message in messages if message.endswith(" leads")]) == 1
