"""Answers that were promised, and what stands for those that do not come."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from seaway.application.control.reports import kept
from seaway.application.ports.backend import Answer
from seaway.domain.errors import UnavailableError


def promise() -> Future[Answer]:
    """Make a promise that is not kept yet."""
    return Future()


def test_an_answer_is_taken_as_it_is_promised_or_not() -> None:
    """No one needs to know which it was."""
    promised = promise()
    promised.set_result(Answer(done=True))
    assert kept(promised, "alpha") == kept(Answer(done=True), "alpha") == Answer(done=True)


def test_a_promise_that_is_broken_is_told_again(caplog: pytest.LogCaptureFixture) -> None:
    """For what may happen to a cluster, and when its backend ends, that is all."""
    late, dropped = promise(), promise()
    late.set_exception(UnavailableError("not within 10 s"))
    dropped.cancel()
    assert kept(late, "alpha") == Answer(done=False, reason="not within 10 s")
    assert kept(dropped, "alpha") == Answer(done=False, reason="CancelledError")
    assert not caplog.records


def test_a_promise_that_a_mistake_broke_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """It is told again all the same: no command is lost for a mistake of ours."""
    wrong = promise()
    wrong.set_exception(KeyError("spec"))
    assert kept(wrong, "alpha") == Answer(done=False, reason="'spec'")
    assert [(each.getMessage(), each.exc_info is not None) for each in caplog.records] == [
        ("telling alpha failed", True)
    ]
