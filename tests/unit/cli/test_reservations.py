"""`seaway reservation`: times as users write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import httpx
import pytest

from seaway import Client
from seaway.api.http.examples import EXAMPLES
from seaway.cli.admin import reservations
from seaway.cli.main import main
from seaway.domain.errors import RejectedError
from seaway.terminal.words import point_in_time
from tests.unit.client.requesting import SERVER, Stub, problem

NOON = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


def run(monkeypatch: pytest.MonkeyPatch, *options: str, answer: object = None) -> tuple[int, Stub]:
    """Run `seaway reservation` against a stub; return its exit code."""
    stub = Stub([httpx.Response(200, json=answer or EXAMPLES["ReservationOut"])])
    monkeypatch.setattr(
        reservations, "connect", lambda _: Client(SERVER, transport=httpx.MockTransport(stub), pace=stub.pace)
    )
    with pytest.raises(SystemExit) as done:
        main(["reservations", *options])
    return int(done.value.code or 0), stub


def test_a_duration_counts_from_the_begin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The request has exact times, and the output says how many GPUs are ready."""
    code, stub = run(monkeypatch, "create", "demo", "--from", "+1h", "--for", "4h", "--tenant", "vision", "--gpus", "8")
    assert (code, capsys.readouterr().out) == (0, "reservation demo: tenant vision, 7 of 8 GPUs ready\n")
    sent = json.loads(stub.requests[0].content)
    starts, ends = (datetime.fromisoformat(sent[name]) for name in ("starts", "ends"))
    assert ends - starts == timedelta(hours=4)
    assert abs(starts - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=1)


def test_an_existing_reservation_is_changed_by_set_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`create` refuses a name that is in use, and `set` changes the given fields alone."""
    row = {**EXAMPLES["ReservationOut"], "name": "demo"}
    stub = Stub([problem(412, "reservation 'demo' has changed")])
    monkeypatch.setattr(
        reservations, "connect", lambda _: Client(SERVER, transport=httpx.MockTransport(stub), pace=stub.pace)
    )
    with pytest.raises(SystemExit) as done:
        main(["reservation", "create", "demo", "--for", "4h"])
    assert (done.value.code, stub.requests[0].headers["if-none-match"]) == (2, "*")
    assert "exists already; change it with `seaway reservation set demo`" in capsys.readouterr().err
    stub = Stub([httpx.Response(200, json={"reservations": [row]}), httpx.Response(200, json=row)])
    with pytest.raises(SystemExit) as done:
        main(["reservation", "set", "demo", "--gpus", "4", "--for", "1h", "--description", ""])
    assert done.value.code in (0, None)
    sent = json.loads(stub.requests[1].content)
    assert stub.requests[1].headers["if-match"] == f'"{row["version"]}"'
    assert (sent["gpus"], sent["description"], sent["tenant"]) == (4, "", row["tenant"])
    times = [datetime.fromisoformat(sent[name]) for name in ("starts", "ends")]
    assert times == [datetime.fromisoformat(row["starts"]), datetime.fromisoformat(row["starts"]) + timedelta(hours=1)]


def test_one_of_end_and_duration_is_given(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither and both are errors, before anything is sent."""
    for options in ((), ("--to", "18:00", "--for", "4h")):
        code, stub = run(monkeypatch, "create", "demo", *options)
        assert (code, stub.requests) == (2, [])
        assert "give the end with --to, or the duration with --for" in capsys.readouterr().err


def test_one_reservation_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With its holder, place and GPUs; for an unknown name, the error lists those that there are."""
    there = {"reservations": [EXAMPLES["ReservationOut"]]}
    name = str(EXAMPLES["ReservationOut"]["name"])
    assert run(monkeypatch, "show", name, answer=there)[0] == 0
    text = capsys.readouterr().out
    for each in (name, "tenant vision", "7 of 8 ready"):
        assert each in text
    assert run(monkeypatch, "show", "other", answer=there)[0] != 0
    assert f"reservation 'other' not found; available: {name}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14:00", timedelta(hours=2)),
        ("11:00", timedelta(hours=23)),
        ("now", timedelta()),
        ("+90m", timedelta(minutes=90)),
        ("2026-11-27 12:00", timedelta(days=1)),
        ("2026-11-26T14:00:00+01:00", timedelta(hours=1)),
    ],
)
def test_times_are_taken_as_people_write_them(text: str, expected: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time of day is the next one; without a zone it is local."""
    monkeypatch.setenv("TZ", "UTC")
    assert point_in_time(text, NOON) - NOON == expected


@pytest.mark.parametrize("text", ["", "later", "25:00", "+5", "2026-13-01"])
def test_other_times_are_errors(text: str) -> None:
    """The error shows what to write."""
    with pytest.raises(RejectedError, match=r"write 14:00|with its unit|duration"):
        point_in_time(text, NOON.astimezone(timezone(timedelta(hours=1))))
