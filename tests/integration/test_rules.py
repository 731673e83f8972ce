"""The alerts that are shipped fire when they should and not before, as Prometheus itself works them out.

Debian has it: ``apt-get install prometheus``.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("promtool"), reason="there is no promtool: apt-get install prometheus")

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "rules"

PATIENCE_S = 30


def try_out(folder: Path, file: str, text: str) -> None:
    """Have promtool run a test of a file of rules."""
    test = folder / "test.yml"
    test.write_text(f"rule_files: [{RULES / file}]\nevaluation_interval: 1m\ntests:\n{text}", encoding="utf-8")
    done = subprocess.run(
        ["promtool", "test", "rules", str(test)], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_of_rules_is_right() -> None:
    """Prometheus takes them as they are."""
    files = sorted(map(str, RULES.glob("*.yml")))
    done = subprocess.run(
        ["promtool", "check", "rules", *files], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert files
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_full_interface_is_told_of_after_ten_minutes(tmp_path: Path) -> None:
    """In the direction that is full; a peak is no alert, and an interface of unknown speed is never full."""
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
                Jobs that need bandwidth over it wait or go elsewhere, and all others get slower. `seaway links` shows
                whose links are full. What runs there can be moved, or told to use less; what the interface carries can
                be raised.
""",
    )


def test_an_interface_that_cannot_be_read_is_told_of_after_ten_minutes(tmp_path: Path) -> None:
    """A restart of its node-exporter is no alert."""
    try_out(
        tmp_path,
        "bandwidth.yml",
        """
  - interval: 1m
    input_series:
      - {series: 'seaway_gateway_unread{gateway="gw-1"}', values: '1x20'}
      - {series: 'seaway_gateway_unread{gateway="gw-2"}', values: '1x5 0x20'}
    alert_rule_test:
      - {eval_time: 9m, alertname: SeawayGatewayUnread, exp_alerts: []}
      - eval_time: 11m
        alertname: SeawayGatewayUnread
        exp_alerts:
          - exp_labels: {gateway: gw-1, severity: warning}
            exp_annotations:
              summary: It has not been known for 10 minutes what the interface of gateway gw-1 carries
              description: >-
                The bandwidth of its links counts as unknown, so no job that needs some is placed over them. Seaway's
                log says why: its node-exporter does not answer, refuses, or does not know the interface.
""",
    )
