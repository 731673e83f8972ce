"""The command line against the real API over a control plane in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from seaway.cli.main import main
from tests.integration.served import Served, serving

ROUND_S = 0.005
"""Pause between two cycles of the control loop, so that requests are served."""


@dataclass
class Ran:
    """Result of a command."""

    code: int
    out: str
    err: str

    @property
    def body(self) -> Any:  # noqa: ANN401  # any JSON
        """Return the output, decoded from JSON."""
        return json.loads(self.out)


class Cli:
    """A runner of commands, as an admin by default."""

    def __init__(self, served: Served, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.served = served
        self._capsys = capsys
        self._patch = patch
        patch.setenv("SEAWAY_SERVER", served.url)
        self.sign_in("admin")

    def __call__(self, *arguments: str, stdin: str = "") -> Ran:
        """Run a command."""
        self._patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as done:
            main(arguments)
        said = self._capsys.readouterr()
        return Ran(int(done.value.code or 0), said.out, said.err)

    def sign_in(self, token: str) -> None:
        """Use another token of the rig."""
        self._patch.setenv("SEAWAY_TOKEN", self.served.rig.tokens[token])

    def step(self, times: int = 1) -> None:
        """Run cycles of the control loop."""
        self.served.rig.step(times)

    @contextmanager
    def cycling(self) -> Iterator[None]:
        """Run cycles of the control loop during a block."""
        done = Event()

        def go() -> None:
            while not done.wait(ROUND_S):
                self.step()

        thread = Thread(target=go)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


@contextmanager
def command_line(capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, home: Path) -> Iterator[Cli]:
    """Start a server, and a command line connected to it."""
    for variable in ("PROFILE", "DATA", "CA_FILE"):
        patch.delenv(f"SEAWAY_{variable}", raising=False)
    patch.setenv("XDG_DATA_HOME", str(home / "data"))
    patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    patch.setenv("COLUMNS", "160")
    with serving() as served:
        yield Cli(served, capsys, patch)
