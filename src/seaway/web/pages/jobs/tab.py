"""What all tabs of a job have in common: each asks only while it is looked at, and seldom what changes with the job."""

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
"""How often it is asked for what changes with the job: where the job has changed, that is asked for at once."""

EVENTS_S = 10.0
"""How often events are: there is hardly one without the job having changed."""


class Tab(ABC):
    """A part of the page.

    Attributes
    ----------
    job
        The job as it was heard of last.
    nodes
        How many nodes each cluster has.
    kept
        What the address says of what is looked at in it.
    """

    name = ""
    """What the address calls it; the first has no name there."""

    def __init__(self, visit: Visit, job: JobOut) -> None:
        self.visit, self.words, self.job = visit, visit.words, job
        self.nodes: dict[str, int] = {}
        self.retained: dict[str, str | None] = {}
        self.is_open = False
        self._latest = Latest(visit)
        self._beside: list[Call[Any]] = []

    @abstractmethod
    def make(self) -> None:
        """Make what is seen, empty."""

    @abstractmethod
    async def look(self, turn: Turn) -> None:
        """Begin to follow what is seen."""

    async def open(self) -> None:
        """Follow what is seen from here on."""
        self.is_open = True
        self._beside.clear()
        await self.look(self._latest.begin())

    def close(self) -> None:
        """Follow it no longer."""
        self.is_open = False
        self._latest.end()

    async def callback(self, job: JobOut) -> None:
        """Take in how the job is by now; look again where it is another attempt."""
        before, self.job = self.job, job
        if self.is_open and before.attempt != job.attempt:
            await self.open()
        elif self.is_open and before.version != job.version:
            for call in self._beside:
                self.visit.ask_again(call)

    def keep(self) -> None:
        """Have the address say what is looked at."""
        self.visit.turn(tab=self.name or None, **self.retained)

    def draw(self) -> None:  # noqa: B027  # most have nothing that goes on by itself
        """Write again what changes with time."""

    async def follow_beside(
        self, turn: Turn, call: Call[T], callback: Callable[[T], Any], interval_s: float = BESIDE_S
    ) -> None:
        """Follow what changes with the job."""
        self._beside.append(call)
        await turn.follow(call, callback, interval_s)


class WithEvents(Tab):
    """Has what happened to the job: read once, then only what follows the last full page."""

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        self._before: list[EventOut] = []
        self.events: list[EventOut] = []

    async def follow_events(self, turn: Turn) -> None:
        """Follow what happens."""
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
        if page.next is not None:  # the page is full, what follows is on the next
            await self.open()
