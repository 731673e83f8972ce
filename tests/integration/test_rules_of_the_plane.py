"""The alerts of clusters, queues, the control plane and its database, as evaluated by Prometheus."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.test_rules import RULES, try_out

pytestmark = pytest.mark.programs("promtool")

PREFIX = "seaway_transaction_seconds_bucket"


def alerts() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return every shipped alert, and its file, by name."""
    return {
        rule["alert"]: (path.name, rule)
        for path in RULES.glob("*.yml")
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    }


def fires(
    folder: Path,
    name: str,
    series: dict[str, str],
    *,
    at: str,
    not_at: str,
    every: str = "1m",
    **reported: tuple[str, dict[str, str]],
) -> None:
    """Check that an alert fires at a time, for exactly the given labels, and not before.

    Parameters
    ----------
    series
        Values in promtool's notation, one for each scrape.
    reported
        The summary of each alert, and its labels besides the severity.
    """
    file, rule = alerts()[name]
    expected = [
        {
            "exp_labels": {**labels, **rule["labels"]},
            "exp_annotations": {"summary": summary, "description": rule["annotations"]["description"]},
        }
        for summary, labels in reported.values()
    ]
    for each in expected:  # the description names its labels
        for label, value in each["exp_labels"].items():
            said = each["exp_annotations"]["description"]
            each["exp_annotations"]["description"] = said.replace(f"{{{{ $labels.{label} }}}}", value)
    test = {
        "interval": every,
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "alert_rule_test": [
            {"eval_time": not_at, "alertname": name, "exp_alerts": []},
            {"eval_time": at, "alertname": name, "exp_alerts": expected},
        ],
    }
    try_out(folder, file, yaml.safe_dump([test], width=1000))


