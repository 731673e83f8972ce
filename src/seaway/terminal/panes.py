"""Views of the main screen: fleet, queue, jobs and links."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from seaway.client.aio import AsyncClient
from seaway.client.calls import fleet as fleet_calls
from seaway.client.calls import jobs as job_calls
from seaway.client.calls.jobs import JobFilter
from seaway.domain.job_state import FINAL, WAITING, JobState
from seaway.terminal.listing import Listing
from seaway.terminal.refresh import PERIOD_S, Due, View
from seaway.terminal.tables import JOB_COLUMNS, LINK_COLUMNS, WAITING_COLUMNS
from seaway.terminal.tree import CLUSTER, FLEET_COLUMNS, MORE, NODE, Tree
from seaway.terminal.words import Body

LIVE = tuple(state.value for state in JobState if state not in FINAL)
"""States of unfinished jobs."""

QUEUED = tuple(state.value for state in JobState if state in WAITING)
"""States of jobs that wait for a placement."""

WORDS = ("state", "queue", "cluster", "tenant", "by", "label")
HINT = "a part of the name; state:failed queue:batch cluster:east tenant:ml by:ci label:team=a"


def wanted(text: str, states: tuple[str, ...] = LIVE) -> JobFilter:
    """Parse a search for jobs.

    Parameters
    ----------
    text
        Words separated by blanks. ``queue:batch`` and similar words are filters. Any other word is a part of the name;
        the last one applies.
    states
        States to show if the text names none.
    """
    asked: JobFilter = {"state": states}
    named: list[str] = []
    for word in text.split():
        name, _, value = word.partition(":")
        if name not in WORDS or not value:
            asked["name"] = word
        elif name == "state":
            named += [state.value for state in JobState if state.value.startswith(value)] or [value]
        elif name == "by":
            asked["submitted_by"] = value
        elif name == "label":
            asked["label"] = value
        elif name == "queue":
            asked["queue"] = value
        elif name == "cluster":
            asked["cluster"] = value
        else:
            asked["tenant"] = value
    if named:
        asked["state"] = tuple(each for each in named if each != JobState.DELETED.value)
    return asked


NODES = 50
"""Number of nodes on a page."""

FOUND = 100
"""Maximum number of nodes in a search."""

JOBS = 100
"""Number of jobs to read at first, and with each scroll to the end of the list."""

MAX_JOBS = 500
"""Maximum number of jobs in the list. A sorted list of this length is incomplete."""

SORTS = ("newest", "name", "state", "queue", "where")


class Pane(Vertical, View):
    """List with a caption below it.

    Parameters
    ----------
    listing
        The list.
    due
        Requests an immediate refresh.
    """

    DEFAULT_CSS = """
    Pane { height: 1fr; }
    Pane > .caption { height: 1; color: $text-muted; padding: 0 1; }
    """

    def __init__(self, listing: Listing, due: Due, *, id: str) -> None:  # noqa: A002  # name in Textual
        super().__init__(id=id)
        self.listing = listing
        self.due = due
        self.text = ""
        self._caption = Static(classes="caption", markup=False)

    def compose(self) -> ComposeResult:
        """Place the list above its caption."""
        yield self.listing
        yield self._caption

    def find(self, text: str) -> None:
        """Search for a text."""
        self.text = text.strip()
        self.due.at_once()

    def focus_on(self) -> None:
        """Move the focus to the list."""
        self.listing.focus()

    def say(self, *parts: str) -> None:
        """Set the text of the caption."""
        self._caption.update(" · ".join(part for part in parts if part))


class FleetPane(Pane):
    """Fleet as a tree. It loads nodes page by page, and refreshes only visible pages."""

    hint = "a part of a node's or cluster's name, or CLUSTER/part"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space,l", "open", "Unfold", show=False),
        Binding("left,h", "close", "Fold", show=False),
    ]
    KINDS = frozenset(
        {
            "state",
            "updated",
            "cluster",
            "cordoned",
            "drained",
            "uncordoned",
            "cluster_removed",
            "cluster_facts",
            "orphans_removed",
        }
    )

    def __init__(self, due: Due) -> None:
        super().__init__(Listing(FLEET_COLUMNS, key="key", empty="no clusters"), due, id="fleet")
        self.fleet = Tree()

    def affected_by(self, event: Body) -> bool:
        """Report whether an event can change the fleet."""
        return event["kind"] in self.KINDS

    async def look(self, client: AsyncClient, clusters: Sequence[Body]) -> None:
        """Read the visible nodes, or the nodes that match the search."""
        tree, text, reset = self.fleet, self.text, self.fleet.text != self.text
        tree.clusters = clusters
        if text:
            cluster, name = tree.asked(text)
            page = await client.body(fleet_calls.nodes(cluster=cluster, name=name, limit=FOUND).first)
            tree.text, tree.found = text, page["nodes"]
            reported, more = of_all(len(tree.found), page["found"]["nodes"], "found"), "type more of the name"
            self.say(f"{reported} with {name!r} in the name", more if page["next"] else "", "esc shows all")
        else:
            tree.text = ""
            for cluster, after in tree.wanted(self.listing.seen):
                paged = fleet_calls.nodes(cluster=cluster, limit=NODES)
                page = await client.body(paged.after(after or None, 0) or paged.first)
                if cluster in tree.nodes:  # the user may have folded it during the request
                    tree.nodes[cluster].take(after, page)
            self.say("→ unfolds, ← folds, enter shows a node or job")
        self._show(reset=reset)

    def _show(self, *, reset: bool = False) -> None:
        self.listing.show(self.fleet.lines(), empty="no matches" if self.text else "no clusters", reset=reset)

    @on(Listing.Moved)
    def _read_more(self) -> None:
        if any(line["kind"] == MORE for line in self.listing.seen):
            self.due.at_once()

    @on(Listing.Chosen)
    def _fold(self, message: Listing.Chosen) -> None:
        if message.row["kind"] == CLUSTER:
            message.stop()
            if message.row["open"]:
                self.action_close()
            else:
                self.action_open()

    def action_open(self) -> None:
        """Unfold the line under the cursor."""
        line = self.listing.current
        if line and self.fleet.open(line):
            self._show()
            self.due.at_once()

    def action_close(self) -> None:
        """Fold the line under the cursor, or its parent."""
        line = self.listing.current
        if line and (line["open"] or line["parent"]):
            key = self.fleet.close(line)
            self._show()
            self.listing.go_to(key)

    @property
    def job(self) -> Body | None:
        """Job of the selected slice."""
        line = self.listing.current
        return {"id": line["job_id"], "name": line["job"]} if line and line.get("job_id") else None

    @property
    def place(self) -> Body | None:
        """Selected cluster or node."""
        line = self.listing.current
        if not line or line["kind"] not in {CLUSTER, NODE}:
            return None
        at = (line["name"], "") if line["kind"] == CLUSTER else (line["cluster"], line["name"])
        return {"cluster": at[0], "node": at[1], "cordon": line["cordon"]}


class QueuePane(Pane):
    """Waiting jobs in the order of scheduling, with the reason why the selected job waits."""

    hint = HINT
    DEFAULT_CSS = """
    QueuePane > .why { height: auto; max-height: 5; padding: 0 1; background: $surface; }
    """

    def __init__(self, due: Due) -> None:
        super().__init__(Listing(WAITING_COLUMNS, empty="nothing waits"), due, id="queue")
        self._explained, self._explained_s = "", 0.0
        self._why = Static(classes="why", markup=False)

    def compose(self) -> ComposeResult:
        """Place the reason between the list and its caption."""
        yield self.listing
        yield self._why
        yield self._caption

    async def look(self, client: AsyncClient, clusters: Sequence[Body]) -> None:
        """Read the waiting jobs, and the reason why the selected job waits."""
        asked = wanted(self.text, QUEUED)
        page = await client.body(job_calls.jobs(limit=MAX_JOBS, **asked).first)
        rows = sorted(page["jobs"], key=lambda each: (-each["priority"], each["submitted_at"]))
        self.listing.show(rows)
        total = await total_of(client, page, asked)
        reported = of_all(len(rows), total, "wait", "newest")
        self.say(
            reported,
            "priority first, then age",
            f"with {self.text}" if self.text else "",
            search_hint(len(rows), total),
        )
        await self._explain(client)

    async def _explain(self, client: AsyncClient) -> None:
        job = self.job
        self._why.display = job is not None
        if job and (job["id"] != self._explained or time.monotonic() - self._explained_s >= PERIOD_S):
            self._explained, self._explained_s = job["id"], time.monotonic()
            reason = await client.body(job_calls.explain(job["id"]))
            self._why.update(f"{job['name']} {reason['message']}")

    @on(Listing.Moved)
    def _another(self) -> None:
        if self.job and self.job["id"] != self._explained:
            self.due.at_once()

    @property
    def job(self) -> Body | None:
        """Selected job."""
        return self.listing.current


class JobsPane(Pane):
    """Unfinished jobs, or those that match the search. More jobs load at the end of the list."""

    hint = HINT
    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "sort", "Sort")]

    def __init__(self, due: Due) -> None:
        super().__init__(Listing(JOB_COLUMNS, empty="no jobs"), due, id="jobs")
        self._most = JOBS
        self._more = False
        self._sort = SORTS[0]
        self._reset = False

    def find(self, text: str) -> None:
        """Search for other jobs."""
        self._most, self._reset = JOBS, True
        super().find(text)

    async def look(self, client: AsyncClient, clusters: Sequence[Body]) -> None:
        """Read the newest jobs of the search."""
        most, asked = self._most if self._sort == SORTS[0] else MAX_JOBS, wanted(self.text)
        page = await client.body(job_calls.jobs(limit=most, **asked).first)
        total, count = await total_of(client, page, asked), len(page["jobs"])
        self._more = count < total
        self.listing.show(self._sorted(page["jobs"]), reset=self._reset)
        self._reset = False
        self.say(
            of_all(count, total, "job" if total == 1 else "jobs", "newest"),
            self.text or "not over",
            f"by {self._sort}; o changes the order",
            search_hint(count, total) if count == MAX_JOBS else "",
        )

    def _sorted(self, jobs: list[Body]) -> list[Body]:
        if self._sort == SORTS[0]:
            return jobs
        if self._sort == "where":
            return sorted(jobs, key=lambda each: (each["clusters"], each["nodes"]))
        return sorted(jobs, key=lambda each: str(each[self._sort]))

    @on(Listing.Moved)
    def _read_more(self) -> None:
        seen, rows = self.listing.seen, self.listing.rows
        if self._more and self._most < MAX_JOBS and seen and seen[-1] is rows[-1]:
            self._most += JOBS
            self._more = False
            self.due.at_once()

    def action_sort(self) -> None:
        """Change the order of the list."""
        self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        self._reset = True
        self.due.at_once()

    @property
    def job(self) -> Body | None:
        """Selected job."""
        return self.listing.current


class LinksPane(Pane):
    """Links between gateways, with the figures that decisions use."""

    hint = "a part of a gateway's name"
    KINDS = frozenset({"network", "agent", "path", "slo_violated", "slo_recovered", "cluster"})

    def __init__(self, due: Due) -> None:
        super().__init__(Listing(LINK_COLUMNS, key="key", empty="no links"), due, id="links")

    def affected_by(self, event: Body) -> bool:
        """Report whether an event can change links."""
        return event["kind"] in self.KINDS

    async def look(self, client: AsyncClient, clusters: Sequence[Body]) -> None:
        """Read all links."""
        links = (await client.body(fleet_calls.links()))["links"]
        rows = [{**each, "key": f"{each['source']} {each['target']}"} for each in links]
        shown = [each for each in rows if self.text in each["key"]]
        self.listing.show(shown)
        of = f"{len(shown):,} of " if self.text else ""
        self.say(f"{of}{len(rows):,} {'link' if len(rows) == 1 else 'links'}")


async def total_of(client: AsyncClient, page: Body, asked: JobFilter) -> int:
    """Return the number of jobs. Query it only if the page is incomplete."""
    shown = len(page["jobs"])
    if page["next"] is None:
        return shown
    counted: int = (await client.body(job_calls.count(**asked)))["total"]
    return max(shown, counted)


def of_all(shown: int, total: int, what: str, first: str = "first") -> str:
    """Describe the number of visible entries, and the total if it is larger."""
    return f"{total:,} {what}" if shown >= total else f"{first} {shown:,} of {total:,} {what}"


def search_hint(shown: int, total: int) -> str:
    """Return a hint to search for hidden entries; empty if all are visible."""
    return "/ finds others" if shown < total else ""
