"""Screens of a job and of a node."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Log, Static, TabbedContent, TabPane
from textual.worker import Worker

from seaway.client.aio import AsyncClient
from seaway.client.call import Call
from seaway.client.calls import fleet as fleet_calls
from seaway.client.calls import jobs as calls
from seaway.client.errors import SeawayError, UnavailableError, UnknownError
from seaway.domain.job_state import FINAL
from seaway.terminal.listing import Listing
from seaway.terminal.reasons import picture
from seaway.terminal.refresh import Due, View
from seaway.terminal.summary import StatusLine
from seaway.terminal.tables import ATTEMPT_COLUMNS, ENDPOINT_COLUMNS, Rows, containers, details, facts, ring
from seaway.terminal.tree import FLEET_COLUMNS, NODE, Tree, condition
from seaway.terminal.words import STYLES, Body, cordoned, cores, gib, level, line, models

if TYPE_CHECKING:
    from seaway.wire.events import EventList


TABS = ("about", "events", "why", "log")
LAYERS = 2
"""Number of layers of the explanation: all."""

TAIL = 200
"""Number of log lines to read at first."""

MAX_LINES = 5_000
"""Maximum number of log lines in the view."""

LOG_AGAIN_S = 3.0
"""Delay before a failed log is requested again, in seconds."""

OVER = frozenset(state.value for state in FINAL)


class JobScreen(Screen[None], View):
    """Screen of a job.

    Parameters
    ----------
    client
        Client for its log.
    due
        Requests an immediate refresh.
    job
        ID of the job.
    """

    CSS = """
    JobScreen > .title { height: 1; padding: 0 1; background: $surface; }
    JobScreen TabPane { padding: 0; }
    JobScreen VerticalScroll { padding: 0 1; }
    JobScreen Log { background: $background; overflow: auto; scrollbar-size-vertical: 1; }
    JobScreen Log:focus { background-tint: $foreground 0%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "back", "Back"),
        *(Binding(str(at), f"tab('{tab}')", show=False) for at, tab in enumerate(TABS, 1)),
        Binding("right", "next(1)", show=False),
        Binding("left", "next(-1)", show=False),
        Binding("n", "replica", "Next replica"),
    ]

    def __init__(self, client: AsyncClient, due: Due, job: str) -> None:
        super().__init__()
        self._client = client
        self._due = due
        self._job = job
        self._body: Body | None = None
        self._events: list[Body] = []
        self._replica = 0
        self._title = Static(classes="title", markup=False)
        self._tabs = TabbedContent(initial=TABS[0])
        self._texts = {tab: Static(markup=False) for tab in TABS[:-1]}
        self._lines = Log(max_lines=MAX_LINES)
        self._reader: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        """Place the tabs below the job's name."""
        yield self._title
        with self._tabs:
            for at, (tab, text) in enumerate(self._texts.items(), 1):
                with TabPane(f"{at} {tab.capitalize()}", id=tab), VerticalScroll():
                    yield text
            with TabPane(f"{len(TABS)} Log", id=TABS[-1]):
                yield self._lines
        yield StatusLine()
        yield Footer()

    def on_mount(self) -> None:
        """Move the focus to the visible tab."""
        self.query_one("ContentTabs").can_focus = False
        self._focus()

    @property
    def job(self) -> Body | None:
        """Job of the screen."""
        return self._body

    @property
    def _tab(self) -> str:
        return self._tabs.active

    def affected_by(self, event: Body) -> bool:
        """Report whether an event belongs to this job."""
        return bool(event["job_id"] == self._job)

    async def look(self, client: AsyncClient, clusters: Sequence[Body]) -> None:
        """Read the job and the data of the open tab."""
        body = self._body = await client.body(calls.job(self._job))
        title = Text.assemble((body["name"], "bold"), "  ", (body["state"], STYLES.get(body["state"], "")))
        self._title.update(title.append(f"  {body['message']}"))
        if self._tab == "about":
            self._write("about", await self._about(client, body))
        elif self._tab == "events":
            await self._read_events(client)
            self._write("events", Group(*(line(each, dated=True) for each in self._events)))
        elif self._tab == "why":
            self._write("why", picture(await client.body(calls.explain(self._job)), LAYERS))

    def _write(self, tab: str, what: RenderableType) -> None:
        self._texts[tab].update(what)

    async def _about(self, client: AsyncClient, body: Body) -> RenderableType:
        ran = await client.body(calls.attempts(self._job, after=max(body["attempt"] - 5, 0)))
        parts: list[RenderableType] = [facts(body)]
        if endpoints := [each for copy in ran["workloads"] for each in copy["endpoints"]]:
            parts += ["", Rows(ENDPOINT_COLUMNS, endpoints)]
        if ran.get("ring"):
            parts += ["", ring(ran["ring"], wide=False)]
        if ran["attempts"]:
            parts += ["", Rows(ATTEMPT_COLUMNS, ran["attempts"])]
        return Group(*parts, "", containers(ran["workloads"]))

    async def _read_events(self, client: AsyncClient) -> None:
        after = self._events[-1]["id"] if self._events else 0
        paged = calls.events(self._job, after=after)
        call: Call[EventList] | None = paged.first
        while call is not None:
            page = await client.body(call)
            self._events += page["events"]
            call = paged.after(page["next"], len(self._events))

    # Log

    @on(TabbedContent.TabActivated)
    def _opened(self) -> None:
        self._due.at_once()
        self._focus()
        self.refresh_bindings()
        if self._tab == "log" and self._reader is None:
            self._follow_log()

    def _focus(self) -> None:
        pane = self._tabs.active_pane
        if pane is not None:
            pane.query_one("VerticalScroll, Log").focus()

    def _follow_log(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
        self._reader = self.run_worker(self._read_log(self._replica))

    async def _read_log(self, replica: int) -> None:
        """Follow a replica's log until the job ends. Start over after a connection loss."""
        while True:
            self._lines.clear()
            self._lines.write_line(f"── replica {replica} ──")
            try:
                async with aclosing(self._client.follow_log(self._job, replica=replica, tail=TAIL)) as lines:
                    async for text in lines:
                        self._lines.write_line(text)
                self._lines.write_line("── the job has ended ──")
                return
            except UnavailableError as error:
                self._lines.write_line(f"── {error} ──")
                await asyncio.sleep(LOG_AGAIN_S)
            except SeawayError as error:
                self._lines.write_line(f"── {error} ──")
                return

    # Keys

    def action_tab(self, tab: str) -> None:
        """Open a tab."""
        self._tabs.active = tab

    def action_next(self, by: int) -> None:
        """Open the next tab."""
        self.action_tab(TABS[(TABS.index(self._tab) + by) % len(TABS)])

    def action_replica(self) -> None:
        """Show the log of the next replica."""
        if self._body:
            self._replica = (self._replica + 1) % self._body["replicas"]
            self._follow_log()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Report whether an action is allowed. The next replica requires an open log of a job with several replicas."""
        return action != "replica" or (self._tab == TABS[-1] and bool(self._body and self._body["replicas"] > 1))

    def action_back(self) -> None:
        """Return to the previous screen."""
        self.dismiss()


class NodeScreen(Screen[None], View):
    """Screen of a node."""

    CSS = """
    NodeScreen > .facts { height: auto; max-height: 9; padding: 0 1; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,backspace,left", "back", "Back")]

    def __init__(self, cluster: str, node: str) -> None:
        super().__init__()
        self._cluster, self._node = cluster, node
        self._body: Body | None = None
        self._facts = Static(classes="facts", markup=False)
        self._listing = Listing(FLEET_COLUMNS, key="key", empty="no devices")

    def compose(self) -> ComposeResult:
        """Place the facts about the node above its devices."""
        yield self._facts
        yield self._listing
        yield StatusLine()
        yield Footer()

    def on_mount(self) -> None:
        """Move the focus to the devices."""
        self._listing.focus()

    async def look(self, client: AsyncClient, clusters: Sequence[Body]) -> None:
        """Read the node."""
        page = await client.body(fleet_calls.nodes(cluster=self._cluster, node=self._node, limit=1).first)
        if not page["nodes"]:
            raise UnknownError(f"node {self._cluster}/{self._node} not found")
        (body,) = page["nodes"]
        self._body = body
        self._facts.update(
            details(
                [
                    ("node", f"{self._cluster}/{self._node}"),
                    ("state", condition({**body, "kind": NODE})),
                    ("because", body["message"] or cordoned(body)),
                    ("devices", models(body["devices"])),
                    ("CPU", level(body["cpu_milli"], cores)),
                    ("memory", level(body["memory_mib"], gib)),
                    ("pods", Text(f"{body['pods']['used']}/{body['pods']['total']}") if body.get("pods") else ""),
                ]
            )
        )
        self._listing.show(lines(body))

    @property
    def job(self) -> Body | None:
        """Job of the selected slice."""
        line = self._listing.current
        return {"id": line["job_id"], "name": line["job"]} if line and line.get("job_id") else None

    @property
    def place(self) -> Body | None:
        """Node of the screen."""
        body = self._body
        return {"cluster": self._cluster, "node": self._node, "cordon": body["cordon"]} if body else None

    def action_back(self) -> None:
        """Return to the previous screen."""
        self.dismiss()


def lines(node: Body) -> list[Body]:
    """Return the lines of a node's devices and slices."""
    tree = Tree()
    for device in tree.devices(node, "", 0):
        tree.open(device)
    return list(tree.devices(node, "", 0))


KEYS = (
    ("1 2 3 4, tab", "fleet, queue, jobs, links; in a job: about, events, why, log"),
    ("↑ ↓ pgup pgdn home end", "move; j, k, g and G too"),
    ("enter", "show a node or a job; unfold a cluster"),
    ("→ ←", "unfold and fold clusters, nodes and devices"),
    ("/", "find; in jobs and queue also state:failed queue:batch cluster:east tenant:ml by:ci label:team=a"),
    ("esc", "back; show all again"),
    ("o", "change the order of jobs"),
    ("x", "cancel the selected job"),
    ("s", "suspend or resume the selected job"),
    ("c", "cordon or uncordon the cluster or node"),
    ("d", "drain it: move its running jobs"),
    ("n", "log: the next replica"),
    ("r", "refresh now"),
    ("t", "light or dark; ctrl+p has more themes"),
    ("q", "quit"),
)
"""Keys and their actions."""


class Dialog(ModalScreen[bool]):
    """Dialog above the current screen."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > .box {
        width: 76; max-width: 100%; height: auto; max-height: 90%; padding: 1 2;
        border: round $primary; background: $surface;
    }
    """


class Ask(Dialog):
    """Confirmation of a change. Only `y` confirms it.

    Parameters
    ----------
    question
        Question about the change.
    detail
        Consequences of the change.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str, detail: str) -> None:
        super().__init__()
        self._question, self._detail = question, detail

    def compose(self) -> ComposeResult:
        """Place the question in the dialog."""
        with Vertical(classes="box"):
            yield Static(f"{self._question}\n", markup=False)
            yield Static(f"{self._detail}\n", classes="detail", markup=False)
            yield Static("y  yes      n  no", markup=False)

    def action_answer(self, answer: bool) -> None:
        """Close the dialog with an answer."""
        self.dismiss(answer)


class Help(Dialog):
    """List of keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss", "Back")]

    def compose(self) -> ComposeResult:
        """Place the list in the dialog."""
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        for keys, what in KEYS:
            table.add_row(keys, what)
        with VerticalScroll(classes="box"):
            yield Static(table)
