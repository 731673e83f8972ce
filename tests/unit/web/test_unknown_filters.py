"""Anything that an address asks for that is not there."""

from __future__ import annotations

import pytest

from seaway.web.pages.jobs.list import states_of
from seaway.web.pages.queues.queues import queue_shown


@pytest.mark.parametrize(("wanted", "shown"), [("", "default"), ("batch", "batch"), ("zz", "")])
def test_a_queue_that_is_not_there_is_not_another(wanted: str, shown: str) -> None:
    """Without a filter the first one is shown; an unknown one shows none, with a message."""
    assert queue_shown(wanted, ["default", "batch"], {}) == shown


def test_the_queue_with_the_most_waiting_jobs_is_shown_first() -> None:
    """Its jobs are what people look for; a queue in the address precedes it."""
    waiting = {"default": 0, "batch": 2, "notebooks": 7}
    assert queue_shown("", [*waiting], waiting) == "notebooks"
    assert queue_shown("default", [*waiting], waiting) == "default"


def test_states_that_there_are_not_are_distinguished() -> None:
    """They neither narrow the list nor go unsaid."""
    assert states_of("running,bogus,,failed") == (["running", "failed"], ["bogus"])
    assert states_of("") == ([], [])
