from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from random import Random
from typing import Any

import pytest

from seaway.application.control import cluster_threads as threads
from seaway.application.control.cluster_threads import Threads
from seaway.application.control.reports import Answered, Observation, Report, Unreachable
from seaway.application.ports.backend import Answer, Answers, Changes, Command, Removal
from seaway.application.ports.clock import SystemClock
from seaway.application.records import PendingCommand, Verb
from seaway.domain.deployment import Deployment
from seaway.domain.errors import UnavailableError
from tests.unit.application.scene import spec

PATIENCE_S = 10
"""Time limit of waits for threads; nothing takes nearly as long."""


class Scripted:
    """A cluster that follows a test's script, and records its commands."""

    def __init__(self, name: str) -> None:
        self.cluster = name
        self.reported: list[tuple[str, int, str]] = []
        self.answer: Callable[[Sequence[Command]], Answers] = lambda them: [Answer(done=True)] * len(them)
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()
        self.listening = threading.Semaphore(0)
        self.speaks = threading.Semaphore(0)
        self.cursors: list[str] = []
        self.unreachable = False

    def send(self, commands: Sequence[Command]) -> Answers:
        """Record commands; wait while the cluster hangs."""
        self.entered.set()
        assert self.open.wait(PATIENCE_S)
        self.reported += [
            (each.job_id, each.attempt, "delete" if isinstance(each, Removal) else "create") for each in commands
        ]
        return self.answer(commands)

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Answer when the test allows it."""
        self.cursors.append(cursor)
        self.listening.release()
        assert self.speaks.acquire(timeout=60)
        if self.unreachable:
            raise UnavailableError("silent")
        return Changes(f"{len(self.cursors)}", complete=not cursor)

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Return none."""
        return []

    def logs(
        self, copy: str, replica: int, tail: int, container: str = "", since_ns: int = 0, *, times: bool = False
    ) -> Iterator[str]:
        """Return none."""
        return iter(())


class Talk:
    """Threads for scripted clusters, and their reports."""

    def __init__(self, *names: str) -> None:
        self.clusters = {name: Scripted(name) for name in names}
        self.threads = Threads(SystemClock(), Random(1))
        self.came = threading.Condition()
        self.reports: list[Report] = []
        self.threads.on_report = self._on_report
        self.threads.use(list(self.clusters.values()))

    def _on_report(self) -> None:
        with self.came:
            self.came.notify_all()

    def until(self, what: Callable[[list[Report]], bool]) -> None:
        """Wait until the reports match."""
        with self.came:

            def look() -> bool:
                self.reports += self.threads.collect()
                return what(self.reports)

            assert self.came.wait_for(look, PATIENCE_S)

    def answered(self, count: int) -> None:
        """Wait for a number of answers."""
        self.until(lambda reports: sum(isinstance(each, Answered) for each in reports) >= count)

    def give(self, cluster: str, verb: Verb, job: str = "a", attempt: int = 1) -> PendingCommand:
        """Queue a command for a cluster."""
        command = (
            Removal(job, attempt, cluster) if verb is Verb.DELETE else Deployment(job, attempt, cluster, spec(), ())
        )
        pending_commands = PendingCommand(job, attempt, cluster, verb, 0)
        self.threads.give(pending_commands, command)
        return pending_commands

    def stop(self) -> None:
        """End all threads."""
        self.threads.stop()
        for each in self.clusters.values():
            each.open.set()
            for _ in range(10):
                each.speaks.release()


@pytest.fixture
def talk() -> Iterator[Talk]:
    """Run the threads of two clusters."""
    made = Talk("alpha", "beta")
    yield made
    made.stop()


