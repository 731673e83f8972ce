"""Overview: health first, then the state of the fleet and of its jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from nicegui import ui

from seaway.client.calls import fleet, jobs, network, service
from seaway.client.calls import queues as queue_calls
from seaway.domain.amounts import GPUS, parse_amounts
from seaway.domain.errors import SeawayError
from seaway.web import words as figures
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.pages.fleet.alerts import FRESH_S, Seen, alerts, answers, minutes_ago
from seaway.web.parts.cordon import on_act
from seaway.web.reasons import ORDER
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.events import RecentEvents
    from seaway.wire.fleet import AmountOut, ClusterList, ClusterOut, ModelList, ModelOut, UsageHistoryOut
    from seaway.wire.job_out import JobCount
    from seaway.wire.queues import QueueUsageList, TenantTotalsOut

WAITING = ("pending", "queued", "preempted")
STARTING = ("scheduled", "deploying")
SLOW_REFRESH_S = 3.0
"""Interval of queries for agents and alerts in seconds. They change every few seconds."""

AGED_S, COUNT_S = 10.0, 60.0
"""Intervals in seconds at which ages are rendered again, and at which periods of counted jobs move on."""

DAY_MIN, HOUR_MIN = 1440, 60

HISTORY_S = 30.0
"""Interval of queries of the past use of GPUs, seconds."""

MIN_POINTS = 2
"""Minimum number of samples of a line."""

RECENT = 8
"""Number of recent changes."""

PAGES = {
    **dict.fromkeys(("network", "agent", "path"), "/network"),
    **dict.fromkeys(("queue", "pool", "tenant"), "/queues"),
    "policy": "/policies",
    "reservation": "/schedule",
}
"""Pages of events by their kind; all others belong to clusters."""


async def build(visit: Visit) -> None:
    """Build the page."""
    await _Overview(visit).make()


class _Overview:
    """Overview page of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.words = visit, visit.words
        self._seen, self._counting = Seen([], {}), Latest(visit)
        self._tour, self._alerts = Fragment("tour", visit.words), Fragment("alerts", visit.words)
        self._health, self._tiles = Fragment("tiles", visit.words), Fragment("tiles", visit.words)
        self._clusters, self._states = Fragment("clusters", visit.words), Fragment("job_states", visit.words)
        self._use = Fragment("overview_use", visit.words)
        self._models: Sequence[ModelOut] = ()
        self._tenants: Sequence[TenantUse] | None = None
        self._recent = Fragment("recent", visit.words)
        on_act(self._alerts, lambda _, name: self._acknowledge(name))

    async def make(self) -> None:
        """Follow the data of the page."""
        visit = self.visit
        await visit.follow(fleet.clusters(), self._on_clusters)
        await visit.follow(jobs.count(), self._on_jobs)
        await self._count()
        if visit.may("operator") and is_new(self._seen):
            await visit.follow(queue_calls.queues(), self._into("queues"), SLOW_REFRESH_S)
            if visit.may("admin"):
                await visit.follow(service.tokens(), self._into("tokens"), SLOW_REFRESH_S)
        await visit.follow(fleet.models(), self._on_models, SLOW_REFRESH_S)
        if visit.may("admin"):
            await visit.follow(queue_calls.queue_usage(), self._on_uses, SLOW_REFRESH_S)
        await visit.follow(network.agents(), self._into("agents"), SLOW_REFRESH_S)
        await visit.follow(service.alerts(), self._into("wrong"), SLOW_REFRESH_S)
        await visit.follow(fleet.usage_history("fleet", "day", limit=1), self._into("history"), HISTORY_S)
        await visit.follow(fleet.fleet_events(RECENT), self._on_events, SLOW_REFRESH_S)
        ui.timer(COUNT_S, self._count)
        ui.timer(AGED_S, self._draw)

    def _on_clusters(self, value: ClusterList) -> None:
        self._seen.clusters = value.clusters
        self._clusters.show_of([value], lambda: {"clusters": value.clusters, "fresh_s": FRESH_S})
        self._draw()

    def _on_jobs(self, value: JobCount) -> None:
        self._seen.states, self._seen.jobs = value.states, value
        self._states.show_of([value], lambda: _states(value))
        self._draw()

    def _on_models(self, value: ModelList) -> None:
        self._models = value.models
        self._use.show(models=self._models, tenants=self._tenants)

    def _on_uses(self, value: QueueUsageList) -> None:
        self._tenants = tenant_uses(value.tenants)
        self._use.show(models=self._models, tenants=self._tenants)

    def _on_events(self, value: RecentEvents) -> None:
        links = [PAGES.get(each.kind, "/fleet") for each in value.events]
        events = list(zip(value.events, links, strict=True))
        self._recent.show_of([value], lambda: {"events": events}, time.monotonic() // COUNT_S)

    def _into(self, field: str) -> Callable[[object], None]:
        """Return a function that stores an answer in a field."""

        def receive(value: object) -> None:
            setattr(self._seen, field, value)
            self._draw()

        return receive

    async def _count(self) -> None:
        """Count recent failures and long waits of the period until now. Ignore errors: the timer retries."""
        turn = self._counting.begin()
        failed = jobs.count(state="failed", ended_from=minutes_ago(DAY_MIN))
        late = jobs.count(state=WAITING, submitted_until=minutes_ago(HOUR_MIN))
        with suppress(SeawayError):
            await turn.follow(failed, self._into("failed"), SLOW_REFRESH_S)
            await turn.follow(late, self._into("late"), SLOW_REFRESH_S)

    async def _acknowledge(self, key: str) -> None:
        rule, _, of = key.partition(" ")
        await self.visit.ask(service.acknowledge(rule, of))
        self.visit.ask_again(service.alerts())

    def _draw(self) -> None:
        seen, words, may = self._seen, self.words, self.visit.may("operator")
        self._tour.show(steps=list(tour_of(seen, words)) if may else [])
        self._tiles.show_of([seen.clusters, seen.states, seen.history], lambda: {"tiles": list(tiles_of(seen, words))})
        self._health.show(tiles=list(health_of(seen, words)))
        self._alerts.show_of(
            [seen.clusters, seen.agents, seen.wrong],
            lambda: {"alerts": alerts(seen, words), "may": may},
            may,
            time.monotonic() // AGED_S,
        )


def health_of(seen: Seen, words: Words) -> Iterator[dict[str, object]]:
    """Yield the numbers of what is not in order."""
    up = [each for each in seen.clusters if each.state == "up"]
    lost = sum(each.state == "lost" for each in seen.agents.agents) if seen.agents else 0
    old = sum(seen.agents.links.get(state, 0) for state in ("stale", "unknown")) if seen.agents else 0
    failed = {"state": "failed", "ended_from": minutes_ago(DAY_MIN), "sort": "-ended"}
    late = {"state": ",".join(WAITING), "submitted_until": minutes_ago(HOUR_MIN), "sort": "submitted"}
    for href, label, number in (
        ("/fleet?ready=no", words("Nodes not ready"), sum(each.nodes_not_ready for each in up)),
        ("/fleet?ready=no", words("Unhealthy GPUs"), sum(each.gpus_unhealthy for each in up)),
        (f"/jobs?{urlencode(failed)}", words("Failed within 24 hours"), seen.failed.total if seen.failed else 0),
        (f"/jobs?{urlencode(late)}", words("Waiting for more than an hour"), seen.late.total if seen.late else 0),
        ("/fleet", words("Clusters that do not answer"), sum(not answers(each) for each in seen.clusters)),
        ("/network", words("Gateways whose agent does not report"), lost),
        ("/network", words("Links without fresh measurements"), old),
    ):
        yield {**_tile(href, label, figures.count(number, words.locale)), "level": "bad" if number else "good"}


def is_new(seen: Seen) -> bool:
    """Report whether no cluster is joined yet, or no job is stored."""
    return not seen.clusters or not any(seen.states.values())


def tour_of(seen: Seen, words: Words) -> Iterator[dict[str, object]]:
    """Yield the first steps of a new operator, until a cluster is joined and a job is submitted."""
    if not is_new(seen):
        return
    yield _step(
        "/settings?section=clusters",
        words("Join a cluster"),
        words("It needs a kubeconfig file. Simulated clusters are enough to try Seaway."),
        command="seaway cluster join --kubeconfig FILE",
        done=bool(seen.clusters),
    )
    if seen.queues is not None:
        text = words("Jobs without a queue go to the queue default. Limits and guarantees of teams need queues.")
        yield _step("/queues", words("Add a queue"), text, done=len(seen.queues.queues) > 1)
    if seen.tokens is not None:
        text = words("Users and programs log in with it. The role user submits jobs of one tenant.")
        done = any(each.role != "admin" for each in seen.tokens.tokens)
        yield _step("/settings?section=tokens", words("Create a token"), text, done=done)
    text = words("The form shows where it would run, and why.")
    yield _step("/submit", words("Submit a first job"), text, done=any(seen.states.values()))


def _step(href: str, title: str, text: str, *, command: str = "", done: bool) -> dict[str, object]:
    return {"href": href, "title": title, "text": text, "command": command, "done": done}


def _states(count: JobCount) -> dict[str, object]:
    listed = [{"state": each, "jobs": count.states[each]} for each in ORDER if count.states.get(each)]
    return {"states": listed, "most": max(count.states.values(), default=0)}


def tiles_of(seen: Seen, words: Words) -> Iterator[dict[str, object]]:
    """Yield the figures at the top of the page."""
    locale, up = words.locale, [each for each in seen.clusters if each.state == "up"]
    unreachable = [each.name for each in seen.clusters if each.state != "up"]
    without = _without(unreachable, words) if unreachable else ""
    hidden_gpus = sum(each.gpus for each in seen.clusters if each.state != "up")
    taking = [each for each in up if not each.cordon]
    number = figures.count(len(up), locale)
    yield _tile("/fleet", words("Clusters up"), number, of=str(len(seen.clusters)))
    nodes, gpus = sum(each.nodes for each in up), sum(each.gpus for each in up)
    yield _tile("/fleet", words("Nodes"), figures.count(nodes, locale), note=without)
    used = sum(each.gpus_used_milli for each in up)
    measured = _measured(seen.history)
    said = "" if measured is None else words("{percent} measured", percent=figures.percent(measured, locale))
    yield _tile(
        "/history",
        words("GPUs in use"),
        figures.whole(used, locale),
        of=figures.count(gpus, locale),
        note=_noted(said, _cost_text(up, words), _hidden_gpus(hidden_gpus, words)),
        share=figures.share(used, 1000 * gpus) if gpus else None,
        line=_line_of(seen.history),
    )
    for label, name, write in (
        (words("GPU cores allocated"), "gpu_milli", figures.whole),
        (words("GPU memory allocated"), "gpu_memory_mib", figures.gib),
    ):
        used, total = _sum(getattr(each, name) for each in up)
        free = words("{free} free", free=write(sum(max(getattr(each, name).free, 0) for each in taking), locale))
        share = figures.share(used, total) if up else None
        figure = "–" if share is None else figures.percent(share, locale)
        yield _tile("/fleet", label, figure, note=_noted(free if up else "", without), share=share)
    jobs = seen.jobs
    if jobs is None:
        return
    starting = sum(jobs.states.get(each, 0) for each in STARTING)
    said = words("{starting} starting", starting=figures.count(starting, locale)) if starting else ""
    out_of_sight = sum(each.jobs for each in seen.clusters if each.state != "up")
    hidden = words("{n} on clusters that do not answer", n=_tasks(out_of_sight, words)) if out_of_sight else ""
    tasks = [
        _tasks(each, words) if each is not None and each != of else ""
        for each, of in ((jobs.running_tasks, jobs.running), (jobs.waiting_tasks, jobs.waiting))
    ]
    active = f"/jobs?{urlencode({'state': [*STARTING, 'running']}, doseq=True)}"
    running, waiting = (figures.count(each, locale) for each in (jobs.running, jobs.waiting))
    yield _tile(active, words("Running jobs"), running, note=_noted(tasks[0], said, hidden))
    yield _tile("/queues", words("Waiting jobs"), waiting, note=tasks[1])


def _tasks(number: int, words: Words) -> str:
    return words("{n:task}", n=number)


def _hidden_gpus(number: int, words: Words) -> str:
    """Return the number of GPUs of clusters that do not answer; empty for none."""
    said = "GPUs on clusters that do not answer: {n}"
    return words(said, n=figures.count(number, words.locale)) if number else ""


@dataclass(slots=True)
class TenantUse:
    """Use of a tenant in all pools.

    Attributes
    ----------
    cost
        Cost of the last 30 days; None if it is unknown.
    """

    name: str
    gpu_milli: int = 0
    waiting: int = 0
    cost: float | None = None


def tenant_uses(totals: Iterable[TenantTotalsOut]) -> list[TenantUse]:
    """Return the tenants that use GPUs, wait or have costs; most GPUs first."""
    found: dict[str, TenantUse] = {}
    for each in totals:
        use = found.setdefault(each.tenant, TenantUse(each.tenant))
        use.gpu_milli += parse_amounts(each.used).get(GPUS, 0)
        use.waiting += each.waiting
        if each.cost and each.cost.cost is not None:
            use.cost = (use.cost or 0) + float(each.cost.cost)
    shown = [each for each in found.values() if each.gpu_milli or each.waiting or each.cost]
    return sorted(shown, key=lambda each: (-each.gpu_milli, each.name))


def cost_per_hour(clusters: Iterable[ClusterOut]) -> tuple[float, int]:
    """Return the cost per hour of the GPUs in use at the mean prices of their clusters, and those without a price."""
    cost, unpriced_milli = 0.0, 0
    for each in clusters:
        priced = [(one.gpus, float(one.price_per_gpu_hour)) for one in each.prices if one.price_per_gpu_hour]
        if gpus := sum(count for count, _ in priced):
            cost += each.gpus_used_milli / 1000 * sum(count * price for count, price in priced) / gpus
        else:
            unpriced_milli += each.gpus_used_milli
    return cost, unpriced_milli


def _cost_text(clusters: Iterable[ClusterOut], words: Words) -> str:
    """Return the cost per hour of the GPUs in use; empty without prices."""
    cost, unpriced = cost_per_hour(clusters)
    if not cost:
        return ""
    said = words("about {cost} an hour", cost=words.money(cost))
    left = figures.whole(unpriced, words.locale)
    return _noted(said, words("without {n} GPUs whose price is unknown", n=left)) if unpriced else said


def _line_of(history: UsageHistoryOut | None) -> str:
    """Return the share of GPUs in use over a day, as points of a line in a box of 100 by 20."""
    series = history.series[0].steps if history and history.series else []
    shares = [step.gpu_milli_used / step.gpu_milli if step.gpu_milli else 0.0 for step in series]
    if len(shares) < MIN_POINTS:
        return ""
    return " ".join(
        f"{100 * at / (len(shares) - 1):.1f},{19 - 18 * min(share, 1):.1f}" for at, share in enumerate(shares)
    )


def _measured(history: UsageHistoryOut | None) -> float | None:
    """Return the measured use of all GPUs in the newest step, percent; None without a measurement."""
    steps = history.series[0].steps if history and history.series else []
    measured = [step for step in steps[-2:] if step.gpu_milli_measured is not None and step.gpu_milli]
    return 100 * (measured[-1].gpu_milli_measured or 0) / measured[-1].gpu_milli if measured else None


def _without(unreachable: list[str], words: Words) -> str:
    """Describe the clusters that are excluded from the sums."""
    if len(unreachable) > 1:
        return words("without {n} clusters that do not answer", n=figures.count(len(unreachable), words.locale))
    return words("without {cluster}, which does not answer", cluster=unreachable[0])


def _tile(
    href: str, label: str, figure: str, *, of: str = "", note: str = "", share: float | None = None, line: str = ""
) -> dict[str, object]:
    return {
        "href": href,
        "label": label,
        "figure": figure,
        "of": of,
        "note": note,
        "share": share,
        "level": "",
        "line": line,
    }


def _noted(*said: str) -> str:
    return " · ".join(each for each in said if each)


def _sum(amounts: Iterator[AmountOut]) -> tuple[int, int]:
    """Return the sums of used and total amounts."""
    listed = list(amounts)
    return sum(each.used for each in listed), sum(each.total for each in listed)
