"""Delivery of an agent's results, for any answer of its controller."""

from __future__ import annotations

import logging
from unittest.mock import Mock

import pytest

from seaway.application.agent.delivery import BATCH
from seaway.application.ports.agent import Report
from seaway.domain.errors import (
    ConflictError,
    ForbiddenError,
    InvariantError,
    RejectedError,
    SeawayError,
    UnauthenticatedError,
    UnavailableError,
    UnknownError,
)
from tests.unit.application.agent.scene import Scene, assignment, result

HOUR_S = 3600
AWAY = UnavailableError("no one answers")


def refuse(*wheres: str) -> RejectedError:
    """Create the controller's error for invalid fields of a report."""
    first, *rest = (RejectedError("wrong", where=where) for where in wheres)
    return RejectedError("wrong", where=first.where, also=tuple(rest))


def test_results_arrive() -> None:
    """Every round's results are delivered, in order, and none stay behind."""
    scene = Scene(assignment("gw-2", "gw-3"))
    scene.run(60)
    assert len(scene.measured) == 12
    assert scene.controller.rounds() == scene.measured
    assert [report.number for report in scene.controller.taken] == list(range(1, 7))


def test_an_hour_without_controller() -> None:
    """Results of an outage are delivered after it: all, in order, once, in few reports."""
    scene = Scene(assignment(*(f"gw-{number}" for number in range(2, 22))))
    scene.run(30)
    scene.controller.deaf = AWAY
    scene.run(HOUR_S)
    before = len(scene.controller.taken)
    assert scene.delivery.waiting >= 20 * 355
    scene.controller.deaf = None
    scene.run(90)
    assert scene.controller.rounds() == scene.measured
    assert scene.delivery.waiting == 0
    assert len(scene.controller.taken) - before <= 20 * 370 / BATCH + 12
    assert all(len(report.rounds) <= BATCH for report in scene.controller.taken)


def test_few_calls_while_the_controller_is_away() -> None:
    """An agent retries less and less often during an outage, but at least once a minute."""
    scene = Scene(assignment("gw-2"))
    scene.controller.deaf = AWAY
    scene.run(HOUR_S)
    assert 60 <= scene.controller.calls <= 250


@pytest.mark.parametrize("error", [AWAY, InvariantError("the server failed")])
def test_taken_but_not_answered(error: SeawayError) -> None:
    """A report whose answer was lost is sent again unchanged, rejected as a repetition, and counts once."""
    scene = Scene(assignment("gw-2"))
    scene.controller.forgets_to_answer = error
    scene.run(15)
    forgotten = len(scene.controller.taken)
    scene.controller.forgets_to_answer = None
    scene.run(60)
    assert scene.controller.rounds() == scene.measured
    assert scene.delivery.delivered.replayed == forgotten > 0


def test_refused_as_a_repetition_at_the_first_try(caplog: pytest.LogCaptureFixture) -> None:
    """An agent whose reports are all repetitions logs possible reasons, and does not queue them."""
    scene = Scene(assignment("gw-2"))
    scene.controller.fails = lambda _: ConflictError("a later one was taken")
    scene.run(60)
    assert scene.delivery.waiting == 0
    assert scene.delivery.delivered.replayed > 3
    assert caplog.text.count("another agent reports for gw-1") == 1


def test_clock_that_was_behind_at_the_start() -> None:
    """If the time of day was behind at the agent's start, report numbers continue after it is set."""
    scene = Scene(assignment("gw-2"))
    scene.controller.taken = [Report("gw-1", scene.clock.now_ns() + 1_000_000_000, 9, 0, ())]
    scene.clock.jump(3_600_000_000_000)
    scene.run(60)
    assert scene.controller.rounds() == scene.measured
    assert scene.delivery.delivered.replayed == 0


def test_refused_results_are_given_up_and_the_others_arrive(caplog: pytest.LogCaptureFixture) -> None:
    """Only the invalid results of a report are lost, and the next report has their number."""
    scene = Scene(assignment())
    scene.queue.put([result(at) for at in range(5)])
    scene.controller.fails = lambda report: (
        refuse("rounds.1.target", "rounds[3].at_ns") if len(report.rounds) == 5 else None
    )
    scene.run(5)
    assert [each.at_ns for each in scene.controller.rounds()] == [0, 2, 4]
    assert [(report.number, report.dropped) for report in scene.controller.taken] == [(2, 2)]
    assert scene.delivery.delivered.refused == 2
    assert "2 of 5 results are refused" in caplog.text


def test_refused_as_a_whole() -> None:
    """A report with an error outside of its results is dropped, and later ones are delivered."""
    scene = Scene(assignment())
    scene.queue.put([result(at) for at in range(BATCH + 2)])
    scene.controller.fails = lambda report: refuse("gateway") if report.number == 1 else None
    scene.run(5)
    assert [each.at_ns for each in scene.controller.rounds()] == [BATCH, BATCH + 1]
    assert scene.controller.taken[0].dropped == BATCH


