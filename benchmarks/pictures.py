"""Screenshots of pages and of `seaway top` for the README, from a demo: `script/pictures`."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import BrowserContext
from rich.progress import track

from benchmarks.api.server import Served, served
from benchmarks.record import ROOT
from seaway import AsyncClient, Client
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

TENANTS = ("vision", "speech", "research", "recommend")
SETTLE_S = 4.0
"""Time before screenshots, until the use of devices has been measured."""

PICTURES = (
    ("overview", "/", "light"),
    ("fleet", "/fleet?cluster=cluster-2", "light"),
    ("network", "/network", "dark"),
    ("job", "/jobs/{job}?tab=why", "light"),
    ("whatif", "/whatif?lose=cluster-2", "light"),
)
"""Name, path and theme."""

NAMES = (*(name for name, _, _ in PICTURES), TOP)

WHOLE = """([window, margin]) => {
    const framed = (style) => parseFloat(style.borderTopWidth) && parseFloat(style.borderTopLeftRadius);
    const cards = [...document.querySelectorAll("main *")].filter((each) => framed(getComputedStyle(each)));
    const boxes = cards.map((each) => each.getBoundingClientRect()).filter((each) => each.height);
    const cut = (bottom) => boxes.some((each) => each.top < bottom - 1 && bottom + 1 < each.bottom);
    const last = Math.max(0, ...boxes.map((each) => each.bottom).filter((at) => at <= window && !cut(at)));
    const next = Math.min(...boxes.map((each) => each.top).filter((at) => at >= last));
    return Math.floor(Math.min(last + margin, (last + next) / 2, window));
}"""
"""Returns the height that ends below the last complete card and above the next one."""


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
    job = fill(server)
    time.sleep(SETTLE_S)
    terminal = asyncio.run(top(server)) if TOP in names else ""
    with chromium() as browser:
        context = browser.new_context(
            viewport={"width": SIZE[0], "height": SIZE[1]}, reduced_motion="reduce", locale="en"
        )
        context.add_cookies([{"name": TOKEN, "value": server.token, "url": server.url}])
        for name, path, theme in track([each for each in PICTURES if each[0] in names], "pictures"):
            context.add_cookies([{"name": THEME, "value": theme, "url": server.url}])
            take(context, server.url + path.format(job=job), out / f"{name}.png")
        if terminal:
            page = context.new_page()
            page.set_content(terminal)
            page.locator("svg").screenshot(path=out / f"{TOP}.png", omit_background=True)


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


def fill(server: Served) -> str:
    """Submit jobs of all tenants until some wait; return the ID of a waiting job."""
    with Client(server.url, server.token) as client:
        for tenant in TENANTS:
            client.put_tenant(tenant)
        submitted = [client.submit(body) for body in bodies()]
        waits = client.submit(
            {
                **one("retrain", "research", gpus=2, memory="40GB", cores=100, replicas=24),
                "gateway": "gw-4",
                "network": NEAR,
            }
        )
        client.wait(submitted[0].id, "running", timeout_s=60)
    return str(waits.id)


NEAR = {"max_latency": "20ms"}


def bodies() -> Iterator[dict[str, Any]]:
    """Generate jobs: slices for inference, and training on whole devices."""
    random = Random(7)
    for number in range(46):
        tenant = TENANTS[number % len(TENANTS)]
        if number % 5 == 0:
            yield one(f"train-{number}", tenant, gpus=random.choice((1, 2, 4)), memory="14GB", cores=100)
        else:
            cores, memory = random.choice(((20, "4GB"), (30, "8GB"), (50, "12GB"), (25, "6GB")))
            yield one(f"serve-{number}", tenant, gpus=1, memory=memory, cores=cores, replicas=random.choice((1, 2, 3)))


def one(name: str, tenant: str, *, gpus: int, memory: str, cores: int, replicas: int = 1) -> dict[str, Any]:
    """Return the body of a submit."""
    resources = {"cpu": "2", "memory": "8GB", "gpus": gpus, "gpu_memory": memory, "gpu_cores": f"{cores}%"}
    run = {"image": "server:1", "command": ["sleep", "inf"]}
    return {"name": name, "tenant": tenant, "replicas": replicas, "resources": resources, "run": run}


def take(context: BrowserContext, url: str, file: Path) -> None:
    """Make the screenshot of a page, down to its last complete card."""
    page = context.new_page()
    page.goto(url)
    page.wait_for_function("() => window.did_handshake === true")
    page.wait_for_timeout(1_500)
    height = page.evaluate(WHOLE, [SIZE[1], MARGIN])
    page.screenshot(path=file, clip={"x": 0, "y": 0, "width": SIZE[0], "height": height})
    page.close()


if __name__ == "__main__":
    sys.exit(main())
