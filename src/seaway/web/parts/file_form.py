"""A dialog that asks for a file, and says beside it what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from nicegui import ui
from nicegui.events import UploadEventArguments

from seaway.domain.errors import RejectedError, SeawayError
from seaway.web.figures import count
from seaway.web.parts.form import buttons, dialog, quoted, sending, wrong_line
from seaway.web.words import Words

Send = Callable[[str, str, bytes], Awaitable[None]]
"""Takes what it is to be called, the file's own name and its content; raises what is wrong with it."""

AROUND = 2048
"""What a browser sends around a file, bytes: its name and its kind."""

PICK = "() => document.querySelector('.file-form .q-uploader__input')?.click()"
"""Asks for a file in the browser, at once: only what somebody presses may."""


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
    largest_body
        What the body of a request with it may have, bytes: what is larger is refused before it is sent.
    named
        What the name is called that it gets here; empty where the file says it itself.
    """

    def __init__(  # what a dialog is made of
        self, words: Words, title: str, accept: str, verb: str, send: Send, largest_body: int, named: str = ""
    ) -> None:
        self.words, self._send = words, send
        self._file: tuple[str, bytes] | None = None
        self._name: ui.input | None = None
        self._refused = ""
        largest = max(largest_body - AROUND, 1)
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
                large = words("This server takes files of {n} bytes at the most.", n=count(largest, words.locale))
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
            self._told(self._refused or self.words("Choose a file first."))
            return
        self._wrong.set_visibility(False)
        with sending(self._dialog, self._button, self._failed):
            await self._send(str(self._name.value).strip() if self._name else "", *self._file)

    def _refuse(self, why: str, upload: ui.upload) -> None:
        """Say why the file that was chosen cannot be taken, until another is; the one before it counts no more."""
        self._file, self._refused = None, why
        self._chosen.set_text(self.words("No file is chosen yet."))
        self._told(why)
        upload.reset()

    def _failed(self, error: SeawayError) -> None:
        """Say what is wrong, at the name where it is that."""
        if self._name is not None and isinstance(error, RejectedError) and error.where == "name":
            self._name.error = error.message
        else:
            self._told(str(error))

    def _told(self, text: str) -> None:
        self._wrong.set_text(text)
        self._wrong.set_visibility(True)


def name_like(text: str) -> str:
    """Return what comes nearest to a text of all that something may be named here; empty where nothing does."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:63].rstrip("-.")
