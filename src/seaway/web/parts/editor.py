"""An editor of YAML that shows at which lines something is wrong, and a view of YAML that no one changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from seaway.domain.errors import RejectedError
from seaway.web.job_document import line_of
from seaway.web.visit import Visit

Typed = Callable[[str], Awaitable[None]]
"""Takes the text whenever a user has changed it."""

DARK = "document.body.classList.contains('body--dark')"


class Editor:
    """An editor.

    Parameters
    ----------
    typed
        Told what is typed; not what `show` puts there.
    label
        What it holds.
    """

    def __init__(self, visit: Visit, typed: Typed, label: str) -> None:
        self._typed = typed
        self._text = ""
        self._lines: Mapping[str, int] = {}
        with ui.element("div").classes("editor").props(f'role=group aria-label="{label}"') as self.section:
            self._editor = ui.codemirror(language="YAML", indent="  ", line_wrapping=True, on_change=self._changed)
        dress(visit, self._editor)

    def show(self, text: str) -> None:
        """Show a text in place of what is there."""
        if text != self._text:
            self._text = text
            self._editor.set_value(text)

    def enable(self, on: bool) -> None:
        """Let people type, or not."""
        self._editor.set_enabled(on)

    def mark(self, errors: Sequence[RejectedError], lines: Mapping[str, int]) -> None:
        """Mark the lines at which something is wrong.

        Parameters
        ----------
        lines
            On which line what stands.
        """
        self._lines = lines
        marked = {line for each in errors if (line := self.line(each.where)) is not None}
        drawn = [{"kind": "line", "line": line, "class": "line-wrong"} for line in sorted(marked)]
        self._editor.run_method("setDecorations", drawn)  # a property brings along a text, which may be old by then

    def line(self, path: str) -> int | None:
        """Return the line of a field, or of what it would be a part of."""
        return line_of(self._lines, path)

    def lead(self, path: str) -> None:
        """Show the line of a field."""
        if (line := self.line(path)) is not None:
            self._editor.reveal_line(line)

    async def _changed(self, event: ValueChangeEventArguments[str]) -> None:
        if event.value != self._text:
            self._text = event.value
            await self._typed(event.value)


def dress(visit: Visit, editor: ui.codemirror) -> None:
    """Have an editor light or dark, as its page is; where the browser knows which, it is asked."""

    async def ask() -> None:
        with suppress(TimeoutError):  # it is light where the browser does not say
            if await visit.client.run_javascript(DARK):
                editor.set_theme("vscodeDark")

    if visit.theme == "dark":
        editor.set_theme("vscodeDark")
    else:
        editor.set_theme("vscodeLight")
        if visit.theme == "auto":
            visit.client.on_connect(ask)  # what waits for the browser here has the page served as far as it is made
