"""Screenshots of pages and of `seaway top`, and an animated tour, for the docs, from a demo: `script/pictures`."""

from __future__ import annotations

import asyncio
import io
import re
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from playwright.sync_api import BrowserContext, Page
from rich.progress import track

from benchmarks.api.server import Served, served
from benchmarks.record import ROOT
from seaway import AsyncClient, Client
from seaway.client.calls.queues import QueueFields
from seaway.client.calls.service import me
from seaway.terminal.app import Top
from seaway.web.cookies import THEME, TOKEN
from tests.servers.browser import chromium
from tests.servers.missing import MissingError

FOLDER = ROOT / "docs" / "images"
SIZE = (1440, 1000)
"""Size of the window, pixels; a screenshot ends earlier, below its last card."""

MARGIN = 20
"""Margin below the last card, pixels, unless another card follows."""

TOP = "top"
TOP_SIZE = (130, 32)
"""Size of the terminal, columns and rows."""

TOP_KEYS = ("down", "enter", "down", "down", "right", "down", "right")
"""Keys that expand a cluster, its second node, and the first device of that."""

QUEUES: dict[str, QueueFields] = {
    "production": {"guarantee": {"gpus": 40}},
    "serving": {"parent": "production", "guarantee": {"gpus": 12}, "weight": 2},
    "training": {"parent": "production", "guarantee": {"gpus": 16}},
    "research": {"guarantee": {"gpus": 12}, "limit": {"gpus": 64}},
}
"""Queues, parents before their children."""

TENANTS = ("vision", "speech", "research", "recommend")
SETTLE_S = 30.0
"""Time before screenshots, until the use of devices has been measured."""

PICTURES = (
    ("overview", "/", "light"),
    ("fleet", "/fleet?cluster=cluster-2", "light"),
    ("network", "/network?view=map", "dark"),
    ("job", "/jobs/{job}?tab=why", "light"),
    ("drain", "/fleet?cluster=cluster-2", "light"),
    ("whatif", "/whatif?lose=cluster-2", "light"),
    ("jobs", "/jobs", "light"),
    ("queues", "/queues?queue=training", "light"),
    ("schedule", "/schedule?by=queue&queue=training", "dark"),
    ("running", "/jobs/{gang}", "light"),
)
"""Name, path and theme."""

TOUR = "tour"
TOUR_SIZE = (1200, 760)
"""Size of the window during the tour, pixels."""

FRAME_WIDTH = 800
"""Width of the frames of the animation, pixels."""

FRAME_S = 10
"""Time to read a frame, seconds."""

COLOURS = 40
PICTURE_COLOURS = 255
"""Number of colours of a frame of the animation, and of a screenshot."""

SCENES: tuple[tuple[str, str, Callable[[Page], object]], ...] = (
    ("What is not in order comes first: here, jobs that failed. Then how full the clusters are.", "/", lambda _: 0),
    (
        "A card holds slices of several jobs. Whole devices and slices share one node.",
        "/fleet?cluster=cluster-2",
        lambda _: 0,
    ),
    ("Write a job. Its place is tried on the live fleet while you type.", "/submit", lambda page: _write(page, "16GB")),
    (
        "Ask for too much, and the page says which nodes refuse it, and why.",
        "/submit",
        lambda page: _write(page, "600GB"),
    ),
    ("A running job: its place, its devices, and what happened to it.", "/jobs/{gang}", lambda _: 0),
    ("Jobs of all tenants, by state, queue and cluster.", "/jobs", lambda _: 0),
    ("Why does it wait? By cluster and reason, with changes that admit it.", "/jobs/{job}?tab=why", lambda _: 0),
    ("Queues share the fleet: guarantees, limits, borrowed GPUs, and who is ahead.", "/queues", lambda _: 0),
    ("Running jobs, and the planned starts of waiting ones.", "/schedule", lambda _: 0),
    ("Agents measure the links between users and clusters. Jobs can set bounds.", "/network", lambda _: 0),
    ("The policy of each queue, and what another one would have done.", "/policies", lambda _: 0),
    ("What if a cluster fails? See which jobs move where before it does.", "/whatif?lose=cluster-2", lambda _: 0),
)
"""Caption, path, and what the visitor does there, for each scene of the tour."""

CAPTION = """(text) => {
    const bar = document.createElement("div");
    bar.textContent = text;
    bar.style.cssText = "position:fixed;left:0;right:0;bottom:0;z-index:99999;padding:14px 24px;background:#0b2239;"
        + "color:#fff;font:600 22px/1.3 system-ui,sans-serif";
    document.body.append(bar);
}"""
"""Shows a caption at the bottom of the window."""

