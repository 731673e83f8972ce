"""The introductory walk in docs/walk.md, command by command."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.integration.walks import ROOT, commands_of, run

START = "script/up"
READY_S = 240

pytestmark = pytest.mark.slow


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """Return the environment of a new user, and end the server that the walk starts."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEAWAY_S")}
    environment |= {
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "SEAWAY_CACHE": os.environ.get("SEAWAY_CACHE", str(Path.home() / ".cache" / "seaway")),
        "SEAWAY_SERVER_PORT": "0",
        "COLUMNS": "120",
    }
    yield environment
    note = tmp_path / "data" / "seaway" / "server.json"
    assert not note.exists(), "the server that was started is still announced"


def test_every_command_of_the_walk_works(terminal: Mapping[str, str], tmp_path: Path) -> None:
    """Every command of the walk works, and the server ends gracefully."""
    given = commands_of("walk")
    assert given[1] == START
    server = subprocess.Popen([ROOT / START], cwd=ROOT, env=terminal, stdout=subprocess.PIPE, text=True)
    said: list[str] = []
    try:
        await_note(tmp_path / "data" / "seaway", server)
        said += [run(command, terminal) for command in given[3:]]
    finally:
        server.send_signal(signal.SIGTERM)
        out, _ = server.communicate(timeout=60)
    assert server.returncode == 0
    assert "Seaway listens on" in out
    answers = dict(zip(given[3:], said, strict=True))
    assert "cluster-3" in answers["seaway fleet"]
    assert "hello" in answers["seaway jobs"]
    assert "refused, as it should be" in next(text for command, text in answers.items() if "huge" in command)
    assert "waits" in answers["seaway explain whole-cluster"]


def await_note(data: Path, server: subprocess.Popen[str]) -> None:
    """Wait until the server has printed its address, and written its token."""
    until = time.monotonic() + READY_S
    while not (data / "server.json").exists() or not (data / "admin-token").exists():
        assert server.poll() is None, "the server ended"
        assert time.monotonic() < until, "the server does not get ready"
        time.sleep(0.1)
