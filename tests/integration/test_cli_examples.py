"""The examples of the client and their documented output."""

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_runs import Cli, command_line

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = pytest.mark.slow  # each has its own server


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cli]:
    """Start a server, and settings for it."""
    with command_line(capsys, monkeypatch, tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("submit_and_wait", ["→ ", "hello is", "on node-", "hello is completed"]),
        ("follow_events", ["sweep-0: running", "ended as completed, completed, completed", "sweep-2 took 1 attempt"]),
        ("handle_errors", ["resources.gpu_memory 8 is not valid", "for one key: True", "priority 2", " not found"]),
    ],
)
def test_example_prints_its_output(cli: Cli, capsys: pytest.CaptureFixture[str], name: str, says: list[str]) -> None:
    """Each example runs unchanged."""
    with cli.cycling():
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert [text for text in says if text not in out] == [], out