def seen_to_fire() -> Iterator[str]:
    """Yield the alerts that tests here expect, from the arguments of `fires` and `try_out`."""
    for path in Path(__file__).parent.glob("test_rules*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            texts = [str(each.value) for each in call.args if isinstance(each, ast.Constant)]
            if call.func.id == "fires" and {each.arg for each in call.keywords} - {"at", "not_at", "every"}:
                yield from texts[:1]  # none if the name is a parameter
            if call.func.id == "try_out" and len(texts) > 1:
                for test in yaml.safe_load(texts[1]):
                    yield from (each["alertname"] for each in test.get("alert_rule_test", ()) if each["exp_alerts"])


def test_every_alert_has_a_test() -> None:
    """Every shipped alert has a test in which it fires: its name or a test without an alert is not enough."""
    assert set(seen_to_fire()) == alerts().keys()


def test_a_cluster_that_is_unreachable_is_informed_of(tmp_path: Path) -> None:
    """The alert fires after a minute, and one more; an answer in between prevents it."""
    fires(
        tmp_path,
        "SeawayClusterStale",
        {
            'seaway_cluster_last_seen_seconds{cluster="a"}': "0+60x10",
            'seaway_cluster_last_seen_seconds{cluster="b"}': "0 60 120 0 60 0x10",
        },
        not_at="2m",
        at="4m",
        a=("The state of cluster a is 4m 0s old", {"cluster": "a"}),
    )


def test_a_cluster_that_is_hardly_used_is_informed_of_after_an_hour(tmp_path: Path) -> None:
    """The alert needs less than half of its cores and of its memory for an hour; a peak in between restarts it."""
    fires(
        tmp_path,
        "SeawayLowUtilisation",
        {
            'ClusterGPUCorePercentage{cluster="a"}': "12.5x90",
            'ClusterGPUCorePercentage{cluster="b"}': "12.5x30 60 12.5x60",
            'ClusterGPUCorePercentage{cluster="c"}': "50x90",
            'ClusterGPUCorePercentage{cluster="d"}': "0x90",
            'ClusterGPUMemoryPercentage{cluster="a"}': "3x90",
            'ClusterGPUMemoryPercentage{cluster="d"}': "80x90",
        },
        not_at="59m",
        at="61m",
        a=("Only 12.5 % of the GPU cores and memory of a are allocated", {"cluster": "a"}),
    )


@pytest.mark.parametrize("nodes", [True, False])
def test_nodes_and_gpus_that_are_out_of_order_are_reported(nodes: bool, tmp_path: Path) -> None:
    """After five minutes, by cluster. A reboot is no alert, and of a cluster that does not answer nothing is known."""
    series = "seaway_nodes_not_ready" if nodes else "seaway_gpus_unhealthy"
    reported = {
        f'{series}{{cluster="a"}}': "0x2 3x20",
        f'{series}{{cluster="b"}}': "0x2 1x4 0x20",
        f'{series}{{cluster="c"}}': "3x20",
        'seaway_cluster_last_seen_seconds{cluster="a"}': "1x20",
        'seaway_cluster_last_seen_seconds{cluster="c"}': "500x20",
    }
    if nodes:
        says = ("3 nodes of a are not ready", {"cluster": "a"})
        fires(tmp_path, "SeawayNodesNotReady", reported, not_at="7m", at="9m", a=says)
    else:
        says = ("3 GPUs of a are unhealthy", {"cluster": "a"})
        fires(tmp_path, "SeawayGPUsUnhealthy", reported, not_at="7m", at="9m", a=says)


def test_many_failed_jobs_are_reported(tmp_path: Path) -> None:
    """Of each Seaway; a few failures are no alert, and it ends a quarter of an hour after the last."""
    many = f'seaway_jobs_reached_total{{state="failed", {OURS[0]}}}'
    few = f'seaway_jobs_reached_total{{state="failed", {OTHER}}}'
    series = {many: "0x10 6x50", few: "0x10 3x50", f'seaway_jobs_reached_total{{state="completed", {OTHER}}}': "0+9x60"}
    says = "6 jobs failed within 15 minutes"
    fires(tmp_path, "SeawayJobsFail", series, not_at="11m", at="20m", it=(says, CALLED))
    fires(tmp_path, "SeawayJobsFail", series, not_at="9m", at="40m")


def test_a_database_that_stores_nothing_is_reported(tmp_path: Path) -> None:
    """After two minutes, while the process answers."""
    series = {f"seaway_store_failing{{{each}}}": "0x5 1x20" for each in OURS[:1]}
    says = "The database has stored no changes for 2 minutes"
    fires(tmp_path, "SeawayStoreFails", series, not_at="7m", at="9m", it=(says, CALLED))


def test_deployments_that_come_to_nothing_are_informed_of(tmp_path: Path) -> None:
    """The alert needs more than a few and more than a fifth of a cluster's deployments, whatever their outcome."""
    of = "seaway_deployments_total"
    fires(
        tmp_path,
        "SeawayDeploymentsFail",
        {
            f'{of}{{cluster="a", outcome="running"}}': "0+1x40",
            f'{of}{{cluster="a", outcome="refused"}}': "0x15 0+1x25",
            f'{of}{{cluster="b", outcome="running"}}': "0+9x40",
            f'{of}{{cluster="b", outcome="late"}}': "0x15 0+1x25",
            f'{of}{{cluster="c", outcome="failed"}}': "0x15 0 1 2x40",
        },
        not_at="20m",
        at="31m",
        a=("15 deployments in a failed within 15 minutes", {"cluster": "a"}),
    )


def test_deployments_are_counted_in_whole_numbers(tmp_path: Path) -> None:
    """However samples are placed in the window, the text has whole numbers of deployments."""
    of = "seaway_deployments_total"
    fires(
        tmp_path,
        "SeawayDeploymentsFail",
        {
            f'{of}{{cluster="a", outcome="running"}}': "0x300",
            f'{of}{{cluster="a", outcome="refused"}}': "0x50 0+1x15 15x100",
        },
        every="17s",
        not_at="15m",
        at="22m",
        a=("15 deployments in a failed within 15 minutes", {"cluster": "a"}),
    )


PLACES = {
    "SeawayClusterStale": {'seaway_cluster_last_seen_seconds{cluster="a"': "500x90"},
    "SeawayQueueLong": {'seaway_queue_longest_wait_seconds{queue="batch"': "4000x90"},
    "SeawayAgentSilent": {'seaway_agent_last_seen_seconds{gateway="gw-1"': "500x90"},
    "SeawayGatewayUnread": {'seaway_gateway_scrape_failed{gateway="gw-1"': "1x90"},
    "SeawayGatewayFull": {
        'seaway_gateway_used_mbps{gateway="gw-1", direction="in"': "99x90",
        'seaway_gateway_speed_mbps{gateway="gw-1"': "100x90",
    },
    "SeawayLinkLossy": {'UserToClusterPacketLoss{source="gw-4", target="gw-1", site="x", cluster="a"': "0.5x90"},
    "SeawayDatabaseBehind": {"seaway_changes_waiting{": "9000x90"},
    "SeawayNotReady": {"seaway_ready{": "0x90"},
}
"""Series of alerts, up to the label of the target."""


@pytest.mark.parametrize("name", PLACES)
def test_another_replica_that_takes_over_pages_no_one_again(name: str, tmp_path: Path) -> None:
    """When another process takes over with the same problem, the alert continues without a new notification."""
    series = {}
    for each, values in PLACES[name].items():
        value, times = values.split("x")
        start = each if each.endswith("{") else f"{each}, "
        series[f'{start}instance="one", pod="a-1"}}'] = f"{value}x30 stale"
        series[f'{start}instance="two", pod="a-2"}}'] = f"_x30 {value}x{times}"
    test = {
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}})',
                "eval_time": at,
                "exp_samples": [{"labels": "{}", "value": 1}],
            }
            for at in ("29m", "31m", "32m", "60m")
        ],
    }
    try_out(tmp_path, alerts()[name][0], yaml.safe_dump([test], width=1000))


