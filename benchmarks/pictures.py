"""Make pictures of pages: `script/pictures`, from a demo that runs for them; the README shows some."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import BrowserContext
from rich.progress import track

from benchmarks.api.server import Served, served
from benchmarks.record import ROOT
from seaway import Client
from seaway.testing.browser import chromium
from seaway.testing.missing import MissingError
from seaway.web.cookies import THEME, TOKEN

FOLDER = ROOT / "docs" / "images"
SIZE = (1440, 900)
TENANTS = ("vision", "speech", "research", "recommend")
SETTLE_S = 4.0
"""How long the fleet has until its pictures are taken: what is really used has to have been measured."""

PICTURES = (
    ("overview", "/", "light"),
    ("fleet", "/fleet?cluster=cluster-2", "light"),
    ("network", "/network", "dark"),
    ("job", "/jobs/{job}?tab=why", "light"),
    ("whatif", "/whatif?lose=cluster-2", "light"),
)
"""Name, address, colours."""


def main() -> int:
    """Make all, or those that are named; return the exit code."""
    unknown = set(sys.argv[1:]) - {name for name, _, _ in PICTURES}
    if unknown:
        print(
            f"error: no picture {min(unknown)!r}; there are: {', '.join(name for name, _, _ in PICTURES)}",
            file=sys.stderr,
        )
        return 2
    wanted = [each for each in PICTURES if each[0] in sys.argv[1:] or not sys.argv[1:]]
    try:
        with TemporaryDirectory() as folder, served(Path(folder), fleet="demo") as server, chromium() as browser:
            job = fill(server)
            time.sleep(SETTLE_S)
            context = browser.new_context(
                viewport={"width": SIZE[0], "height": SIZE[1]}, reduced_motion="reduce", locale="en"
            )
            context.add_cookies([{"name": TOKEN, "value": server.token, "url": server.url}])
            for name, path, theme in track(wanted, "pictures"):
                context.add_cookies([{"name": THEME, "value": theme, "url": server.url}])
                take(context, server.url + path.format(job=job), FOLDER / f"{name}.png")
    except MissingError as missing:
        print(f"error: {missing}", file=sys.stderr)
        return 1
    return 0


def fill(server: Served) -> str:
    """Have tenants submit jobs until some wait; return the id of one that waits."""
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
    """Draw jobs: slices that serve, and trainings on whole devices."""
    random = Random(7)
    for number in range(46):
        tenant = TENANTS[number % len(TENANTS)]
        if number % 5 == 0:
            yield one(f"train-{number}", tenant, gpus=random.choice((1, 2, 4)), memory="14GB", cores=100)
        else:
            cores, memory = random.choice(((20, "4GB"), (30, "8GB"), (50, "12GB"), (25, "6GB")))
            yield one(f"serve-{number}", tenant, gpus=1, memory=memory, cores=cores, replicas=random.choice((1, 2, 3)))


def one(name: str, tenant: str, *, gpus: int, memory: str, cores: int, replicas: int = 1) -> dict[str, Any]:
    """Return a job as it is submitted."""
    resources = {"cpu": "2", "memory": "8GB", "gpus": gpus, "gpu_memory": memory, "gpu_cores": f"{cores}%"}
    run = {"image": "server:1", "command": ["sleep", "inf"]}
    return {"name": name, "tenant": tenant, "replicas": replicas, "resources": resources, "run": run}


def take(context: BrowserContext, url: str, file: Path) -> None:
    """Take the picture of a page."""
    page = context.new_page()
    page.goto(url)
    page.wait_for_function("() => window.did_handshake === true")
    page.wait_for_timeout(1_500)
    page.screenshot(path=file)
    page.close()


if __name__ == "__main__":
    sys.exit(main())
