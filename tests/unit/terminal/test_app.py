"""The full-screen view, with keys pressed and the screen read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from textual.pilot import Pilot

from seaway.terminal.app import LIGHT, Top
from seaway.terminal.refresh import PERIOD_S
from seaway.terminal.words import Body
from tests.unit.terminal.bodies import job
from tests.unit.terminal.stub import WHO, Server

pytestmark = pytest.mark.anyio

PATIENCE_S = 20
NARROW, WIDE = (80, 24), (160, 50)


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio, as Textual does."""
    return "asyncio"


@dataclass
class Seen:
    """A view that is looked at.

    Attributes
    ----------
    server
        What it shows.
    app, pilot
        The view, and who presses its keys.
    """

    server: Server
    app: Top
    pilot: Pilot[Any]

    @property
    def text(self) -> str:
        """All that is on the screen, line by line."""
        strips = self.app.screen._compositor.render_strips()  # noqa: SLF001  # what a terminal would be sent
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        await self.pilot.press(*keys)

    async def until(self, so: Callable[[], object]) -> float:
        """Wait until something is so; returns after how many seconds."""
        began = time.monotonic()
        while not so():
            assert time.monotonic() - began < PATIENCE_S, self.text
            await asyncio.sleep(0.03)
        return time.monotonic() - began

    async def sees(self, *words: str) -> float:
        """Wait until all words are on the screen; returns after how many seconds."""
        return await self.until(lambda: all(each in self.text for each in words))


@asynccontextmanager
async def watching(
    server: Server | None = None, who: Body = WHO, size: tuple[int, int] = NARROW, **options: bool
) -> AsyncIterator[Seen]:
    """Look at a server's fleet."""
    server = server or Server()
    async with server.client() as client:
        app = Top(client, who, **options)
        async with app.run_test(size=size) as pilot:
            seen = Seen(server, app, pilot)
            yield seen


async def test_the_fleet_is_summed_up_above_its_clusters() -> None:
    """Anything that there is, what of it is taken, and what becomes of jobs, on the smallest of terminals."""
    async with watching() as seen:
        await seen.sees("2 up", "122 nodes", "jobs 1 waiting", "1 running", "▸ east", "▸ west", "2 Queue 1")
        assert max(map(len, seen.text.splitlines())) <= NARROW[0]
        assert "GPU CORES" in seen.text


async def test_an_event_leads_to_a_look_at_what_it_may_concern() -> None:
    """Long before the look that would have come without it; the event says of which job it is."""
    async with watching() as seen:
        await seen.press("3")
        await seen.sees("train", "later")
        await seen.until(lambda: seen.server.streams)
        seen.server.jobs.insert(0, job("fresh"))
        seen.server.tell("state", "id-fresh", "running", "runs on west/w0")
        assert await seen.sees("fresh", "id-fresh  runs on west/w0") < PERIOD_S / 2


async def test_many_events_are_few_requests() -> None:
    """A server with thousands of events a second is not asked thousands of times."""
    async with watching() as seen:
        await seen.sees("▸ east")
        await seen.until(lambda: seen.server.streams)
        before = len(seen.server.asked)
        for _ in range(500):
            seen.server.tell("state", "id-train", "running")
        await seen.pilot.pause(1.0)
        assert len(seen.server.asked) - before <= 3 * 4


async def test_what_happens_elsewhere_is_not_asked_for() -> None:
    """Events of other jobs change the sums, but not what is seen of one."""
    async with watching() as seen:
        await seen.press("3")
        await seen.sees("train", "later")
        await seen.press("enter")
        await seen.sees("each needs")
        await seen.until(lambda: seen.server.streams)
        await seen.pilot.pause(0.5)
        del seen.server.asked[:]
        seen.server.tell("state", "id-later", "running")
        await seen.until(lambda: "GET /job-counts?" in seen.server.asked)
        assert "GET /jobs/id-train?" not in seen.server.asked
        seen.server.tell("state", "id-train", "completed")
        await seen.until(lambda: "GET /jobs/id-train?" in seen.server.asked)


async def test_nodes_come_page_by_page_as_they_are_seen() -> None:
    """A cluster of any size is opened with one small request, and read on at its end."""
    async with watching() as seen:
        await seen.sees("▸ east")
        await seen.press("enter")
        await seen.sees("▾ east", "e10")
        (page,) = {each for each in seen.server.asked if "fleet/nodes" in each}
        assert "limit=50" in page
        listing = seen.app.view.listing  # type: ignore[attr-defined]
        await seen.press("end")
        await seen.until(lambda: len(listing.rows) > 60)
        await seen.press("end")
        await seen.until(lambda: len(listing.rows) == 122)
        await seen.press("home")
        await seen.press("left")
        await seen.until(lambda: len(listing.rows) == 2)


async def test_a_node_opens_to_devices_slices_and_the_job() -> None:
    """From a cluster down to what holds a device, and back the same way."""
    async with watching(size=WIDE) as seen:
        await seen.sees("▸ east")
        await seen.press("enter")
        await seen.sees("e10")
        await seen.press("down", "enter")
        await seen.sees("node", "east/e0", "#0 A100", "train · 0", "25 % 5Gi")
        await seen.press("down", "enter")
        await seen.sees("1 About", "id-train", "each needs")
        await seen.press("escape")
        await seen.sees("east/e0", "train · 0")
        await seen.press("escape")
        await seen.sees("▾ east")


async def test_what_was_typed_is_looked_for_by_the_server() -> None:
    """Among all nodes, not only among those that were read; esc shows all again."""
    async with watching() as seen:
        await seen.sees("▸ east")
        await seen.press("slash", "e", "1", "1", "9")
        await seen.sees("1 found with 'e119'", "▸ e119")
        assert "west" not in seen.text
        await seen.press("enter", "escape")
        await seen.sees("▸ east", "▸ west")


