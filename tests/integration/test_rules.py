"""The shipped alerts fire when they should and not before, as evaluated by Prometheus.

Debian has it: ``apt-get install prometheus``.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from dashboards.every import DASHBOARDS
from dashboards.language import Language
from tests.unit.dashboards.asked import asked

pytestmark = pytest.mark.programs("promtool")

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "rules"

TIMEOUT_S = 30


def try_out(folder: Path, file: str, text: str) -> None:
    """Run promtool's test of a file of rules."""
    test = folder / "test.yml"
    test.write_text(f"rule_files: [{RULES / file}]\nevaluation_interval: 1m\ntests:\n{text}", encoding="utf-8")
    done = subprocess.run(
        ["promtool", "test", "rules", str(test)], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_of_rules_is_right() -> None:
    """Prometheus accepts every file of rules unchanged."""
    files = sorted(map(str, RULES.glob("*.yml")))
    done = subprocess.run(
        ["promtool", "check", "rules", *files], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    assert files
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_full_interface_is_informed_of_after_ten_minutes(tmp_path: Path) -> None:
    """The alert is for the full direction; a peak is no alert, and an interface of unknown speed is never full."""
    try_out(
        tmp_path,
        "bandwidth.yml",
        """
  - interval: 1m
    input_series:
      - {series: 'seaway_gateway_used_mbps{gateway="gw-1", direction="in"}', values: '950x20'}
      - {series: 'seaway_gateway_used_mbps{gateway="gw-1", direction="out"}', values: '10x8 990x4 10x20'}
      - {series: 'seaway_gateway_speed_mbps{gateway="gw-1"}', values: '1000x20'}
      - {series: 'seaway_gateway_used_mbps{gateway="gw-2", direction="in"}', values: '950x20'}
    alert_rule_test:
      - {eval_time: 9m, alertname: SeawayGatewayFull, exp_alerts: []}
      - eval_time: 11m
        alertname: SeawayGatewayFull
        exp_alerts:
          - exp_labels: {gateway: gw-1, direction: in, severity: warning}
            exp_annotations:
              summary: The interface of gateway gw-1 has been 95% full (in) for 10 minutes
              description: >-
                Jobs that need bandwidth over it wait or run elsewhere, and other traffic slows down.
                `seaway links` shows the full links. Move or throttle jobs there, or raise the speed of
                the interface.
""",
    )


def test_an_interface_that_cannot_be_read_is_informed_of_after_ten_minutes(tmp_path: Path) -> None:
    """A restart of its node-exporter is no alert."""
    try_out(
        tmp_path,
        "bandwidth.yml",
        """
  - interval: 1m
    input_series:
      - {series: 'seaway_gateway_scrape_failed{gateway="gw-1"}', values: '1x20'}
      - {series: 'seaway_gateway_scrape_failed{gateway="gw-2"}', values: '1x5 0x20'}
    alert_rule_test:
      - {eval_time: 9m, alertname: SeawayGatewayUnread, exp_alerts: []}
      - eval_time: 11m
        alertname: SeawayGatewayUnread
        exp_alerts:
          - exp_labels: {gateway: gw-1, severity: warning}
            exp_annotations:
              summary: The interface of gateway gw-1 cannot be read for 10 minutes
              description: >-
                The bandwidth of its links counts as unknown, so no job that needs bandwidth is placed
                over them. The log of Seaway has the reason: node-exporter does not answer, rejects the
                request, or does not know the interface.
""",
    )


def test_a_gateway_that_answers_no_one_is_informed_of_after_two_minutes(tmp_path: Path) -> None:
    """If one gateway gets an answer, a link is broken, and not the gateway."""
    try_out(
        tmp_path,
        "network.yml",
        """
  - interval: 1m
    input_series:
      - series: 'UserToClusterPacketLoss{source="gw-4", target="gw-1", site="office", cluster="a"}'
        values: '0x4 1x20'
      - series: 'ClusterToClusterPacketLoss{source="gw-2", target="gw-1", source_cluster="b", cluster="a"}'
        values: '1x25'
      - {series: 'UserToClusterPacketLoss{source="gw-4", target="gw-2", site="office", cluster="b"}', values: '1x25'}
      - series: 'ClusterToClusterPacketLoss{source="gw-1", target="gw-2", source_cluster="a", cluster="b"}'
        values: '0x25'
    alert_rule_test:
      - {eval_time: 6m, alertname: SeawayGatewayDead, exp_alerts: []}
      - eval_time: 8m
        alertname: SeawayGatewayDead
        exp_alerts:
          - exp_labels: {target: gw-1, cluster: a, severity: critical}
            exp_annotations:
              summary: Gateway gw-1 of a has not answered for 2 minutes
              description: >-
                No agent gets an answer from it: it is down or disconnected. No job with network bounds
                is placed behind it, and jobs there may be unreachable. `seaway links --target gw-1`
                shows the links to it.
""",
    )


def test_a_unreachable_agent_is_informed_of(tmp_path: Path) -> None:
    """The alert fires after two minutes without a report and two more; a restart in between is no alert."""
    try_out(
        tmp_path,
        "network.yml",
        """
  - interval: 1m
    input_series:
      - {series: 'seaway_agent_last_seen_seconds{gateway="gw-1"}', values: '0+60x20'}
      - {series: 'seaway_agent_last_seen_seconds{gateway="gw-2"}', values: '0 60 120 180 0 0+60x3'}
    alert_rule_test:
      - {eval_time: 4m, alertname: SeawayAgentSilent, exp_alerts: []}
      - eval_time: 5m
        alertname: SeawayAgentSilent
        exp_alerts:
          - exp_labels: {gateway: gw-1, severity: warning}
            exp_annotations:
              summary: The agent of gateway gw-1 has not reported for 5m 0s
              description: >-
                Its links are not measured and count as unknown. Jobs of users behind it with network
                bounds wait. `seaway network agents` shows its last report; its own log has the reason.
""",
    )


def test_a_link_that_loses_is_informed_of_but_not_one_to_a_dead_gateway(tmp_path: Path) -> None:
    """The mean of ten minutes counts, as one round of five has steps of a fifth; a single lost probe is no alert.

    The text reports the past minutes and the present loss.
    """
    try_out(
        tmp_path,
        "network.yml",
        """
  - interval: 1m
    input_series:
      - series: 'UserToClusterPacketLoss{source="gw-4", target="gw-1", site="office", cluster="a"}'
        values: '0 0.2x17 0 0.4x10'
      - series: 'UserToClusterPacketLoss{source="gw-5", target="gw-1", site="home", cluster="a"}'
        values: '0x9 0.2 0x20'
      - {series: 'UserToClusterPacketLoss{source="gw-4", target="gw-2", site="office", cluster="b"}', values: '1x30'}
    alert_rule_test:
      - {eval_time: 4m, alertname: SeawayLinkLossy, exp_alerts: []}
      - eval_time: 20m
        alertname: SeawayLinkLossy
        exp_alerts:
          - exp_labels: {source: gw-4, target: gw-1, cluster: a, severity: warning}
            exp_annotations:
              summary: The link from gw-4 to gw-1 lost 20% of probes within 10 minutes
              description: >-
                The present loss is 40%. The gateway answers, but not all probes. Jobs with a bound on
                loss are placed elsewhere. `seaway links history gw-4 gw-1` shows the history.
""",
    )


def test_a_cluster_that_is_lost_does_not_stand_idle(tmp_path: Path) -> None:
    """The allocation of a lost cluster is not known; one that answers has an alert after an hour."""
    try_out(
        tmp_path,
        "fleet.yml",
        """
  - interval: 1m
    input_series:
      - {series: 'ClusterGPUCorePercentage{cluster="idle"}', values: '10x90'}
      - {series: 'ClusterGPUCorePercentage{cluster="lost"}', values: '10x90'}
      - {series: 'seaway_cluster_last_seen_seconds{cluster="idle"}', values: '1x90'}
      - {series: 'seaway_cluster_last_seen_seconds{cluster="lost"}', values: '0+60x90'}
    promql_expr_test:
      - expr: count by (cluster, alertstate) (ALERTS{alertname="SeawayLowUtilisation"})
        eval_time: 80m
        exp_samples: [{labels: '{cluster="idle", alertstate="firing"}', value: 1}]
""",
    )


def test_the_most_that_is_lost_is_that_of_links_to_gateways_that_answer(tmp_path: Path) -> None:
    """A link with full loss is the worst; links to a gateway that answers no gateway are in another panel."""
    (most,) = [
        each.query for each in asked("network", DASHBOARDS["network"](Language.ENGLISH)) if each.title == "Most lost"
    ]
    test = {
        "interval": "1m",
        "input_series": [
            {
                "series": f'UserToClusterPacketLoss{{source="{source}", target="{target}", cluster="a"}}',
                "values": values,
            }
            for source, target, values in (
                ("gw-1", "whole", "0x5 0.6x5"),
                ("gw-2", "whole", "0x10"),
                ("gw-1", "dead", "0.4x5 1x5"),
                ("gw-2", "dead", "1x10"),
            )
        ],
        "promql_expr_test": [
            {"expr": most.replace("$cluster", "a"), "eval_time": at, "exp_samples": [{"labels": "{}", "value": lost}]}
            for at, lost in (("3m", 1), ("8m", 0.6))
        ],
    }
    try_out(tmp_path, "network.yml", yaml.safe_dump([test], width=1000))


def test_a_completion_rate_is_of_jobs_that_ended(tmp_path: Path) -> None:
    """Without finished jobs there is no rate: neither NaN, nor a value that looks like a failure."""
    queries = {each.title: each.query for each in asked("jobs", DASHBOARDS["jobs"](Language.ENGLISH))}
    rate = queries["Completion rate"].replace("$__range", "3m")
    of = "seaway_jobs_reached_total"
    series = {f'{of}{{state="completed"}}': "0x9 3x9", f'{of}{{state="failed"}}': "0x9 1x9"}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": rate, "eval_time": "5m", "exp_samples": []},
            {"expr": rate, "eval_time": "11m", "exp_samples": [{"labels": "{}", "value": 0.75}]},
        ],
    }
    try_out(tmp_path, "jobs.yml", yaml.safe_dump([test], width=1000))


