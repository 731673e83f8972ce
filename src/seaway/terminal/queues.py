"""Tables of queues: the tree with use, guarantee and limit, and one queue in detail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from seaway.terminal.tables import Column, Rows, details, job_name, sparkline
from seaway.terminal.words import NONE, Body, ago, all_gpus, cost_text, learned, seconds, tasks_text, until

if TYPE_CHECKING:
    from rich.console import RenderableType

INDENT = "  "

EMPTY: Body = {"waiting": 0, "running": 0, "used": {}, "guarantee": {}, "borrowed": None, "limit": {}}
"""Sums of a queue that an older server does not report."""


def tree(queues: Sequence[Body], totals: Iterable[Body]) -> list[Body]:
    """Return queues in the order of the tree, each with its depth as `depth` and its sums as `totals`.

    A queue whose parent is not visible is a root.
    """
    sums = {each["queue"]: each for each in totals}
    names = {each["name"] for each in queues}
    children: dict[str, list[Body]] = {}
    for each in sorted(queues, key=lambda queue: str(queue["name"])):
        parent = each.get("parent", "")
        children.setdefault(parent if parent in names else "", []).append(each)

    def below(parent: str, depth: int) -> Iterator[Body]:
        for each in children.get(parent, ()):
            yield {**each, "depth": depth, "totals": sums.get(each["name"], EMPTY)}
            yield from below(each["name"], depth + 1)

    return list(below("", 0))


def _gpus(kind: str) -> Column:
    """Return a column of GPUs. Guarantees and limits have other resources too, such as ``16, 2TB memory``."""
    titles = {"guarantee": "GUARANTEE", "limit": "LIMIT"}
    if kind == "used":
        return Column("GPUS", lambda each: str(each["totals"][kind].get("gpus", 0)), right=True)
    return Column(titles[kind], lambda each: _amounts(each["totals"][kind]), right=True)


def _amounts(amounts: Body) -> str:
    others = (f"{amount} {name}" for name, amount in sorted(amounts.items()) if name != "gpus")
    return ", ".join([*([str(amounts["gpus"])] if "gpus" in amounts else ()), *others]) or NONE


def policy_text(queue: Body) -> str:
    """Return the policy of a queue with its options."""
    from seaway.domain.queues import options_text  # the domain is slow to import

    options = options_text(queue.get("policy_options") or {})
    return f"{queue['policy']} ({options})" if options else str(queue["policy"])


def _gpu_hours(each: Body) -> str:
    cost = each["totals"].get("cost")
    return f"{cost['gpu_hours']:,.1f}" if cost else NONE


def _jobs(totals: Body, kind: str) -> str:
    """Format the number of running or waiting jobs, with that of their tasks if an array has several."""
    tasks = totals[kind]
    jobs = totals.get(f"{kind}_jobs", tasks)
    return f"{jobs:,}" if jobs == tasks else f"{jobs:,} ({tasks_text(tasks)})"


_COSTS = (
    Column("GPU-HOURS", _gpu_hours, right=True, drop=6),
    Column("COST", lambda each: cost_text(each["totals"].get("cost")), right=True, drop=5),
)
"""Columns of the last 30 days."""

COLUMNS = (
    Column("QUEUE", lambda each: f"{INDENT * each['depth']}{each['name']}"),
    _gpus("used"),
    _gpus("guarantee"),
    _gpus("limit"),
    Column("RUNNING", lambda each: _jobs(each["totals"], "running"), right=True, drop=3),
    Column("WAITING", lambda each: _jobs(each["totals"], "waiting"), right=True),
    *_COSTS,
    Column("WEIGHT", lambda each: str(each.get("weight", 1)), right=True, drop=4),
    Column("PRIORITY", lambda each: str(each.get("priority", 0)), right=True, wide=True, drop=9),
    Column("ORDER", lambda each: each.get("order", NONE), wide=True, drop=9),
    Column("BACKFILL", lambda each: each.get("backfill", NONE), wide=True, drop=9),
    Column("ELASTIC", lambda each: each.get("elastic", NONE), wide=True, drop=9),
    Column("TENANT", lambda each: each["tenant"] or "all", drop=6),
    Column("POOL", lambda each: each["pool"], drop=5),
    Column("POLICY", policy_text, drop=1),
    Column("SHADOW", lambda each: each["shadow"] or NONE, drop=7),
    Column("OPEN", lambda each: "yes" if each["open"] else "no", drop=2),
    Column("DESCRIPTION", lambda each: each["description"], cut=True, drop=8),
)


def _duration(job: Body) -> str:
    """Return the expected duration or time limit of a job, or the learned duration with its origin."""
    return learned(job) or job["spec"].get("expected_duration") or job["spec"].get("time_limit") or NONE


WAITING = (
    Column("POSITION", lambda job: str(job["position"] or NONE), right=True),
    Column("JOB", job_name),
    Column("ID", lambda job: job["id"], drop=3),
    Column("TENANT", lambda job: job["tenant"], drop=2),
    Column("PRIORITY", lambda job: str(job["priority"]), right=True, drop=4),
    Column("AGE", lambda job: ago(job["submitted_at"]), right=True, drop=5),
    Column("STARTS", lambda job: until(job.get("estimated_start")), right=True, drop=6),
    Column("REASON", lambda job: job["message"], cut=True),
)
"""Columns of the waiting jobs of a queue."""

ALL_WAITING = (
    WAITING[0],
    Column("NAME", job_name),
    Column("ID", lambda job: job["id"], drop=1),
    Column("TENANT", lambda job: job["tenant"], drop=3),
    Column("QUEUE", lambda job: job["queue"], drop=4),
    Column("PRIORITY", lambda job: str(job["priority"]), right=True, drop=2),
    Column("REPLICAS", lambda job: str(job["replicas"]), right=True, wide=True, drop=9),
    Column("GPUS", all_gpus, drop=7),
    Column("WAITS", lambda job: ago(job["submitted_at"]), right=True, drop=5),
    Column("DURATION", _duration, drop=6),
    Column("STARTS", lambda job: until(job.get("estimated_start")), right=True, drop=8),
    Column("BECAUSE", lambda job: job["message"].removeprefix("waits: "), cut=True),
)
"""Columns of the waiting jobs of all queues."""


def detail(queue: Body, rows: Sequence[Body], waiting: Body) -> Iterator[RenderableType]:
    """Yield a queue's fields, its amounts, its children, and its first waiting jobs.

    Parameters
    ----------
    rows
        All queues, as `tree` returns them.
    waiting
        First page of its waiting jobs.
    """
    totals = next((each["totals"] for each in rows if each["name"] == queue["name"]), EMPTY)
    yield details(_facts(queue, totals))
    if amounts := list(amount_rows(totals)):
        yield ""
        yield Rows(AMOUNTS, amounts)
    children = [{**each, "depth": 0} for each in rows if each["parent"] == queue["name"]]
    if children:
        yield ""
        yield Rows(COLUMNS, children)
    if waiting["jobs"]:
        yield ""
        yield Rows(WAITING, waiting["jobs"])
        if (more := waiting["total"] - len(waiting["jobs"])) > 0:
            yield f"[dim]and {more} more waiting[/dim]"


def _facts(queue: Body, totals: Body) -> Iterator[tuple[str, str]]:
    yield "queue", queue["name"]
    yield "description", queue["description"]
    yield "parent", queue["parent"] or "none"
    yield "tenant", queue["tenant"] or "all"
    yield "pool", queue["pool"]
    yield "policy", f"{policy_text(queue)}{', shadow ' + queue['shadow'] if queue['shadow'] else ''}"
    yield "weight", f"{queue['weight']}, priority {queue['priority']}"
    ageing = queue.get("ageing", "0s")
    yield "order", f"{queue['order']}, backfill {queue['backfill']}, ageing {'off' if ageing == '0s' else ageing}"
    for kind in ("borrowing_limit", "lending_limit"):
        if amounts := queue.get(kind):
            yield kind.replace("_", " "), ", ".join(f"{amount} {name}" for name, amount in amounts.items())
    where = "all queues" if queue.get("preempts") == "all" else "its own queue"
    preempts = f" in {where}" if queue.get("preemption", "Never") != "Never" else ""
    yield "displaces", f"by priority: {queue.get('preemption', NONE)}{preempts}, reclaim: {queue.get('reclaim', NONE)}"
    preemptible = "yes" if queue.get("preemptible", True) else "no"
    yield "preemptible", f"{preemptible}, after {queue.get('min_runtime', '0s')}"
    start = queue.get("start_timeout", NONE)
    yield "start timeout", "no limit" if start == "0s" else start
    yield "elastic jobs", f"{queue.get('elastic', NONE)}, grow cooldown {queue.get('grow_cooldown', NONE)}"
    yield "open", "yes" if queue["open"] else "no: it accepts no new jobs"
    yield "jobs", f"{totals['running']} running, {totals['waiting']} waiting"
    if cost := totals.get("cost"):
        yield "last 30 days", f"{cost['gpu_hours']:,.1f} GPU-hours, cost {cost_text(cost)}"


AMOUNTS = (
    Column("RESOURCE", lambda each: each["resource"]),
    Column("USED", lambda each: each["used"], right=True),
    Column("GUARANTEE", lambda each: each["guarantee"], right=True),
    Column("BORROWED", lambda each: each["borrowed"], right=True),
    Column("LIMIT", lambda each: each["limit"], right=True),
)


def amount_rows(totals: Mapping[str, Mapping[str, object] | None]) -> Iterator[Body]:
    """Yield one row for each resource that a queue uses, guarantees or limits, with texts."""
    kinds = ("used", "guarantee", "borrowed", "limit")
    amounts = {kind: totals[kind] or {} for kind in kinds}
    for resource in sorted({name for each in amounts.values() for name in each}):
        texts = {kind: str(amounts[kind].get(resource, NONE)) for kind in kinds}
        yield {"resource": resource, **texts}


def tenant_rows(tenants: Sequence[Body], totals: Iterable[Body]) -> list[Body]:
    """Return one row for each pool in which a tenant has a quota or jobs; one without a pool for other tenants."""
    pools: dict[str, list[Body]] = {}
    for each in totals:
        pools.setdefault(each["tenant"], []).append(each)
    return [
        {**tenant, "totals": sums}
        for tenant in tenants
        for sums in pools.get(tenant["name"], [{**EMPTY, "pool": NONE}])
    ]


def tenant_detail(tenant: Body, totals: Sequence[Body]) -> Iterator[RenderableType]:
    """Yield the parts of a tenant: its facts, and a table of each pool in which it has a quota or jobs.

    Parameters
    ----------
    totals
        Sums of the tenant, by pool.
    """
    weight = str(tenant.get("weight", 1))
    secrets = ("secrets", ", ".join(tenant.get("secrets", ())))
    yield details((("tenant", tenant["name"]), ("description", tenant["description"]), ("weight", weight), secrets))
    for each in totals:
        quota = tenant.get("quotas", {}).get(each["pool"], {})
        running = _of(each, "running", each["limit"].get("jobs"))
        waiting = _of(each, "waiting", quota.get("max_waiting"))
        users = ", ".join(f"{amount} {name}" for name, amount in quota.get("user_limit", {}).items())
        user_waiting = quota.get("user_max_waiting")
        yield ""
        yield details(
            (
                ("pool", each["pool"]),
                ("jobs", f"{running} running, {waiting} waiting"),
                ("limit of each user", users),
                ("waiting jobs of each user", "" if user_waiting is None else f"at most {user_waiting}"),
            )
        )
        if amounts := list(amount_rows({"borrowed": None, **each})):
            yield Rows(AMOUNTS, amounts)


TENANTS = (
    Column("TENANT", lambda each: each["name"]),
    Column("POOL", lambda each: each["totals"]["pool"], drop=3),
    _gpus("used"),
    _gpus("guarantee"),
    _gpus("limit"),
    Column("RUNNING", lambda each: _of(each["totals"], "running", each["totals"]["limit"].get("jobs")), right=True),
    Column("WAITING", lambda each: _of(each["totals"], "waiting", each["totals"].get("max_waiting")), right=True),
    *_COSTS,
    Column("WEIGHT", lambda each: str(each.get("weight", 1)), right=True, drop=2),
    Column("DESCRIPTION", lambda each: each["description"], cut=True, drop=1),
)


def _of(totals: Body, kind: str, most: int | None) -> str:
    """Return a number, with its limit if it has one, such as ``3/10``."""
    return str(totals[kind]) if most is None else f"{totals[kind]}/{most}"


def _percent(name: str) -> Callable[[Body], str]:
    return lambda each: f"{100 * each[name]:.1f}%"


SHARES = (
    Column("QUEUE", lambda each: f"{INDENT * each['depth']}{each['queue']}"),
    Column("TENANT", lambda each: each["tenant"] or NONE),
    Column("WEIGHT", lambda each: str(each["weight"]), right=True),
    Column("NORMALIZED", _percent("weight_share"), right=True, drop=2),
    Column("GUARANTEE", _percent("guarantee"), right=True, drop=3),
    Column("USED", _percent("used"), right=True),
    Column("PAST", _percent("past"), right=True, drop=1),
    Column("BEYOND", lambda each: f"{each['beyond']:.4f}", right=True),
)
"""Columns of shares."""

FACTORS = (
    Column("LEVEL", lambda each: each["level"]),
    Column("NAME", lambda each: each["name"]),
    Column("PLACE", lambda each: f"{each['place']}/{each['of']}", right=True),
    Column("GUARANTEED", lambda each: NONE if each["level"] == "job" else "yes" if each["within_guarantee"] else "no"),
    Column("PRIORITY", lambda each: NONE if each["level"] == "tenant" else str(each["priority"]), right=True),
    Column("AGEING", lambda each: f"{each['ageing']:.2f}" if each["level"] == "job" else NONE, right=True, drop=1),
    Column("SHARE", lambda each: NONE if each["level"] == "job" else f"{each['share']:.4f}", right=True),
    Column("PAST", lambda each: NONE if each["level"] == "job" else f"{each['past']:.4f}", right=True, drop=2),
    Column("WEIGHT", lambda each: NONE if each["level"] == "job" else str(each["weight"]), right=True),
    Column("VALUE", lambda each: f"{each['value']:.4f}", right=True),
    Column("AHEAD", lambda each: ", ".join(each["ahead"]) or NONE, cut=True),
)
"""Columns of the factors of a waiting job."""


def usage_columns(by: str) -> tuple[Column, ...]:
    """Return the columns of a history of use by a grouping: fleet, cluster, tenant or queue."""

    def milli(each: Body, field: str) -> list[int]:
        return [step[field] for step in each["steps"] if step[field] is not None]

    def mean(values: Sequence[float]) -> str:
        return f"{sum(values) / len(values) / 1000:.1f}" if values else NONE

    def most(values: Sequence[float]) -> str:
        return f"{max(values) / 1000:.1f}" if values else NONE

    def wait(each: Body) -> str:
        started = sum(step["started"] for step in each["steps"])
        waited_s = sum(step["started"] * (step["mean_wait_s"] or 0) for step in each["steps"])
        return seconds(waited_s / started) if started else NONE

    columns = [
        Column(by.upper(), lambda each: each["name"] or "all"),
        Column("", lambda each: sparkline(milli(each, "gpu_milli_used"))),
        Column("GPU-HOURS", lambda each: f"{each['gpu_hours']:,.1f}", right=True),
        Column("HELD", lambda each: mean(milli(each, "gpu_milli_used")), right=True),
        Column("MOST", lambda each: most(milli(each, "gpu_milli_used")), right=True),
        Column("MEASURED", lambda each: mean(milli(each, "gpu_milli_measured")), right=True, drop=2),
    ]
    if by in ("fleet", "cluster"):
        columns.insert(3, Column("GPUS", lambda each: mean(milli(each, "gpu_milli")), right=True))
    waiting = Column("WAITING TASKS", lambda each: mean([1000 * step["waiting"] for step in each["steps"]]), right=True)
    started = Column(
        "STARTED TASKS", lambda each: str(sum(step["started"] for step in each["steps"])), right=True, drop=1
    )
    longest = Column(
        "LONGEST WAIT",
        lambda each: seconds(max((step["longest_wait_s"] for step in each["steps"]), default=0)),
        right=True,
        drop=3,
    )
    waits = [started, Column("MEAN WAIT", wait, right=True)]
    columns += waits if by == "cluster" else [waiting, *waits, longest]
    return tuple(columns)
