"""Tab with the logs of replicas, updated as lines arrive."""

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
    from seaway.client.call import Call
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

WHOLE = 10_000
"""Number of lines of a download, the maximum of an answer."""

MAX_REPLICAS = 16
"""Maximum number of replicas whose logs are shown together."""


class _Stream:
    """Log of one replica.

    Attributes
    ----------
    tail
        Number of lines to fetch.
    end
        The last lines of the log.
    """

    def __init__(self, visit: Visit, replica: int) -> None:
        self.replica = replica
        self.reading = Latest(visit)
        self.tail = TAIL
        self.end: list[str] = []


class Log(Tab):
    """Tab with the log of a container, of one replica or of several together."""

    name = "logs"

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        self._replica = addresses.number_of(visit.query.get("replica", ""), job.replicas)
        self._attempt = addresses.number_of(visit.query.get("attempt", ""), job.attempt + 1)  # 0 for the latest
        self._container = visit.query.get("container", "")
        self._contains = visit.query.get("contains", "")
        self._together = job.replicas > 1 and visit.query.get("replicas") == "all"
        self._follows = True
        self._streams: list[_Stream] = []
        self._shown: list[tuple[ui.label, int]] = []  # with the number of lines in each
        self._note_choice()

    def make(self) -> None:
        """Draw the empty tab."""
        words = self.words
        with ui.element("div").classes("filters"):
            self._number_of_attempt = ui.number(words("Attempt"), min=1, precision=0).props("outlined dense")
            self._number_of_attempt.classes("filter")
            self._show_attempt()
            self._number_of_attempt.on_value_change(lambda event: self._choose_attempt(event.value))
            if self.job.replicas > 1:
                most = self.job.replicas - 1
                self._number = ui.number(words("Replica"), value=self._replica, min=0, max=most, precision=0)
                self._number.on_value_change(lambda event: self._choose_replica(event.value))
                self._number.props("outlined dense").classes("filter").set_enabled(not self._together)
                every = ui.checkbox(words("All replicas"), value=self._together).props("dense")
                every.on_value_change(lambda event: self._choose_all(together=bool(event.value)))
            self._containers = ui.select([self._container] if self._container else [], label=words("Container"))
            self._containers.props("outlined dense options-dense").classes("filter")
            self._containers.set_value(self._container or None)
            self._containers.on_value_change(lambda event: self._choose_container(event.value))
            search = ui.input(words("Search"), value=self._contains).props("outlined dense clearable debounce=300")
            search.classes("filter").on_value_change(lambda event: self._search(event.value))
            follow = ui.checkbox(words("Follow"), value=True).props("dense")
            follow.on_value_change(lambda event: self._turn(follows=bool(event.value)))
            download = ui.button(words("Download"), icon="download", on_click=self._download, color=None)
            download.props("flat dense no-caps")
            self._note = ui.label().classes("dim").props("role=status")
        self._log = ui.log().classes("log").props(f'tabindex=0 role=log aria-label="{words("Log")}"')

    async def look(self, turn: Turn) -> None:
        """Follow the data of the tab."""
        await self._list_containers(turn)
        if not turn.counts():
            return
        chosen = range(min(self.job.replicas, MAX_REPLICAS)) if self._together else [self._replica]
        if [each.replica for each in self._streams] != [*chosen]:
            self._clear()
            self._streams = [_Stream(self.visit, replica) for replica in chosen]
        for stream in self._streams:
            stream.tail = TAIL
            await self._read(stream)

    def close(self) -> None:
        """Stop all queries."""
        super().close()
        for stream in self._streams:
            stream.reading.end()

    async def callback(self, job: JobOut) -> None:
        """Read the log again for a new attempt, when the job stops, or if the previous state had no log."""
        before = self.job
        await super().callback(job)
        self._show_attempt()
        if self.is_open and before.state != job.state and not (self._shown and self._runs()):
            await self.open()

    def _runs(self) -> bool:
        """Report whether the log of the chosen attempt gets more lines."""
        return JobState(self.job.state).placed and self._attempt in (0, self.job.attempt)

    def _show_attempt(self) -> None:
        self._number_of_attempt.max = self.job.attempt
        self._number_of_attempt.set_value(self._attempt or self.job.attempt)
        self._number_of_attempt.set_visibility(self.job.attempt > 1)

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

    def _call(self, replica: int, tail: int, contains: str = "") -> Call[str]:
        return jobs.logs(
            self.job.id,
            replica=replica,
            container=self._container,
            tail=tail,
            contains=contains,
            attempt=self._attempt,
        )

    async def _read(self, stream: _Stream) -> None:
        """Follow the end of a log. After the job stops, read the log once; keep the current lines if that fails."""
        turn = stream.reading.begin()
        call = self._call(stream.replica, stream.tail, self._contains)

        async def receive(text: str) -> None:
            await self._received_text(stream, text)

        try:
            if self._runs() and self._follows:
                await turn.follow(call, receive, EVERY_S)
            else:
                text = await self.visit.ask(call)
                if turn.counts():
                    await receive(text)
        except SeawayError as error:
            if self._together:
                self._note.set_text(f"[{stream.replica}] {error}")
            elif self._runs() or not stream.end:
                self._clear(str(error))
                stream.end = []

    async def _received_text(self, stream: _Stream, text: str) -> None:
        """Append new lines. If lines are missing in between, fetch more, or report the number of missing lines."""
        lines = text.splitlines()
        new = news(stream.end, lines, whole=len(lines) < stream.tail)
        if not new.joins and stream.tail < LONG_TAIL:
            stream.tail = LONG_TAIL
            await self._read(stream)
            return
        if new.restart and not self._together:
            self._clear()
        stream.end = lines
        if new.left_out:
            self._show_omitted(new.left_out, exact=new.joins)
        label = f"[{stream.replica}] " if self._together else ""
        if new.lines:
            self._write("\n".join(f"{label}{line}" or " " for line in new.lines), len(new.lines))
        self._note.set_text(self._said())

    def _said(self) -> str:
        """Return the note beside a log that can be read."""
        words = self.words
        if not self._shown:
            return words("No line contains this text.") if self._contains else words("There is no output yet.")
        if self._together and self.job.replicas > MAX_REPLICAS:
            return words("Only the first {n} replicas are shown.", n=str(MAX_REPLICAS))
        return ""

    def _show_omitted(self, count: int, *, exact: bool) -> None:
        words, number = self.words, figures.count(count, self.words.locale)
        said = words("{n:line} left out", n=count) if exact else words("more than {n} lines left out", n=number)
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
        self._shown = []
        self._log.clear()
        self._note.set_text(note)

    async def _download(self) -> None:
        """Send the whole logs as a file, up to the maximum of an answer."""
        texts = []
        for stream in self._streams:
            text = await self.visit.ask(self._call(stream.replica, WHOLE))
            label = f"[{stream.replica}] " if self._together else ""
            texts.append("".join(f"{label}{line}\n" for line in text.splitlines()))
        replica = "" if self._together or self.job.replicas == 1 else f"-{self._replica}"
        attempt = f"attempt-{self._attempt}" if self._attempt else ""
        name = "-".join(filter(None, (f"{self.job.name}{replica}", self._container, attempt)))
        ui.download.content("".join(texts), f"{name}.log", "text/plain")

    def _note_choice(self) -> None:
        self.retained = {
            "replica": str(self._replica) if self._replica and not self._together else None,
            "replicas": "all" if self._together else None,
            "attempt": str(self._attempt) if self._attempt else None,
            "container": self._container or None,
            "contains": self._contains or None,
        }

    async def _choose_replica(self, replica: float | None) -> None:
        chosen = int(replica or 0)
        if 0 <= chosen < self.job.replicas and chosen != self._replica:
            self._replica = chosen
            await self._restart()

    async def _choose_attempt(self, number: float | None) -> None:
        """Show the log of an earlier attempt, or follow the latest one and those after it."""
        chosen = int(number or 0)
        if 1 <= chosen <= self.job.attempt and chosen != (self._attempt or self.job.attempt):
            self._attempt = chosen if chosen < self.job.attempt else 0
            await self._restart()

    async def _choose_all(self, *, together: bool) -> None:
        self._together = together
        self._number.set_enabled(not together)
        await self._restart()

    async def _choose_container(self, container: str | None) -> None:
        if (container or "") != self._container:
            self._container = container or ""
            await self._restart()

    async def _search(self, contains: str | None) -> None:
        if (contains or "") != self._contains:
            self._contains = contains or ""
            await self._restart()

    async def _turn(self, *, follows: bool) -> None:
        """Stop at the current lines, or continue with the next ones."""
        self._follows = follows
        for stream in self._streams:
            stream.reading.end()
            if follows:
                await self._read(stream)

    async def _restart(self) -> None:
        self._note_choice()
        self.keep()
        self.close()
        self._streams = []
        self._clear()
        await self.open()
