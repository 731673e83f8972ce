"""Staying with a job while its server comes and goes."""

from __future__ import annotations

import json
from dataclasses import replace

import httpx
import pytest
import typer

from seaway.cli.jobs.events import attach, wait
from seaway.cli.remote import PATIENCE_S, body_when_compiled
from seaway.client.calls.service import whatif
from seaway.client.errors import WaitedTooLongError
from seaway.client.sync import Client
from seaway.domain.errors import UnavailableError
from tests.unit.client.requesting import JOB, SERVER, Stub, event, problem


def client_of(stub: Stub) -> Client:
    """Make a client as the command line has it, on the stub's clock."""
    pace = replace(stub.pace, patience_s=PATIENCE_S)
    return Client(SERVER, pace=pace, transport=httpx.MockTransport(stub), pause=stub.pause)


def stream(*states: str) -> httpx.Response:
    """Answer with events, and end."""
    pieces = (f"data: {json.dumps(event(number, state))}\n\n" for number, state in enumerate(states, 1))
    return httpx.Response(200, content="".join(pieces).encode())


def test_a_server_that_starts_again_is_waited_for() -> None:
    """A user who is attached stays so for as long as a restart takes, though a prompt has less patience."""
    away = [httpx.ConnectError("refused")] * 8
    stub = Stub([httpx.Response(200, json=JOB), stream("queued"), *away, stream("queued", "running", "completed")])
    assert attach(client_of(stub), JOB) == 0
    assert stub.now_s > 4 * PATIENCE_S


def test_it_is_reported_that_a_server_requests_for_patience(capsys: pytest.CaptureFixture[str]) -> None:
    """While another server leads, nothing arrives; the reason is printed once, beside the result."""
    standby = problem(503, "other is the leader; this process is a standby")
    stub = Stub([httpx.Response(200, json=JOB), standby, standby, standby, stream("queued", "completed")])
    assert attach(client_of(stub), JOB) == 0
    said = capsys.readouterr()
    assert said.err == "other is the leader; this process is a standby; trying again for up to 60 s\n"
    assert "leads" not in said.out


def test_a_policy_that_is_being_compiled_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    """A question that needs it prints why it waits, and gets its answer; other errors end it at once."""
    reason = {"code": "policies_compile", "params": {"names": "'fgd'"}}
    compiles = problem(503, "the policy 'fgd' is being compiled", reason=reason)
    compiles.headers["Retry-After"] = "5"
    stub = Stub([*[compiles] * 4, httpx.Response(200, json={"message": "0 jobs would move"})])
    assert body_when_compiled(client_of(stub), whatif({"policy": "fgd"})) == {"message": "0 jobs would move"}
    said = capsys.readouterr().err
    assert said.count("is being compiled") == 1
    assert said.endswith("trying again for up to 600 s\n")
    with pytest.raises(UnavailableError, match="standby"):
        body_when_compiled(client_of(Stub([problem(503, "this process is a standby")])), whatif({"policy": "fgd"}))


def test_who_gives_up_is_reported_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    """A server that stays away for a minute ends it, with the command that leads back to the job."""
    stub = Stub([httpx.Response(200, json=JOB), stream("queued"), httpx.ConnectError("refused")])
    with pytest.raises(UnavailableError):
        attach(client_of(stub), JOB)
    assert 50 < stub.now_s < 70
    assert f"seaway events -f {JOB['id']}" in capsys.readouterr().err


def test_a_wait_names_the_job_and_the_limit_of_the_command(
    context: typer.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is that of all jobs together, so what is left of it for one job says nothing."""
    stub = Stub([httpx.Response(200, json=JOB | {"state": "queued"}), httpx.ReadTimeout("silent")])
    monkeypatch.setattr("seaway.cli.jobs.events.connect", lambda _: client_of(stub))
    with pytest.raises(WaitedTooLongError, match=r"^train is not finished after --timeout 5s$"):
        wait(context, ["train"], timeout="5s")


@pytest.fixture
def context() -> typer.Context:
    """Return the context of a command without options."""
    return typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None, add_completion=False)))
