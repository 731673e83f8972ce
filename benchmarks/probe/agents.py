"""Complete agents on the loopback of this network namespace, which report to their own control plane.

Run it as a program in an empty namespace (``unshare --net``); it prints the result as JSON.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks.api.server import Served, cpu_s, served
from benchmarks.probe.mesh import prepare

GATEWAYS = 100
SETTLED_S = 15
"""Time after the first report of all agents, until neighbours are resolved and start-up work is done."""
READY_S = 60


def main() -> None:
    """Measure the number of agents for the number of seconds in the arguments."""
    agents, seconds = (int(each) for each in sys.argv[1:3])
    addresses = prepare(GATEWAYS)
    with TemporaryDirectory() as name, served(Path(name) / "server") as server:
        put(server, "PUT", "/network", network(addresses))
        with running(server, Path(name), agents) as processes:
            wait_for_reports(server, agents)
            time.sleep(SETTLED_S)
            before_s = [cpu_s(each) for each in (*processes, server.process.pid)]
            rounds = reported(server, agents)
            time.sleep(seconds)
            after_s = [cpu_s(each) for each in (*processes, server.process.pid)]
            *agents_s, server_s = (after - before for before, after in zip(before_s, after_s, strict=True))
            print(
                json.dumps(
                    {
                        "agents_s": agents_s,
                        "server_s": server_s,
                        "rounds": reported(server, agents) - rounds,
                        "lossy": lossy(server, agents),
                        "memory_kib": [memory_kib(each) for each in processes],
                    }
                )
            )


def network(addresses: list[IPv6Address]) -> dict[str, Any]:
    """Return a network in which each gateway probes all others."""
    gateways = [
        {"name": f"gw-{number}", "cluster": f"c-{number}", "address": str(address)}
        for number, address in enumerate(addresses, 1)
    ]
    return {"mesh": False, "gateways": gateways}


def put(server: Served, verb: str, path: str, body: object) -> Any:  # noqa: ANN401  # any JSON
    """Send a request as an admin."""
    headers = {"Authorization": f"Bearer {server.token}"}
    answer = httpx.request(verb, f"{server.url}/api/v1{path}", json=body, headers=headers, timeout=60)
    answer.raise_for_status()
    return answer.json()


@contextmanager
def running(server: Served, folder: Path, agents: int) -> Iterator[list[int]]:
    """Start `seaway agent` for the first gateways; yields their process IDs."""
    processes = []
    try:
        for number in range(1, agents + 1):
            gateway = f"gw-{number}"
            body = {"name": gateway, "role": "agent", "gateway": gateway, "tenant": ""}
            token = put(server, "POST", "/tokens", body)["secret"]
            command = [sys.executable, "-m", "seaway", "agent", "--gateway", gateway, "--server", server.url]
            environment = os.environ | {"SEAWAY_TOKEN": token}
            with (folder / f"{gateway}.log").open("w", encoding="utf-8") as log:
                processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        yield [each.pid for each in processes]
    finally:
        for each in processes:
            each.terminate()
        for each in processes:
            each.wait(30)


def seen(server: Served, agents: int) -> list[dict[str, Any]]:
    """Return the server's view of the agents."""
    names = {f"gw-{number}" for number in range(1, agents + 1)}
    return [each for each in server.get("/api/v1/network/agents").json()["agents"] if each["gateway"] in names]


def wait_for_reports(server: Served, agents: int) -> None:
    """Wait until each agent has reported."""
    until_s = time.monotonic() + READY_S
    while any(each["state"] != "reporting" for each in seen(server, agents)):
        if time.monotonic() > until_s:
            raise RuntimeError("not all agents report")
        time.sleep(0.2)


def reported(server: Served, agents: int) -> int:
    """Return the number of rounds that the server accepted so far."""
    return sum(each["rounds"] for each in seen(server, agents))


def lossy(server: Served, agents: int) -> int:
    """Return the number of links from these gateways with loss in the latest rounds."""
    names = {f"gw-{number}" for number in range(1, agents + 1)}
    links = server.get("/api/v1/fleet/links").json()["links"]
    measured = [each["smoothed"] for each in links if each["source"] in names and each["smoothed"]]
    if len(measured) != agents * (GATEWAYS - 1):
        raise RuntimeError(f"{len(measured)} links are measured")
    return sum(each["loss_ppm"] > 0 for each in measured)


def memory_kib(process: int) -> int:
    """Return the memory of a process with its proportion of shared pages (PSS), KiB."""
    text = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
    found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    main()
