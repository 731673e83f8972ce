"""The editor of a job's YAML."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from nicegui import Client

from seaway.domain.errors import RejectedError
from seaway.web.parts.editor import Editor
from seaway.web.visit import Visit


async def _nothing(_: str) -> None:
    """Take what is typed."""


def test_marking_lines_leaves_the_text_alone(client: Client) -> None:
    """A user types on meanwhile: what the server knows of the text is old by then, and must not take its place."""
    with client.content:
        editor = Editor(cast("Visit", SimpleNamespace(theme="light")), _nothing, "The job as YAML")
    client.outbox.updates.clear()
    editor.mark([RejectedError("no", where="name")], {"name": 1})
    editor.mark([], {})
    assert not client.outbox.updates
