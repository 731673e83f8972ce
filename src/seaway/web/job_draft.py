"""Job draft that a user edits in a form and as YAML; one of the two is outdated until `settle` runs."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Self

from seaway.domain.errors import RejectedError
from seaway.web.job_document import LARGEST, Document, changed, lines_of, read_document, written
from seaway.web.latest import Turn


class Behind(Enum):
    """Outdated view of a draft."""

    NEITHER = 0
    TEXT = 1
    DOCUMENT = 2


class JobDraft:
    """Job that a user edits.

    Attributes
    ----------
    text
        The job as YAML.
    document
        The job as the form shows it; None while the text is invalid.
    lines
        Line of each field in the text, by path.
    behind
        The outdated view.
    """

    def __init__(self) -> None:
        self.text = ""
        self.document: Document | None = {}
        self.lines: dict[str, int] = {}
        self.behind = Behind.NEITHER

    @classmethod
    def of(cls, document: Document) -> Self:
        """Create a draft from an existing job."""
        draft = cls()
        draft.document = document
        draft.text, draft.lines = _write(document)
        return draft

    @property
    def is_long(self) -> bool:
        """True if the text is too long to check while the user types."""
        return len(self.text) > LARGEST

    def fill_in(self, path: str, value: object) -> None:
        """Set a field from the form."""
        self.document = changed(self.document or {}, path, value)
        self.behind = Behind.TEXT

    def rewrite(self, text: str) -> None:
        """Replace the YAML."""
        self.text = text
        self.behind = Behind.DOCUMENT

    async def named(self, name: str) -> str:
        """Return the job as YAML with another name, and all other fields unchanged. A thread writes it."""
        return await asyncio.to_thread(written, {**(self.document or {}), "name": name})

    async def settle(self, turn: Turn) -> bool:
        """Bring both views together on a thread; return False, and discard the result, if the user typed meanwhile."""
        if self.behind is Behind.TEXT:
            text, lines = await asyncio.to_thread(_write, self.document or {})
            if turn.counts():
                self.text, self.lines, self.behind = text, lines, Behind.NEITHER
        elif self.behind is Behind.DOCUMENT:
            document, lines = await asyncio.to_thread(_read, self.text)
            if turn.counts():
                self.document, self.lines, self.behind = document, lines, Behind.NEITHER
        return turn.counts()


def _write(document: Document) -> tuple[str, dict[str, int]]:
    text = written(document)
    return text, lines_of(text)


def _read(text: str) -> tuple[Document | None, dict[str, int]]:
    try:
        return read_document(text), lines_of(text)
    except RejectedError:
        return None, {}
