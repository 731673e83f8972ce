"""YAML editor that marks lines with errors, and a theme for read-only views."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from seaway.domain.errors import RejectedError
from seaway.web.job_document import line_of
from seaway.web.visit import Visit

Typed = Callable[[str], Awaitable[None]]
"""Function that receives the text after each change by the user."""

DARK = "document.body.classList.contains('body--dark')"


class Editor:
    """YAML editor.

    Parameters
    ----------
    typed
        Receives text that the user types, but not text from `show`.
    label
        Accessible name.
    """

    def __init__(self, visit: Visit, typed: Typed, label: str) -> None:
        self._typed = typed
        self._text = ""
        self._lines: Mapping[str, int] = {}
        with ui.element("div").classes("editor").props(f'role=group aria-label="{label}"') as self.section:
            self._editor = ui.codemirror(language="YAML", indent="  ", line_wrapping=True, on_change=self._changed)
        apply_theme(visit, self._editor)

    def show(self, text: str) -> None:
        """Replace the text."""
        if text != self._text:
            self._text = text
            self._editor.set_value(text)

    def enable(self, on: bool) -> None:
        """Enable or disable input."""
        self._editor.set_enabled(on)

    def mark(self, errors: Sequence[RejectedError], lines: Mapping[str, int]) -> None:
        """Mark lines with errors.

        Parameters
        ----------
        lines
            Line of each field, by path.
        """
        self._lines = lines
        marked = {line for each in errors if (line := self.line(each.where)) is not None}
        drawn = [{"kind": "line", "line": line, "class": "line-wrong"} for line in sorted(marked)]
        self._editor.run_method("setDecorations", drawn)  # a property would also send a text, which may be outdated

    def line(self, path: str) -> int | None:
        """Return the line of a field, or of its closest parent with a line."""
        return line_of(self._lines, path)

    def lead(self, path: str) -> None:
        """Scroll to the line of a field."""
        if (line := self.line(path)) is not None:
            self._editor.reveal_line(line)

    async def _changed(self, event: ValueChangeEventArguments[str]) -> None:
        if event.value != self._text:
            self._text = event.value
            await self._typed(event.value)


def apply_theme(visit: Visit, editor: ui.codemirror) -> None:
    """Set the light or dark theme of an editor. If only the browser knows the system's theme, query the browser."""

    async def ask() -> None:
        with suppress(TimeoutError):  # light if the browser does not answer
            if await visit.client.run_javascript(DARK):
                editor.set_theme("vscodeDark")

    if visit.theme == "dark":
        editor.set_theme("vscodeDark")
    else:
        editor.set_theme("vscodeLight")
        if visit.theme == "auto":
            visit.client.on_connect(ask)  # a wait here would serve the page before it is complete
