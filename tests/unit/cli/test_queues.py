from __future__ import annotations

import json

import httpx
import pytest

from seaway import Client
from seaway.cli.admin import queues
from seaway.cli.admin.queue_change import TRIES
from seaway.cli.main import main
from seaway.terminal.queues import COLUMNS, TENANTS
from tests.unit.client.requesting import SERVER, Stub, problem

QUEUE = {"name": "q", "tenant": "", "pool": "near", "policy": "fgd", "shadow": "", "open": True, "description": "one"}


def run(monkeypatch: pytest.MonkeyPatch, stub: Stub, *options: str) -> int:
    """Run `seaway queue set q` with options, `--policy seaway` without, against a stub; return its exit code."""
    monkeypatch.setattr(
        queues, "connect", lambda _: Client(SERVER, transport=httpx.MockTransport(stub), pace=stub.pace)
    )
    with pytest.raises(SystemExit) as done:
        main(["queues", "set", "q", *(options or ("--policy", "seaway"))])
    return int(done.value.code or 0)


def test_a_change_goes_over_no_one_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a queue changed since it was read it is read again, so that what is not said stays as it is by now."""
    stale = problem(412, "the queue 'q' is another by now")
    there = [{**QUEUE, "version": "a"}, {**QUEUE, "description": "two", "version": "b"}]
    made = {**QUEUE, "policy": "seaway", "description": "two", "version": "c"}
    stub = Stub(
        [httpx.Response(200, json=there[0]), stale, *(httpx.Response(200, json=each) for each in (there[1], made))]
    )
    assert run(monkeypatch, stub) == 0
    sent = [(request.headers["if-match"], json.loads(request.content)) for request in stub.requests[1::2]]
    assert [(tag, body["policy"], body["description"]) for tag, body in sent] == [
        ('"a"', "seaway", "one"),
        ('"b"', "seaway", "two"),
    ]


def test_a_queue_that_changes_all_the_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some tries it is reported instead of going on for ever."""
    stale = problem(412, "the queue 'q' is another by now")
    stub = Stub([*[httpx.Response(200, json={**QUEUE, "version": "a"}), stale] * TRIES])
    assert run(monkeypatch, stub) == 2
    assert len(stub.requests) == 2 * TRIES


def test_the_warning_of_a_policy_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is on standard error, apart from the result."""
    there = {**QUEUE, "version": "a"}
    stub = Stub(
        [httpx.Response(200, json=there), httpx.Response(200, json={**there, "warning": {"message": "Jobs wait."}})]
    )
    assert run(monkeypatch, stub) == 0
    assert capsys.readouterr().err == "warning: Jobs wait.\n"


def test_the_warnings_about_a_quota_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is a line on standard error, apart from the result."""
    there = {**QUEUE, "version": "a"}
    warnings = [{"message": "no GPU is of the model 'H999'"}, {"message": "it holds 4 gpus"}]
    stub = Stub([httpx.Response(200, json=there), httpx.Response(200, json={**there, "warnings": warnings})])
    assert run(monkeypatch, stub, "--limit", "gpus/H999=1") == 0
    assert capsys.readouterr().err == "warning: no GPU is of the model 'H999'\nwarning: it holds 4 gpus\n"


@pytest.mark.parametrize("field", ["shadow", "policy"])
def test_who_names_no_policy_as_a_shadow_is_reported_how_to_have_none(
    field: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`none` is a name like any other: what clears the shadow stands behind the names there are."""
    errors = [{"field": field, "message": "unknown policy 'none'; available: fgd"}]
    stub = Stub([httpx.Response(200, json={**QUEUE, "version": "a"}), problem(422, "unknown", errors=errors)])
    assert run(monkeypatch, stub, f"--{field}", "none") == 2
    reported = {
        "shadow": "error: --shadow: unknown policy 'none'; available: fgd; --shadow '' clears it\n",
        "policy": "error: policy: unknown policy 'none'; available: fgd\n",
    }
    assert capsys.readouterr().err == reported[field]


def test_the_tree_is_set_and_cleared_by_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Amounts are sent as they were written, empty texts clear, and options that are not given keep their value."""
    stored = {**QUEUE, "parent": "old", "weight": 3, "guarantee": {"gpus": 2}, "limit": {"gpus": 9}, "version": "a"}
    stub = Stub([httpx.Response(200, json=stored), httpx.Response(200, json=stored)])
    options = ("--parent", "", "--limit", "", "--guarantee", "gpus=16, gpus/A100=8,memory=2TB", "--order", "shortest")
    assert run(monkeypatch, stub, *options) == 0
    sent = json.loads(stub.requests[1].content)
    assert {name: sent.get(name) for name in ("parent", "weight", "guarantee", "limit", "order", "backfill")} == {
        "parent": "",
        "weight": 3,
        "guarantee": {"gpus": "16", "gpus/A100": "8", "memory": "2TB"},
        "limit": {},
        "order": "shortest",
        "backfill": None,
    }


@pytest.mark.parametrize(
    ("amounts", "says"),
    [("gpus", "'gpus' is not valid; use RESOURCE=AMOUNT"), ("gpus=1,gpus=2", "gpus is given twice")],
)
def test_amounts_without_a_resource_are_not_sent(
    amounts: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake in the amounts is reported with its option, without a request."""
    stub = Stub([])
    assert run(monkeypatch, stub, "--limit", amounts) == 2
    assert f"--limit: {says}" in capsys.readouterr().err
    assert not stub.requests


def test_the_tree_is_listed_with_use_and_waiting_jobs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Children are indented below their parents; a queue below a parent that is not visible is a root."""
    tree = [{**QUEUE, "name": name, "parent": parent} for name, parent in (("a", "q"), ("b", "hidden"), ("q", ""))]
    sums = {"used": {"gpus": 1.5}, "guarantee": {"gpus": 2}, "limit": {}, "borrowed": {}, "waiting": 4, "running": 1}
    usage = {"uses": [], "queues": [{**sums, "queue": "a"}]}
    stub = Stub([httpx.Response(200, json={"queues": tree}), httpx.Response(200, json=usage)])
    monkeypatch.setattr(
        queues, "connect", lambda _: Client(SERVER, transport=httpx.MockTransport(stub), pace=stub.pace)
    )
    with pytest.raises(SystemExit):
        main(["queues"])
    lines = [line.split()[:6] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["QUEUE", "GPUS", "GUARANTEE", "LIMIT", "RUNNING", "WAITING"],
        ["b", "0", "–", "–", "0", "0"],
        ["q", "0", "–", "–", "0", "0"],
        ["a", "1.5", "2", "–", "1", "4"],
    ]


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        ({}, "–"),
        ({"gpus": 16}, "16"),
        ({"gpus/a100": 1}, "1 gpus/a100"),
        ({"memory": "2TB", "gpus": 16, "jobs": 100}, "16, 100 jobs, 2TB memory"),
    ],
)
def test_lists_show_limits_of_all_resources(limit: dict[str, object], shown: str) -> None:
    """A limit on a model, memory or jobs alone is no dash, in queues and in tenants."""
    row = {"totals": {"limit": limit, "guarantee": limit}}
    for columns in (COLUMNS, TENANTS):
        assert [each.cell(row) for each in columns if each.title in ("GUARANTEE", "LIMIT")] == [shown, shown]