async def test_jobs_are_found_by_name_and_state() -> None:
    """Those that are over too, when they are asked for."""
    server = Server()
    server.jobs.append(job("broken", state="failed"))
    async with watching(server) as seen:
        await seen.press("3")
        await seen.sees("train", "later")
        assert "broken" not in seen.text
        await seen.press("slash", *"state:failed", "enter")
        await seen.sees("broken")
        assert "later" not in seen.text


async def test_no_job_and_no_node_is_missing_in_silence() -> None:
    """Where not all are shown that were found, it is reported of how many, and how to come to the others."""
    server = Server(jobs=[job(f"job-{at}", id=f"id-{at}", state="queued") for at in range(1234)])
    async with watching(server, size=WIDE) as seen:
        await seen.press("slash", "e", "enter")
        await seen.sees("first 100 of 120 found with 'e' in the name · type more of the name")
        await seen.press("escape", "2")
        await seen.sees("newest 500 of 1,234 wait", "/ finds others")
        await seen.press("3")
        await seen.sees("newest 100 of 1,234 jobs")
        await seen.press("slash", *"job-1233", "enter")
        await seen.sees("1 job · job-1233")
        await seen.press("escape", "o")
        await seen.sees("newest 500 of 1,234 jobs", "/ finds others")


async def test_a_waiting_job_says_why_it_waits() -> None:
    """The one under the cursor, below the list."""
    async with watching() as seen:
        await seen.press("2")
        await seen.sees("later", "waits: nothing fits", "1 wait")
        assert "train " not in seen.text


async def test_all_about_a_job_is_behind_four_keys() -> None:
    """Anything that it is, what happened, why it is there, and what it writes."""
    async with watching() as seen:
        await seen.press("3")
        await seen.sees("train", "later")
        await seen.press("enter")
        await seen.sees("each needs")
        await seen.press("3")
        await seen.sees("train: runs on east/n0")
        await seen.press("tab")
        await seen.sees("── replica 0 ──")


async def test_nothing_is_cancelled_before_it_was_confirmed() -> None:
    """Any key but y leaves things as they are."""
    async with watching() as seen:
        await seen.press("3")
        await seen.sees("train", "later")
        await seen.press("x")
        await seen.sees("Cancel train (id-train)?")
        await seen.press("n")
        await seen.until(lambda: "Cancel train" not in seen.text)
        assert not [each for each in seen.server.asked if each.startswith("POST")]
        await seen.press("x", "y")
        await seen.until(lambda: "POST /jobs/id-train/cancel?" in seen.server.asked)
        await seen.until(lambda: "running" not in seen.text.splitlines()[6])


@pytest.mark.parametrize(("role", "cancels", "cordons"), [("viewer", 0, 0), ("user", 1, 0), ("operator", 1, 1)])
async def test_only_what_the_role_may_do_is_offered(role: str, cancels: bool, cordons: bool) -> None:
    """A key that would be refused is not there."""
    async with watching(who={**WHO, "role": role}) as seen:
        await seen.sees("▸ east")
        await seen.until(lambda: ("Cordon" in seen.text) == cordons)
        await seen.press("3")
        await seen.sees("later")
        await seen.until(lambda: ("Cancel" in seen.text) == cancels)


async def test_who_sees_only_his_own_is_reported() -> None:
    """Counts that leave others out say so."""
    async with watching(who={"name": "eve", "role": "user", "tenant": "ml"}) as seen:
        await seen.sees("only ml's jobs", "eve, user of ml")


async def test_a_unreachable_server_is_reported_and_waited_for() -> None:
    """Anything that was seen stays, and goes on by itself when the server is back."""
    async with watching() as seen:
        await seen.sees("▸ east")
        seen.server.leave()
        await seen.sees("the figures are old", "▸ east")
        seen.server.away = False
        seen.server.clusters = seen.server.clusters[:1]
        await seen.until(lambda: "the figures are old" not in seen.text and "▸ west" not in seen.text)
        await seen.until(lambda: seen.server.streams)


async def test_a_refused_token_is_not_tried_again_and_again() -> None:
    """Servers lock out who does; r asks once more."""
    async with watching() as seen:
        await seen.sees("▸ east")
        seen.server.refuses = True
        await seen.press("r")
        await seen.sees("the token is refused", "revoked", "seaway login")
        before = len(seen.server.asked)
        await seen.pilot.pause(1.5)
        assert len(seen.server.asked) - before <= 1
        seen.server.refuses = False
        await seen.press("r")
        await seen.until(lambda: "refused" not in seen.text)


async def test_the_cursor_stays_on_what_it_is_on() -> None:
    """Jobs that come do not put another one under the key that cancels."""
    async with watching() as seen:
        await seen.press("3")
        await seen.sees("train", "later")
        await seen.press("down")
        seen.server.jobs.insert(0, job("fresh"))
        seen.server.tell("state", "id-fresh", "running")
        await seen.sees("fresh")
        chosen = seen.app.view.job
        assert chosen is not None
        assert chosen["name"] == "later"


async def test_keys_are_listed_and_grounds_may_be_light() -> None:
    """For a user who knows neither the keys nor dark terminals."""
    async with watching(light=True) as seen:
        await seen.sees("▸ east")
        assert seen.app.theme == LIGHT
        await seen.press("t")
        assert seen.app.theme != LIGHT
        await seen.press("question_mark")
        await seen.sees("cordon or uncordon the cluster or node")
        await seen.press("escape", "tab", "tab", "tab")
        await seen.sees("no links")
