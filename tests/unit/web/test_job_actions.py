"""Buttons for a job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from nicegui import Client, ui

from seaway.web.pages.jobs.job import Actions
from seaway.web.visit import Visit
from seaway.web.words import words_of
from seaway.wire.job_out import JobOut


def in_state(state: str, standby: object = None) -> JobOut:
    """Make a job that is in a state."""
    return cast("JobOut", SimpleNamespace(id="j", name="train", state=state, standby=standby))


@pytest.mark.parametrize(
    ("state", "labels"),
    [
        ("running", ["Suspend", "Change priority", "Cancel job", "Clone", "Delete"]),
        ("suspended", ["Resume", "Change priority", "Cancel job", "Clone", "Delete"]),
        ("completed", ["Clone", "Delete"]),
    ],
)
def test_what_makes_sense_in_a_state_is_offered(client: Client, state: str, labels: list[str]) -> None:
    """Anyone who suspends a job by keyboard is at the button that resumes it: it is the same."""
    visit = SimpleNamespace(may=lambda _: True, words=words_of("en"))
    with client.content:
        actions = Actions(cast("Visit", visit), in_state("queued"))
    buttons = [each for each in client.elements.values() if isinstance(each, ui.button)]
    actions.show(in_state(state))
    assert [each.text for each in buttons if each.visible] == labels
    assert buttons[0].visible is (state != "completed")
    actions.show(in_state(state, standby=SimpleNamespace(role="active")))
    assert ("Switch to standby" in [each.text for each in buttons if each.visible]) is (state != "completed")