NAMES = (*(name for name, _, _ in PICTURES), TOP, TOUR)

WHOLE = """([window, margin]) => {
    const framed = (style) => parseFloat(style.borderTopWidth) && parseFloat(style.borderTopLeftRadius);
    const cards = [...document.querySelectorAll("main *")].filter((each) => framed(getComputedStyle(each)));
    const boxes = cards.map((each) => each.getBoundingClientRect()).filter((each) => each.height);
    const cut = (bottom) => boxes.some((each) => each.top < bottom - 1 && bottom + 1 < each.bottom);
    const half = window / 2;
    const last = Math.max(0, ...boxes.map((each) => each.bottom).filter((at) => at <= window && !cut(at)));
    const next = Math.min(...boxes.map((each) => each.top).filter((at) => at >= last));
    return last < half ? window : Math.floor(Math.min(last + margin, (last + next) / 2, window));
}"""
"""Returns the height that ends below the last complete card and above the next one; all if a card is too large."""


def main() -> int:
    """Make all screenshots, or the named ones; return the exit code."""
    parser = ArgumentParser(prog="script/pictures")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(NAMES):
        parser.error(f"no picture {min(unknown)!r}; available: {', '.join(NAMES)}")
    asked.out.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory() as folder, served(Path(folder), fleet="demo") as server:
            draw(server, asked.names or NAMES, asked.out)
    except MissingError as missing:
        print(f"error: {missing}", file=sys.stderr)
        return 1
    return 0


def draw(server: Served, names: Sequence[str], out: Path) -> None:
    """Make screenshots of a server's pages and of its terminal view."""
    ids = fill(server)
    time.sleep(SETTLE_S)
    terminal = asyncio.run(top(server)) if TOP in names else ""
    with chromium() as browser:
        context = browser.new_context(
            viewport={"width": SIZE[0], "height": SIZE[1]}, reduced_motion="reduce", locale="en"
        )
        context.add_cookies([{"name": TOKEN, "value": server.token, "url": server.url}])
        for name, path, theme in track([each for each in PICTURES if each[0] in names], "pictures"):
            context.add_cookies([{"name": THEME, "value": theme, "url": server.url}])
            take(context, server.url + path.format(**ids), out / f"{name}.png", ACTS.get(name, show))
        if TOUR in names:
            context.add_cookies([{"name": THEME, "value": "light", "url": server.url}])
            animate(list(scenes(context, server.url, ids)), out / f"{TOUR}.gif")
        if terminal:
            page = context.new_page()
            page.set_content(terminal)
            page.locator("svg").screenshot(path=out / f"{TOP}.png", omit_background=True)


