"""Server under test: `seaway up` in a separate process, on a fleet of 10,000 GPUs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx

FLEET = """\
clusters:
{clusters}
"""
CLUSTER = """\
  - name: cluster-{number}
    nodes:
      - {{count: 125, name: "c{number}-n{{}}", cpu: 128, memory: 1024Gi, gpus: 8, model: {model}, gpu_memory: {memory}}}
"""
MODELS = (("NVIDIA A100-SXM4-80GB", "80Gi"), ("NVIDIA L40S", "45Gi"))
READY_S = 120
DEMO = "demo"


@dataclass(frozen=True, slots=True)
class Served:
    """A server that is ready.

    Attributes
    ----------
    url, token
        Access to it.
    process
        Its process.
    ready_s
        Time until it was ready, seconds.
    """

    url: str
    token: str
    process: subprocess.Popen[bytes]
    ready_s: float

    def cpu_s(self) -> float:
        """Return its CPU time, seconds."""
        return cpu_s(self.process.pid)

    def memory_mib(self) -> int:
        """Return its resident memory, MiB."""
        return self._status_mib("VmRSS")

    def peak_memory_mib(self) -> int:
        """Return its peak memory, MiB."""
        return self._status_mib("VmHWM")

    def _status_mib(self, name: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in status.splitlines() if line.startswith(name))
        return int(line.split()[1]) // 1024

    def get(self, path: str) -> httpx.Response:
        """Send a GET request."""
        return _client().get(f"{self.url}{path}", headers={"authorization": f"Bearer {self.token}"})

    def jobs(self) -> dict[str, int]:
        """Return the number of jobs by state. It is polled often, so it does not read all metrics."""
        states: dict[str, int] = self.get("/api/v1/job-counts").json()["states"]
        return states


@cache
def _client() -> httpx.Client:
    """Return the common client; to create one takes as long as many responses."""
    return httpx.Client(timeout=60)


def cpu_s(process: int) -> float:
    """Return the CPU time of a process, seconds."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(
    folder: Path,
    *,
    start_delay_s: float = 0.05,
    fleet: str = "",
    clusters_url: str = "",
    program: str = "seaway",
    settings: Mapping[str, str] | None = None,
) -> Iterator[Served]:
    """Run a server on the data in `folder`, which may contain a database.

    Parameters
    ----------
    start_delay_s
        Time that simulated clusters take to start a job.
    fleet
        Text of a fleet file, or ``demo``; empty for 10,000 GPUs.
    clusters_url
        URL of simulated clusters in another process; empty for those of the fleet.
    program
        Module that runs `seaway`.
    settings
        Settings as environment variables, in addition.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "fleet.yaml"
    clusters = "".join(
        CLUSTER.format(number=number, model=MODELS[number % 2][0], memory=MODELS[number % 2][1]) for number in range(10)
    )
    file.write_text(fleet or FLEET.format(clusters=clusters), encoding="utf-8")
    environment = os.environ | {"SEAWAY_CLUSTERS_START_DELAY_S": str(start_delay_s)} | dict(settings or {})
    command = [
        sys.executable,
        "-m",
        program,
        "up",
        "--data",
        str(folder),
        "--port",
        "0",
        "--fleet",
        fleet if fleet == DEMO else str(file),
        *(("--simulated", clusters_url) if clusters_url else ()),
    ]
    begin = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        while not (folder / "server.json").exists() or not (folder / "admin-token").exists():
            if process.poll() is not None or time.monotonic() - begin > READY_S:
                raise RuntimeError(f"the server ended with {process.poll()}")
            time.sleep(0.01)
        url = json.loads((folder / "server.json").read_text(encoding="utf-8"))["url"]
        token = (folder / "admin-token").read_text(encoding="utf-8").strip()
        answering = Served(url, token, process, 0)
        while not _ready(answering):
            time.sleep(0.01)
        yield Served(url, token, process, time.monotonic() - begin)
    finally:
        process.terminate()
        process.wait(60)


def _ready(server: Served) -> bool:
    try:
        return server.get("/readyz").is_success
    except httpx.HTTPError:
        return False
