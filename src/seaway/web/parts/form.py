"""Dialogs that ask for something: fields, and what is wrong with them beside each; and whether one is sure."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement
from nicegui.elements.mixins.value_element import ValueElement
from nicegui.events import UploadEventArguments

from seaway.domain.errors import RejectedError, SeawayError
from seaway.web.figures import count
from seaway.web.words import Words

Send = Callable[[dict[str, Any]], Awaitable[None]]
"""Takes what was filled in, by field; raises what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form.

    Attributes
    ----------
    name
        What the API calls it.
    label
        What people call it.
    value
        What stands in it at first: text, whether a switch is on, what is chosen of options, or a list of several.
    options
        What there is to choose from, and what each is called; None where text is typed.
    hint
        What else is to be known of it.
    """

    name: str
    label: str
    value: str | bool | list[str] = ""
    options: Mapping[str, str] | None = None
    hint: str = ""


class Form:
    """A dialog with fields; it stays open until what is sent is taken.

    Parameters
    ----------
    title
        What it is for.
    fields
        What it asks for.
    verb
        What its button says.
    send
        Sends it.
    """

    def __init__(self, words: Words, title: str, fields: Sequence[Field], verb: str, send: Send) -> None:
        self._send = send
        self._inputs: dict[str, ValueElement[Any]] = {}
        with dialog(title) as made:
            self._dialog = made
            for each in fields:
                self._inputs[each.name] = filled = _input(each)
                if isinstance(filled, ui.input):
                    filled.on("keydown.enter", self._submit)
            next(iter(self._inputs.values())).props("autofocus")
            self._wrong = wrong_line()
            self._button = buttons(made, words("Cancel"), verb, self._submit, "primary")

    async def _submit(self) -> None:
        if not self._button.enabled:
            return  # it is being sent
        given = {name: each.value for name, each in self._inputs.items()}
        for each in self._inputs.values():
            if isinstance(each, ValidationElement):
                each.error = None
        self._wrong.set_visibility(False)
        with sending(self._dialog, self._button, self._show_error):
            await self._send(
                {name: value.strip() if isinstance(value, str) else value for name, value in given.items()}
            )

    def _show_error(self, error: SeawayError) -> None:
        """Say what is wrong, at the field where it is known which."""
        left = []
        for each in (error, *error.also) if isinstance(error, RejectedError) else (error,):
            where = each.where.partition(".")[0] if isinstance(each, RejectedError) else ""
            at = self._inputs.get(where)
            if isinstance(at, ValidationElement) and isinstance(each, RejectedError):
                at.error = each.message
            else:
                left.append(str(each))
        self._wrong.set_text("; ".join(left))
        self._wrong.set_visibility(bool(left))


def confirm(words: Words, title: str, text: str, verb: str, do: Callable[[], Awaitable[None]]) -> None:
    """Ask whether one is sure, and do it; what goes wrong is said there."""
    with dialog(title) as made:
        ui.label(text).classes("dialog-text")
        wrong = wrong_line()

        def show_error(error: SeawayError) -> None:
            wrong.set_text(str(error))
            wrong.set_visibility(True)

        async def sure() -> None:
            if button.enabled:  # else it is being done
                with sending(made, button, show_error):
                    await do()

        button = buttons(made, words("Cancel"), verb, sure, "negative")


def tell(text: str) -> None:
    """Say for a moment that something is done."""
    ui.notify(text, type="positive", position="bottom-right")


@contextmanager
def dialog(title: str) -> Iterator[ui.dialog]:
    """Make a dialog, which is thrown away when it is closed; what is made within stands in it.

    It belongs to the page, not to what asked for it, which may be a dialog that closes: the library lets a dialog go
    with what it was made in. Where one of its title is open it is not shown: who presses twice is asked once.
    """
    client = ui.context.client
    dialogs = [each for each in client.elements.values() if isinstance(each, ui.dialog)]
    there = any(each.value and each.props.get("aria-label") == title for each in dialogs)
    with client.content, ui.element() as place:
        place.set_visibility(False)
        with ui.dialog().props(f"aria-label={quoted(title)}") as made, ui.card().classes("dialog"):
            ui.label(title).classes("dialog-title").props("role=heading aria-level=2")
            yield made
    if there:
        place.delete()
        return
    made.on("hide", place.delete)
    made.open()


@contextmanager
def sending(made: ui.dialog, button: ui.button, show_error: Callable[[SeawayError], None]) -> Iterator[None]:
    """Send within what a dialog asked for, and close it then.

    What is on its way cannot be called back: where the dialog is closed meanwhile, the page says what came of it.

    Parameters
    ----------
    button
        Sends it, and cannot be pressed meanwhile.
    told
        Says in the dialog what is wrong.
    """
    button.props("loading").disable()
    try:
        with made.client.content:
            yield
        made.close()
    except SeawayError as error:
        if not made.value:
            raise
        show_error(error)
    finally:
        if made.value:  # else it is over: who presses once more, before he sees that, sends nothing
            button.props(remove="loading").enable()


def wrong_line() -> ui.label:
    """Make a line that says what is wrong, once something is."""
    line = ui.label().classes("form-error").props("role=alert")
    line.set_visibility(False)
    return line


def buttons(made: ui.dialog, leave: str, verb: str, do: Callable[[], Awaitable[None]], colour: str) -> ui.button:
    """Make the buttons of a dialog; return the one that does it."""
    with ui.element("div").classes("dialog-buttons"):
        ui.button(leave, on_click=made.close).props("flat no-caps")
        return ui.button(verb, on_click=do, color=colour).props("unelevated no-caps")


def quoted(text: str) -> str:
    """Write text as a property of an element."""
    return json.dumps(text, ensure_ascii=False)


def _input(field: Field) -> ValueElement[Any]:
    """Make what a field is filled in with."""
    if isinstance(field.value, bool):
        return ui.switch(field.label, value=field.value)
    props = "outlined dense" + (f" hint={quoted(field.hint)}" if field.hint else "")
    if field.options is None:
        return ui.input(field.label, value=str(field.value)).props(f"{props} autocomplete=off").classes("dialog-field")
    several = isinstance(field.value, list)
    made = ui.select(dict(field.options), label=field.label, value=field.value, multiple=several)
    return made.props(f"{props} options-dense" + (" use-chips" if several else "")).classes("dialog-field")


SendFile = Callable[[str, str, bytes], Awaitable[None]]
"""Takes what it is to be called, the file's own name and its content; raises what is wrong with it."""

