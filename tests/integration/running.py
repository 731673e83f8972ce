"""`seaway up` as a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

TIMEOUT_S = 60

START_S = 180
"""Time limit for a server to be ready: the first start on a machine compiles the engine."""


class Running:
    """A server in a separate process.

    Parameters
    ----------
    data
        Its data folder.
    arguments
        Other arguments of `seaway up`.
    """

    def __init__(self, data: Path, *arguments: str) -> None:
        self._data, self._arguments = data, arguments
        self._output = data.with_name(f"{data.name}.said")  # a pipe without a reader would fill up and block
        self._start(0)
        token = (data / "admin-token").read_text(encoding="utf-8").strip()
        url = json.loads((data / "server.json").read_text(encoding="utf-8"))["url"]
        self.client = httpx.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=30)

    def _start(self, port: int) -> None:
        """Start the process, at a given or a free port, and wait until it listens."""
        data = self._data
        command = [sys.executable, "-m", "seaway", "up", "--data", str(data), "--port", str(port), *self._arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SEAWAY_S")}
        (data / "server.json").unlink(missing_ok=True)
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        until = time.monotonic() + START_S
        while not (data / "server.json").exists() or not (data / "admin-token").exists():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < until, self.said()
            time.sleep(0.02)

    def restart(self) -> None:
        """Kill the server, and start it again at the same address."""
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        self._start(self.client.base_url.port or 80)

    def submit(self, **fields: object) -> str:
        """Submit a job; return its id."""
        body = {"name": "job", "resources": {"gpus": 1, "gpu_memory": "8GB"}, **fields}
        answer = self.client.post("/api/v1/jobs", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def await_state(self, job: str, state: str) -> None:
        """Wait until a job is in a state."""
        until = time.monotonic() + TIMEOUT_S
        while (now := self.client.get(f"/api/v1/jobs/{job}").json())["state"] != state:
            assert time.monotonic() < until, now
            time.sleep(0.02)

    def end(self, how: signal.Signals = signal.SIGTERM) -> str:
        """End the server; return its output."""
        self.client.close()
        self.process.send_signal(how)
        self.process.wait(TIMEOUT_S)
        return self.said()

    def said(self) -> str:
        """Return all output so far, with that of earlier servers on the same data."""
        return self._output.read_text(encoding="utf-8")


@contextmanager
def running(data: Path, *arguments: str) -> Iterator[Running]:
    """Run a server."""
    server = Running(data, *arguments)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)
