"""Queues page: queues, pools and tenants with their use, and the waiting jobs of a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from nicegui import ui

from seaway.client.calls import fleet, tenancy
from seaway.client.calls import queues as queue_calls
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.pages.queues.forms import ask_pool, ask_queue, ask_quota, ask_tenant, ask_to_remove
from seaway.web.pages.queues.rows import Seen, pool_rows, queue_rows, shown_rows, tenant_rows
from seaway.web.parts.cordon import on_act
from seaway.web.parts.form import error_line
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from nicegui.events import ValueChangeEventArguments

    from seaway.wire.fleet import ClusterList
    from seaway.wire.queues import QueueList, QueueUsageList, WaitingPage
    from seaway.wire.tenancy import PoolList, TenantList


EVERY_S = 3.0
"""Interval of queries for waiting jobs, in seconds. Each answer explains all jobs on the page."""

MOST = 15
"""Number of jobs on a page."""


class Line:
    """Panel with the waiting jobs of a queue, page by page.

    Attributes
    ----------
    queue
        Name of the queue; empty before the user selects one.
    """

    def __init__(self, visit: Visit) -> None:
        self.queue = ""
        self._visit = visit
        self._divides = False
        self._marks = [""]  # positions of the previous pages and of this one
        self._next: str | None = None
        self._latest = Latest(visit)
        with ui.element("section").classes("panel"):
            self._fragment = Fragment("waiting", visit.words)
        on_act(self._fragment, self._act)

    async def show(self, queue: str, *, divides: bool = False) -> None:
        """Show the waiting jobs of a queue, from the first; `divides` is True for a queue with children."""
        self.queue, self._divides, self._marks = queue, divides, [""]
        await self._follow()

    async def _follow(self) -> None:
        turn, self._next = self._latest.begin(), None
        if self.queue:
            with self._fragment.element:
                call = queue_calls.waiting(self.queue, after=self._marks[-1], limit=MOST).first
                await turn.follow(call, self._received, EVERY_S)
        else:
            self._fragment.show(queue="", jobs=(), total=0, first=0, last=0, more=False, divides=False)

    def _received(self, page: WaitingPage) -> None:
        self._next = page.next
        queue, divides, first = self.queue, self._divides, MOST * (len(self._marks) - 1)
        self._fragment.show_of([page], lambda: {**_line(queue, page, first), "divides": divides}, queue, divides, first)

    async def _act(self, act: str, _: str) -> None:
        if act == "next" and self._next:
            self._marks.append(self._next)
        elif act == "before" and len(self._marks) > 1:
            self._marks.pop()
        else:
            return
        await self._follow()


def _line(queue: str, page: WaitingPage, first: int) -> dict[str, object]:
    """Return the variables for a page of waiting jobs that follows the first `first` jobs."""
    return {
        "queue": queue,
        "jobs": page.jobs,
        "total": page.total,
        "first": first,
        "last": first + len(page.jobs),
        "more": page.next is not None,
    }


SLOW_REFRESH_S = 2.0
"""Interval of queries for queues, pools, tenants and their use, in seconds."""


async def build(visit: Visit) -> None:
    """Build the page."""
    page = _Queues(visit)
    await visit.follow(queue_calls.queues(), page.on_queues, SLOW_REFRESH_S)
    await visit.follow(tenancy.pools(), page.on_pools, SLOW_REFRESH_S)
    await visit.follow(tenancy.tenants(), page.on_tenants, SLOW_REFRESH_S)
    await visit.follow(fleet.clusters(), page.on_clusters, SLOW_REFRESH_S)
    await visit.follow(queue_calls.queue_usage(), page.on_uses, SLOW_REFRESH_S)
    page.begin()
    names = [each.name for each in page.seen.queues]
    wanted = visit.query.get("queue", "")
    if wanted and wanted not in names:
        page.show_missing(visit.words("Queue {queue} not found, or not visible to you.", queue=wanted))
    waiting = Counter[str]()
    for use in page.seen.uses:
        waiting[use.queue] += use.waiting
    await page.show_line(queue_shown(wanted, names, waiting))
    if wanted in names:
        page.locate()
    page.draw()


def queue_shown(wanted: str, names: Sequence[str], waiting: Mapping[str, int]) -> str:
    """Return the queue to show: the requested one, else the one with the most waiting jobs; empty for none."""
    if wanted:
        return wanted if wanted in names else ""
    return max(names, key=lambda name: waiting.get(name, 0), default="")


class _Queues:
    """Queues page of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.seen = Seen()
        self._begun = False
        words = visit.words
        self._missing = error_line()
        self._search = visit.query.get("search", "")
        self._folded = {each for each in visit.query.get("folded", "").split(",") if each}
        with ui.element("section").classes("panel tree-panel"):
            field = ui.input(words("Search queues"), value=self._search, on_change=self._searched)
            field.props("outlined dense clearable debounce=200 autocomplete=off").classes("tree-search")
            self._queues = Fragment("queues", words)
        self.line = Line(visit)
        with ui.element("section").classes("panel"):
            self._tenants = Fragment("tenants", words)
        with ui.element("section").classes("panel"):
            self._pools = Fragment("pools", words)
        on_act(self._queues, self._act_on_queue)
        on_act(self._tenants, self._act_on_tenant)
        on_act(self._pools, self._act_on_pool)

    def show_missing(self, text: str) -> None:
        """Report that a queue in the address does not exist; hide the line for an empty text."""
        self._missing.set_text(text)
        self._missing.set_visibility(bool(text))

    async def show_line(self, queue: str) -> None:
        """Show the waiting jobs of a queue."""
        await self.line.show(queue, divides=any(each.parent == queue for each in self.seen.queues if queue))

    def locate(self) -> None:
        """Show the place of the selected queue in the tree."""
        parents, path = {each.name: each.parent for each in self.seen.queues}, [self.line.queue]
        while parent := parents.get(path[0], ""):
            path.insert(0, parent)
        above = [(name, f"/queues?{urlencode({'queue': name})}") for name in path[:-1]]
        self.visit.locate((self.visit.words("Queues"), "/queues"), *above, name=path[-1])

    def begin(self) -> None:
        """Start to draw answers after each call has returned its first answer."""
        self._begun = True

    async def on_queues(self, value: QueueList) -> None:
        """Accept the list of queues; deselect a removed one."""
        self.seen.queues, queue = value.queues, self.line.queue
        if queue and queue not in [each.name for each in value.queues]:
            self.show_missing(self.visit.words("Queue {queue} not found, or not visible to you.", queue=queue))
            await self.line.show("")
        self.draw()

    def on_pools(self, value: PoolList) -> None:
        """Accept the list of pools."""
        self.seen.pools = value.pools
        self.draw()

    def on_tenants(self, value: TenantList) -> None:
        """Accept the list of tenants."""
        self.seen.tenants = value.tenants
        self.draw()

    def on_clusters(self, value: ClusterList) -> None:
        """Accept the resources of clusters."""
        self.seen.clusters = value.clusters
        self.draw()

    def on_uses(self, value: QueueUsageList) -> None:
        """Accept the use of queues."""
        self.seen.uses, self.seen.totals, self.seen.tenant_totals = value.uses, value.queues, value.tenants
        self.draw()

    def draw(self) -> None:
        """Draw the latest answers."""
        if not self._begun:
            return
        operates, admins = self.visit.may("operator"), self.visit.may("admin")
        seen, chosen = self.seen, self.line.queue
        self._queues.show_of(
            [seen.queues, seen.uses, seen.totals, seen.pools, seen.clusters],
            lambda: {
                "rows": shown_rows(list(queue_rows(seen)), self._folded, self._search),
                "folded": self._folded,
                "chosen": chosen,
                "may": operates,
                "search": self._search,
            },
            chosen,
            operates,
            self._search,
            *sorted(self._folded),
        )
        self._tenants.show_of(
            [seen.tenants, seen.queues, seen.uses, seen.tenant_totals, seen.pools, seen.clusters],
            lambda: {"rows": list(tenant_rows(seen)), "may": admins},
            admins,
        )
        self._pools.show_of(
            [seen.pools, seen.queues, seen.clusters], lambda: {"rows": list(pool_rows(seen)), "may": operates}, operates
        )

    def _searched(self, event: ValueChangeEventArguments[Any]) -> None:
        self._search = str(event.value or "").strip()
        self.visit.keep(search=self._search or None)
        self.draw()

    async def _act_on_queue(self, act: str, name: str) -> None:
        words = self.visit.words
        queue = next((each for each in self.seen.queues if each.name == name), None)
        if act == "fold":
            self._folded ^= {name}
            self.visit.keep(folded=",".join(sorted(self._folded)) or None)
            self.draw()
        elif act == "new":
            await ask_queue(self.visit, self.seen, None)
        elif queue is None:
            return
        elif act == "change":
            await ask_queue(self.visit, self.seen, queue)
        elif act == "remove":
            title = words("Remove queue {name}?", name=name)
            text = words("It can be removed when it has no waiting or running jobs and no children.")
            ask_to_remove(self.visit, title, text, queue_calls.delete_queue(name), name)
        elif act == "look":
            self.visit.keep(queue=name)
            self.show_missing("")
            await self.show_line(name)
            self.locate()
            self.draw()

    async def _act_on_tenant(self, act: str, name: str) -> None:
        words, (name, _, pool) = self.visit.words, name.partition(" ")
        tenant = next((each for each in self.seen.tenants if each.name == name), None)
        if act == "new":
            ask_tenant(self.visit, None)
        elif tenant is None:
            return
        elif act == "change":
            ask_tenant(self.visit, tenant)
        elif act == "quota":
            await ask_quota(self.visit, self.seen, tenant, pool)
        elif act == "remove":
            title = words("Remove tenant {name}?", name=name)
            text = words("Its finished jobs are removed too, and its tokens are revoked.")
            ask_to_remove(self.visit, title, text, tenancy.delete_tenant(name), name)

    def _act_on_pool(self, act: str, name: str) -> None:
        words = self.visit.words
        pool = next((each for each in self.seen.pools if each.name == name), None)
        if act == "new":
            ask_pool(self.visit, self.seen, None)
        elif pool is None:
            return
        elif act == "change":
            ask_pool(self.visit, self.seen, pool)
        elif act == "remove":
            title = words("Remove pool {name}?", name=name)
            text = words("It can be removed once no queue uses it.")
            ask_to_remove(self.visit, title, text, tenancy.delete_pool(name), name)
