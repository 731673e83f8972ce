"""A lab with agents that report to a server with the lab's own tokens, repeatedly."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import lab as labs
from lab import netns
from lab.__main__ import main
from seaway.domain.errors import RejectedError
from tests.integration.running import Running, running
from tests.missing import skip_or_fail

pytestmark = pytest.mark.slow

NAME = f"tokens-{os.getpid()}"
NAMED = ("--name", NAME)
UP = ("up", "--agents", "--gateways", "2", "--emulator", "queue", *NAMED)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server."""
    try:
        labs.require_machine()
    except RejectedError as error:
        skip_or_fail(error)
    with running(tmp_path_factory.mktemp("plane")) as server:
        yield server


@pytest.fixture(autouse=True)
def _meant(plane: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the commands use that server, and leave no lab."""
    monkeypatch.setenv("SEAWAY_SERVER", str(plane.client.base_url).rstrip("/"))
    monkeypatch.setenv("SEAWAY_TOKEN", plane.client.headers["authorization"].removeprefix("Bearer "))
    yield
    if NAME in labs.labs():
        labs.down(NAME)


def lab(*arguments: str) -> int:
    """Run a command of the lab; return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    return int(ended.value.code or 0)


def holding(plane: Running) -> list[str]:
    """Return the names of the lab's valid tokens."""
    there = plane.client.get("/api/v1/tokens").json()["tokens"]
    return sorted(each["name"] for each in there if NAME in each["name"] and not each["revoked_at"])


def test_a_lab_is_measured_as_often_as_one_likes(plane: Running) -> None:
    """It can be removed and created again on the same server: its tokens are its own, and end with it."""
    own = [f"lab-{NAME}-gw-1", f"lab-{NAME}-gw-2"]
    for arguments in (UP, (*UP, "--replace")):
        assert lab(*arguments) == 0
        assert holding(plane) == own
    assert lab("down", *NAMED) == 0
    assert holding(plane) == []
    assert lab(*UP) == 0
    assert holding(plane) == own


def test_what_is_printed_can_be_typed(plane: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A lab without agents prints the commands that start them, with its options, and these work unchanged."""
    links = tmp_path / "its links.yaml"
    links.write_text("default: {delay: 3ms}\n", encoding="utf-8")
    without = [each for each in UP if each != "--agents"]
    assert lab(*without, "--links", str(links)) == 0
    typed = next(each for each in capsys.readouterr().out.splitlines() if "--agents" in each)
    assert lab(*shlex.split(typed)[1:]) == 0
    assert len(holding(plane)) == 2
    assert {each.conditions.delay_ns for each in labs.find(NAME).emulation.read().links if all(each.ends)} == {
        3_000_000
    }


def test_a_server_that_is_away_is_informed_of(
    plane: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lab can be removed without its server, and prints the later revocation; a new lab of its name revokes them."""
    assert lab(*UP) == 0
    right = os.environ["SEAWAY_SERVER"]
    monkeypatch.setenv("SEAWAY_SERVER", "http://127.0.0.1:1")
    assert lab("down", *NAMED) == 0
    assert f"seaway --server {right} token delete " in capsys.readouterr().err
    monkeypatch.setenv("SEAWAY_SERVER", right)
    assert len(holding(plane)) == 2
    assert lab(*UP) == 0
    assert len(holding(plane)) == 2


def test_what_cannot_be_measured_is_removed_again(plane: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """If agents cannot be started, neither lab nor tokens are left."""

    def fail(*_: object) -> None:
        raise RejectedError("not today")

    monkeypatch.setattr("lab.lab.start_agents", fail)
    assert lab(*UP) == 2
    assert holding(plane) == []
    assert [each for each in netns.names() if NAME in each] == []