def test_interfaces_are_shown_while_two_processes_tell_of_them(tmp_path: Path) -> None:
    """During a takeover no panel fails, and no interface is shown twice."""
    queries = {each.title: each.query for each in asked("network", DASHBOARDS["network"](Language.ENGLISH))}
    shown = {
        "Fullest interface": [("{}", 95)],
        "How full interfaces are": [('{gateway="gw-1", direction="in"}', 95), ('{gateway="gw-1", direction="out"}', 5)],
        "Do agents report?": [('{gateway="gw-1"}', 3)],
    }
    reported = {
        'seaway_gateway_used_mbps{gateway="gw-1", direction="in"': 950,
        'seaway_gateway_used_mbps{gateway="gw-1", direction="out"': 50,
        'seaway_gateway_speed_mbps{gateway="gw-1"': 1000,
        'seaway_agent_last_seen_seconds{gateway="gw-1"': 3,
    }
    test = {
        "interval": "1m",
        "input_series": [
            {"series": f'{each}, instance="{instance}"}}', "values": f"{value}x10"}
            for each, value in reported.items()
            for instance in ("one", "two")
        ],
        "promql_expr_test": [
            {
                "expr": queries[title],
                "eval_time": "5m",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in samples],
            }
            for title, samples in shown.items()
        ],
    }
    try_out(tmp_path, "network.yml", yaml.safe_dump([test], width=1000))


