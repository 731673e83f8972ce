"""Fake API servers in one process, and a control plane on them in another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.api.server import Served, cpu_s
from benchmarks.record import ROOT

READY_S = 180


@dataclass(frozen=True, slots=True)
class World:
    """Fake API servers that are ready.

    Attributes
    ----------
    kubeconfigs
        Folder with a kubeconfig of all of them.
    pipeline
        URL that accepts commands for them.
    """

    kubeconfigs: Path
    pipeline: str
    process: subprocess.Popen[str]

    def cpu_s(self) -> float:
        """Return their CPU time, seconds."""
        return cpu_s(self.process.pid)

    def order(self, server: str, do: str, **arguments: Any) -> Any:  # noqa: ANN401  # depends on the command
        """Send a command to a server."""
        answer = httpx.post(self.pipeline, json={"server": server, "do": do, **arguments}, timeout=60)
        answer.raise_for_status()
        return answer.json()


@contextmanager
def world(folder: Path, *options: str) -> Iterator[World]:
    """Run fake API servers, with the options of ``python -m tests.fakes.kubernetes``."""
    kubeconfigs = folder / "kubeconfigs"
    kubeconfigs.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.fakes.kubernetes", *options, "--kubeconfig", str(kubeconfigs / "all")]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield World(kubeconfigs, json.loads(process.stdout.readline())["desk"], process)
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def plane(folder: Path, **settings: str) -> Iterator[tuple[Served, float]]:
    """Run a control plane on an empty data folder; yield it with the start time of its process."""
    folder.mkdir(parents=True)
    environment = os.environ | settings
    began_s = time.monotonic()
    command = [sys.executable, "-m", "seaway", "up", "--data", str(folder), "--port", "0"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        token = folder / "admin-token"
        while not (folder / "server.json").exists() or not token.exists():
            if process.poll() is not None or time.monotonic() - began_s > READY_S:
                raise RuntimeError(f"the control plane ended with {process.poll()}")
            time.sleep(0.01)
        url = json.loads((folder / "server.json").read_text(encoding="utf-8"))["url"]
        yield Served(url, token.read_text(encoding="utf-8").strip(), process, 0.0), began_s
    finally:
        process.terminate()
        process.wait(60)
