"""Overview: state of the fleet, waiting jobs, and alerts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from nicegui import ui

from seaway.client.calls import fleet, jobs, network, service
from seaway.web import words as figures
from seaway.web.fragment import Fragment
from seaway.web.reasons import ORDER
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.alerts import AlertList, AlertOut
    from seaway.wire.fleet import AmountOut, ClusterList, ClusterOut
    from seaway.wire.job_out import JobCount
    from seaway.wire.network_views import AgentList

WAITING = ("pending", "queued", "preempted")
STARTING = ("scheduled", "deploying")
SLOW_REFRESH_S = 3.0
"""Interval of queries for agents and alerts in seconds. They change every few seconds."""

FRESH_S = 5
"""Maximum age in seconds of a cluster's last answer, up to which the cluster counts as available."""

LEVELS = {"critical": "bad", "warning": "warn", "info": "note"}
"""Style of alerts by severity."""


@dataclass(slots=True)
class Seen:
    """Latest answer of each call."""

    clusters: list[ClusterOut]
    states: dict[str, int]
    agents: AgentList | None = None
    wrong: AlertList | None = None


async def build(visit: Visit) -> None:
    """Build the page."""
    words = visit.words
    seen = Seen([], {})
    tiles = Fragment("tiles", words)
    clusters = Fragment("clusters", words)
    with ui.element("div").classes("halves"):
        panel, states = Fragment("alerts", words), Fragment("job_states", words)

    def draw() -> None:
        tiles.show_of([seen.clusters, seen.states], lambda: {"tiles": list(tiles_of(seen, words))})
        panel.show_of([seen.clusters, seen.agents, seen.wrong], lambda: {"alerts": list(alerts(seen, words))})

    def on_clusters(value: ClusterList) -> None:
        seen.clusters = value.clusters
        clusters.show_of([value], lambda: {"clusters": value.clusters, "fresh_s": FRESH_S})
        draw()

    def on_jobs(value: JobCount) -> None:
        seen.states = value.states
        states.show_of([value], lambda: _states(value))
        draw()

    def on_agents(value: AgentList) -> None:
        seen.agents = value
        draw()

    def on_wrong(value: AlertList) -> None:
        seen.wrong = value
        draw()

    await visit.follow(fleet.clusters(), on_clusters)
    await visit.follow(jobs.count(), on_jobs)
    await visit.follow(network.agents(), on_agents, SLOW_REFRESH_S)
    await visit.follow(service.alerts(), on_wrong, SLOW_REFRESH_S)


def _states(count: JobCount) -> dict[str, object]:
    listed = [{"state": each, "jobs": count.states[each]} for each in ORDER if count.states.get(each)]
    return {"states": listed, "most": max(count.states.values(), default=0)}


def tiles_of(seen: Seen, words: Words) -> Iterator[dict[str, object]]:
    """Yield the figures at the top of the page."""
    locale, up = words.locale, [each for each in seen.clusters if each.state == "up"]
    unreachable = [each.name for each in seen.clusters if each.state != "up"]
    without = _without(unreachable, words) if unreachable else ""
    taking = [each for each in up if not each.cordon]
    number = figures.count(len(up), locale)
    yield _tile("/fleet", words("Clusters up"), number, of=str(len(seen.clusters)))
    nodes, gpus = sum(each.nodes for each in up), sum(each.gpus for each in up)
    said = words("{gpus} GPUs", gpus=figures.count(gpus, locale))
    yield _tile("/fleet", words("Nodes"), figures.count(nodes, locale), note=_noted(said, without))
    for label, name, write in (
        (words("GPU cores allocated"), "gpu_milli", figures.whole),
        (words("GPU memory allocated"), "gpu_memory_mib", figures.gib),
    ):
        used, total = _sum(getattr(each, name) for each in up)
        free = words("{free} free", free=write(sum(max(getattr(each, name).free, 0) for each in taking), locale))
        share = figures.share(used, total) if up else None
        figure = "–" if share is None else figures.percent(share, locale)
        yield _tile("/fleet", label, figure, note=_noted(free if up else "", without), share=share)
    waiting, starting = (sum(seen.states.get(each, 0) for each in which) for which in (WAITING, STARTING))
    said = words("{starting} starting", starting=figures.count(starting, locale))
    running = figures.count(seen.states.get("running", 0), locale)
    out_of_sight = sum(each.jobs for each in seen.clusters if each.state != "up")
    hidden = words("{n} without answers", n=figures.count(out_of_sight, locale)) if out_of_sight else ""
    yield _tile("/jobs?state=running", words("Running jobs"), running, note=_noted(said, hidden))
    yield _tile("/queues", words("Waiting jobs"), figures.count(waiting, locale))


def _without(unreachable: list[str], words: Words) -> str:
    """Describe the clusters that are excluded from the sums."""
    if len(unreachable) > 1:
        return words("without {n} clusters that do not answer", n=figures.count(len(unreachable), words.locale))
    return words("without {cluster}, which does not answer", cluster=unreachable[0])


def _tile(
    href: str, label: str, figure: str, *, of: str = "", note: str = "", share: float | None = None
) -> dict[str, object]:
    return {"href": href, "label": label, "figure": figure, "of": of, "note": note, "share": share}


def _noted(*said: str) -> str:
    return " · ".join(each for each in said if each)