def test_a_queue_below_its_guarantee_is_informed_of_while_its_jobs_wait(tmp_path: Path) -> None:
    """Neither a queue without waiting jobs, nor one beyond its guarantee, nor one without a guarantee is an alert."""
    try_out(
        tmp_path,
        "queues.yml",
        """
  - interval: 1m
    input_series:
      - {series: 'seaway_queue_usage{queue="vision", resource="gpus"}', values: '4x60'}
      - {series: 'seaway_queue_guarantee{queue="vision", resource="gpus"}', values: '8x60'}
      - {series: 'seaway_queue_longest_wait_seconds{queue="vision"}', values: '0+60x60'}
      - {series: 'seaway_queue_usage{queue="idle", resource="gpus"}', values: '4x60'}
      - {series: 'seaway_queue_guarantee{queue="idle", resource="gpus"}', values: '8x60'}
      - {series: 'seaway_queue_longest_wait_seconds{queue="idle"}', values: '0x60'}
      - {series: 'seaway_queue_usage{queue="large", resource="gpus"}', values: '9x60'}
      - {series: 'seaway_queue_guarantee{queue="large", resource="gpus"}', values: '8x60'}
      - {series: 'seaway_queue_longest_wait_seconds{queue="large"}', values: '0+60x60'}
      - {series: 'seaway_queue_usage{queue="free", resource="gpus"}', values: '0x60'}
      - {series: 'seaway_queue_longest_wait_seconds{queue="free"}', values: '0+60x60'}
    alert_rule_test:
      - {eval_time: 30m, alertname: SeawayQueueBelowGuarantee, exp_alerts: []}
      - eval_time: 32m
        alertname: SeawayQueueBelowGuarantee
        exp_alerts:
          - exp_labels: {queue: vision, severity: warning}
            exp_annotations:
              summary: Queue vision has jobs that wait, and only 4 GPUs, less than its guarantee
              description: >-
                `seaway queue show vision` shows its amounts and waiting jobs, `seaway explain JOB` the reason.
                Either the first job needs more than the rest of the guarantee, or other queues hold the GPUs and
                cannot be displaced. Check `reclaim` of this queue, and `preemptible` and `min_runtime` of the others.
""",
    )


