"""Answers that the overview shows, and the texts and links of its alerts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

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

PAGES = {
    "SeawayStoreFails": "/settings?section=server",
    "SeawayRowsUnreadable": "/settings?section=server",
    "SeawayNotReady": "/settings?section=server",
    "SeawayNotificationsDead": "/settings?section=notifications",
    "SeawayStandbyMissing": "/jobs",
    "SeawayStartEstimatesOff": "/schedule",
}
"""Pages of alerts that are about no cluster, queue or gateway, other than the settings."""

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
    jobs: JobCount | None = None
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
            what = words("{cluster} has {n:orphaned workload}", cluster=each.name, n=len(each.orphans))
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
    return _alert(LEVELS[alert.severity], words.coded(alert), _address(alert)) | _known(alert)


def _address(alert: AlertOut) -> str:
    """Return the address of the page of what an alert is about."""
    of = {name: quote(str(value)) for name, value in alert.reason.params.items()}
    match alert.name:
        case "SeawayNodesNotReady" | "SeawayGPUsUnhealthy":
            return f"{_fleet_of(alert.of)}&ready=no"
        case "SeawayJobsFail":
            failed = {"state": "failed", "ended_from": minutes_ago(QUARTER_MIN), "sort": "-ended"}
            return f"/jobs?{urlencode(failed)}"
        case "SeawayDeploymentsFail":
            return f"/jobs?cluster={of['cluster']}"
    match of:
        case {"cluster": cluster}:
            page = f"/fleet?cluster={cluster}"
        case {"queue": queue}:
            page = f"/queues?queue={queue}"
        case {"source": source, "target": target}:
            page = f"/network/{source}/{target}"
        case _:
            page = "/network" if "gateway" in of else PAGES.get(alert.name, "/settings")
    return page


def _alert(level: str, what: str, href: str, why: str = "") -> dict[str, str]:
    return {"level": level, "what": what, "why": why, "href": href, "since": "", "key": "", "by": "", "at": ""}


def _fleet_of(cluster: str) -> str:
    return f"/fleet?cluster={quote(cluster)}"