AROUND = 2048
"""What a browser sends around a file, bytes: its name and its kind."""

PICK = "() => document.querySelector('.file-form .q-uploader__input')?.click()"
"""Asks for a file in the browser, at once: only what a user presses may."""


class FileForm:
    """A dialog for a file; it stays open until what is sent is taken.

    Parameters
    ----------
    accept
        How names of such files end, like ``.json,.csv``.
    verb
        What its button says.
    send
        Sends it.
    max_body_bytes
        What the body of a request with it may have, bytes: what is larger is refused before it is sent.
    named
        What the name is called that it gets here; empty where the file says it itself.
    """

    def __init__(  # what a dialog is made of
        self, words: Words, title: str, accept: str, verb: str, send: SendFile, max_body_bytes: int, named: str = ""
    ) -> None:
        self.words, self._send = words, send
        self._file: tuple[str, bytes] | None = None
        self._name: ui.input | None = None
        self._refused = ""
        largest = max(max_body_bytes - AROUND, 1)
        with dialog(title) as made:
            self._dialog = made
            if named:
                self._name = ui.input(named).props("outlined dense autocomplete=off").classes("dialog-field")
                self._name.on("keydown.enter", self._submit)
            with ui.element("div").classes("file-form"):
                ui.button(words("Choose a file")).props("outline no-caps icon=upload_file").on("click", js_handler=PICK)
                self._chosen = ui.label(words("No file is chosen yet.")).classes("fine").props("role=status")
                upload = ui.upload(max_file_size=largest, max_files=1, auto_upload=True, on_upload=self._uploaded)
                upload.props(f"accept={quoted(accept)} aria-hidden=true")
                large = words("The maximum file size is {n} bytes.", n=count(largest, words.locale))
                upload.on_rejected(lambda: self._refuse(large, upload))
                upload.on("failed", lambda: self._refuse(words("The file did not arrive. Choose it again."), upload))
            self._wrong = wrong_line()
            self._button = buttons(made, words("Cancel"), verb, self._submit, "primary")

    async def _uploaded(self, event: UploadEventArguments) -> None:
        """Take in the file that was chosen; another may be chosen after it."""
        content = await event.file.read()
        self._file, self._refused = (event.file.name, content), ""
        size = f"{len(content):,}"
        self._chosen.set_text(self.words("{file}, {size} bytes", file=event.file.name[:120], size=size))
        self._wrong.set_visibility(False)
        if self._name is not None and not self._name.value:
            self._name.value = name_like(event.file.name.rpartition(".")[0])
        event.sender.run_method("reset")

    async def _submit(self) -> None:
        if not self._button.enabled:
            return  # it is being sent
        if self._name is not None:
            self._name.error = None
        if self._file is None:
            self._show_error(self._refused or self.words("Choose a file first."))
            return
        self._wrong.set_visibility(False)
        with sending(self._dialog, self._button, self._failed):
            await self._send(str(self._name.value).strip() if self._name else "", *self._file)

    def _refuse(self, why: str, upload: ui.upload) -> None:
        """Say why the file that was chosen cannot be taken, until another is; the one before it counts no more."""
        self._file, self._refused = None, why
        self._chosen.set_text(self.words("No file is chosen yet."))
        self._show_error(why)
        upload.reset()

    def _failed(self, error: SeawayError) -> None:
        """Say what is wrong, at the name where it is that."""
        if self._name is not None and isinstance(error, RejectedError) and error.where == "name":
            self._name.error = error.message
        else:
            self._show_error(str(error))

    def _show_error(self, text: str) -> None:
        self._wrong.set_text(text)
        self._wrong.set_visibility(True)


def name_like(text: str) -> str:
    """Return what comes nearest to a text of all that something may be named here; empty where nothing does."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:63].rstrip("-.")
