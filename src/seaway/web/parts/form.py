"""Dialogs: forms with errors at their fields, file uploads, and confirmations."""

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
from nicegui.events import GenericEventArguments, UploadEventArguments

from seaway.domain.errors import RejectedError, SeawayError
from seaway.domain.usage import UsageSpan
from seaway.web.words import Words, count

Send = Callable[[dict[str, Any]], Awaitable[None]]
"""Function that receives the values by field and raises their errors."""


@dataclass(frozen=True, slots=True)
class Field:
    """Field of a form.

    Attributes
    ----------
    name
        Name in the API.
    label
        Title of the field.
    value
        Initial value: text, state of a switch, selected option, or a list of options.
    options
        Options with their titles; None for a text field.
    hint
        Additional help.
    completions
        Texts that complete what the user types.
    """

    name: str
    label: str
    value: str | bool | list[str] = ""
    options: Mapping[str, str] | None = None
    hint: str = ""
    completions: Sequence[str] = ()


class Form:
    """Dialog with fields. It stays open until the API accepts the values.

    Parameters
    ----------
    title
        Title of the dialog.
    verb
        Label of its button.
    send
        Sends the values.
    more
        Draws more below the fields.
    """

    def __init__(  # all parts of the dialog
        self,
        words: Words,
        title: str,
        fields: Sequence[Field],
        verb: str,
        send: Send,
        more: Callable[[], object] = lambda: None,
    ) -> None:
        self._send = send
        self._inputs: dict[str, ValueElement[Any]] = {}
        with dialog(title) as made:
            self._dialog = made
            for each in fields:
                self._inputs[each.name] = filled = _input(each)
                if isinstance(filled, ui.input):
                    filled.on("keydown.enter", self._submit)
            next(iter(self._inputs.values())).props("autofocus")
            more()
            self._wrong = error_line()
            self._button = buttons(made, words("Cancel"), verb, self._submit, "primary")

    async def _submit(self) -> None:
        if not self._button.enabled:
            return  # already in progress
        given = self.begin()
        with sending(self._dialog, self._button, self.show_error):
            await self._send(given)

    def begin(self) -> dict[str, Any]:
        """Clear the errors, and return the values of the fields by name."""
        for each in self._inputs.values():
            if isinstance(each, ValidationElement):
                each.error = None
        self._wrong.set_visibility(False)
        given = {name: each.value for name, each in self._inputs.items()}
        return {name: value.strip() if isinstance(value, str) else value for name, value in given.items()}

    def mark_dangerous(self) -> None:
        """Colour the button as one that stops or removes something."""
        self._button.props("color=negative")

    def show_error(self, error: SeawayError) -> None:
        """Show errors at their fields if the fields are known."""
        left = []
        for each in (error, *error.also) if isinstance(error, RejectedError) else (error,):
            where, _, part = each.where.partition(".") if isinstance(each, RejectedError) else ("", "", "")
            where = where.partition("[")[0]
            at = self._inputs.get(where)
            if isinstance(at, ValidationElement) and isinstance(each, RejectedError):
                at.error = each.message if not part or part.isdecimal() else f"{part}: {each.message}"
            else:
                left.append(str(each))
        self._wrong.set_text("; ".join(left))
        self._wrong.set_visibility(bool(left))


def confirm(
    words: Words,
    title: str,
    text: str,
    verb: str,
    do: Callable[[], Awaitable[None]],
    more: Callable[[], object] = lambda: None,
) -> None:
    """Open a dialog that confirms an action, runs it, and shows its errors; `more` draws more below the text."""
    with dialog(title) as made:
        ui.label(text).classes("dialog-text")
        more()
        wrong = error_line()

        def show_error(error: SeawayError) -> None:
            wrong.set_text(str(error))
            wrong.set_visibility(True)

        async def sure() -> None:
            if button.enabled:  # else it is in progress
                with sending(made, button, show_error):
                    await do()

        button = buttons(made, words("Cancel"), verb, sure, "negative")


def notify(text: str, *warnings: str) -> None:
    """Show a short success message, and each warning that is not empty until a user closes it."""
    ui.notify(text, type="positive", position="bottom-right")
    for warning in filter(None, warnings):
        ui.notify(warning, type="warning", position="bottom-right", timeout=0, close_button="×", multi_line=True)


@contextmanager
def dialog(title: str) -> Iterator[ui.dialog]:
    """Open a dialog, deleted on close. The body of the ``with`` statement draws its content.

    The dialog belongs to the page, because the library deletes a dialog together with its creator, which may be a
    dialog that closes. If a dialog with the same title is open, it stays hidden, so that a double click opens only one.
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
    """Run the body of the ``with`` statement as the action of a dialog, then close the dialog.

    A request cannot be cancelled. If the user closes the dialog first, the page shows the error.

    Parameters
    ----------
    button
        Button of the action; disabled until the action completes.
    show_error
        Shows an error in the dialog.
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
        if made.value:  # after success it stays disabled: a late second click sends nothing
            button.props(remove="loading").enable()


COPY = """(event) => {
  event.target.closest('.dialog').querySelector('.secret input').select();
  emit(document.execCommand('copy'));
}"""
"""JavaScript that copies a secret and reports success. Over plain http, browsers have no other clipboard."""


