"""Several runs of `seaway train` by one command."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from seaway.cli.main import make_app
from seaway.domain.errors import RejectedError
from tests.unit.learning.runs.small import write_instance

pytest.importorskip("torch", reason="needs seaway[learn]")

APP = make_app()
SHORT = ["--episodes", "2", "--evaluate-every", "1", "--batch", "4", "--set", "warm_up=4"]


def run(*arguments: str) -> Result:
    """Run the command as typed; raise what it raises."""
    result = CliRunner().invoke(APP, ["train", *arguments], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def toys(tmp_path: Path) -> str:
    """Write two small instances; return the folder that they are in."""
    for name, jobs in (("toy-0", 5), ("toy-1", 6)):
        write_instance(tmp_path / "toys" / name, jobs)
    return str(tmp_path / "toys")


def learned(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Read what all runs in a folder came to, but for how long that took."""
    read = {}
    for path in sorted(folder.glob("*/episodes.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            read[path.parent.name] = [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]
    return read


@pytest.mark.slow
def test_a_run_for_each_instance_and_seed(toys: str, tmp_path: Path) -> None:
    """Two instances and two seeds are four runs, each with a policy at the end, and each is informed of."""
    result = run("--algo", "ddpg", "--instances", toys, "--each", "--seeds", "2", "--out", str(tmp_path / "o"), *SHORT)
    assert result.exit_code == 0
    names = [f"ddpg-toy-{instance}-seed{seed}" for instance in (0, 1) for seed in (0, 1)]
    assert sorted(path.parent.name for path in (tmp_path / "o").glob("*/best.policy")) == names
    assert all(f"{name}: all episodes played: 2; best:" in result.stdout for name in names)


@pytest.mark.slow
def test_processes_learn_the_same(toys: str, tmp_path: Path) -> None:
    """Runs in two processes come to the same, to the last digit, as one after the other."""
    typed = ["--algo", "ddpg,eade-ddpg", "--instances", toys, "--seeds", "3,", *SHORT]
    one = run(*typed, "--out", str(tmp_path / "one"))
    two = run(*typed, "--out", str(tmp_path / "two"), "--workers", "2")
    assert (one.exit_code, two.exit_code) == (0, 0), two.output
    assert len(learned(tmp_path / "one")) == 2
    assert learned(tmp_path / "one") == learned(tmp_path / "two")


@pytest.mark.slow
def test_runs_that_are_there_are_not_written_over(toys: str, tmp_path: Path) -> None:
    """Where one of the runs is there already nothing begins, unless it is to go on."""
    typed = ["--algo", "ddpg", "--instances", toys, "--seeds", "2", "--out", str(tmp_path / "o"), *SHORT]
    run(*typed[:5], "0,", *typed[6:])
    with pytest.raises(RejectedError, match="has a run"):
        run(*typed)
    assert len(learned(tmp_path / "o")) == 1
    assert run(*typed, "--resume").exit_code == 0
    assert len(learned(tmp_path / "o")) == 2


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("--seeds 2 --seed 1", "--seeds: give --seed or --seeds, not both"),
        ("--seeds 2 --workers 0", "--workers: 0 is not at least 1"),
        ("--workers 2", "--workers: is for several runs: add --seeds or --each"),
        ("--ray local", "--ray: is for several runs: add --seeds or --each"),
        ("--seeds many", "--seeds: 'many' is neither how many seeds"),
    ],
)
def test_what_is_wrong_is_reported(typed: str, says: str, toys: str) -> None:
    """Each mistake is reported with the option that has it, and nothing begins."""
    with pytest.raises(RejectedError) as error:
        run("--algo", "ddpg", "--instances", toys, *typed.split())
    assert str(error.value).startswith(says)
