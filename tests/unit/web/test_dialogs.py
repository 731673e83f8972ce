"""Dialogs, and what they are filled in with."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from nicegui import Client, ui

from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.tenancy import NAME
from seaway.web.pages.jobs.job import priority_of
from seaway.web.pages.settings import unready
from seaway.web.parts.form import Field, Form, dialog, name_like
from seaway.web.visit import Visit
from seaway.web.words import words_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("text", ["--5", "-", "", "1.5", "five", "1" * 5000])
def test_a_priority_that_is_no_number_is_refused_at_its_field(text: str) -> None:
    """Whatever is present, what is wrong is reported beside it."""
    with pytest.raises(RejectedError) as refused:
        priority_of(text)
    assert refused.value.where == "priority"


def test_priorities_are_read_with_their_sign() -> None:
    """One may be less than nothing."""
    assert [priority_of(text) for text in ("-5", "+7", "0")] == [-5, 7, 0]


@pytest.mark.parametrize("text", ["Runs of May (2)", "a-b.c", "-x-", "结果 7", "x" * 62 + "--y", "结果", "..."])
def test_a_name_that_is_proposed_for_a_file_may_be_given(text: str) -> None:
    """No one has to mend what he did not type; where there is nothing like a name, nothing is proposed."""
    name = name_like(text)
    assert NAME.fullmatch(name) or not any(each.isascii() and each.isalnum() for each in text)


@pytest.mark.parametrize("error", [RejectedError("no", where="reason"), ValueError("a mistake of ours"), None])
async def test_the_button_of_a_dialog_can_be_pressed_again_whatever_goes_wrong(error: Exception | None) -> None:
    """Anything that is refused leaves it open to be mended.

    A mistake of ours leaves no one before a button that is dead.
    """
    form, button = cast("Any", object.__new__(Form)), MagicMock()
    button.props.return_value = button

    async def send(_: dict[str, Any]) -> None:
        if error is not None:
            raise error

    form._send, form._inputs, form._button = send, {}, button  # noqa: SLF001
    form._wrong, form._dialog = MagicMock(), MagicMock(value=True)  # noqa: SLF001
    if isinstance(error, ValueError):
        with pytest.raises(ValueError, match="mistake"):
            await form._submit()  # noqa: SLF001
    else:
        await form._submit()  # noqa: SLF001
    button.enable.assert_called_once()
    assert form._dialog.close.called is (error is None)  # noqa: SLF001


async def test_what_is_sent_is_not_sent_again(client: Client) -> None:
    """A double Enter creates one token, both during the request and before its result is shown."""
    sent: list[dict[str, Any]] = []

    async def send(given: dict[str, Any]) -> None:
        sent.append(given)
        await form._submit()  # noqa: SLF001

    with client.content:
        form = Form(words_of("en"), "New token", [Field("name", "Name")], "Create", send)
        await form._submit()  # noqa: SLF001
        await form._submit()  # noqa: SLF001
    assert sent == [{"name": ""}]


@pytest.mark.parametrize("refused", [False, True])
async def test_who_closes_a_dialog_while_it_is_sent_observes_what_the_result(client: Client, *, refused: bool) -> None:
    """It cannot be called back: what is reported then belongs to the page, as a new token's secret does."""
    made: list[ui.label] = []

    async def send(_: dict[str, Any]) -> None:
        await answered.wait()
        if refused:
            raise RejectedError("no", where="name")
        made.append(ui.label("a secret"))

    answered = asyncio.Event()
    with client.content:
        form = Form(words_of("en"), "New token", [Field("name", "Name")], "Create", send)
        sent = asyncio.create_task(form._submit())  # noqa: SLF001
    await asyncio.sleep(0)
    form._dialog.close()  # noqa: SLF001
    form._dialog.delete()  # noqa: SLF001
    answered.set()
    if refused:
        with pytest.raises(RejectedError):
            await sent
    else:
        await sent
        assert not made[0].is_deleted


def test_who_presses_twice_is_asked_once(client: Client) -> None:
    """Of two dialogs for the same the second would stay behind the first, as if nothing had been done."""
    with client.content:
        for title in ("Remove queue a?", "Remove queue a?", "Remove queue b?"):
            with dialog(title):
                ui.label("It can be removed when it has no waiting or running jobs.")
    titles = [each.props["aria-label"] for each in client.elements.values() if isinstance(each, ui.dialog)]
    assert titles == ["Remove queue a?", "Remove queue b?"]


async def test_how_the_server_does_is_asked_again() -> None:
    """It is ready and not ready by turns, and each time that is reported: nothing of before is kept."""
    answers: list[Exception | None] = [None, UnavailableError("no leader"), None]

    async def ask(_: object) -> None:
        if (answer := answers.pop(0)) is not None:
            raise answer

    visit = cast("Visit", SimpleNamespace(ask=ask))
    assert [await unready(visit) for _ in range(3)] == ["", "no leader", ""]
