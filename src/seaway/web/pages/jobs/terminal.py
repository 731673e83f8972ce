"""Tab with a shell in a container of the job."""

from __future__ import annotations

import asyncio
import codecs
from contextlib import suppress
from typing import TYPE_CHECKING

from nicegui import background_tasks, ui

from seaway.client.calls import jobs
from seaway.client.sessions import Channel, Outcome
from seaway.domain.errors import SeawayError
from seaway.domain.job_state import JobState
from seaway.web import addresses
from seaway.web.latest import Turn
from seaway.web.pages.jobs.tab import Tab
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from nicegui.events import XtermDataEventArguments, XtermResizeEventArguments

    from seaway.web.session import PageSession
    from seaway.wire.job_out import JobOut

WRITE_S = 30.0
"""Maximum time of a browser to show a piece of output, in seconds. After it, the session ends."""

MAX_KEYS = 1000
"""Maximum number of inputs that the container has not read yet. Further ones are dropped."""


LEAVE = """(event) => {
  if (event.key !== "F6" || !event.shiftKey) return;
  event.preventDefault();
  event.stopPropagation();
  document.querySelector(".terminal-turn").focus();
}"""
"""Script that moves the focus from the terminal to its button, since the terminal takes all other keys."""


class Terminal(Tab):
    """Tab with a terminal. Its session begins with a button, because the audit log records it."""

    name = "terminal"

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        self._replica = addresses.number_of(visit.query.get("replica", ""), job.replicas)
        self._container, self._first = visit.query.get("container", ""), ""
        self._keys: asyncio.Queue[bytes] = asyncio.Queue(MAX_KEYS)
        self._size = (80, 24)
        self._running: asyncio.Task[None] | None = None
        self._note_choice()
        visit.client.on_delete(self._disconnect)

    def make(self) -> None:
        """Draw the empty tab."""
        words = self.words
        with ui.element("div").classes("filters"):
            if self.job.replicas > 1:
                number = ui.number(words("Replica"), value=self._replica, min=0, max=self.job.replicas - 1, precision=0)
                number.on_value_change(lambda event: self._choose_replica(event.value))
                number.props("outlined dense").classes("filter")
            self._containers = ui.select([], label=words("Container"))
            self._containers.props("outlined dense options-dense").classes("filter")
            self._containers.on_value_change(lambda event: self._choose_container(event.value))
            self._button = ui.button(words("Connect"), icon="terminal", on_click=self._turn, color=None)
            self._button.props("flat dense no-caps").classes("terminal-turn")
            self._note = ui.label().classes("dim").props("role=status")
            ui.label(words("Shift+F6 leaves the terminal.")).classes("dim").props("id=terminal-keys")
        with ui.element("div").classes("job-terminal").props("role=group aria-describedby=terminal-keys") as screen:
            screen.on("keydown.capture", js_handler=LEAVE)
            options = {"cursorBlink": True, "fontSize": 13, "screenReaderMode": True, "scrollback": 5000}
            self._screen = ui.xterm(options, on_data=self._typed, on_resize=self._resized)
            ui.element("q-resize-observer").on("resize", self._fit, throttle=0.3)

    async def look(self, turn: Turn) -> None:
        """Show the containers of the replica."""
        call = jobs.attempts(self.job.id, after=max(self.job.attempt - 1, 0), first=self._replica, replicas=1)
        ran = await self.visit.ask(call)
        if not turn.counts():
            return
        names = [one.name for copy in ran.workloads for each in copy.replicas for one in each.containers]
        self._first = names[0] if names else ""
        if self._container not in names:
            self._container = self._first
        self._containers.set_options(names, value=self._container or None)
        self._containers.set_visibility(len(names) > 1)
        self._show()
        self._fit()

    async def callback(self, job: JobOut) -> None:
        """Accept the job's new state."""
        before = self.job
        await super().callback(job)
        if before.state != job.state:
            self._show()

    def _show(self, note: str = "") -> None:
        """Show what the button does, and a note."""
        words, placed = self.words, JobState(self.job.state).placed
        connected = self._running is not None
        self._button.set_text(words("Disconnect") if connected else words("Connect"))
        self._button.set_enabled(connected or placed)
        self._note.set_text(note or ("" if placed else words("Only a running job has a terminal.")))

    def _fit(self) -> None:
        if self.is_open:
            self._screen.fit()

    def _turn(self) -> None:
        if self._running:
            self._disconnect()
        else:
            self._screen.run_terminal_method("reset")
            self._running = background_tasks.create(self._run(), name=f"terminal of {self.job.id}")
            self._show()

    def _disconnect(self) -> None:
        if self._running:
            self._running.cancel()

    async def _run(self) -> None:
        """Run a shell until it ends, or the visitor disconnects."""
        call = jobs.exec_session(self.job.id, replica=self._replica, container=self._container, stdin=True, tty=True)
        note = self.words("The terminal is disconnected.")
        try:
            async with self.visit.asker.session(call) as session:
                sending = asyncio.create_task(self._send(session))
                try:
                    outcome = await self._receive(session)
                finally:
                    sending.cancel()
            if outcome.exit_code:
                note = f"{note} {self.words('Exit code: {n}', n=str(outcome.exit_code))}"
            elif outcome.message:
                note = f"{note} {outcome.message}"
        except SeawayError as error:
            note = str(error)
        except TimeoutError:
            pass  # the browser is too slow, or is gone
        finally:
            self._running = None
            with suppress(RuntimeError):  # the page is gone
                self._show(note)

    async def _receive(self, session: PageSession) -> Outcome:
        """Show output, a piece after the browser has shown the previous one."""
        text = codecs.getincrementaldecoder("utf-8")("replace")
        while frame := await session.receive():
            if frame[0] == Channel.STATUS:
                return Outcome.of(frame)
            await self._screen.run_method("write", text.decode(frame[1:]), timeout=WRITE_S)
        return Outcome(None)

    async def _send(self, session: PageSession) -> None:
        while not self._keys.empty():
            self._keys.get_nowait()  # typed before the session
        await session.send(self._resize())
        self._screen.run_terminal_method("focus")
        while True:
            await session.send(await self._keys.get())

    def _resize(self) -> bytes:
        columns, rows = self._size
        return bytes([Channel.RESIZE]) + f'{{"Width": {columns}, "Height": {rows}}}'.encode()

    def _put(self, frame: bytes) -> None:
        with suppress(asyncio.QueueFull):
            self._keys.put_nowait(frame)

    def _typed(self, event: XtermDataEventArguments) -> None:
        self._put(bytes([Channel.STDIN]) + str(event.data).encode())

    def _resized(self, event: XtermResizeEventArguments) -> None:
        self._size = (int(event.cols), int(event.rows))
        self._put(self._resize())

    async def _choose_replica(self, replica: float | None) -> None:
        chosen = int(replica or 0)
        if 0 <= chosen < self.job.replicas and chosen != self._replica:
            self._replica = chosen
            self._turn_to()
            await self.open()

    def _choose_container(self, container: str | None) -> None:
        if container and container != self._container:
            self._container = container
            self._turn_to()

    def _turn_to(self) -> None:
        """End the session with another container, and keep the choice in the address."""
        self._disconnect()
        self._note_choice()
        self.keep()

    def _note_choice(self) -> None:
        container = self._container if self._container != self._first else ""
        self.retained = {"replica": str(self._replica) if self._replica else None, "container": container or None}
