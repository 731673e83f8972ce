"""Answers that the overview shows, and the texts and links of its alerts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from seaway.web import words as figures
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.alerts import AlertList, AlertOut
    from seaway.wire.fleet import ClusterOut, UsageHistoryOut
    from seaway.wire.job_out import JobCount
    from seaway.wire.network_views import AgentList
    from seaway.wire.queues import QueueList
    from seaway.wire.tokens import TokenList

FRESH_S = 5
"""Maximum age in seconds of a cluster's last answer, up to which the cluster counts as available."""

ANSWERS_S = 7
"""Maximum age in seconds of the last answer of a cluster that answers."""

CLUSTER_UNREACHABLE, AGENT_LOST = "SeawayClusterUnreachable", "SeawayAgentLost"
"""Alerts that the page reports sooner, from the states of clusters and agents."""

QUARTER_MIN = 15
"""Period of the failed jobs of an alert, minutes."""

NAMED_NODES = 3
"""Maximum number of nodes that an alert names."""

LEVELS = {"critical": "bad", "warning": "warn", "info": "note"}
"""Style of alerts by severity."""


@dataclass(slots=True)
class Seen:
    """Latest answer of each call.

    Attributes
    ----------
    failed, late
        Jobs that failed within a day, and waiting jobs that were submitted more than an hour ago.
    """

    clusters: list[ClusterOut]
    states: dict[str, int]
    agents: AgentList | None = None
    wrong: AlertList | None = None
    failed: JobCount | None = None
    late: JobCount | None = None
    queues: QueueList | None = None
    tokens: TokenList | None = None
    history: UsageHistoryOut | None = None


def answers(cluster: ClusterOut) -> bool:
    """Report whether a cluster has answered within the last seconds."""
    return cluster.state == "up" and cluster.last_seen_s <= ANSWERS_S


def minutes_ago(minutes: int) -> str:
    """Return the time so many minutes ago, to the minute, so that visitors share queries."""
    at = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=minutes)
    return at.isoformat()


def alerts(seen: Seen, words: Words) -> list[dict[str, str]]:
    """Return the problems, the worst first, and acknowledged ones last."""
    return sorted(_problems(seen, words), key=lambda each: bool(each["by"]))


def texts(alerts: AlertList, words: Words) -> list[dict[str, str]]:
    """Return the texts and addresses of firing alerts of rules, acknowledged ones last."""
    return sorted((_past(each, words) for each in alerts.alerts), key=lambda each: bool(each["by"]))


def _problems(seen: Seen, words: Words) -> Iterator[dict[str, str]]:
    wrong = seen.wrong.alerts if seen.wrong else []
    known = {(each.name, each.of): _known(each) for each in wrong}
    for each in sorted(seen.clusters, key=lambda cluster: cluster.state != "lost"):
        if not answers(each):
            level = "bad" if each.state in ("lost", "gone") else "warn"
            what = words("{cluster} is {state}", cluster=each.name, state=words(each.state))
            if each.state == "up":
                what = words("{cluster} does not answer", cluster=each.name)
            since = (datetime.now(UTC) - timedelta(seconds=each.last_seen_s)).isoformat()
            acknowledged = known.get((CLUSTER_UNREACHABLE, each.name), {})
            yield _alert(level, what, _fleet_of(each.name), words.coded(each)) | acknowledged | {"since": since}
    others = [each for each in wrong if each.name not in (CLUSTER_UNREACHABLE, AGENT_LOST)]
    yield from (_past(each, words) for each in others if each.severity != "info")
    for agent in seen.agents.agents if seen.agents else ():
        if agent.state == "lost":
            what = words("The agent of {gateway} does not report", gateway=agent.gateway)
            yield _alert("warn", what, "/network", agent.last_error) | known.get((AGENT_LOST, agent.gateway), {})
    yield from (_past(each, words) for each in others if each.severity == "info")
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


def _known(alert: AlertOut) -> dict[str, str]:
    """Return the fields of a stored alert: its start, the key to acknowledge it, and who did and when."""
    key, at = f"{alert.name} {alert.of}", alert.acknowledged_at or ""
    return {"since": alert.since, "key": key, "by": alert.acknowledged_by, "at": at}


