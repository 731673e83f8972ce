"""The full-screen view with a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from seaway import AsyncClient
from seaway.client.calls.service import me
from seaway.client.connection import Pace
from seaway.terminal.app import Top
from tests.integration.cli_runs import Cli, command_line
from tests.unit.api.rig import JOB
from tests.unit.terminal.stub import Server
from tests.unit.terminal.test_app import NARROW, Seen

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # each has a server of its own


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio, as Textual does."""
    return "asyncio"


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cli]:
    """Start a server, and a command line connected to it."""
    with command_line(capsys, monkeypatch, tmp_path) as made:
        yield made


@asynccontextmanager
async def watching(cli: Cli, token: str) -> AsyncIterator[tuple[AsyncClient, Seen]]:
    """Watch a server with one of its tokens, with a second client."""
    async with AsyncClient(cli.served.url, cli.served.rig.tokens[token], pace=Pace(0.0)) as client:
        app = Top(client, await client.body(me()))
        async with app.run_test(size=NARROW) as pilot:
            yield client, Seen(Server(), app, pilot)


@pytest.mark.quiet
async def test_what_happens_is_seen_within_a_second_and_can_be_ended(cli: Cli) -> None:
    """A job from elsewhere appears by itself; x and y cancel it, on the server too."""
    async with watching(cli, "user") as (client, seen):
        await seen.press("3")
        await seen.sees("only default's jobs", "no jobs")
        await client.submit({**JOB, "name": "first"})
        await seen.sees("first", "· user")  # the latest event: the stream is open
        fresh = await client.submit({**JOB, "name": "fresh"})
        assert await seen.sees("fresh") < 1
        await seen.press("home")
        await seen.sees("Cancel job")
        await seen.press("x", "y")
        await seen.until(lambda: "fresh" not in seen.text.partition("not over")[0])
        assert (await client.job(fresh.id)).state == "cancelled"


async def test_every_view_shows_what_the_server_says(cli: Cli) -> None:
    """Fleet down to a node, pending jobs with reasons, links, and all about a job are shown without an error."""
    async with watching(cli, "operator") as (client, seen):
        await client.submit({**JOB, "name": "large", "resources": {"gpus": 2}})
        job = await client.submit({**JOB, "name": "runs"})
        cli.step(4)
        await seen.sees("▸ a", "▸ b", "running")
        await seen.press("enter")
        await seen.until(lambda: "ready" in seen.text)
        await seen.press("down", "enter")
        await seen.sees("devices", "#0")
        await seen.press("escape", "4")
        await seen.sees("site", "gw-a")
        await seen.press("2")
        await seen.sees("wait")
        await seen.press("3")
        await seen.sees("runs", "large")
        await seen.press("home", "enter")
        await seen.sees(job.id, "each needs")
        await seen.press("2")
        await seen.sees("pending", "· operator")
        await seen.press("3")
        await seen.sees("runs: ")
        assert not seen.app.contact.trouble()


async def test_a_revoked_token_is_reported(cli: Cli) -> None:
    """The server's message is shown with a remedy; no more requests are sent."""
    async with watching(cli, "operator") as (_, seen):
        await seen.sees("▸ a")
        async with AsyncClient(cli.served.url, cli.served.rig.tokens["admin"]) as admin:
            (token,) = [each for each in (await admin.tokens()).tokens if each.name == "operator"]
            await admin.revoke_token(token.id)
        await seen.sees("the token is refused", "seaway login")


def test_a_frame_can_be_printed(cli: Cli) -> None:
    """Totals, clusters and jobs are printed as tables, for pipes; the full screen reports that it needs a terminal."""
    cli("submit", "--name", "train", "--gpus", "1", "--gpu-memory", "8Gi", "--detach")
    cli.step(4)
    ran = cli("top", "--once")
    assert ran.code == 0
    for said in ("clusters 2 up", "GPU cores", "1 running", "CLUSTER", "train"):
        assert said in ran.out
    refused = cli("top")
    assert refused.code == 2
    assert "--once" in refused.err
