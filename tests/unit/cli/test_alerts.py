"""`seaway alerts`: list, show and acknowledge."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from seaway import Client
from seaway.cli.fleet import alerts
from seaway.cli.main import main
from tests.unit.client.requesting import SERVER, Stub

ALERT: dict[str, Any] = {
    "name": "SeawayClusterStale",
    "severity": "warning",
    "of": "paris",
    "value": 90,
    "bound": 60,
    "message": "paris does not answer",
    "nodes": ["node-0"],
    "since": "2026-11-21T10:00:00Z",
    "acknowledged_by": "",
}
ROWS = [ALERT, {**ALERT, "of": "berlin"}, {**ALERT, "name": "SeawayQueueLong", "of": "batch"}]


def run(monkeypatch: pytest.MonkeyPatch, *options: str, more: int = 0) -> tuple[int, Stub]:
    """Run `seaway alerts` against a stub; return its exit code."""
    stub = Stub([httpx.Response(200, json={"alerts": ROWS}), *(httpx.Response(204) for _ in range(more))])
    monkeypatch.setattr(
        alerts, "connect", lambda _: Client(SERVER, transport=httpx.MockTransport(stub), pace=stub.pace)
    )
    with pytest.raises(SystemExit) as done:
        main(["alerts", *options])
    return int(done.value.code or 0), stub


def test_firing_alerts_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each has its object; names are for programs."""
    assert run(monkeypatch)[0] == 0
    text = capsys.readouterr().out
    assert all(f"{each['name']}" in text and str(each["of"]) in text for each in ROWS)
    run(monkeypatch, "-o", "name")
    assert capsys.readouterr().out.splitlines() == [f"{each['name']} {each['of']}" for each in ROWS]


def test_alerts_of_a_name_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All of the name, or the one of an object, with the threshold."""
    run(monkeypatch, "show", "SeawayClusterStale", "-o", "json")
    assert [each["of"] for each in json.loads(capsys.readouterr().out)["alerts"]] == ["paris", "berlin"]
    run(monkeypatch, "show", "SeawayClusterStale", "berlin")
    text = capsys.readouterr().out
    assert ("berlin" in text, "batch" in text, "threshold" in text) == (True, False, True)


def test_alerts_are_acknowledged(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One request for each alert of the name, and none for an alert that does not fire."""
    code, stub = run(monkeypatch, "acknowledge", "SeawayClusterStale", more=2)
    sent = [json.loads(each.content) for each in stub.requests[1:]]
    assert (code, [each["of"] for each in sent]) == (0, ["paris", "berlin"])
    assert "alert SeawayClusterStale paris is acknowledged" in capsys.readouterr().out
    code, stub = run(monkeypatch, "acknowledge", "SeawayQueueLong", "typo")
    assert (code, len(stub.requests)) == (1, 1)
    assert "firing: SeawayClusterStale berlin" in capsys.readouterr().err