def scenes(context: BrowserContext, url: str, ids: Mapping[str, str]) -> Iterator[Image.Image]:
    """Yield the frames of the tour."""
    width, height = TOUR_SIZE
    for caption, path, act in track(SCENES, TOUR):
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        load(page, url + path.format(**ids))
        act(page)
        page.evaluate(CAPTION, caption)
        drawn = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        yield drawn.resize((FRAME_WIDTH, FRAME_WIDTH * height // width), Image.Resampling.LANCZOS)
        page.close()


def _write(page: Page, memory: str) -> None:
    """Fill the form of a job, and wait for its trial."""
    page.get_by_label("Name").fill("my-first-job")
    page.get_by_label("GPUs", exact=True).fill("2")
    page.get_by_label("Memory of each GPU").fill(memory)
    page.keyboard.press("Tab")
    page.wait_for_timeout(1_500)


def animate(frames: Sequence[Image.Image], file: Path) -> None:
    """Write frames as an animation that repeats."""
    small = [each.quantize(COLOURS, dither=Image.Dither.NONE) for each in frames]
    small[0].save(file, save_all=True, append_images=small[1:], duration=1000 * FRAME_S, loop=0, optimize=True)


async def top(server: Served) -> str:
    """Return the screen of `seaway top` as an SVG without web fonts."""
    async with AsyncClient(server.url, server.token) as client:
        app = Top(client, await client.body(me()))
        async with app.run_test(size=TOP_SIZE) as pilot:
            await pilot.pause(SETTLE_S)
            for key in TOP_KEYS:
                await pilot.press(key)
                await pilot.pause(1.0)
            drawn = app.export_screenshot(title="seaway top")
    return re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


def fill(server: Served) -> dict[str, str]:
    """Submit jobs of all tenants until some wait, and some that fail.

    Returns
    -------
    dict of str to str
        IDs of a waiting job, and of a running one with replicas on several nodes.
    """
    with Client(server.url, server.token) as client:
        for tenant in TENANTS:
            client.put_tenant(tenant)
        for queue, rules in QUEUES.items():
            client.put_queue(queue, **rules)
        submitted = [client.submit(body) for body in bodies()]
        for number in range(FAILURES):
            client.submit({**one(f"nightly-{number}", "speech", gpus=1, memory="4GB", cores=20), **FAILS})
        gang = client.submit(one("pretrain", "vision", gpus=2, memory="14GB", cores=WHOLE_PERCENT, replicas=4))
        waits = client.submit(
            {
                **one("retrain", "research", gpus=2, memory="40GB", cores=WHOLE_PERCENT, replicas=24),
                "gateway": "gw-4",
                "network": NEAR,
            }
        )
        client.wait(submitted[0].id, "running", timeout_s=60)
        for number in range(WAITING):
            later = one(f"sweep-{number}", "vision", gpus=8, memory="30GB", cores=WHOLE_PERCENT, replicas=2)
            client.submit({**later, "expected_duration": f"{8 + 3 * number}m"})
        client.wait(gang.id, "running", timeout_s=60)
    return {"job": str(waits.id), "gang": str(gang.id)}


WAITING = 7
"""Number of jobs of two whole nodes each, of which most wait for others to end."""

FAILURES = 6
FAILS = {"time_limit": "1s", "retries": 0}
"""Number of jobs that fail, which raises an alert, and what lets them fail."""

WHOLE_PERCENT = 100
NEAR = {"max_latency": "20ms"}


def bodies() -> Iterator[dict[str, Any]]:
    """Generate jobs: slices for inference, and training on whole devices."""
    random = Random(7)
    for number in range(46):
        tenant = TENANTS[number % len(TENANTS)]
        if number % 5 == 0:
            body = one(f"train-{number}", tenant, gpus=random.choice((1, 2, 4)), memory="14GB", cores=WHOLE_PERCENT)
        else:
            cores, memory = random.choice(((20, "4GB"), (30, "8GB"), (50, "12GB"), (25, "6GB")))
            body = one(f"serve-{number}", tenant, gpus=1, memory=memory, cores=cores, replicas=random.choice((1, 2, 3)))
        yield {**body, "expected_duration": f"{random.randint(9, 50)}m"}


def one(name: str, tenant: str, *, gpus: int, memory: str, cores: int, replicas: int = 1) -> dict[str, Any]:
    """Return the body of a submit."""
    resources = {"cpu": "2", "memory": "8GB", "gpus": gpus, "gpu_memory": memory, "gpu_cores": f"{cores}%"}
    run = {"image": "server:1", "command": ["sleep", "inf"]}
    queue = "research" if tenant == "research" else "training" if cores == WHOLE_PERCENT else "serving"
    return {"name": name, "tenant": tenant, "queue": queue, "replicas": replicas, "resources": resources, "run": run}


def show(page: Page) -> int:
    """Return the height down to the last complete card of a page."""
    return int(page.evaluate(WHOLE, [SIZE[1], MARGIN]))


def ask_to_drain(page: Page) -> int:
    """Open the dialog of a drain, wait for its impact, and return the height of the window."""
    page.get_by_role("button", name="Drain").first.click()
    page.locator(".impact-rows, .impact p").first.wait_for()
    page.wait_for_timeout(1_500)
    return SIZE[1]


def show_more(page: Page) -> int:
    """Make the window higher, wait for a chart, and return the height down to the last complete card."""
    page.set_viewport_size({"width": SIZE[0], "height": HIGH})
    page.wait_for_timeout(1_000 * CHART_S)
    return int(page.evaluate(WHOLE, [HIGH, MARGIN]))


CHART_S = 75
"""Time until the use of GPUs is measured several times, seconds."""

HIGH = 2000
"""Height of the window for the page of a running job, pixels."""

ACTS: Mapping[str, Callable[[Page], int]] = {"drain": ask_to_drain, "running": show_more}


def take(context: BrowserContext, url: str, file: Path, act: Callable[[Page], int]) -> None:
    """Make the screenshot of a page, as high as `act` returns."""
    page = context.new_page()
    load(page, url)
    height = act(page)
    store(page.screenshot(clip={"x": 0, "y": 0, "width": SIZE[0], "height": height}), file)
    page.close()


def store(drawn: bytes, file: Path) -> None:
    """Write a screenshot with few colours, which halves its size."""
    Image.open(io.BytesIO(drawn)).convert("RGB").quantize(PICTURE_COLOURS, dither=Image.Dither.NONE).save(
        file, optimize=True
    )


def load(page: Page, url: str) -> None:
    """Open a page, and wait until it shows its figures."""
    page.goto(url)
    page.wait_for_function("() => window.did_handshake === true")
    page.wait_for_timeout(1_500)


if __name__ == "__main__":
    sys.exit(main())