def secret_field(words: Words, made: ui.dialog, text: str, secret: str, label: str = "") -> None:
    """Draw a dialog that shows a secret once, with a button that copies it. The default of the label is secret."""
    made.props("persistent")
    ui.label(text).classes("dialog-text")
    shown = (
        ui.input(label or words("Secret"), value=secret).props("outlined dense readonly").classes("dialog-field secret")
    )
    shown.on("focus", js_handler="(event) => event.target.select()")
    with ui.element("div").classes("dialog-buttons"):

        def copied(event: GenericEventArguments) -> None:
            notify(words("Copied") if event.args else words("It is selected: copy it by hand."))

        copy = ui.button(words("Copy"), icon="content_copy").props("outline no-caps")
        copy.on("click", copied, js_handler=COPY)
        ui.button(words("Done"), on_click=made.close).props("unelevated no-caps")


def error_line() -> ui.label:
    """Draw an error line, which is hidden at first."""
    line = ui.label().classes("form-error").props("role=alert")
    line.set_visibility(False)
    return line


def buttons(made: ui.dialog, leave: str, verb: str, do: Callable[[], Awaitable[None]], colour: str) -> ui.button:
    """Draw the buttons of a dialog; return the button of its action."""
    with ui.element("div").classes("dialog-buttons"):
        ui.button(leave, on_click=made.close).props("flat no-caps")
        return ui.button(verb, on_click=do, color=colour).props("unelevated no-caps")


def toggle(options: dict[str, str], value: str, label: str, choose: Callable[[Any], Awaitable[None]]) -> None:
    """Create buttons of which one is chosen."""
    made = ui.toggle(options, value=value, on_change=choose)
    made.props(f'no-caps unelevated dense padding="4px 12px" aria-label="{label}"')


def range_toggle(words: Words, span: UsageSpan, choose: Callable[[Any], Awaitable[None]]) -> None:
    """Create the buttons for the length of a history of use."""
    spans = {"hour": words("Hour"), "day": words("Day"), "week": words("Week"), "month": words("Month")}
    toggle(spans, span.value, words("Range of time"), choose)


def quoted(text: str) -> str:
    """Return the text as a quoted property of an element."""
    return json.dumps(text, ensure_ascii=False)


def _input(field: Field) -> ValueElement[Any]:
    if isinstance(field.value, bool):
        return ui.switch(field.label, value=field.value)
    props = "outlined dense" + (f" hint={quoted(field.hint)}" if field.hint else "")
    if field.options is None:
        line = ui.input(field.label, value=str(field.value), autocomplete=list(field.completions) or None)
        return line.props(f"{props} autocomplete=off").classes("dialog-field")
    several = isinstance(field.value, list)
    made = ui.select(dict(field.options), label=field.label, value=field.value, multiple=several)
    return made.props(f"{props} options-dense" + (" use-chips" if several else "")).classes("dialog-field")


SendFile = Callable[[str, str, bytes], Awaitable[None]]
"""Function that receives the new name, the file's name and its content, and raises errors."""

AROUND = 2048
"""Size in bytes of the name and type that a browser sends with a file."""

PICK = "() => document.querySelector('.file-form .q-uploader__input')?.click()"
"""JavaScript that opens the browser's file dialog. It must run in the handler of the user's click."""


class FileForm:
    """Dialog for a file. It stays open until the API accepts the file.

    Parameters
    ----------
    accept
        Extensions of accepted files, like ``.json,.csv``.
    verb
        Label of its button.
    send
        Sends the file.
    max_body_bytes
        Maximum request body of the API. The dialog refuses larger files before it sends them.
    named
        Title of the field for the new name; empty if the file contains its name.
    """

    def __init__(  # all parts of the dialog
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
                upload.on("uploaded", upload.reset, args=[])  # after the response: a reset aborts the request
                upload.on("failed", lambda: self._refuse(words("The file did not arrive. Choose it again."), upload))
            self._wrong = error_line()
            self._button = buttons(made, words("Cancel"), verb, self._submit, "primary")

    async def _uploaded(self, event: UploadEventArguments) -> None:
        """Accept an uploaded file, which replaces an earlier one."""
        content = await event.file.read()
        self._file, self._refused = (event.file.name, content), ""
        size = f"{len(content):,}"
        self._chosen.set_text(self.words("{file}, {size} bytes", file=event.file.name[:120], size=size))
        self._wrong.set_visibility(False)
        if self._name is not None and not self._name.value:
            self._name.value = name_like(event.file.name.rpartition(".")[0])

    async def _submit(self) -> None:
        if not self._button.enabled:
            return  # already in progress
        if self._name is not None:
            self._name.error = None
        if self._file is None:
            self._show_error(self._refused or self.words("Choose a file first."))
            return
        self._wrong.set_visibility(False)
        with sending(self._dialog, self._button, self._failed):
            await self._send(str(self._name.value).strip() if self._name else "", *self._file)

    def _refuse(self, why: str, upload: ui.upload) -> None:
        """Show the reason for refusing a file, and drop the previous file."""
        self._file, self._refused = None, why
        self._chosen.set_text(self.words("No file is chosen yet."))
        self._show_error(why)
        upload.reset()

    def _failed(self, error: SeawayError) -> None:
        """Show an error, at the name field if the error concerns the name."""
        if self._name is not None and isinstance(error, RejectedError) and error.where == "name":
            self._name.error = error.message
        else:
            self._show_error(str(error))

    def _show_error(self, text: str) -> None:
        self._wrong.set_text(text)
        self._wrong.set_visibility(True)


def name_like(text: str) -> str:
    """Return the closest valid name to a text; empty if there is none."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:63].rstrip("-.")
