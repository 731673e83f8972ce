"""A trial of a wheel in an empty environment."""

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
from urllib.request import urlopen

START_S = 240
"""Seconds until a server has to be ready; the first start compiles the engine."""
STOP_S = 60


class TrialError(Exception):
    """The wheel does not work."""


def install(wheel: Path, constraints: Path, folder: Path) -> Path:
    """Install a wheel and its dependencies into a new virtual environment; return the environment's commands."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(constraints), str(wheel)], check=True)
    return folder / "bin"


def try_out(commands: Path, home: Path, version: str) -> None:
    """Run the installed commands with an empty home folder: `seaway up --once`, then a server with a job.

    Raises
    ------
    TrialError
        When a command fails or prints something unexpected.
    """
    home.mkdir()
    variables = {"HOME": str(home), "PATH": f"{commands}{os.pathsep}{os.defpath}", "SEAWAY_DATA": str(home / "data")}
    variables |= {name: value for name, value in os.environ.items() if name in ("LANG", "TMPDIR")}

    def seaway(*arguments: str) -> str:
        done = subprocess.run(
            ["seaway", *arguments], cwd=home, env=variables, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise TrialError(f"seaway {' '.join(arguments)} exits with {done.returncode}:\n{done.stderr}")
        return done.stdout

    if seaway("--version").strip() != f"seaway {version}":
        raise TrialError(f"seaway --version does not print {version}")
    seaway("--help")
    states = json.loads(seaway("up", "--once", "-o", "json"))["states"]
    if not states.get("completed"):
        raise TrialError(f"seaway up --once completes no job: {states}")
    with _server(commands, home, variables) as address:
        seaway("submit", "--name", "trial", "--gpus", "1", "--detach")
        seaway("show", "trial")
        for path in ("/readyz", "/login"):
            with urlopen(address + path, timeout=10) as answer:
                answer.read()


@contextmanager
def _server(commands: Path, home: Path, variables: dict[str, str]) -> Iterator[str]:
    """Run a server on a free port, and stop it by SIGTERM; give its address."""
    log = home / "server.log"
    with log.open("wb") as output:
        command = [str(commands / "seaway"), "up", "--port", "0"]
        process = subprocess.Popen(command, cwd=home, env=variables, stdout=output, stderr=subprocess.STDOUT)
    try:
        note = Path(variables["SEAWAY_DATA"]) / "server.json"
        until = time.monotonic() + START_S
        while not note.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise TrialError(f"seaway up does not start:\n{log.read_text(encoding='utf-8')}")
            time.sleep(0.2)
        yield str(json.loads(note.read_bytes())["url"])
        process.send_signal(signal.SIGTERM)
        if code := process.wait(STOP_S):
            raise TrialError(f"seaway up exits with {code}:\n{log.read_text(encoding='utf-8')}")
    finally:
        process.kill()
        process.wait()
