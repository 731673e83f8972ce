"""A job while it is written, in a form and as YAML, of which one is behind until both are brought together."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Self

from seaway.domain.errors import RejectedError
from seaway.web.job_document import LARGEST, Document, changed, lines_of, read_document, written
from seaway.web.latest import Turn


class Behind(Enum):
    """What does not have yet what the other has."""

    NEITHER = 0
    TEXT = 1
    DOCUMENT = 2


class JobDraft:
    """A job that is being written.

    Attributes
    ----------
    text
        As YAML.
    document
        As a form shows it; None while the text cannot be read.
    lines
        On which line of the text what stands, by path.
    behind
        Which of the two is not up to date.
    """

    def __init__(self) -> None:
        self.text = ""
        self.document: Document | None = {}
        self.lines: dict[str, int] = {}
        self.behind = Behind.NEITHER

    @classmethod
    def of(cls, document: Document) -> Self:
        """Begin with a job that there is."""
        draft = cls()
        draft.document = document
        draft.text, draft.lines = _write(document)
        return draft

    @property
    def is_long(self) -> bool:
        """True if it is too long to be looked at while one writes."""
        return len(self.text) > LARGEST

    def fill_in(self, path: str, value: object) -> None:
        """Take what was typed into a field."""
        self.document = changed(self.document or {}, path, value)
        self.behind = Behind.TEXT

    def rewrite(self, text: str) -> None:
        """Take what was typed or pasted as YAML."""
        self.text = text
        self.behind = Behind.DOCUMENT

    async def named(self, name: str) -> str:
        """Return it as YAML with a name, written on a thread; whatever else it holds stays."""
        return await asyncio.to_thread(written, {**(self.document or {}), "name": name})

    async def settle(self, turn: Turn) -> bool:
        """Bring both together, on a thread; return whether nothing else was typed meanwhile, which is dropped else."""
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
