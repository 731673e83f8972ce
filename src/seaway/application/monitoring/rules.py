"""Rules of alerts: thresholds, periods and durations, most of them as in `deploy/prometheus/rules`."""

from __future__ import annotations

from dataclasses import dataclass

MINUTE_S = 60
HOUR_S = 3600

ANSWERS_S = 7
"""Maximum age in seconds of the last answer of a cluster that answers. One without changes answers each 5 s."""

FAILED_WITHIN_S = 15 * MINUTE_S
"""Period of the failed jobs that count, seconds."""

FAILING_WITHIN_S = 90
"""Period of the database failures that count, seconds.

It is shorter than the required duration of the alert, so that a single failure does not fire it. The Prometheus rule
uses longer periods, since Prometheus may evaluate less often.
"""

SLOW_WITHIN_S = 5 * MINUTE_S
"""Period of the transactions that count, seconds."""

DEPLOYING_WITHIN_S = 15 * MINUTE_S
FEW_DEPLOYMENTS = 3
FAILING_SHARE = 0.2
"""Share of failed deployments within a period above which the alert fires.

A minimum number of failures is required too.
"""

SLOW_SHARE = 0.99
"""Share of transactions that the database has to store within the threshold."""


AT_LIMIT = 0.99
"""Share of a queue's limit that counts as all of it."""

LOSSY_WITHIN_S = 600
"""Period of the mean loss of a link, seconds."""

PREEMPTED_WITHIN_S = HOUR_S
STARTED_WITHIN_S = 6 * HOUR_S
FEW_STARTS = 20
"""Number of expected starts within the period above which their errors count."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Definition of an alert.

    Attributes
    ----------
    name
        Name of the alert in Prometheus, and code of its reason.
    severity
        ``critical``, ``warning`` or ``info``.
    bound
        Threshold of the figure.
    for_s
        Seconds for which the figure has to exceed the threshold.
    of, figure
        Names of the parameters of the reason that have the object and the figure; empty for none. That of a link is
        ``source/target``.
    """

    name: str
    severity: str
    bound: float
    for_s: float
    of: str = ""
    figure: str = ""


NOT_READY = Rule("SeawayNotReady", "critical", 0, 2 * MINUTE_S)
GATEWAY_DEAD = Rule("SeawayGatewayDead", "critical", 1, 2 * MINUTE_S, "gateway")
GATEWAY_FULL = Rule("SeawayGatewayFull", "warning", 0.9, 10 * MINUTE_S, "gateway", "share")
GATEWAY_UNREAD = Rule("SeawayGatewayUnread", "warning", 1, 10 * MINUTE_S, "gateway")
LINK_LOSSY = Rule("SeawayLinkLossy", "warning", 0.02, 5 * MINUTE_S, "source/target", "share")
LOW_UTILISATION = Rule("SeawayLowUtilisation", "info", 50, HOUR_S, "cluster", "percent")
QUEUE_LONG = Rule("SeawayQueueLong", "warning", HOUR_S, 5 * MINUTE_S, "queue", "waited_s")
QUEUE_BELOW_GUARANTEE = Rule("SeawayQueueBelowGuarantee", "warning", 15 * MINUTE_S, 15 * MINUTE_S, "queue", "waited_s")
QUEUE_AT_LIMIT = Rule("SeawayQueueAtLimit", "info", HOUR_S, HOUR_S, "queue", "waited_s")
PREEMPTIONS_MANY = Rule("SeawayPreemptionsMany", "warning", 20, 5 * MINUTE_S, "queue", "count")
START_ESTIMATES_OFF = Rule("SeawayStartEstimatesOff", "info", HOUR_S, 15 * MINUTE_S, "", "off_s")
DEPLOYMENTS_FAIL = Rule("SeawayDeploymentsFail", "warning", FEW_DEPLOYMENTS, 5 * MINUTE_S, "cluster", "count")
DATABASE_FAILS = Rule("SeawayDatabaseFails", "critical", 0, 2 * MINUTE_S, "", "count")
DATABASE_SLOW = Rule("SeawayDatabaseSlow", "warning", 1, 5 * MINUTE_S, "", "takes")
DATABASE_BEHIND = Rule("SeawayDatabaseBehind", "warning", 2000, 2 * MINUTE_S, "", "count")
TASK_FAILS = Rule("SeawayTaskFails", "warning", 0, 10 * MINUTE_S, "task")
STANDBY_MISSING = Rule("SeawayStandbyMissing", "warning", 0, 5 * MINUTE_S, "", "count")
NOTIFICATIONS_DEAD = Rule("SeawayNotificationsDead", "warning", 0, 5 * MINUTE_S, "", "count")

STORE_FAILS = Rule("SeawayStoreFails", "critical", 0, 0)
ROWS_UNREADABLE = Rule("SeawayRowsUnreadable", "warning", 0, 0, "", "count")
CLUSTER_UNREACHABLE = Rule("SeawayClusterUnreachable", "critical", ANSWERS_S, 0, "cluster")
NODES_NOT_READY = Rule("SeawayNodesNotReady", "warning", 0, 0, "cluster", "count")
GPUS_UNHEALTHY = Rule("SeawayGPUsUnhealthy", "warning", 0, 0, "cluster", "count")
AGENT_LOST = Rule("SeawayAgentLost", "warning", 0, 0, "gateway")
JOBS_FAIL = Rule("SeawayJobsFail", "warning", 4, 0, "", "count")

AT_ONCE = (
    STORE_FAILS,
    ROWS_UNREADABLE,
    CLUSTER_UNREACHABLE,
    NODES_NOT_READY,
    GPUS_UNHEALTHY,
    AGENT_LOST,
    JOBS_FAIL,
)
"""Rules that Seaway evaluates every few seconds for its pages. Prometheus requires longer durations of the same."""

OF_SEAWAY = (DATABASE_FAILS, DATABASE_SLOW, DATABASE_BEHIND, STORE_FAILS, ROWS_UNREADABLE, JOBS_FAIL)
"""Rules about the database and the jobs of all tenants, which a single tenant does not see."""

RULES = (
    NOT_READY,
    DATABASE_FAILS,
    GATEWAY_DEAD,
    DATABASE_SLOW,
    DATABASE_BEHIND,
    TASK_FAILS,
    STANDBY_MISSING,
    NOTIFICATIONS_DEAD,
    DEPLOYMENTS_FAIL,
    GATEWAY_FULL,
    GATEWAY_UNREAD,
    LINK_LOSSY,
    QUEUE_LONG,
    QUEUE_BELOW_GUARANTEE,
    PREEMPTIONS_MANY,
    QUEUE_AT_LIMIT,
    START_ESTIMATES_OFF,
    LOW_UTILISATION,
)
"""Rules that Prometheus has too, the most severe first."""

SEVERITIES = ("critical", "warning", "info")
ALL = sorted((*AT_ONCE, *RULES), key=lambda rule: SEVERITIES.index(rule.severity))
"""All rules, the most severe first."""

OF_QUEUES = (QUEUE_LONG, QUEUE_BELOW_GUARANTEE, PREEMPTIONS_MANY, QUEUE_AT_LIMIT)
"""Rules about a single queue."""
