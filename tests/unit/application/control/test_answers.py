"""Pending answers, and replacements for those that fail."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from seaway.application.control.reports import retained
from seaway.application.ports.backend import Answer
from seaway.domain.errors import UnavailableError


def reservation() -> Future[Answer]:
    """Create a pending answer."""
    return Future()


def test_an_answer_is_taken_as_it_is_promised_or_not() -> None:
    """Callers need not know which form it has."""
    promised = reservation()
    promised.set_result(Answer(done=True))
    assert retained(promised, "alpha") == retained(Answer(done=True), "alpha") == Answer(done=True)


def test_a_reservation_that_is_broken_is_reported_again(caplog: pytest.LogCaptureFixture) -> None:
    """A failure of a cluster, or the end of its backend, causes a retry and nothing else."""
    late, dropped = reservation(), reservation()
    late.set_exception(UnavailableError("not within 10 s"))
    dropped.cancel()
    assert retained(late, "alpha") == Answer(done=False, reason="not within 10 s")
    assert retained(dropped, "alpha") == Answer(done=False, reason="CancelledError")
    assert not caplog.records


def test_a_reservation_that_a_mistake_broke_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The command is retried all the same: a bug loses no command."""
    wrong = reservation()
    wrong.set_exception(KeyError("spec"))
    assert retained(wrong, "alpha") == Answer(done=False, reason="'spec'")
    assert [(each.getMessage(), each.exc_info is not None) for each in caplog.records] == [
        ("a command to alpha failed", True)
    ]
