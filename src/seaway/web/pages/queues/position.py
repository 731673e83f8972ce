"""Waiting jobs of a queue with reasons, in the order of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from seaway.client.calls import tenancy
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.parts.actions import on_act
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.tenancy import WaitingPage

EVERY_S = 3.0
"""Interval of queries for waiting jobs; each answer explains all jobs on the page."""

MOST = 15
"""Jobs on a page."""

PREFIX = "waits: "
"""Prefix of the reason why a job waits; redundant here."""


class Line:
    """Panel with the waiting jobs of a queue, page by page.

    Attributes
    ----------
    queue
        Name of the queue; empty before a choice.
    """

    def __init__(self, visit: Visit) -> None:
        self.queue = ""
        self._visit = visit
        self._marks = [""]  # positions of the pages before and of this one
        self._next: str | None = None
        self._latest = Latest(visit)
        with ui.element("section").classes("panel"):
            self._fragment = Fragment("waiting", visit.words)
        on_act(self._fragment, self._act)

    async def show(self, queue: str) -> None:
        """Show the waiting jobs of a queue, from the first."""
        self.queue, self._marks = queue, [""]
        await self._follow()

    async def _follow(self) -> None:
        turn, self._next = self._latest.begin(), None
        if self.queue:
            with self._fragment.element:
                call = tenancy.waiting(self.queue, after=self._marks[-1], limit=MOST).first
                await turn.follow(call, self._received, EVERY_S)
        else:
            self._fragment.show(queue="", jobs=(), total=0, first=0, last=0, more=False)

    def _received(self, page: WaitingPage) -> None:
        self._next = page.next
        queue, first = self.queue, MOST * (len(self._marks) - 1)
        self._fragment.show_of([page], lambda: _line(queue, page, first), queue, first)

    async def _act(self, act: str, _: str) -> None:
        if act == "next" and self._next:
            self._marks.append(self._next)
        elif act == "before" and len(self._marks) > 1:
            self._marks.pop()
        else:
            return
        await self._follow()


def _line(queue: str, page: WaitingPage, first: int) -> dict[str, object]:
    """Return the variables for a page of waiting jobs that follows `first` others."""
    rows = [{"job": each, "why": each.message.removeprefix(PREFIX)} for each in page.jobs]
    return {
        "queue": queue,
        "jobs": rows,
        "total": page.total,
        "first": first,
        "last": first + len(rows),
        "more": page.next is not None,
    }