def test_a_long_wait_is_informed_of(tmp_path: Path) -> None:
    """The alert fires when a user has waited for more than an hour, by queue."""
    fires(
        tmp_path,
        "SeawayQueueLong",
        {
            'seaway_queue_longest_wait_seconds{queue="batch"}': "0+60x80",
            'seaway_queue_longest_wait_seconds{queue="quick"}': "0+60x50 0x40",
        },
        not_at="64m",
        at="66m",
        batch=("A job has waited in queue batch for 1h 6m 0s", {"queue": "batch"}),
    )


def test_a_seaway_that_is_not_there_is_informed_of(tmp_path: Path) -> None:
    """The alert fires when no process answers: of several, one is enough."""
    fires(
        tmp_path,
        "SeawayDown",
        {'up{job="seaway", instance="one"}': "1x3 0x10", 'up{job="seaway", instance="two"}': "0x20"},
        not_at="5m",
        at="7m",
        it=("Seaway has not answered Prometheus for 2 minutes", {"job": "seaway"}),
    )


def test_a_seaway_that_places_nothing_is_informed_of(tmp_path: Path) -> None:
    """A start within two minutes is no alert."""
    fires(
        tmp_path,
        "SeawayNotReady",
        {'seaway_ready{instance="one"}': "0 1x5 0x10"},
        not_at="7m",
        at="9m",
        it=("Seaway has placed no job for 2 minutes", {}),
    )


def in_a_namespace(name: str, pod: str) -> str:
    """Return the labels that Prometheus' operator adds to Seaway's series of a pod."""
    return f'job="seaway", namespace="{name}", pod="{pod}", instance="{pod}:8080"'


OTHER, OURS = in_a_namespace("other", "a-1"), (in_a_namespace("ours", "b-1"), in_a_namespace("ours", "b-2"))
CALLED = {"job": "seaway", "namespace": "ours"}
MATTERS = {
    "SeawayDown": ("up{%s}", "1", "0", "Seaway has not answered Prometheus for 2 minutes"),
    "SeawayNotReady": ("seaway_ready{%s}", "1", "0", "Seaway has placed no job for 2 minutes"),
    "SeawayDatabaseBehind": ("seaway_changes_waiting{%s}", "0", "5001", "5001 changes are waiting to be stored"),
}
"""Series that show a failure of Seaway, with a good and a bad value."""


@pytest.mark.parametrize("name", MATTERS)
def test_one_seaway_does_not_answer_for_another(name: str, tmp_path: Path) -> None:
    """A working Seaway in one namespace does not hide a failed one in another, which the alert names."""
    series, well, ill, says = MATTERS[name]
    reported = {series % OTHER: f"{well}x60", **{series % each: f"{well}x10 {ill}x50" for each in OURS}}
    fires(tmp_path, name, reported, not_at="10m", at="14m", it=(says, CALLED))


def test_a_seaway_whose_targets_are_gone_is_informed_of_beside_another(tmp_path: Path) -> None:
    """It fires for an hour, as it may be gone permanently; a replica that goes while another is up is no alert."""
    says = "Seaway has not answered Prometheus for 2 minutes"
    series = {f"up{{{OTHER}}}": "1x120", f"up{{{OURS[0]}}}": "1x5 stale", f"up{{{OURS[1]}}}": "_x4 1x6 stale"}
    fires(tmp_path, "SeawayDown", series, not_at="12m", at="14m", it=(says, CALLED))
    fires(tmp_path, "SeawayDown", series, not_at="9m", at="75m")


