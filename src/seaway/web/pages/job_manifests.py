"""What a job became in its clusters."""

from __future__ import annotations

from nicegui import ui

from seaway.client.calls import jobs
from seaway.domain.errors import SeawayError
from seaway.web.latest import Turn
from seaway.web.pages.job_tab import Tab
from seaway.web.parts.editor import dress


class Manifests(Tab):
    """What it became in its clusters."""

    name = "manifests"

    def make(self) -> None:
        """Make what is seen, empty."""
        with ui.element("div").classes("manifest-head"):
            self._note = ui.label().classes("dim").props("role=status")
            self._copy = ui.button(self.words("Download"), icon="download", on_click=self._download, color=None)
            self._copy.props("flat dense no-caps")
        self._view = ui.codemirror(language="YAML", indent="  ").classes("manifest")
        self._view.props("readonly").disable()
        dress(self.visit, self._view)

    async def look(self, turn: Turn) -> None:
        """Read it; it changes only with the attempt, which `heard` notices."""
        try:
            text = await self.visit.ask(jobs.manifest(self.job.id))
            n = text.count("\n---\n") + 1
            note = self.words("1 object") if n == 1 else self.words("{n} objects", n=n)
        except SeawayError as error:
            text, note = "", str(error)
        if not turn.counts():
            return
        self._note.set_text(note)
        self._view.set_value(text)
        self._view.set_visibility(bool(text))
        self._copy.set_visibility(bool(text))

    def _download(self) -> None:
        ui.download.content(self._view.value, f"{self.job.name}.yaml", "application/yaml")
