from __future__ import annotations

import json

import httpx
import pytest

from seaway import Client
from seaway.cli.admin import queues
from seaway.cli.main import main
from tests.unit.client.requesting import SERVER, Stub, problem

QUEUE = {"name": "q", "tenant": "", "pool": "near", "policy": "fgd", "shadow": "", "open": True, "description": "one"}


def run(monkeypatch: pytest.MonkeyPatch, stub: Stub, *options: str) -> int:
    """Run `seaway queues set q` with options, `--policy seaway` without, against a stub; return its exit code."""
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
    stub = Stub([*[httpx.Response(200, json={**QUEUE, "version": "a"}), stale] * queues.TRIES])
    assert run(monkeypatch, stub) == 2
    assert len(stub.requests) == 2 * queues.TRIES


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