@pytest.mark.parametrize("name", ["SeawayDown", "SeawayNotReady"])
def test_a_replica_that_stands_by_is_no_alert(name: str, tmp_path: Path) -> None:
    """Of the replicas of one Seaway, the leader is enough."""
    series, well, ill, _ = MATTERS[name]
    reported = {series % each: f"{value}x60" for each, value in zip(OURS, (well, ill), strict=True)}
    fires(tmp_path, name, reported, not_at="5m", at="30m")


def test_a_slow_database_is_not_hidden_by_a_busier_one(tmp_path: Path) -> None:
    """Each Seaway's transactions count separately."""
    many = {f'{PREFIX}{{{OTHER}, le="{le}"}}': "0+9000x30" for le in ("1", "2.5", "+Inf")}
    few = {f'{PREFIX}{{{OURS[0]}, le="{le}"}}': f"0+{rise}x30" for le, rise in (("1", 1), ("2.5", 10), ("+Inf", 10))}
    says = "1 % of transactions take 2.483s or longer"
    fires(tmp_path, "SeawayDatabaseSlow", {**many, **few}, not_at="4m", at="20m", it=(says, CALLED))


def test_a_database_that_fails_is_informed_of_by_namespace(tmp_path: Path) -> None:
    """The alert names the namespace."""
    both = {f"seaway_{what}_failures_total{{{each}}}": "0x60" for what in ("transaction", "loop") for each in OURS}
    ill = f"seaway_loop_failures_total{{{OURS[1]}}}"
    says = "The database fails: 4 times within 4 minutes, for 5 minutes"
    fires(tmp_path, "SeawayDatabaseFails", {**both, ill: "0x10 0+1x40"}, not_at="10m", at="25m", it=(says, CALLED))


def test_figures_of_one_seaway_are_not_seen_for_another(tmp_path: Path) -> None:
    """A Seaway with series does not hide one in another namespace without them."""
    says = "Seaway has answered Prometheus for 10 minutes without its readiness"
    series = {f"up{{{each}}}": "1x60" for each in (OTHER, *OURS)}
    series[f"seaway_ready{{{OTHER}}}"] = "1x60"
    fires(tmp_path, "SeawayHalfSeen", series, not_at="9m", at="12m", it=(says, CALLED))
    fires(tmp_path, "SeawayHalfSeen", {**series, f"seaway_ready{{{OURS[0]}}}": "0x60"}, not_at="9m", at="30m")


def test_figures_that_prometheus_may_not_see_are_informed_of(tmp_path: Path) -> None:
    """The alert fires if Seaway answers without series of its own; if it does not answer, that is another alert."""
    fires(
        tmp_path,
        "SeawayHalfSeen",
        {
            'up{job="seaway", instance="one"}': "0x15 1x30",
            'up{job="seaway", instance="two"}': "0x15 1x30",
            'seaway_cluster_last_seen_seconds{cluster="a"}': "0x45",
        },
        not_at="15m",
        at="27m",
        it=("Seaway has answered Prometheus for 10 minutes without its readiness", {"job": "seaway"}),
    )


def test_figures_that_one_of_several_tells_are_enough(tmp_path: Path) -> None:
    """One process with access to everything has the series that the alerts need, ready or not."""
    fires(
        tmp_path,
        "SeawayHalfSeen",
        {
            'up{job="seaway", instance="one"}': "1x30",
            'up{job="seaway", instance="two"}': "1x30",
            'seaway_ready{instance="one"}': "0x30",
        },
        not_at="5m",
        at="25m",
    )


@pytest.mark.parametrize("interval_s", [15, 30, 60, 120])
def test_a_database_that_fails_is_informed_of(interval_s: int, tmp_path: Path) -> None:
    """With any scrape interval up to two minutes, failed changes and failed reads fire the alert.

    An earlier failure is no alert, and a few minutes after the last one the alert ends.
    """
    before, during, after = 600 // interval_s, 480 // interval_s, 1200 // interval_s
    of = f"0x{before} 1+1x{during - 1} {during}x{after}"
    series = {
        'seaway_transaction_failures_total{instance="one"}': of,
        'seaway_loop_failures_total{instance="one"}': f"0x{before + during + after}",
        'seaway_transaction_failures_total{instance="two"}': f"7x{before + during + after}",
        'seaway_loop_failures_total{instance="two"}': f"7x{before + during + after}",
    }
    counted = 240 // interval_s
    it: tuple[str, dict[str, str]] = (f"The database fails: {counted} times within 4 minutes, for 5 minutes", {})
    fires(tmp_path, "SeawayDatabaseFails", series, every=f"{interval_s}s", not_at="10m", at="18m", it=it)
    fires(tmp_path, "SeawayDatabaseFails", series, every=f"{interval_s}s", not_at="14m", at="24m")


