"""Anything that `seaway train` does with what is typed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from seaway.cli.learning.runs import folder_of
from seaway.cli.learning.watch import Ended, RunWatch, announce, ended_by_signals
from seaway.cli.main import make_app
from seaway.domain.errors import RejectedError
from seaway.learning.algos import ALGOS
from seaway.learning.runs.assemble import new_run
from seaway.learning.runs.folder import RunFolder
from seaway.learning.training.listener import Plan, Row, TrainingResult
from tests.unit.learning.runs.small import evaluated, play, write_instance

APP = make_app()


def run(*arguments: str) -> Result:
    """Run the command as typed; raise what it raises."""
    result = CliRunner().invoke(APP, ["train", *arguments], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def toy(tmp_path: Path) -> str:
    """Write a small instance; return its folder."""
    return str(write_instance(tmp_path / "toy", 6))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "--algo: choose an algorithm: eade-ddpg"),
        ("--algo eade", "--algo: 'eade' not found"),
        ("--algo td3", "--instances: nothing to learn on"),
        ("--algo td3 --instances missing", "missing: folder not found"),
        ("--algo td3 --draw cats", "--draw: instances of the kind 'cats' cannot be generated; available: placement"),
        ("--algo td3 --instances TOY --batch 0", "--batch: 0 is not from 1 to 10000000"),
        ("--algo td3 --instances TOY --set batsh=1", "--set batsh: td3 has no 'batsh'; did you mean 'batch'"),
        ("--algo td3 --instances TOY --set batch=1 --batch 2", "--set: batch is also given by --batch"),
        ("--algo td3 --instances TOY --set batch", "--set: 'batch' is not a name=value"),
        ("--algo ppo --instances TOY --expert-share 0.1", "--expert-share: ppo has no 'expert_share'"),
        ("--algo ddpg --instances TOY --set live_pool=500", "--set live_pool: live_pool keeps 500 transitions, and le"),
        ("--algo ddpg --instances TOY --set updates=0", "--set updates: 0 is not at least 1"),
        ("--algo ppo --instances TOY --batch 1", "--batch: 1 is not at least 2, as ppo needs it"),
        ("--resume", "--resume: name the run to resume"),
        ("--resume --out missing", "missing: no run found"),
    ],
)
def test_what_is_wrong_is_reported_before_anything_is_written(
    arguments: str, says: str, toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mistake is one line with the option that has it, and leaves no folder behind."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RejectedError) as error:
        run(*arguments.replace("TOY", toy).split())
    assert str(error.value).startswith(says)
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


@pytest.mark.parametrize("more", [[], ["--seeds", "2"], ["--seeds", "2", "--workers", "2"]])
def test_what_is_missing_is_reported_with_how_to_get_it(
    more: list[str], toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation without some package names it and the extra that has it, once, and leaves no folder behind."""
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    says = r"training needs .*tensorboard.*: pip install 'seaway\[learn\]'"
    with pytest.raises(RejectedError, match=says):
        run("--algo", "eade-ddpg", "--instances", toy, "--out", str(tmp_path / "run"), *more)
    assert not (tmp_path / "run").exists()


