"""Pending commands of one cluster."""

from __future__ import annotations

import pytest

from seaway.application.control import command_queue as reported
from seaway.application.control.command_queue import CommandQueue
from seaway.application.ports.backend import Answer, Removal
from seaway.application.records import PendingCommand, Verb


def pending_commands(number: int) -> PendingCommand:
    """Return a pending command of an attempt."""
    return PendingCommand("job", number, "alpha", Verb.CREATE, 0)


def given(box: CommandQueue, number: int) -> PendingCommand:
    """Return a sent command of an attempt."""
    made = pending_commands(number)
    box.give(made, Removal("job", number, "alpha"))
    return made


def test_a_first_answer_is_awaited_while_others_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queued commands and those in flight have no answer yet; failed ones have."""
    monkeypatch.setattr(reported, "TOGETHER", 1)
    box = CommandQueue()
    first, second = given(box, 1), given(box, 2)
    under_way = box.take(0)
    assert [each for each, _ in under_way] == [first]
    assert box.awaits(first)
    assert box.awaits(second)
    box.settle(under_way, [Answer(done=False, reason="it does not answer")], 0)
    assert not box.awaits(first)
    assert box.awaits(second)


def test_what_is_reported_no_more_is_not_awaited() -> None:
    """A dropped or finally answered command is not pending."""
    box = CommandQueue()
    first, second = given(box, 1), given(box, 2)
    box.drop(first)
    box.settle(box.take(0), [Answer(done=True)], 0)
    assert not any(box.awaits(each) for each in (first, second, pending_commands(3)))


def test_that_a_cluster_is_not_done_yet_is_reported_and_asked_again() -> None:
    """Progress is news, unlike a failure, and the command stays pending."""
    box = CommandQueue()
    first = given(box, 1)
    (report,) = box.settle(box.take(0), [Answer(done=False, underway=True)], 0)
    assert (report.pending_commands, report.answer.underway) == (first, True)
    assert len(box) == 1
    assert not box.settle(box.take(reported.RETRY_NS), [Answer(done=False)], reported.RETRY_NS)
    assert len(box) == 1
