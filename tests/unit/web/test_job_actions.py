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


def in_state(state: str, failed: int = 0, standby: object = None) -> JobOut:
    """Make a job that is in a state, or an array with failed tasks."""
    tasks = SimpleNamespace(states={"failed": failed}) if failed else None
    return cast("JobOut", SimpleNamespace(id="j", name="train", state=state, tasks=tasks, standby=standby))


@pytest.mark.parametrize(
    ("state", "failed", "labels"),
    [
        ("failed", 0, ["Retry", "Clone", "Delete"]),
        ("running", 3, ["Suspend", "Change priority", "Cancel job", "Retry", "Clone", "Delete"]),
        ("running", 0, ["Suspend", "Change priority", "Cancel job", "Clone", "Delete"]),
        ("suspended", 0, ["Resume", "Change priority", "Cancel job", "Clone", "Delete"]),
        ("completed", 0, ["Clone", "Delete"]),
    ],
)
def test_what_makes_sense_in_a_state_is_offered(client: Client, state: str, failed: int, labels: list[str]) -> None:
    """Anyone who suspends a job by keyboard is at the button that resumes it: it is the same."""
    visit = SimpleNamespace(may=lambda _: True, words=words_of("en"))
    with client.content:
        actions = Actions(cast("Visit", visit), in_state("queued"))
    buttons = [each for each in client.elements.values() if isinstance(each, ui.button)]
    actions.show(in_state(state, failed))
    assert [each.text for each in buttons if each.visible] == labels
    assert buttons[0].visible is (state not in ("completed", "failed"))
    actions.show(in_state(state, standby=SimpleNamespace(role="active")))
    switches = "Switch to standby" in [each.text for each in buttons if each.visible]
    assert switches is (state not in ("completed", "failed"))
