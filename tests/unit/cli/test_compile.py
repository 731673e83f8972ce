"""`seaway compile`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from seaway.bootstrap import policies
from seaway.bootstrap.policies import POLICIES, compilable
from seaway.cli.main import make_app
from seaway.domain.errors import RejectedError
from seaway.scheduling.kernels import compile as kernels

APP = make_app()


@pytest.fixture
def warmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the policies that are compiled from now on, with an empty cache."""
    found: list[str] = []

    def warm(name: str) -> None:
        found.append(name)
        kernels.mark_compiled(name)

    monkeypatch.setattr(kernels, "CACHE_FOLDER", tmp_path)
    monkeypatch.setattr(policies, "warm", warm)
    return found


def test_compiles_what_admission_needs_and_then_nothing(warmed: list[str]) -> None:
    """The default is what every server needs at its start; what is in the cache is not compiled again."""
    said = CliRunner().invoke(APP, ["compile"])
    assert said.exit_code == 0
    assert warmed == [*POLICIES]
    assert "Compiled greedy, bestfit in 0 s" in said.output
    assert CliRunner().invoke(APP, ["compile"]).output == ""
    assert CliRunner().invoke(APP, ["compile", "spread"]).exit_code == 0
    assert CliRunner().invoke(APP, ["compile", "--all"]).exit_code == 0
    assert sorted(warmed) == sorted(compilable())


def test_what_a_server_calls_later_is_compiled_too() -> None:
    """Changes of nodes, expected starts and backfill compile nothing, since this would delay requests."""
    program = """
from seaway.bootstrap.policies import POLICIES, warm
from seaway.scheduling.kernels.allocate import refresh_changed
from seaway.scheduling.queueing import backfill

warm(POLICIES[0])
for each in (refresh_changed, backfill._add, backfill._earliest_start, backfill._longest, backfill.next_startable):
    print(each.__name__, len(each.signatures))
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [line.split()[1] for line in said.stdout.splitlines()] == ["1"] * 5, said.stdout


def test_only_built_in_policies_can_be_compiled(warmed: list[str]) -> None:
    """Trained policies and profile files can change, so a server compiles them itself."""
    said = CliRunner().invoke(APP, ["compile", "pilot"])
    assert isinstance(said.exception, RejectedError)
    assert "'pilot' is not a built-in policy" in str(said.exception)
    assert not warmed


def test_compilation_in_another_process_can_be_stopped(warmed: list[str]) -> None:
    """A server that is stopped during the compilation does not wait for its end."""
    policies.compile_apart(["greedy"], stopped=lambda: True)
    assert not kernels.is_compiled("greedy")
    assert not warmed
