"""Base of the tabs of a job. Only the open tab sends queries, with few queries for data that changes with the job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from seaway.client.call import Call
from seaway.client.calls import jobs
from seaway.web.latest import Latest, Turn
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.events import EventList, EventOut
    from seaway.wire.job_out import JobOut

T = TypeVar("T")

BESIDE_S = 3.0
"""Interval of queries for data that changes with the job, in seconds.

A change of the job triggers a query immediately.
"""

EVENTS_S = 10.0
"""Interval of queries for events, in seconds. Almost all events come with a change of the job."""


class Tab(ABC):
    """Tab of the job page.

    Attributes
    ----------
    job
        Latest state of the job.
    nodes
        Number of nodes of each cluster.
    retained
        Parameters of the address that belong to the tab.
    """

    name = ""
    """Name in addresses; empty for the first tab."""

    def __init__(self, visit: Visit, job: JobOut) -> None:
        self.visit, self.words, self.job = visit, visit.words, job
        self.nodes: dict[str, int] = {}
        self.retained: dict[str, str | None] = {}
        self.is_open = False
        self._latest = Latest(visit)
        self._beside: list[Call[Any]] = []

    @abstractmethod
    def make(self) -> None:
        """Draw the empty tab."""

    @abstractmethod
    async def look(self, turn: Turn) -> None:
        """Follow the data of the tab."""

    async def open(self) -> None:
        """Open the tab, and follow its data."""
        self.is_open = True
        self._beside.clear()
        await self.look(self._latest.begin())

    def close(self) -> None:
        """Close the tab, and stop its queries."""
        self.is_open = False
        self._latest.end()

    async def callback(self, job: JobOut) -> None:
        """Accept the job's new state. Open the tab again for a new attempt."""
        before, self.job = self.job, job
        if self.is_open and before.attempt != job.attempt:
            await self.open()
        elif self.is_open and before.version != job.version:
            for call in self._beside:
                self.visit.ask_again(call)

    def keep(self) -> None:
        """Write the tab's parameters into the address."""
        self.visit.turn(tab=self.name or None, **self.retained)

    def draw(self) -> None:  # noqa: B027  # most tabs have no running times
        """Render the parts that change with time."""

    async def follow_beside(
        self, turn: Turn, call: Call[T], callback: Callable[[T], Any], interval_s: float = BESIDE_S
    ) -> None:
        """Follow data that changes with the job."""
        self._beside.append(call)
        await turn.follow(call, callback, interval_s)


class WithEvents(Tab):
    """Tab with the job's events. It reads full pages once, and follows only the last page."""

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        self._before: list[EventOut] = []
        self.events: list[EventOut] = []

    async def follow_events(self, turn: Turn) -> None:
        """Follow the events."""
        before: list[EventOut] = []
        paged = jobs.events(self.job.id)
        call = paged.first
        page = await self.visit.ask(call)
        while page.next is not None:
            before += page.events
            call = paged.after(page.next, 0) or paged.first
            page = await self.visit.ask(call)
        if turn.counts():
            self._before = before
            await self.follow_beside(turn, call, self._received_events, EVENTS_S)

    async def _received_events(self, page: EventList) -> None:
        self.events = [*self._before, *page.events]
        self.draw()
        if page.next is not None:  # the page is full, and later events are on the next one
            await self.open()
