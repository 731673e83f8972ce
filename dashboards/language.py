"""In which language people read."""

from __future__ import annotations

from enum import StrEnum


class Language(StrEnum):
    """A language of all titles and texts. What metrics call things is the same in each."""

    ENGLISH = "en"
    CHINESE = "zh"

    @property
    def folder(self) -> str:
        """The folder in Grafana, and of the files."""
        return self.say("Seaway", "Seaway 中文")

    def say(self, english: str, chinese: str) -> str:
        """Return the one of two texts that is in this language."""
        return english if self is Language.ENGLISH else chinese

    def uid(self, name: str) -> str:
        """Return by what Grafana, and links, know a dashboard."""
        return f"seaway-{name}" if self is Language.ENGLISH else f"seaway-{name}-zh"
