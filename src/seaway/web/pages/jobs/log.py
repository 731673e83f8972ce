"""What a container of a replica writes, line by line as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from seaway.client.calls import jobs
from seaway.domain.errors import SeawayError
from seaway.domain.job_state import JobState
from seaway.web import addresses, figures
from seaway.web.latest import Latest, Turn
from seaway.web.log_lines import MAX_LINES, news
from seaway.web.pages.jobs.tab import Tab
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.job_out import JobOut

EVERY_S = 1.0
"""How often it is looked for what was written."""

TAIL = 300
"""Lines that are there when it is opened, and that are asked for while no more come between two looks."""

LONG_TAIL = 5_000
"""Lines that are asked for once more came."""


class Log(Tab):
    """What a container of a replica writes."""

    name = "logs"

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        self._replica = addresses.number_of(visit.query.get("replica", ""), job.replicas)
        self._container = visit.query.get("container", "")
        self._reading = Latest(visit)
        self._tail = TAIL
        self._end: list[str] = []  # the last lines that were read
        self._shown: list[tuple[ui.label, int]] = []  # with how many lines each has
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
        self._log = ui.log().classes("log").props(f'tabindex=0 role=log aria-label="{words("Log")}"')

    async def look(self, turn: Turn) -> None:
        """Begin to follow what is seen."""
        await self._list_containers(turn)
        if turn.counts():
            self._tail = TAIL
            await self._read()

    def close(self) -> None:
        """Follow it no longer."""
        super().close()
        self._reading.end()

    async def callback(self, job: JobOut) -> None:
        """Look again where the job is another attempt, runs no more, or could not be read in the state that it was."""
        before = self.job
        await super().callback(job)
        if self.is_open and before.state != job.state and not (self._end and self._runs()):
            await self.open()

    def _runs(self) -> bool:
        return JobState(self.job.state).placed

    async def _list_containers(self, turn: Turn) -> None:
        """Offer the containers that the replica has, where its cluster tells of more than one."""
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
        """Follow the end of the log; where the job does not run any more, read it once, or leave what is there."""
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
        """Write what is new at the end; where lines are missing in between, ask for more, or say how many."""
        lines = text.splitlines()
        new = news(self._end, lines, whole=len(lines) < self._tail)
        if not new.joins and self._tail < LONG_TAIL:
            self._tail = LONG_TAIL
            await self._read()
            return
        if new.restart:
            self._clear()
        self._end = lines
        self._note.set_text("" if lines else self.words("Nothing is written yet."))
        if new.left_out:
            self._say_left_out(new.left_out, exact=new.joins)
        if new.lines:
            self._write("\n".join(line or " " for line in new.lines), len(new.lines))

    def _say_left_out(self, count: int, *, exact: bool) -> None:
        """Say that lines are missing."""
        words, number = self.words, figures.count(count, self.words.locale)
        said = words("{n} lines left out", n=number) if exact else words("more than {n} lines left out", n=number)
        self._write(f"… {said} …", 1).classes("log-gap")

    def _write(self, text: str, lines: int) -> ui.label:
        """Write lines at the end, all at once, and let go those at the beginning that are too many."""
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
