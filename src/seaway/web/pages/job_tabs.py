"""What is to be seen of a job, tab by tab; each asks only while it is looked at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from nicegui import ui

from seaway.client.call import Call
from seaway.client.calls import jobs
from seaway.domain.errors import SeawayError
from seaway.web.fragment import Fragment
from seaway.web.job_document import written
from seaway.web.log_lines import added
from seaway.web.parts.acting import on_act
from seaway.web.parts.editor import dress
from seaway.web.reasons import by_cluster, mends
from seaway.web.timeline import steps
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.events import EventList, EventOut
    from seaway.wire.explanations import ReasonOut
    from seaway.wire.job_out import AttemptList, JobOut

T = TypeVar("T")

REPLICAS = 50
"""Replicas that are shown at once."""

ATTEMPTS = 10
"""Attempts before the latest that are shown."""

EVENTS = 200
"""Events that are shown unless more are asked for."""

STEPS = 12
"""Steps of the timeline that are listed."""

WHY_S = 3.0
"""How often it is asked why; that takes the scheduler some time."""

LOG_S = 1.0
TAIL = 300
"""Lines of a log that are there when it is opened."""

MOST_LINES = 2_000
"""Lines of a log that are kept."""


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
        self.kept: dict[str, str | None] = {}
        self.is_open = False
        self._stops: list[Callable[[], None]] = []

    @abstractmethod
    def make(self) -> None:
        """Make what is seen, empty."""

    @abstractmethod
    async def look(self) -> None:
        """Begin to follow what is seen."""

    async def open(self) -> None:
        """Follow what is seen from here on."""
        self.close()
        self.is_open = True
        await self.look()

    def close(self) -> None:
        """Follow it no longer."""
        self.is_open = False
        for stop in self._stops:
            stop()
        self._stops.clear()

    async def heard(self, job: JobOut) -> None:
        """Take in how the job is by now; look anew where it is another attempt."""
        before, self.job = self.job, job
        if self.is_open and before.attempt != job.attempt:
            await self.open()

    def keep(self) -> None:
        """Have the address say what is looked at."""
        self.visit.keep(tab=self.name or None, **self.kept)

    def draw(self) -> None:  # noqa: B027  # most have nothing that goes on by itself
        """Write anew what changes with time."""

    async def follow(self, call: Call[T], heard: Callable[[T], Any], every_s: float | None = None) -> None:
        """Follow a call for as long as the tab is open."""
        follow = self.visit.follow
        stop = await (follow(call, heard) if every_s is None else follow(call, heard, every_s))
        if self.is_open:
            self._stops.append(stop)
        else:
            stop()


class _WithEvents(Tab):
    """Has what happened to the job: read once, then only what follows the last full page."""

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        self._before: list[EventOut] = []
        self.events: list[EventOut] = []

    async def follow_events(self) -> None:
        """Follow what happens."""
        self._before = []
        paged = jobs.events(self.job.id)
        page = await self.visit.ask(paged.first)
        call = paged.first
        while page.next is not None:
            self._before += page.events
            call = paged.after(page.next, 0) or paged.first
            page = await self.visit.ask(call)
        await self.follow(call, self._heard_events)

    def _heard_events(self, page: EventList) -> None:
        self.events = [*self._before, *page.events]
        self.draw()
        if page.next is not None:
            ui.timer(0, self.open, once=True)  # the page is full, what follows is on the next


class Overview(_WithEvents):
    """How it is and was, where it is, and what it asked for."""

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        first = visit.query.get("first", "")
        self._first = int(first) if first.isdecimal() and int(first) < job.replicas else 0
        self.kept = {"first": str(self._first) if self._first else None}
        self._ran: AttemptList | None = None

    def make(self) -> None:
        """Make what is seen, empty."""
        self._timeline = Fragment("job_timeline", self.words)
        self._places = Fragment("job_places", self.words)
        on_act(self._places, self._turned)
        self._asked = Fragment("job_asked", self.words)

    async def look(self) -> None:
        """Begin to follow what is seen."""
        await self.follow_events()
        after = max(self.job.attempt - 1 - ATTEMPTS, 0)
        await self.follow(
            jobs.attempts(self.job.id, after=after, first=self._first, replicas=REPLICAS), self._heard_attempts
        )

    def draw(self) -> None:
        """Write it anew."""
        if self.events:
            all_steps = steps(self.events, datetime.now(UTC))
            self._timeline.show(steps=all_steps, listed=all_steps[-STEPS:])
        self._asked.show(job=self.job, text=written(self.job.spec))

    async def _turned(self, _: str, first: str) -> None:
        """Show other replicas."""
        self._first = int(first)
        self.kept = {"first": first if self._first else None}
        self.keep()
        await self.open()

    def _heard_attempts(self, ran: AttemptList) -> None:
        self._ran = ran
        latest = ran.attempts[-1] if ran.attempts and ran.attempts[-1].state != "ended" else None
        seen = {each.replica: (copy, each) for copy in ran.copies for each in copy.replicas}
        self._places.show(
            job=self.job,
            latest=latest,
            earlier=[each for each in reversed(ran.attempts) if each is not latest],
            addresses=[copy for copy in ran.copies if copy.address],
            seen=seen,
            first=self._first,
            most=REPLICAS,
        )


class Events(_WithEvents):
    """All that happened to it."""

    name = "events"

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        self._most = EVENTS

    def make(self) -> None:
        """Make what is seen, empty."""
        self._shown = Fragment("job_events", self.words)
        on_act(self._shown, self._more)

    async def look(self) -> None:
        """Begin to follow what is seen."""
        await self.follow_events()

    def draw(self) -> None:
        """Write it anew."""
        if self.is_open:
            self._shown.show(events=self.events[-self._most :][::-1], more=max(len(self.events) - self._most, 0))

    def _more(self, *_: str) -> None:
        self._most += 5 * EVENTS
        self.draw()


class Why(Tab):
    """Why it waits, or why it is where it is."""

    name = "why"

    def make(self) -> None:
        """Make what is seen, empty."""
        self._shown = Fragment("job_why", self.words)

    async def look(self) -> None:
        """Begin to follow what is seen."""
        await self.follow(jobs.explain(self.job.id), self._heard_reason, WHY_S)

    def _heard_reason(self, reason: ReasonOut) -> None:
        explained = reason.explanation
        self._shown.show(
            reason=reason,
            clusters=by_cluster(explained, self.nodes) if explained else [],
            mends=list(mends(explained.remedies)) if explained else [],
            plugins=list(explained.candidates[0].scores) if explained and explained.candidates else [],
        )


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

    async def look(self) -> None:
        """Read it; it changes only with the attempt, which `heard` notices."""
        try:
            text = await self.visit.ask(jobs.manifest(self.job.id))
        except SeawayError as error:
            text = ""
            self._note.set_text(str(error))
        else:
            self._note.set_text(self.words("{n} objects", n=text.count("\n---\n") + 1))
        self._view.set_value(text)
        self._view.set_visibility(bool(text))
        self._copy.set_visibility(bool(text))

    def _download(self) -> None:
        ui.download.content(self._view.value, f"{self.job.name}.yaml", "application/yaml")


class Log(Tab):
    """What a container of a replica writes."""

    name = "logs"

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        replica = visit.query.get("replica", "")
        self._replica = int(replica) if replica.isdecimal() and int(replica) < job.replicas else 0
        self._container = visit.query.get("container", "")
        self._lines: list[str] = []
        self._note_choice()

    def make(self) -> None:
        """Make what is seen, empty."""
        words = self.words
        with ui.element("div").classes("filters"):
            if self.job.replicas > 1:
                number = ui.number(words("Replica"), value=self._replica, min=0, max=self.job.replicas - 1, precision=0)
                number.on_value_change(lambda event: self._choose_replica(event.value))
                number.props("outlined dense").classes("filter")
            self._containers = ui.select([self._container] if self._container else [], label=words("Container"))
            self._containers.props("outlined dense options-dense").classes("filter")
            self._containers.set_value(self._container or None)
            self._containers.on_value_change(lambda event: self._choose_container(event.value))
            self._note = ui.label().classes("dim").props("role=status")
        self._log = (
            ui.log(max_lines=MOST_LINES).classes("log").props(f'tabindex=0 role=log aria-label="{words("Log")}"')
        )

    async def look(self) -> None:
        """Begin to follow what is seen."""
        await self._list_containers()
        call = jobs.logs(self.job.id, replica=self._replica, container=self._container, tail=TAIL)
        try:
            await self.follow(call, self._heard_text, LOG_S)
        except SeawayError as error:
            self._clear(str(error))

    async def heard(self, job: JobOut) -> None:
        """Look anew where the job is another attempt, or could not be read in the state that it was in."""
        before = self.job
        await super().heard(job)
        if self.is_open and before.state != job.state and not self._lines:
            await self.open()

    async def _list_containers(self) -> None:
        """Offer the containers that the replica has, where its cluster tells of more than one."""
        call = jobs.attempts(self.job.id, after=max(self.job.attempt - 1, 0), first=self._replica, replicas=1)
        ran = await self.visit.ask(call)
        names = [one.name for copy in ran.copies for each in copy.replicas for one in each.containers]
        if self._container and self._container not in names:
            names.append(self._container)
        self._containers.set_options(names, value=self._container or None)
        self._containers.set_visibility(len(names) > 1)

    def _heard_text(self, text: str) -> None:
        """Write what is new at the end; all of it where it does not join what is there."""
        lines = text.splitlines()
        new = added(self._lines, lines)
        if new is None:
            self._log.clear()
            new = lines
        self._lines = lines
        self._note.set_text("" if lines else self.words("Nothing is written yet."))
        for line in new:
            self._log.push(line or " ")

    def _clear(self, note: str = "") -> None:
        self._lines = []
        self._log.clear()
        self._note.set_text(note)

    def _note_choice(self) -> None:
        self.kept = {"replica": str(self._replica) if self._replica else None, "container": self._container or None}

    async def _choose_replica(self, replica: float | None) -> None:
        chosen = int(replica or 0)
        if 0 <= chosen < self.job.replicas and chosen != self._replica:
            self._replica = chosen
            await self._anew()

    async def _choose_container(self, container: str | None) -> None:
        if (container or "") != self._container:
            self._container = container or ""
            await self._anew()

    async def _anew(self) -> None:
        self._note_choice()
        self.keep()
        self._clear()
        await self.open()