def _past(alert: AlertOut, words: Words) -> dict[str, str]:
    kinds = (_past_of_faults, _past_of_use, _past_of_seaway, _past_of_queues)
    said = next(filter(None, (describe(alert, words) for describe in kinds)), None)
    what, href, *why = said or _past_of_the_network(alert, words)
    return _alert(LEVELS[alert.severity], what, href, *why) | _known(alert)


def _past_of_faults(alert: AlertOut, words: Words) -> tuple[str, ...] | None:
    """Describe a fault, and return the address of its page, and the reason; None for other alerts."""
    number, of = figures.count(alert.value, words.locale), alert.of
    broken = f"{_fleet_of(of)}&ready=no"
    match alert.name:
        case "SeawayStoreFails":
            what = words("The database does not store changes. New jobs are refused")
            return what, "/settings?section=server", alert.reason
        case "SeawayNodesNotReady":
            return (
                words("Nodes of {cluster} that are not ready: {n}", cluster=of, n=number),
                broken,
                _named(alert, words),
            )
        case "SeawayGPUsUnhealthy":
            return words("Unhealthy GPUs of {cluster}: {n}", cluster=of, n=number), broken, _named(alert, words)
        case "SeawayJobsFail":
            failed = {"state": "failed", "ended_from": minutes_ago(QUARTER_MIN), "sort": "-ended"}
            return words("{n} jobs failed within 15 minutes", n=number), f"/jobs?{urlencode(failed)}"
        case _:
            return None


def _named(alert: AlertOut, words: Words) -> str:
    """Return the names of some affected nodes."""
    names = ", ".join(alert.nodes[:NAMED_NODES])
    return words("{nodes} and others", nodes=names) if len(alert.nodes) > NAMED_NODES else names


def _past_of_use(alert: AlertOut, words: Words) -> tuple[str, ...] | None:
    """Describe an alert of deployments and use, and return the address of its page; None for other alerts."""
    number, of = figures.count(alert.value, words.locale), alert.of
    match alert.name:
        case "SeawayDeploymentsFail":
            what = words("{n} deployments in {cluster} failed within 15 minutes", n=number, cluster=of)
            return what, f"/jobs?cluster={quote(of)}"
        case "SeawayLowUtilisation":
            percent = figures.percent(alert.value, words.locale)
            what = words("Only {percent} of the GPU cores of {cluster} are allocated", percent=percent, cluster=of)
            return what, _fleet_of(of), words("for more than an hour")
        case _:
            return None


def _past_of_seaway(alert: AlertOut, words: Words) -> tuple[str, ...] | None:
    """Describe an alert of Seaway itself, and return the address of its page; None for other alerts."""
    number = figures.count(alert.value, words.locale)
    match alert.name:
        case "SeawayNotReady":
            return words("No job has been placed for 2 minutes"), "/settings?section=server"
        case "SeawayDatabaseFails":
            what = words("The database has failed {n} times within 90 seconds", n=number)
        case "SeawayDatabaseSlow":
            seconds = figures.whole(1000 * alert.value, words.locale)
            what = words("1 % of database changes take {seconds} s or longer", seconds=seconds)
        case "SeawayDatabaseBehind":
            what = words("{n} changes are waiting to be stored", n=number)
        case "SeawayTaskFails":
            what = words("The scheduled task {task} has failed for 10 minutes", task=alert.of)
        case "SeawayStandbyMissing":
            return words("{n} services have no standby that could take over", n=number), "/jobs"
        case "SeawayNotificationsDead":
            what = words("{n} messages of notifications are not delivered", n=number)
            return what, "/settings?section=notifications"
        case _:
            return None
    return what, "/settings"


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
    return {"level": level, "what": what, "why": why, "href": href, "since": "", "key": "", "by": "", "at": ""}


def _fleet_of(cluster: str) -> str:
    return f"/fleet?cluster={quote(cluster)}"