def test_failures_of_a_database_are_counted_in_whole_numbers(tmp_path: Path) -> None:
    """However samples are placed in the window, and whichever of the two counts them, numbers are whole."""
    fires(
        tmp_path,
        "SeawayDatabaseFails",
        {
            "seaway_transaction_failures_total": "0x10 2x10 2+1x20 22x20",
            "seaway_loop_failures_total": "0x10 1x10 1x30",
        },
        every="17s",
        not_at="5m",
        at="11m",
        it=("The database fails: 14 times within 4 minutes, for 5 minutes", {}),
    )


@pytest.mark.parametrize("interval_s", [15, 60, 120])
def test_a_database_that_failed_and_does_again_what_it_should_is_no_alert(interval_s: int, tmp_path: Path) -> None:
    """A single restart of the database, with a few failures, never pages."""
    failures = {f"seaway_{what}_failures_total": f"0x{240 // interval_s} 2x40" for what in ("transaction", "loop")}
    for minutes in range(3, 13):
        not_at, at = f"{minutes}m", f"{minutes}m30s"
        fires(tmp_path, "SeawayDatabaseFails", failures, every=f"{interval_s}s", not_at=not_at, at=at)


def test_damaged_rows_are_reported(tmp_path: Path) -> None:
    """The alert has the number of rows that are left out."""
    fires(
        tmp_path,
        "SeawayRowsUnreadable",
        {"seaway_unreadable_rows": "0x2 2x20"},
        not_at="3m",
        at="6m",
        it=("2 rows of the database cannot be read", {}),
    )


def test_a_slow_database_is_informed_of(tmp_path: Path) -> None:
    """The slowest hundredth of its transactions counts."""
    fires(
        tmp_path,
        "SeawayDatabaseSlow",
        {
            f'{PREFIX}{{le="0.25"}}': "0+100x5 500+90x20",
            f'{PREFIX}{{le="1"}}': "0+100x5 500+90x20",
            f'{PREFIX}{{le="2.5"}}': "0+100x25",
            f'{PREFIX}{{le="+Inf"}}': "0+100x25",
        },
        not_at="9m",
        at="20m",
        it=("1 % of transactions take 2.35s or longer", {}),
    )


def test_a_database_that_falls_behind_is_informed_of(tmp_path: Path) -> None:
    """The alert fires when the queue of writes grows, not for a short peak."""
    fires(
        tmp_path,
        "SeawayDatabaseBehind",
        {
            'seaway_changes_waiting{instance="one"}': "5001x10",
            'seaway_changes_waiting{instance="two"}': "0 5000 0x10",
        },
        not_at="1m",
        at="3m",
        it=("5001 changes are waiting to be stored", {}),
    )


def test_missing_standbys_are_reported(tmp_path: Path) -> None:
    """The alert has the number of services without a standby, after five minutes."""
    fires(
        tmp_path,
        "SeawayStandbyMissing",
        {"seaway_standbys_missing": "0 2x20"},
        not_at="5m",
        at="7m",
        it=("2 services have no standby that could take over", {}),
    )


def test_dead_letters_are_reported(tmp_path: Path) -> None:
    """The alert has the number of messages that are not delivered."""
    fires(
        tmp_path,
        "SeawayNotificationsDead",
        {"seaway_notifications_dead": "0 3x20"},
        not_at="5m",
        at="7m",
        it=("3 messages of notifications are not delivered", {}),
    )


def test_a_scheduled_task_that_keeps_failing_is_reported(tmp_path: Path) -> None:
    """The alert names the task, and a single failure does not fire it."""
    fires(
        tmp_path,
        "SeawayTaskFails",
        {'seaway_task_failing{task="prune"}': "1x20", 'seaway_task_failing{task="backup"}': "1x8 0x12"},
        not_at="9m",
        at="11m",
        it=("The scheduled task prune has failed for 10 minutes", {"task": "prune"}),
    )
