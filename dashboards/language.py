"""Languages of dashboards."""

from __future__ import annotations

from enum import StrEnum


class Language(StrEnum):
    """Language of all titles and texts. Names in metrics are the same in each."""

    ENGLISH = "en"
    CHINESE = "zh"

    @property
    def folder(self) -> str:
        """Name of the folder in Grafana, and of the folder of files."""
        return self.say("Seaway", "Seaway 中文")

    def say(self, english: str, chinese: str) -> str:
        """Return the text in this language."""
        return english if self is Language.ENGLISH else chinese

    def uid(self, name: str) -> str:
        """Return the UID of a dashboard in Grafana and in links."""
        return f"seaway-{name}" if self is Language.ENGLISH else f"seaway-{name}-zh"