def test_what_is_promised_holds_up_nothing(talk: Talk) -> None:
    """A command in flight does not delay others, whatever its outcome."""
    promises: list[Future[Answer]] = []

    def reservation(commands: Sequence[Command]) -> Answers:
        promises.extend(Future() for _ in commands)
        return promises[-len(commands) :]

    alpha = talk.clusters["alpha"]
    alpha.answer = reservation
    talk.give("alpha", Verb.CREATE, "slow")
    assert alpha.entered.wait(PATIENCE_S)
    alpha.answer = lambda them: [Answer(done=True)] * len(them)
    talk.give("alpha", Verb.CREATE, "quick")
    talk.answered(1)
    promises[0].set_exception(UnavailableError("not within 10 s"))
    assert talk.threads.delays()["slow", 1, "alpha"] == "not within 10 s"
    talk.answered(2)  # it is sent again
    answered = [each.pending_commands.job_id for each in talk.reports if isinstance(each, Answered)]
    assert answered == ["quick", "slow"]


def test_a_cluster_that_hangs_holds_up_no_other(talk: Talk) -> None:
    """While one cluster hangs, the others get commands and answer."""
    talk.clusters["alpha"].open.clear()
    talk.give("alpha", Verb.CREATE)
    assert talk.clusters["alpha"].entered.wait(PATIENCE_S)
    for at in range(5):
        talk.give("beta", Verb.CREATE, f"b{at}")
    talk.answered(5)
    assert not talk.clusters["alpha"].reported
    assert len(talk.clusters["beta"].reported) == 5


def test_a_removal_arrives_after_the_creation(talk: Talk) -> None:
    """In any case, a cluster gets an attempt's creation and removal in that order or not at all."""
    alpha = talk.clusters["alpha"]
    for at in range(30):
        created = talk.give("alpha", Verb.CREATE, f"j{at}")
        if at % 2:
            talk.threads.drop(created)
        talk.give("alpha", Verb.DELETE, f"j{at}")
    talk.until(lambda _: sum(verb == "delete" for _, _, verb in alpha.reported) == 30)
    for at in range(30):
        received = [verb for job, _, verb in alpha.reported if job == f"j{at}"]
        assert received in (["create", "delete"], ["delete"])


def test_what_fails_is_reported_again(talk: Talk) -> None:
    """A command is sent until it is answered; too few answers count as none."""
    alpha = talk.clusters["alpha"]
    answers: list[Callable[[Sequence[Command]], Answers]] = [_fail, lambda _: [], alpha.answer]

    def next_answer(commands: Sequence[Command]) -> Answers:
        return answers.pop(0)(commands)

    alpha.answer = next_answer
    talk.give("alpha", Verb.CREATE)
    talk.answered(1)
    assert alpha.reported == [("a", 1, "create")] * 3
    assert not talk.threads.delays()


def _fail(_: Sequence[Command]) -> list[Answer]:
    raise UnavailableError("the answer was lost")


def test_forgetting_begins_again(talk: Talk) -> None:
    """After a resync no earlier command is sent, and the cluster is read from the start."""
    alpha = talk.clusters["alpha"]
    assert alpha.listening.acquire(timeout=PATIENCE_S)
    alpha.speaks.release()
    assert alpha.listening.acquire(timeout=PATIENCE_S)
    alpha.open.clear()
    talk.give("alpha", Verb.CREATE)
    assert alpha.entered.wait(PATIENCE_S)
    talk.give("alpha", Verb.CREATE, "never")
    failed = threading.Event()

    def fail(commands: Sequence[Command]) -> list[Answer]:
        failed.set()
        return _fail(commands)

    alpha.answer = fail
    talk.threads.forget()
    alpha.open.set()
    alpha.speaks.release()
    assert alpha.listening.acquire(timeout=PATIENCE_S)
    assert alpha.cursors == ["", "1", ""]
    assert failed.wait(PATIENCE_S)
    alpha.answer = lambda them: [Answer(done=True)] * len(them)
    talk.give("alpha", Verb.CREATE, "new")
    talk.answered(1)
    assert [job for job, _, _ in alpha.reported] == ["a", "new"]


