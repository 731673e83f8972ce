"""Tab with the log of a replica's container, updated as lines arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicegui import ui

from seaway.client.calls import jobs
from seaway.domain.errors import SeawayError
from seaway.domain.job_state import JobState
from seaway.web import addresses
from seaway.web import words as figures
from seaway.web.latest import Latest, Turn
from seaway.web.pages.jobs.tab import Tab
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.job_out import JobOut


MAX_LINES = 2_000
"""Maximum number of lines of a log on a page."""


@dataclass(frozen=True, slots=True)
class News:
    """New lines of a log.

    Attributes
    ----------
    lines
        Lines to add.
    left_out
        Number of lines omitted before these.
    joins
        True if no other lines are missing; otherwise more than `left_out` lines are.
    restart
        True if the log was restarted, so that earlier lines belong to another log.
    """

    lines: list[str]
    left_out: int = 0
    joins: bool = True
    restart: bool = False


def news(before: Sequence[str], now: Sequence[str], *, whole: bool) -> News:
    """Return the new lines of a log since the last read.

    Parameters
    ----------
    before, now
        Last lines of the log.
    whole
        True if `now` is the whole log.

    Examples
    --------
    >>> news(["a", "b"], ["b", "c"], whole=False)
    News(lines=['c'], left_out=0, joins=True, restart=False)
    >>> news(["a", "b"], ["d", "e"], whole=False)
    News(lines=['d', 'e'], left_out=0, joins=False, restart=False)
    """
    new = added(before, now, whole=whole)
    retained = list(now if new is None else new)[-MAX_LINES:]
    left_out = len(now if new is None else new) - len(retained)
    return News(retained, left_out, joins=new is not None or whole, restart=new is None and whole)


def added(before: Sequence[str], now: Sequence[str], *, whole: bool = False) -> list[str] | None:
    """Return the new lines of a log since the last read; None if the two parts do not overlap.

    Parameters
    ----------
    before, now
        Last lines of the log. For repeated lines, the smallest number counts as new.
    whole
        True if `now` is the whole log.

    Examples
    --------
    >>> added(["a", "b"], ["b", "c"]), added(["a", "b"], ["0", "a", "b", "c"]), added(["a"], ["c"])
    (['c'], ['c'], None)
    """
    if whole and list(now[: len(before)]) == list(before):
        return list(now[len(before) :])
    if not before:
        return list(now)
    for end in range(len(now), 0, -1):
        shared = min(end, len(before))
        if now[end - 1] == before[-1] and list(before[-shared:]) == list(now[end - shared : end]):
            return list(now[end:])
    return None


EVERY_S = 1.0
"""Interval of queries for new lines, in seconds."""

TAIL = 300
"""Number of lines to fetch at first, and while no more arrive between two queries."""

LONG_TAIL = 5_000
"""Number of lines to fetch after more have arrived."""


class Log(Tab):
    """Tab with the log of a container."""

    name = "logs"

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        self._replica = addresses.number_of(visit.query.get("replica", ""), job.replicas)
        self._container = visit.query.get("container", "")
        self._reading = Latest(visit)
        self._tail = TAIL
        self._end: list[str] = []  # the last lines of the log
        self._shown: list[tuple[ui.label, int]] = []  # with the number of lines in each
        self._note_choice()

    def make(self) -> None:
        """Draw the empty tab."""
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
        self._log = ui.log().classes("log").props(f'tabindex=0 role=log aria-label="{words("Log")}"')

    async def look(self, turn: Turn) -> None:
        """Follow the data of the tab."""
        await self._list_containers(turn)
        if turn.counts():
            self._tail = TAIL
            await self._read()

    def close(self) -> None:
        """Stop all queries."""
        super().close()
        self._reading.end()

    async def callback(self, job: JobOut) -> None:
        """Read the log again for a new attempt, when the job stops, or if the previous state had no log."""
        before = self.job
        await super().callback(job)
        if self.is_open and before.state != job.state and not (self._end and self._runs()):
            await self.open()

    def _runs(self) -> bool:
        return JobState(self.job.state).placed

    async def _list_containers(self, turn: Turn) -> None:
        """Show the containers of the replica to choose from if its cluster reports several."""
        call = jobs.attempts(self.job.id, after=max(self.job.attempt - 1, 0), first=self._replica, replicas=1)
        ran = await self.visit.ask(call)
        if not turn.counts():
            return
        names = [one.name for copy in ran.workloads for each in copy.replicas for one in each.containers]
        if self._container and self._container not in names:
            names.append(self._container)
        self._containers.set_options(names, value=self._container or None)
        self._containers.set_visibility(len(names) > 1)

    async def _read(self) -> None:
        """Follow the end of the log. After the job stops, read the log once; keep the current lines if that fails."""
        turn = self._reading.begin()
        call = jobs.logs(self.job.id, replica=self._replica, container=self._container, tail=self._tail)
        try:
            if self._runs():
                await turn.follow(call, self._received_text, EVERY_S)
            else:
                text = await self.visit.ask(call)
                if turn.counts():
                    await self._received_text(text)
        except SeawayError as error:
            if self._runs() or not self._end:
                self._clear(str(error))

    async def _received_text(self, text: str) -> None:
        """Append new lines. If lines are missing in between, fetch more, or report the number of missing lines."""
        lines = text.splitlines()
        new = news(self._end, lines, whole=len(lines) < self._tail)
        if not new.joins and self._tail < LONG_TAIL:
            self._tail = LONG_TAIL
            await self._read()
            return
        if new.restart:
            self._clear()
        self._end = lines
        self._note.set_text("" if lines else self.words("There is no output yet."))
        if new.left_out:
            self._show_omitted(new.left_out, exact=new.joins)
        if new.lines:
            self._write("\n".join(line or " " for line in new.lines), len(new.lines))

    def _show_omitted(self, count: int, *, exact: bool) -> None:
        words, number = self.words, figures.count(count, self.words.locale)
        said = words("{n} lines left out", n=number) if exact else words("more than {n} lines left out", n=number)
        self._write(f"… {said} …", 1).classes("log-gap")

    def _write(self, text: str, lines: int) -> ui.label:
        """Append lines in one element, and remove the oldest elements beyond `MAX_LINES`."""
        with self._log:
            label = ui.label(text)
        self._shown.append((label, lines))
        while sum(count for _, count in self._shown[1:]) > MAX_LINES:
            self._shown.pop(0)[0].delete()
        return label

    def _clear(self, note: str = "") -> None:
        self._end = []
        self._shown = []
        self._log.clear()
        self._note.set_text(note)

    def _note_choice(self) -> None:
        self.retained = {"replica": str(self._replica) if self._replica else None, "container": self._container or None}

    async def _choose_replica(self, replica: float | None) -> None:
        chosen = int(replica or 0)
        if 0 <= chosen < self.job.replicas and chosen != self._replica:
            self._replica = chosen
            await self._restart()

    async def _choose_container(self, container: str | None) -> None:
        if (container or "") != self._container:
            self._container = container or ""
            await self._restart()

    async def _restart(self) -> None:
        self._note_choice()
        self.keep()
        self._clear()
        await self.open()
