"""The audit log: who asked for what, and what came of it, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seaway.client.calls import access
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.parts.acting import on_act
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.tokens import AuditPage

MOST = 25
"""Entries on a page."""

SELDOM_S = 2.0


async def show_audit(visit: Visit) -> None:
    """Show the newest entries, as they come, and lead back to older ones."""
    await _Audit(visit).follow()


class _Audit:
    """The section as it is looked at."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._marks = [0]  # of the pages before, and of this one
        self._next: int | None = None
        self._latest = Latest(visit)
        self._fragment = Fragment("audit", visit.words)
        on_act(self._fragment, self._act)

    async def follow(self) -> None:
        """Show the page that is looked at."""
        turn, self._next = self._latest.begin(), None
        call = access.audit(limit=MOST, before=self._marks[-1]).first
        with self._fragment.element:
            await turn.follow(call, self._heard, SELDOM_S)

    def _heard(self, page: AuditPage) -> None:
        self._next = page.next
        self._fragment.show(entries=page.entries, first=len(self._marks) == 1, more=page.next is not None)

    async def _act(self, act: str, _: str) -> None:
        if act == "next" and self._next:
            self._marks.append(self._next)
        elif act == "before" and len(self._marks) > 1:
            self._marks.pop()
        elif act == "newest":
            self._marks = [0]
        else:
            return
        await self.follow()