@pytest.mark.parametrize("unreachable", [False, True])
@pytest.mark.parametrize("forgets", [False, True])
def test_what_no_one_reads_does_not_pile_up(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, unreachable: bool, forgets: bool
) -> None:
    """While nothing is collected, as without a database, a cluster is read less often; then as before."""
    monkeypatch.setattr(threads, "MAX_UNREAD", 4)
    monkeypatch.setattr(threads, "MAX_PAUSE_S", 0.001)
    alpha = talk.clusters["alpha"]
    alpha.unreachable = unreachable
    for _ in range(4):
        assert alpha.listening.acquire(timeout=PATIENCE_S)
        alpha.speaks.release()
    assert not alpha.listening.acquire(timeout=0.3)
    if forgets:
        talk.threads.forget()
    else:
        talk.until(lambda reports: len(reports) == 4)
    for _ in range(3):
        assert alpha.listening.acquire(timeout=PATIENCE_S)
        alpha.speaks.release()
    assert talk.clusters["beta"].listening.acquire(timeout=PATIENCE_S)


def test_silence_is_reported_and_asked_about_again(talk: Talk) -> None:
    """A cluster that does not answer is reported, and is reachable again with its first answer."""
    alpha = talk.clusters["alpha"]
    alpha.unreachable = True
    alpha.speaks.release()
    talk.until(lambda reports: any(isinstance(each, Unreachable) for each in reports))
    alpha.unreachable = False
    alpha.speaks.release()
    talk.until(lambda reports: type(reports[-1]).__name__ == "Observation")


def test_a_cluster_that_left_is_reported_nothing(talk: Talk) -> None:
    """Commands for an unknown cluster are skipped; once it is back they can be sent again."""
    talk.threads.use([talk.clusters["beta"]])
    talk.give("alpha", Verb.CREATE)
    talk.give("beta", Verb.CREATE)
    talk.answered(1)
    assert not talk.clusters["alpha"].reported
    talk.threads.use(list(talk.clusters.values()))
    talk.give("alpha", Verb.CREATE)
    talk.answered(2)
    assert talk.clusters["alpha"].reported == [("a", 1, "create")]


def test_another_way_to_a_cluster_is_taken(talk: Talk) -> None:
    """A cluster with a new connection, as by another kubeconfig, is used there alone, and read from the start."""
    before = talk.clusters["alpha"]
    before.speaks.release()
    talk.until(lambda reports: any(isinstance(each, Observation) for each in reports))
    talk.clusters["alpha"] = after = Scripted("alpha")
    talk.threads.use(list(talk.clusters.values()))
    assert after.listening.acquire(timeout=PATIENCE_S)
    assert after.cursors == [""]
    talk.give("alpha", Verb.CREATE)
    talk.answered(1)
    assert (before.reported, after.reported) == ([], [("a", 1, "create")])
    before.speaks.release(10)


def test_stopping_waits_for_no_one_and_says_nothing_more() -> None:
    """Stopping returns while a cluster hangs and another is being read, and no report follows."""
    before = set(threading.enumerate())
    talk = Talk("alpha", "beta")
    alpha, beta = talk.clusters["alpha"], talk.clusters["beta"]
    alpha.open.clear()
    talk.give("alpha", Verb.CREATE)
    assert alpha.entered.wait(PATIENCE_S)
    assert beta.listening.acquire(timeout=PATIENCE_S)
    talk.threads.stop()
    talk.threads.collect()
    talk.stop()
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith(("tell ", "listen ")):
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    assert not talk.threads.collect()


@pytest.mark.parametrize(("stale_after_s", "wait_s"), [(15, 5), (60, 5), (3, 1)])
def test_clusters_are_observed_well_before_they_would_be_stale(stale_after_s: float, wait_s: float) -> None:
    """A quiet cluster answers at least three times before it would count as stale."""
    waits: list[float] = []
    asked = threading.Event()

    class Quiet(Scripted):
        def changes(self, cursor: str, wait_s: float) -> Changes:
            waits.append(wait_s)
            asked.set()
            return super().changes(cursor, wait_s)

    quiet, threads = Quiet("alpha"), Threads(SystemClock(), Random(1), stale_after_s)
    threads.use([quiet])
    assert asked.wait(PATIENCE_S)
    threads.stop()
    quiet.speaks.release()
    assert waits == [wait_s]
