"""Live full-screen view of a fleet, its queue and its jobs, `seaway top`."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from typing import Any, ClassVar

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult, ScreenStackError
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.widgets import Footer, Input, TabbedContent, TabPane

from seaway.client.aio import AsyncClient
from seaway.client.call import Call
from seaway.client.calls import fleet as fleet_calls
from seaway.client.calls import jobs as job_calls
from seaway.client.errors import SeawayError
from seaway.terminal.listing import Listing
from seaway.terminal.panes import FleetPane, JobsPane, LinksPane, Pane, QueuePane
from seaway.terminal.refresh import AGAIN_S, PERIOD_S, Contact, Due, View
from seaway.terminal.screens import OVER, Ask, Help, JobScreen, NodeScreen
from seaway.terminal.summary import Head, StatusLine, Summary
from seaway.terminal.tree import DEVICE, NODE
from seaway.terminal.words import Body, line, place

PANES = ("fleet", "queue", "jobs", "links")
"""Views of the main screen, in the order of their numbers."""

TICK_S = 1.0
"""Interval at which ages are drawn again, in seconds."""

TYPED_S = 0.25
"""Delay after the last key press before a search, in seconds."""

ACTIONS = ("cancel", "suspend", "cordon", "drain", "find")
"""Actions that are visible only if they apply to the selected row."""

DARK, LIGHT = "textual-dark", "textual-light"
CHANGES_JOBS = frozenset({"user", "operator", "admin"})
CHANGES_FLEET = frozenset({"operator", "admin"})


class Top(App[None]):
    """Live view of a server's fleet, queue and jobs.

    One refresh at a time reads the summary and, if it may have changed, the visible view. A refresh runs soon after an
    event, and every few seconds without one.

    Parameters
    ----------
    client
        Client without retries, so that errors are shown.
    who
        The caller, from `GET /me`.
    light
        True to start with the light theme.
    """

    TITLE = "seaway top"
    CSS = """
    TabbedContent { height: 1fr; }
    TabPane { padding: 0; }
    ContentTabs { height: 2; }
    #find { dock: bottom; height: 1; border: none; padding: 0 1; margin-bottom: 1; display: none; }
    #find.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(at), f"pane('{pane}')", show=False) for at, pane in enumerate(PANES, 1)),
        Binding("tab", "next(1)", "Next", show=False, priority=True),
        Binding("shift+tab", "next(-1)", show=False, priority=True),
        Binding("slash", "find", "Find", key_display="/"),
        Binding("escape", "all", show=False),
        Binding("x", "cancel", "Cancel job"),
        Binding("s", "suspend", "Suspend"),
        Binding("c", "cordon", "Cordon"),
        Binding("d", "drain", "Drain"),
        Binding("r", "ask", "Ask now", show=False),
        Binding("t", "theme", "Light/dark", show=False),
        Binding("question_mark", "help", "Keys", key_display="?"),
        Binding("q,ctrl+c", "quit", "Quit"),
    ]

    def __init__(self, client: AsyncClient, who: Body, *, light: bool = False) -> None:
        super().__init__()
        self.client = client
        self.contact = Contact(client.target.server)
        self.due = Due()
        self._who = who
        self._summary: Summary | None = None
        self._latest = Text()
        self._touched = True
        self._viewed_s = 0.0
        self._typed = ""
        self._offered: tuple[bool | None, ...] = ()
        self._head = Head(self.contact.server, who)
        self._tabs = TabbedContent(initial=PANES[0])
        self._panes: dict[str, Pane] = {
            "fleet": FleetPane(self.due),
            "queue": QueuePane(self.due),
            "jobs": JobsPane(self.due),
            "links": LinksPane(self.due),
        }
        self.theme = LIGHT if light else DARK

    def compose(self) -> ComposeResult:
        """Place the views below the summary."""
        yield self._head
        with self._tabs:
            for at, name in enumerate(PANES, 1):
                with TabPane(f"{at} {name.capitalize()}", id=name):
                    yield self._panes[name]
        yield Input(id="find")
        yield StatusLine()
        yield Footer()

    def on_mount(self) -> None:
        """Start refreshes and the event stream."""
        self.query_one("ContentTabs").can_focus = False
        self._head.show(None)
        self._pane.focus_on()
        self.set_interval(TICK_S, self._notify)
        self.run_worker(self._keep_looking())
        self.run_worker(self._listen())

    # Views

    @property
    def _pane(self) -> Pane:
        return self._panes[self._tabs.active or PANES[0]]

    @property
    def view(self) -> View:
        """Visible view, or the view below a dialog."""
        for screen in reversed(self.screen_stack[1:]):
            if isinstance(screen, View):
                return screen
        return self._pane

    # Refreshes

    async def _keep_looking(self) -> None:
        while True:
            hurry = await self.due.turn()
            self._touched |= hurry
            if self.contact.refusal:
                continue
            failed = False
            self.contact.asked()
            try:
                await self._look()
            except SeawayError as error:
                self.contact.failed(error)
                failed = self.contact.lost
            else:
                self.contact.answered()
            self.due.end(failed=failed)
            self._notify()

    async def _look(self) -> None:
        clusters, counted = await asyncio.gather(
            self.client.body(fleet_calls.clusters()), self.client.body(job_calls.count())
        )
        self._summary = Summary.of(clusters["clusters"], counted)
        if self._touched or time.monotonic() - self._viewed_s >= PERIOD_S:
            self._touched = False  # this refresh may miss later changes
            self._viewed_s = time.monotonic()
            try:
                await self.view.look(self.client, clusters["clusters"])
            except SeawayError:
                self._touched = True
                raise
        self._offer()

    async def _listen(self) -> None:
        """Follow events. Refreshes report connection errors."""
        after: int | None = None
        while True:
            with suppress(SeawayError):
                async with aclosing(self.client.listen(after=after)) as events:
                    async for received in events:
                        after = received.id
                        self._receive(received.body)
            self.due.changed()
            await asyncio.sleep(AGAIN_S)
            while self.contact.refusal:
                await asyncio.sleep(AGAIN_S)

    def _receive(self, event: Body) -> None:
        self._latest = line(event, named=True)
        touched = self.view.affected_by(event)
        self._touched |= touched
        if touched or event["kind"] in FleetPane.KINDS:
            self.due.changed()

    def _notify(self) -> None:
        """Draw the summary and the status line again."""
        self._head.show(self._summary)
        with suppress(NoMatches, ScreenStackError):  # during shutdown there are no widgets
            self.screen.query_one(StatusLine).show(self.contact.trouble(), self._latest.copy())
            if self._summary:
                self._label("queue", self._summary.waiting[0])
                self._label("jobs", self._summary.live)

    def _label(self, name: str, count: int) -> None:
        tab, label = self._tabs.get_tab(name), f"{PANES.index(name) + 1} {name.capitalize()} {count:,}"
        if tab.label_text != label:
            tab.label = label

    # Navigation

    @on(TabbedContent.TabActivated)
    def _opened(self) -> None:
        if len(self.screen_stack) == 1:
            self._close_find(keep=True)
            self._pane.focus_on()
            self.due.at_once()

    @on(Listing.Moved)
    def _offer(self) -> None:
        """Update the keys in the footer after a change of the selection."""
        offered = tuple(self.check_action(action, ()) for action in ACTIONS)
        if offered != self._offered and self.screen_stack:
            self._offered = offered
            self.refresh_bindings()

    @on(Listing.Chosen)
    def _show_more(self, message: Listing.Chosen) -> None:
        row = message.row
        if job := self.view.job:
            self._push(JobScreen(self.client, self.due, job["id"]))
        elif row.get("kind") in {NODE, DEVICE} and not isinstance(self.view, NodeScreen):
            self._push(NodeScreen(row["cluster"], row["name"] if row["kind"] == NODE else row["node"]))

    def _push(self, screen: JobScreen | NodeScreen) -> None:
        self.push_screen(screen, lambda _: self.due.at_once())
        self.due.at_once()

    def action_pane(self, pane: str) -> None:
        """Open a view of the main screen."""
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self._tabs.active = pane

    def action_next(self, by: int) -> None:
        """Open the next view, or the next tab of a job."""
        if isinstance(self.screen, JobScreen):
            self.screen.action_next(by)
        elif len(self.screen_stack) == 1:
            active = self._tabs.active
            self.action_pane(PANES[(PANES.index(active) + by) % len(PANES)])

    def action_ask(self) -> None:
        """Query the server immediately, even if it rejected the token before."""
        self.contact.refusal = ""
        self.due.at_once()

    def action_theme(self) -> None:
        """Switch between the light and the dark theme."""
        self.theme = DARK if self.theme == LIGHT else LIGHT

    def action_help(self) -> None:
        """List the keys."""
        if not isinstance(self.screen, Help):
            self.push_screen(Help())

    # Search

    def action_find(self) -> None:
        """Open the search field."""
        field = self.query_one("#find", Input)
        field.placeholder = f"/ {self._pane.hint}"
        field.value = self._pane.text
        field.add_class("open")
        field.focus()

    @on(Input.Changed, "#find")
    def _typing(self, message: Input.Changed) -> None:
        self._typed = message.value
        self.set_timer(TYPED_S, lambda: self._find(message.value))

    def _find(self, text: str) -> None:
        """Search for the typed text, unless the user has continued to type."""
        if text == self._typed and text.strip() != self._pane.text and self.query_one("#find").has_class("open"):
            self._pane.find(text)

    @on(Input.Submitted, "#find")
    def _typed_all(self, message: Input.Submitted) -> None:
        self._find(message.value)
        self._close_find(keep=True)

    def action_all(self) -> None:
        """Close the search, and show all entries."""
        self._close_find(keep=False)

    def _close_find(self, *, keep: bool) -> None:
        self.query_one("#find").remove_class("open")
        if not keep and self._pane.text:
            self._pane.find("")
        self._pane.focus_on()

    # Changes

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Report whether the token's role and the selection permit an action."""
        role, view = self._who["role"], self.view if self.screen_stack and self.is_running else View()
        if action in {"cancel", "suspend"}:
            return role in CHANGES_JOBS and view.job is not None and view.job.get("state") not in OVER
        if action in {"cordon", "drain"}:
            return role in CHANGES_FLEET and view.place is not None
        if action == "find":
            return bool(view.hint)
        return True

    def action_cancel(self) -> None:
        """Cancel the selected job after a confirmation."""
        if job := self.view.job:
            detail = "The job ends and releases its resources; its record stays."
            self._ask(f"Cancel {_named(job)}?", detail, job_calls.cancel(job["id"]))

    def action_suspend(self) -> None:
        """Suspend or resume the selected job after a confirmation."""
        if (job := self.view.job) is None:
            return
        if job.get("state") == "suspended":
            self._ask(f"Resume {_named(job)}?", "It returns to its queue.", job_calls.resume(job["id"]))
        else:
            detail = "The job stops and releases its resources until a user resumes it."
            self._ask(f"Suspend {_named(job)}?", detail, job_calls.suspend(job["id"]))

    def action_cordon(self) -> None:
        """Cordon or uncordon the selected cluster or node after a confirmation."""
        if (at := self.view.place) is None:
            return
        where = (at["cluster"], at["node"])
        if at["cordon"]:
            self._ask(f"Uncordon {place(*where)}?", "It accepts new jobs again.", fleet_calls.uncordon(*where))
        else:
            detail = "It gets no new jobs; running jobs continue."
            self._ask(f"Cordon {place(*where)}?", detail, fleet_calls.cordon(*where))

    def action_drain(self) -> None:
        """Drain the selected cluster or node after a confirmation."""
        if at := self.view.place:
            where = (at["cluster"], at["node"])
            detail = "It gets no new jobs, and running jobs move elsewhere."
            self._ask(f"Drain {place(*where)}?", detail, fleet_calls.drain(*where))

    def _ask(self, question: str, detail: str, call: Call[Any]) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(self._do(call, question.removesuffix("?")))

        self.push_screen(Ask(question, detail), answered)

    async def _do(self, call: Call[Any], what: str) -> None:
        try:
            await self.client.send(call)
        except SeawayError as error:
            self.notify(str(error), title=f"{what}: not done", severity="error", markup=False)
        else:
            self.notify(f"{what}: done", markup=False)
        self.due.at_once()


def _named(job: Body) -> str:
    return f"{job['name']} ({job['id']})"