def test_a_queue_at_its_limit_is_informed_of_after_two_hours_of_waiting(tmp_path: Path) -> None:
    """A queue at its limit without jobs that wait for long is no alert, and neither is one below it."""
    try_out(
        tmp_path,
        "queues.yml",
        """
  - interval: 1m
    input_series:
      - {series: 'seaway_queue_usage{queue="vision", resource="gpus"}', values: '8x180'}
      - {series: 'seaway_queue_limit{queue="vision", resource="gpus"}', values: '8x180'}
      - {series: 'seaway_queue_longest_wait_seconds{queue="vision"}', values: '0+60x180'}
      - {series: 'seaway_queue_usage{queue="quick", resource="gpus"}', values: '8x180'}
      - {series: 'seaway_queue_limit{queue="quick", resource="gpus"}', values: '8x180'}
      - {series: 'seaway_queue_longest_wait_seconds{queue="quick"}', values: '600x180'}
      - {series: 'seaway_queue_usage{queue="below", resource="gpus"}', values: '7x180'}
      - {series: 'seaway_queue_limit{queue="below", resource="gpus"}', values: '8x180'}
      - {series: 'seaway_queue_longest_wait_seconds{queue="below"}', values: '0+60x180'}
    alert_rule_test:
      - {eval_time: 119m, alertname: SeawayQueueAtLimit, exp_alerts: []}
      - eval_time: 122m
        alertname: SeawayQueueAtLimit
        exp_alerts:
          - exp_labels: {queue: vision, severity: info}
            exp_annotations:
              summary: Queue vision has used its limit of GPUs for an hour while jobs wait
              description: >-
                Its jobs wait for each other, whatever else is free. `seaway whatif` answers what a higher limit
                would change. `seaway queue set vision --limit gpus=N` raises it.
""",
    )


def test_many_displaced_jobs_of_a_queue_are_informed_of(tmp_path: Path) -> None:
    """The rules of preemption count together; a few displaced jobs are no alert."""
    try_out(
        tmp_path,
        "queues.yml",
        """
  - interval: 1m
    input_series:
      - {series: 'seaway_preemptions_total{queue="batch", rule="reclaim"}', values: '0+0.5x120'}
      - {series: 'seaway_preemptions_total{queue="batch", rule="priority"}', values: '0+0.5x120'}
      - {series: 'seaway_preemptions_total{queue="calm", rule="reclaim"}', values: '0+0.25x120'}
    alert_rule_test:
      - {eval_time: 10m, alertname: SeawayPreemptionsMany, exp_alerts: []}
      - eval_time: 100m
        alertname: SeawayPreemptionsMany
        exp_alerts:
          - exp_labels: {queue: batch, severity: warning}
            exp_annotations:
              summary: 60 jobs of queue batch were displaced within an hour
              description: >-
                Displaced jobs lose their work since the last checkpoint. `seaway queue set batch --min-runtime 30m`
                lets them run longer first, a larger guarantee protects more of them, and `checkpoint` in a job saves
                its work.
""",
    )


def test_expected_starts_that_are_far_off_are_informed_of(tmp_path: Path) -> None:
    """Half of the starts of six hours count, and a handful of them is not enough."""
    try_out(
        tmp_path,
        "queues.yml",
        """
  - interval: 1m
    input_series:
      - {series: 'seaway_start_estimate_error_seconds_bucket{le="1800"}', values: '0x400'}
      - {series: 'seaway_start_estimate_error_seconds_bucket{le="7200"}', values: '0+2x400'}
      - {series: 'seaway_start_estimate_error_seconds_bucket{le="+Inf"}', values: '0+2x400'}
      - {series: 'seaway_start_estimate_error_seconds_count', values: '0+2x400'}
    alert_rule_test:
      - eval_time: 390m
        alertname: SeawayStartEstimatesOff
        exp_alerts:
          - exp_labels: {severity: info}
            exp_annotations:
              summary: Half of the expected starts of jobs are off by more than 1h 15m 0s
              description: >-
                Expected starts depend on the expected durations and time limits of jobs. Compare those with the run
                times of recent jobs, or let Seaway learn durations: `[control] learn_durations = true`.
  - interval: 1m
    input_series:
      - {series: 'seaway_start_estimate_error_seconds_bucket{le="1800"}', values: '0x400'}
      - {series: 'seaway_start_estimate_error_seconds_bucket{le="7200"}', values: '0+0.01x400'}
      - {series: 'seaway_start_estimate_error_seconds_bucket{le="+Inf"}', values: '0+0.01x400'}
      - {series: 'seaway_start_estimate_error_seconds_count', values: '0+0.01x400'}
    alert_rule_test:
      - {eval_time: 390m, alertname: SeawayStartEstimatesOff, exp_alerts: []}
""",
    )
