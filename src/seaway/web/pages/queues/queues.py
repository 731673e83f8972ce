"""Queues page: queues, pools and tenants with their use, and the waiting jobs of a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from nicegui import ui

from seaway.client.call import Call
from seaway.client.calls import fleet, policies, tenancy
from seaway.client.calls import queues as queue_calls
from seaway.domain.amounts import split_amounts
from seaway.domain.errors import RejectedError, StaleError
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.pages.queues.rows import Seen, pool_rows, queue_rows, tenant_rows
from seaway.web.parts.cordon import on_act
from seaway.web.parts.form import Field, Form, confirm, error_line, notify
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterList
    from seaway.wire.queues import QueueList, QueueOut, QueueUsageList, WaitingPage
    from seaway.wire.tenancy import PoolList, PoolOut, TenantList, TenantOut


EVERY_S = 3.0
"""Interval of queries for waiting jobs, in seconds. Each answer explains all jobs on the page."""

MOST = 15
"""Number of jobs on a page."""

PREFIX = "waits: "
"""Prefix of the reason why a job waits. It is redundant on this page."""


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
    rows = [{"job": each, "why": each.message.removeprefix(PREFIX)} for each in page.jobs]
    return {
        "queue": queue,
        "jobs": rows,
        "total": page.total,
        "first": first,
        "last": first + len(rows),
        "more": page.next is not None,
    }


T = TypeVar("T")

AMOUNT_FIELDS = ("guarantee", "limit", "borrowing_limit", "lending_limit")

DEFAULT = "default"
"""Default pool of queues."""


def fresh(call: Call[T]) -> Call[T]:
    """Return a call that fails if an object with the same name exists."""
    return replace(call, headers={**call.headers, "If-None-Match": "*"})


async def ask_queue(visit: Visit, seen: Seen, queue: QueueOut | None) -> None:
    """Open the dialog for a new or an existing queue."""
    words = visit.words
    known = await visit.ask(policies.policies())
    by_name = {each.name: each.name for each in known.policies}
    keys = words("Keys, separated by commas; * for all.")
    amounts = words("Like gpus=16, gpus/A100=8, memory=2TB")
    parents = {each.name: each.name for each in seen.queues if queue is None or each.name != queue.name}
    fields = [
        Field("parent", words("Part of"), queue.parent if queue else "", {"": words("none"), **parents}),
        Field("guarantee", words("Guarantee"), _joined(queue.guarantee) if queue else "", hint=amounts),
        Field("limit", words("Limit"), _joined(queue.limit) if queue else "", hint=amounts),
        Field(
            "borrowing_limit",
            words("Borrowing limit"),
            _joined(queue.borrowing_limit) if queue else "",
            hint=words("At most that much beyond the guarantee."),
        ),
        Field(
            "lending_limit",
            words("Lending limit"),
            _joined(queue.lending_limit) if queue else "",
            hint=words("What others may use of the guarantee. Empty for all."),
        ),
        Field("weight", words("Weight"), str(queue.weight) if queue else "1"),
        Field("priority", words("Priority among siblings"), str(queue.priority) if queue else "0"),
        Field("order", words("Order"), queue.order if queue else "fair", orders(words)),
        Field("backfill", words("Backfill"), queue.backfill if queue else "easy", backfills(words)),
        Field(
            "ageing",
            words("Ageing"),
            queue.ageing if queue else "0s",
            hint=words("Waiting time that counts as one point of priority, like 1h. 0s for none."),
        ),
        Field(
            "preemption", words("Displaces in the queue"), queue.preemption if queue else "Never", preemptions(words)
        ),
        Field("reclaim", words("Displaces in other queues"), queue.reclaim if queue else "Guarantee", reclaims(words)),
        Field("preemptible", words("Its jobs may be displaced"), queue.preemptible if queue else True),
        Field("min_runtime", words("Not before a run time of"), queue.min_runtime if queue else "0s"),
        Field(
            "tenant", words("Tenant"), queue.tenant if queue else "", _with_none(seen.tenants, words("every tenant"))
        ),
        Field("pool", words("Pool"), queue.pool if queue else DEFAULT, {each.name: each.name for each in seen.pools}),
        Field("policy", words("Policy"), queue.policy if queue else "bestfit", by_name),
        Field("shadow", words("Shadow"), queue.shadow if queue else "", {"": words("none"), **by_name}),
        Field("description", words("Description"), queue.description if queue else ""),
        Field("open", words("Accepts new jobs"), queue.open if queue else True),
        Field("allowed_taints", words("Allowed taints"), ", ".join(queue.allowed_taints if queue else ()), hint=keys),
        Field(
            "allowed_node_labels",
            words("Allowed node labels"),
            ", ".join(queue.allowed_node_labels if queue else ()),
            hint=keys,
        ),
    ]

    def put(name: str, given: dict[str, Any]) -> Call[Any]:
        lists = {each: _keys(given[each]) for each in ("allowed_taints", "allowed_node_labels")}
        numbers = {each: _number(words, given[each], each) for each in ("weight", "priority")}
        shares = {each: split_amounts(given[each], where=each) for each in AMOUNT_FIELDS}
        return queue_calls.put_queue(name, seen=queue, **{**given, **lists, **numbers, **shares})

    title = words("Change queue {name}", name=queue.name) if queue else words("New queue")
    _ask(visit, title, fields, put, queue.name if queue else "")


def _keys(text: str) -> list[str]:
    return [key for each in text.split(",") if (key := each.strip())]


def _joined(amounts: Mapping[str, int | float | str]) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in amounts.items())


def _number(words: Words, text: str, field: str) -> int:
    """Return the number in a field; the server checks its range."""
    try:
        return int(text)
    except ValueError:
        raise RejectedError(words("Use a whole number."), where=field) from None


def orders(words: Words) -> dict[str, str]:
    """Return the orders of jobs with their titles."""
    return {
        "fifo": words("Submission time"),
        "priority": words("Priority, then submission time"),
        "fair": words("Least use of a tenant first"),
        "shortest": words("Shortest expected duration first"),
    }


def backfills(words: Words) -> dict[str, str]:
    """Return the backfill rules that the server accepts, with their titles."""
    return {
        "none": words("No jobs"),
        "easy": words("Jobs that do not delay the first job"),
        "greedy": words("All jobs that fit"),
    }


def preemptions(words: Words) -> dict[str, str]:
    """Return the rules of preemption within a queue, with their titles."""
    return {"Never": words("No running jobs"), "PreemptLowerPriority": words("Jobs of a lower priority")}


def reclaims(words: Words) -> dict[str, str]:
    """Return the rules of reclaim from other queues, with their titles."""
    return {
        "Never": words("No running jobs"),
        "Guarantee": words("Jobs beyond guarantees, up to its guarantee"),
        "FairShare": words("Also jobs of queues with a larger share"),
    }


def ask_pool(visit: Visit, seen: Seen, pool: PoolOut | None) -> None:
    """Open the dialog for a new or an existing pool."""
    words = visit.words
    there = sorted({*(each.name for each in seen.clusters), *(pool.clusters if pool else ())})
    clusters = Field(
        "clusters",
        words("Clusters"),
        list(pool.clusters) if pool else [],
        {each: each for each in there},
        words("Leave empty for all present and future clusters."),
    )
    description = Field("description", words("Description"), pool.description if pool else "")

    def put(name: str, given: dict[str, Any]) -> Call[Any]:
        return tenancy.put_pool(name, given["clusters"], given["description"], seen=pool)

    title = words("Change pool {name}", name=pool.name) if pool else words("New pool")
    _ask(visit, title, [clusters, description], put, pool.name if pool else "")


def ask_tenant(visit: Visit, tenant: TenantOut | None) -> None:
    """Open the dialog for a new or an existing tenant."""
    words = visit.words
    description = Field("description", words("Description"), tenant.description if tenant else "")

    def put(name: str, given: dict[str, Any]) -> Call[Any]:
        return tenancy.put_tenant(name, given["description"], seen=tenant)

    title = words("Change tenant {name}", name=tenant.name) if tenant else words("New tenant")
    _ask(visit, title, [description], put, tenant.name if tenant else "")


def ask_to_remove(visit: Visit, title: str, text: str, call: Call[None], name: str) -> None:
    """Open the dialog that confirms a removal."""
    words = visit.words

    async def remove() -> None:
        await visit.ask(call)
        _look_again(visit)
        notify(words("{name} is removed", name=name))

    confirm(words, title, text, words("Remove"), remove)


def _ask(
    visit: Visit, title: str, fields: list[Field], put: Callable[[str, dict[str, Any]], Call[Any]], name: str
) -> None:
    """Open a form for a named object. Only a new object has a field for the name."""
    words = visit.words
    if not name:
        hint = words("Small letters, digits, '-' and '.'")
        fields = [Field("name", words("Name"), hint=hint), *fields]

    async def send(given: dict[str, Any]) -> None:
        called = name or str(given.pop("name"))
        call = put(called, given)
        try:
            await visit.ask(call if name else fresh(call))
        except StaleError as error:
            if not name:
                raise RejectedError(words("This name is taken."), where="name") from error
            raise RejectedError(
                words("Another user changed it: close this dialog, check it, and try again.")
            ) from error
        _look_again(visit)
        notify(words("{name} is saved", name=called))

    Form(words, title, fields, words("Save"), send)


def _look_again(visit: Visit) -> None:
    """Query changed data immediately, so that a removed object disappears before a second click."""
    for call in (queue_calls.queues(), tenancy.pools(), tenancy.tenants()):
        visit.ask_again(call)


def _with_none(tenants: Iterable[TenantOut], none: str) -> dict[str, str]:
    return {"": none, **{each.name: each.name for each in tenants}}


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
    await page.show_line(queue_shown(wanted, names))
    page.draw()


def queue_shown(wanted: str, names: Sequence[str]) -> str:
    """Return the queue to show: the requested one, or the first if none is requested; empty if there is none."""
    if wanted:
        return wanted if wanted in names else ""
    return next(iter(names), "")


class _Queues:
    """Queues page of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.seen = Seen()
        self._begun = False
        words = visit.words
        self._missing = error_line()
        with ui.element("section").classes("panel"):
            self._queues = Fragment("queues", words)
        self.line = Line(visit)
        with ui.element("div").classes("halves"):
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
        self.seen.uses, self.seen.totals = value.uses, value.queues
        self.draw()

    def draw(self) -> None:
        """Draw the latest answers."""
        if not self._begun:
            return
        operates, admins = self.visit.may("operator"), self.visit.may("admin")
        seen, chosen = self.seen, self.line.queue
        self._queues.show_of(
            [seen.queues, seen.uses, seen.totals, seen.pools, seen.clusters],
            lambda: {"rows": list(queue_rows(seen)), "chosen": chosen, "may": operates},
            chosen,
            operates,
        )
        self._tenants.show_of(
            [seen.tenants, seen.queues, seen.uses], lambda: {"rows": list(tenant_rows(seen)), "may": admins}, admins
        )
        self._pools.show_of(
            [seen.pools, seen.queues, seen.clusters], lambda: {"rows": list(pool_rows(seen)), "may": operates}, operates
        )

    async def _act_on_queue(self, act: str, name: str) -> None:
        words = self.visit.words
        queue = next((each for each in self.seen.queues if each.name == name), None)
        if act == "new":
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
            self.draw()

    def _act_on_tenant(self, act: str, name: str) -> None:
        words = self.visit.words
        tenant = next((each for each in self.seen.tenants if each.name == name), None)
        if act == "new":
            ask_tenant(self.visit, None)
        elif tenant is None:
            return
        elif act == "change":
            ask_tenant(self.visit, tenant)
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