def test_a_run_learns_is_informed_of_and_goes_on(toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what was reached and what to type next; the same command with --resume goes on, or begins."""
    pytest.importorskip("torch", reason="needs seaway[learn]")
    monkeypatch.setattr("seaway.learning.runs.run.export", lambda *_: None)
    out = str(tmp_path / "run")
    words = ["--algo", "ddpg", "--instances", toy, "--hidden", "8", "--batch", "4", "--out", out, "--resume"]
    first = run(*words, "--episodes", "6")
    assert first.stdout.startswith("ddpg, all episodes played: 6; best: ")
    assert f"compare: seaway evaluate --instances {toy} --policy {out}/best.policy,seaway" in first.stdout
    assert f"curves:  tensorboard --logdir {out}" in first.stdout
    assert "episode 5 of 6: reward " in first.stderr
    again = run("--out", out, "--resume", "--episodes", "7")
    assert "ddpg continues after episode 6 of 7" in again.stderr
    with pytest.raises(RejectedError, match="--algo: the run began with ddpg, not td3"):
        run("--algo", "td3", "--out", out, "--resume")
    with pytest.raises(RejectedError, match="--batch: the run began with 4, not 8"):
        run("--out", out, "--resume", "--batch", "8")
    with pytest.raises(RejectedError, match="has a run"):
        run(*words[:-1])


@pytest.mark.parametrize("more", [[], ["--set", "candidates=2"]])
def test_a_setting_that_changes_nothing_is_reported_once(
    more: list[str], toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on as it was asked for; what would make the setting count stands beside it."""
    pytest.importorskip("torch", reason="needs seaway[learn]")
    monkeypatch.setattr("seaway.learning.runs.run.export", lambda *_: None)
    words = ["--algo", "ddpg", "--instances", toy, "--hidden", "8", "--episodes", "1", "--actor-rate", "0.01", *more]
    says = "--actor-rate changes nothing: an actor is trained with candidates above 0, or a discount above 0"
    for number, several in enumerate(([], ["--seeds", "2"])):
        reported = run(*words, *several, "--out", str(tmp_path / str(number)))
        assert reported.exit_code == 0
        assert reported.stderr.count(says) == (not more)


def test_the_first_signal_requests_and_the_second_ends() -> None:
    """After the first, signals do again what they did before."""
    ended, before = Ended(), {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    with ended_by_signals(ended):
        assert not RunWatch(ended).stopping
        os.kill(os.getpid(), signal.SIGTERM)
        assert (ended.signal, RunWatch(ended).stopping) == (signal.SIGTERM, True)
        assert {each: signal.getsignal(each) for each in before} == before
    assert {each: signal.getsignal(each) for each in before} == before


def test_where_no_one_sees_a_bar_each_best_is_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A log has the episodes that matter, not all."""
    with RunWatch(Ended()) as watch:
        watch.begins(Plan(tmp_path, "ddpg", 9))
        for episode, placed in enumerate((5, 7, 6), 1):
            watch.played(Row(episode, play(), evaluated(placed), best=placed != 6))
    assert capsys.readouterr().err.splitlines() == [
        "episode 1 of 9: reward -12 · placed 7 of 10 · best 5 of 10 (episode 1)",
        "episode 2 of 9: reward -12 · placed 7 of 10 · best 7 of 10 (episode 2)",
    ]


@pytest.mark.parametrize("policy", [None, Path("best.policy")])
def test_a_run_that_was_stopped_says_how_to_go_on(
    policy: Path | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The line can be copied; what it learned until then is named where there is something."""
    folder = RunFolder(tmp_path)
    folder.write_config(new_run("ddpg", ["x"], [], {}), {})
    announce(tmp_path, TrainingResult(37, evaluated(8), 35, "stopped", unfinished=True, policy=policy))
    assert capsys.readouterr().out.splitlines() == [
        "ddpg stopped after episode 37 of 1000; best: 8 of 10 jobs placed, after episode 35",
        *(["policy:  best.policy, the best until now"] if policy else []),
        f"resume:  seaway train --out {tmp_path} --resume",
    ]


def test_a_run_without_a_place_is_named_after_what_it_is() -> None:
    """Algorithm, instance and seed: runs of a comparison do not meet."""
    one = new_run("td3", ["data/first"], [], {"seed": 3})
    several = new_run("td3", ["data/first", "data/second"], ["any"], {})
    assert folder_of(one) == Path("runs/td3-first-seed3")
    assert folder_of(several) == Path("runs/td3-first-and-2-more-seed0")


def test_the_help_names_every_algorithm() -> None:
    """A user who reads it can choose."""
    text = run("--help").output
    assert all(name in text for name in ALGOS)
