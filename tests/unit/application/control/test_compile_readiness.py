from __future__ import annotations

import threading

import pytest

from seaway.application.control.scheduler import compile_readiness as module
from seaway.application.control.scheduler.compile_readiness import CompileReadiness
from seaway.application.views import Reason
from seaway.application.whatif.question import Question
from seaway.application.whatif.whatif import WhatIf
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.queues import Queue
from seaway.domain.tenancy import DEFAULT
from tests.unit.application.scene import Scene, scene


class Cold:
    """Compiles policies when the test allows it."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.begun: list[str] = []

    def __call__(self, name: str) -> None:
        """Wait, then compile."""
        self.begun.append(name)
        assert self.may.wait(30)


def cold_scene() -> tuple[Scene, Cold]:
    """Create a control plane in which only the default is compiled."""
    made, cold = scene(), Cold()
    made.plane.controller.scheduler.readiness = CompileReadiness(cold, ready=["bestfit"])
    return made, cold


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the wait for a policy zero."""
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)


def why(made: Scene, job_id: str) -> Reason:
    """Return the reason of a job's state."""
    return made.plane.overview.reason(made.job(job_id))


def test_each_policy_is_made_ready_once() -> None:
    """For any number of requests, each is compiled once, one after the other."""
    done: list[str] = []
    news: list[str] = []
    readiness = CompileReadiness(done.append, ready=["greedy"])
    readiness.on_ready = lambda: news.append("ready")
    for _ in range(3):
        readiness.require("fgd", "", "greedy", "spread", "fgd")
    assert done == ["fgd", "spread"]
    assert (readiness.count, len(news)) == (2, 2)


def test_what_is_another_by_now_is_made_ready_again() -> None:
    """A new file under an old name is compiled before it decides, also while the old one is compiling."""
    cold = Cold()
    readiness = CompileReadiness(cold)
    readiness.want("mine")
    while not cold.begun:
        pass
    readiness.forget("mine")
    cold.may.set()
    assert readiness.wait("mine", most_s=30)
    assert cold.begun == ["mine", "mine"]
    readiness.forget("mine")
    assert not readiness.has("mine")
    assert readiness.wait("mine", most_s=30)
    assert cold.begun == ["mine"] * 3


def test_one_that_cannot_be_made_ready_holds_up_no_one(caplog: pytest.LogCaptureFixture) -> None:
    """A failing policy of another package does not delay others; its error appears when it is used."""

    def fail(name: str) -> None:
        raise RejectedError(name)

    readiness = CompileReadiness(fail)
    readiness.require("theirs")
    assert readiness.has("theirs")
    (reported,) = caplog.records
    assert reported.exc_info is None


def test_a_policy_with_options_is_named_as_users_write_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error shows the options as pairs."""
    impatient(monkeypatch)
    cold = Cold()
    with pytest.raises(UnavailableError, match=r"the policy 'balanced \(level=node, weights.price=2\)' is being"):
        CompileReadiness(cold).require('balanced{"level":"node","weights":{"price":2}}')
    cold.may.set()


def test_a_queue_whose_policy_is_not_ready_keeps_its_jobs_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its jobs wait with the reason, those of other queues do not; once it is ready they are placed."""
    impatient(monkeypatch)
    made, cold = cold_scene()
    made.plane.operations.put_queue(Queue("q", policy="spread"), "ada")
    waits, runs = made.submit(queue="q"), made.submit()
    made.plane.run(3)
    assert (made.state(waits), made.state(runs)) == ("queued", "running")
    assert made.job(waits).reason == "the policy 'spread' of its queue is being compiled"
    assert why(made, waits).message == f"waits: {made.job(waits).reason}"
    for ask in (
        lambda: made.plane.overview.dry_run(made.job(waits).spec),
        lambda: WhatIf(made.plane.controller, made.plane.admission, made.plane.store).ask(Question(policy="spread")),
    ):
        with pytest.raises(UnavailableError, match="being compiled"):
            ask()
    cold.may.set()
    assert made.plane.controller.scheduler.readiness.wait("spread", most_s=30)
    made.plane.settle()
    assert made.plane.attempt(waits).policy == "spread"
    assert cold.begun == ["spread"]


def test_a_shadow_that_is_not_ready_compares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are placed meanwhile; comparisons begin once the shadow policy is ready."""
    impatient(monkeypatch)
    made, cold = cold_scene()
    made.plane.operations.put_queue(Queue(DEFAULT, shadow="spread"), "ada")
    made.plane.settle()
    assert made.plane.attempt(made.submit()).policy == "bestfit"
    assert not made.plane.store.shadows("", 10)
    cold.may.set()
    assert made.plane.controller.scheduler.readiness.wait("spread", most_s=30)
    made.submit()
    assert [each.shadow for each in made.plane.store.shadows("", 10)] == ["spread"]


def test_policies_of_stored_queues_are_made_ready_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policies and shadows of all queues are compiled after they are read, before any submit."""
    impatient(monkeypatch)
    made = scene()
    made.plane.operations.put_queue(Queue("q", policy="spread", shadow="random"), "ada")
    made.plane.restart()
    cold = Cold()
    cold.may.set()
    readiness = made.plane.controller.scheduler.readiness = CompileReadiness(cold, ready=["bestfit"])
    made.plane.settle()
    assert readiness.wait("spread", "random", most_s=30)
    assert sorted(cold.begun) == ["random", "spread"]