def test_mistakes_in_rounds_that_are_not_there() -> None:
    """An error for rounds that a report does not have cannot make the agent repeat it."""
    scene = Scene(assignment())
    scene.queue.put([result(0)])
    scene.controller.fails = lambda _: refuse("rounds.7.sent")
    scene.run(5)
    assert scene.delivery.waiting == 0


@pytest.mark.parametrize(
    "error", [UnauthenticatedError("no such token"), ForbiddenError("of another gateway"), UnknownError("no gw-1")]
)
def test_refused_token(error: SeawayError, caplog: pytest.LogCaptureFixture) -> None:
    """While its token is rejected an agent stores its results and logs it once; later they are delivered."""
    scene = Scene(assignment("gw-2"))
    scene.run(20)
    scene.controller.fails = lambda _: error
    scene.run(600)
    assert scene.delivery.trouble == str(error)
    assert caplog.text.count(str(error)) == 1
    scene.controller.fails = lambda _: None
    scene.run(90)
    assert scene.controller.rounds() == scene.measured
    assert scene.delivery.trouble == ""


def test_what_waited_too_long_is_reported() -> None:
    """Beyond the queue's limit the oldest results are dropped, and the next reports have the total."""
    scene = Scene(assignment("gw-2"), most=10)
    scene.run(20)
    scene.controller.deaf = AWAY
    scene.run(600)
    scene.controller.deaf = None
    scene.run(90)
    taken = scene.controller.rounds()
    dropped = sum(report.dropped for report in scene.controller.taken)
    assert dropped == len(scene.measured) - len(taken) > 40
    assert taken == sorted(taken, key=lambda each: each.at_ns)
    assert taken[-10:] == scene.measured[-10:]


def test_target_list_changes_midway() -> None:
    """A new list of targets is probed after the next refresh; results of the old one are still delivered."""
    scene = Scene(assignment("gw-2", "gw-3"))
    scene.run(60)
    scene.controller.wanted = assignment("gw-3", "gw-4", version="2")
    scene.run(60)
    assert {each.target for each in scene.measured[-2:]} == {"gw-3", "gw-4"}
    assert scene.controller.rounds() == scene.measured


def test_refused_results_have_the_list_fetched() -> None:
    """After rejected results the agent fetches its targets immediately, before the next refresh."""
    scene = Scene(assignment("gw-2"))
    scene.run(15)
    calls = scene.controller.calls
    scene.queue.put([result(0, "gone")])
    scene.controller.fails = lambda _: refuse("rounds.0.target")
    scene.delivery.step()
    scene.delivery.step()
    assert scene.controller.calls == calls + 2
    assert scene.delivery.waiting == 0


def test_last_list_is_probed_while_the_controller_is_away() -> None:
    """The last list is used during an outage."""
    scene = Scene(assignment("gw-2"))
    scene.run(15)
    scene.controller.deaf = AWAY
    before = len(scene.measured)
    scene.run(100)
    assert len(scene.measured) == before + 10


@pytest.mark.parametrize("error", [AWAY, InvariantError("no list"), UnknownError("no list")])
def test_results_are_brought_though_the_list_cannot_be_had(error: SeawayError) -> None:
    """An agent that can no longer fetch its list still delivers its results."""
    scene = Scene(assignment("gw-2"))
    scene.run(25)
    scene.controller.assignment = Mock(side_effect=error)  # type: ignore[method-assign]
    scene.run(600)
    assert len(scene.measured) - len(scene.controller.rounds()) <= 1


def test_list_that_was_given_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    """With its own list an agent begins without the controller, whose list replaces it later."""
    caplog.set_level(logging.INFO)
    scene = Scene(assignment("gw-3", version="7"), first=assignment("gw-2"))
    scene.controller.deaf = AWAY
    scene.run(60)
    assert {each.target for each in scene.measured} == {"gw-2"}
    scene.controller.deaf = None
    scene.run(100)
    assert scene.measured[-1].target == "gw-3"
    assert "1 targets to probe, network version 7" in caplog.text


def test_end_brings_what_waits() -> None:
    """At its end an agent delivers queued results, even during a pause after a failure."""
    scene = Scene(assignment("gw-2"))
    scene.controller.deaf = AWAY
    scene.queue.put([result(at) for at in range(2 * BATCH)])
    scene.run(200)
    scene.controller.deaf = None
    scene.delivery.finish(3)
    assert scene.delivery.waiting == 0
    assert len(scene.controller.rounds()) >= 2 * BATCH


def test_end_does_not_take_for_ever() -> None:
    """At its end an agent stops at the first failure, and at its time limit."""
    scene = Scene(assignment())
    scene.queue.put([result(at) for at in range(20 * BATCH)])

    def slow(_: Report) -> None:
        scene.clock.advance_s(1)

    scene.controller.fails = slow
    scene.delivery.finish(3)
    assert len(scene.controller.taken) == 3
    scene.controller.deaf = AWAY
    calls = scene.controller.calls
    scene.delivery.finish(3)
    assert scene.controller.calls == calls + 1
