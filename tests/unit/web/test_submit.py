"""Submitting a job, as far as it takes no browser."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, MagicMock

import pytest
from nicegui import ui

from seaway.domain.errors import RejectedError, SeawayError, UnavailableError
from seaway.web.job_document import AMOUNT, CHOICE, shown, typed
from seaway.web.latest import Latest
from seaway.web.pages.jobs.job_form import PRESETS, JobDraft
from seaway.web.pages.jobs.submit import FORM, _Submit, accepting
from seaway.wire.job_in import JobIn
from seaway.wire.queues import QueueOut

pytestmark = pytest.mark.anyio


async def test_a_change_that_is_taken_is_gone_to() -> None:
    """The button of a remedy disappears after its use, and the focus moves to the field."""
    page = cast("Any", object.__new__(_Submit))
    page._draft, page._way, page._soon = JobDraft(), SimpleNamespace(value=FORM), AsyncMock()  # noqa: SLF001
    page._form = MagicMock(fields={"resources.gpus": SimpleNamespace(kind=AMOUNT)})  # noqa: SLF001
    await page._take("resources.gpus", "4")  # noqa: SLF001
    assert page._draft.document == {"resources": {"gpus": 4}}  # noqa: SLF001
    page._form.lead.assert_called_once_with("resources.gpus")  # noqa: SLF001


@pytest.mark.parametrize(
    ("error", "again"), [(UnavailableError("busy"), True), (RejectedError("no", where="x"), False)]
)
async def test_what_the_scheduler_could_not_say_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, error: SeawayError, *, again: bool
) -> None:
    """Waiting users see the candidates when they are available.

    A corrected mistake is accepted, and later edits count.
    """
    timer, page = MagicMock(), cast("Any", object.__new__(_Submit))
    monkeypatch.setattr(ui, "timer", timer)
    page.visit, page._draft, page._show_error = (  # noqa: SLF001
        SimpleNamespace(ask=AsyncMock(side_effect=error)),
        JobDraft.of({"name": "a"}),
        MagicMock(),
    )
    latest = Latest(page.visit)
    await page._ask(latest.begin())  # noqa: SLF001
    page._show_error.assert_called_once_with(error)  # noqa: SLF001
    assert timer.called is again
    if again:
        latest.begin()
        await timer.call_args.args[1]()
        assert page.visit.ask.call_count == 1


async def test_an_empty_form_is_not_tried() -> None:
    """An empty form does not read that it starts at once: the scheduler is not asked."""
    page = cast("Any", object.__new__(_Submit))
    page.visit, page._draft, page._trial = SimpleNamespace(ask=AsyncMock()), JobDraft(), object()  # noqa: SLF001
    page._mark, page._show = MagicMock(), MagicMock()  # noqa: SLF001
    await page._ask(Latest(page.visit).begin())  # noqa: SLF001
    assert page._trial is None  # noqa: SLF001
    page.visit.ask.assert_not_called()


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_jobs(name: str) -> None:
    """Each job to begin with is complete: it can be submitted as it is, and the form keeps all of it."""
    assert JobIn.model_validate(PRESETS[name]).spec().name == PRESETS[name]["name"]
    assert JobDraft.of(dict(PRESETS[name])).text


def test_the_start_of_replicas_is_one_choice() -> None:
    """Together and one by one are the two values of one control, so that both cannot be chosen."""
    assert [typed(text, CHOICE) for text in ("true", "false", "", "x")] == [True, False, None, "x"]
    assert [shown({"gang": value}, "gang", CHOICE) for value in (True, False)] == ["true", "false"]


def test_queues_with_children_and_closed_queues_are_not_offered() -> None:
    """Jobs wait in open leaves of the tree."""
    fields = (("all", "", True), ("a", "all", True), ("b", "all", False), ("default", "", True))
    queues = [QueueOut.model_construct(name=name, parent=parent, open=open_) for name, parent, open_ in fields]
    assert accepting(queues) == ["a", "default"]