def _sum(amounts: Iterator[AmountOut]) -> tuple[int, int]:
    """Return the sums of used and total amounts."""
    listed = list(amounts)
    return sum(each.used for each in listed), sum(each.total for each in listed)


def alerts(seen: Seen, words: Words) -> Iterator[dict[str, str]]:
    """Yield the problems, the worst first."""
    for each in sorted(seen.clusters, key=lambda cluster: cluster.state != "lost"):
        if each.state != "up":
            level = "bad" if each.state in ("lost", "gone") else "warn"
            what = words("{cluster} is {state}", cluster=each.name, state=words(each.state))
            yield _alert(level, what, _fleet_of(each.name), each.unreachable_reason)
    wrong = seen.wrong.alerts if seen.wrong else ()
    yield from (_past(each, words) for each in wrong if each.severity != "info")
    for agent in seen.agents.agents if seen.agents else ():
        if agent.state == "lost":
            what = words("The agent of {gateway} does not report", gateway=agent.gateway)
            yield _alert("warn", what, "/network", agent.last_error)
    yield from (_past(each, words) for each in wrong if each.severity == "info")
    for each in seen.clusters:
        if each.orphans:
            what = words("{cluster} has {n} orphaned workloads", cluster=each.name, n=len(each.orphans))
            yield _alert("note", what, _fleet_of(each.name))
        if each.cordon:
            yield _alert(
                "note",
                words("{cluster} accepts no new jobs", cluster=each.name),
                _fleet_of(each.name),
                each.cordon.reason,
            )


def _past(alert: AlertOut, words: Words) -> dict[str, str]:
    locale, of = words.locale, alert.of
    number, href, why = figures.count(alert.value, locale), "/settings", ""
    match alert.name:
        case "SeawayNotReady":
            what, href = words("No job has been placed for 2 minutes"), "/settings?section=server"
        case "SeawayDatabaseFails":
            what = words("The database has failed {n} times within 90 seconds", n=number)
        case "SeawayDatabaseSlow":
            seconds = figures.whole(1000 * alert.value, locale)
            what = words("1 % of database changes take {seconds} s or longer", seconds=seconds)
        case "SeawayDatabaseBehind":
            what = words("{n} changes are waiting to be stored", n=number)
        case "SeawayTaskFails":
            what = words("The scheduled task {task} has failed for 10 minutes", task=of)
        case "SeawayStandbyMissing":
            what, href = words("{n} services have no standby that could take over", n=number), "/jobs"
        case "SeawayNotificationsDead":
            what = words("{n} messages of notifications are not delivered", n=number)
            href = "/settings?section=notifications"
        case "SeawayDeploymentsFail":
            what = words("{n} deployments in {cluster} failed within 15 minutes", n=number, cluster=of)
            href = f"/jobs?cluster={quote(of)}"
        case "SeawayLowUtilisation":
            percent = figures.percent(alert.value, locale)
            what = words("Only {percent} of the GPU cores of {cluster} are allocated", percent=percent, cluster=of)
            href, why = _fleet_of(of), words("for more than an hour")
        case _:
            what, href = _past_of_queues(alert, words) or _past_of_the_network(alert, words)
    return _alert(LEVELS[alert.severity], what, href, why)


def _past_of_queues(alert: AlertOut, words: Words) -> tuple[str, str] | None:
    """Describe an alert of queues, and return the address of its page; None for other alerts."""
    long, queue = figures.duration(alert.value, words.locale), alert.of
    match alert.name:
        case "SeawayQueueLong":
            what = words("A job has waited in queue {queue} for {long}", queue=queue, long=long)
        case "SeawayQueueBelowGuarantee":
            what = words(
                "Queue {queue} has less than its guarantee. A job has waited for {long}", queue=queue, long=long
            )
        case "SeawayQueueAtLimit":
            what = words("Queue {queue} uses its limit of GPUs. A job has waited for {long}", queue=queue, long=long)
        case "SeawayPreemptionsMany":
            number = figures.count(alert.value, words.locale)
            what = words("{n} jobs of queue {queue} were preempted within an hour", n=number, queue=queue)
        case "SeawayStartEstimatesOff":
            return words("Half of the expected starts are off by more than {long}", long=long), "/schedule"
        case _:
            return None
    return what, f"/queues?queue={quote(queue)}"


def _past_of_the_network(alert: AlertOut, words: Words) -> tuple[str, str]:
    """Describe an alert of a gateway or link, and return the address of its page."""
    percent, of, href = figures.percent(100 * alert.value, words.locale), alert.of, "/network"
    match alert.name:
        case "SeawayGatewayDead":
            return words("Gateway {gateway} does not answer", gateway=of), href
        case "SeawayGatewayFull":
            return words("The interface of gateway {gateway} is {percent} full", gateway=of, percent=percent), href
        case "SeawayGatewayUnread":
            return words("The interface of gateway {gateway} cannot be read", gateway=of), href
        case "SeawayLinkLossy":
            source, _, target = of.partition("/")
            ends = {"source": source, "target": target}
            said = words("The link from {source} to {target} loses {percent}", percent=percent, **ends)
            return said, f"{href}/{quote(source)}/{quote(target)}"
        case _:
            return f"{alert.name} {of}", "/settings"


def _alert(level: str, what: str, href: str, why: str = "") -> dict[str, str]:
    return {"level": level, "what": what, "why": why, "href": href}


def _fleet_of(cluster: str) -> str:
    return f"/fleet?cluster={quote(cluster)}"
