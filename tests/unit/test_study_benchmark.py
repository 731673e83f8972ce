"""The study: its list of trainings, retries and resumption, and its results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.study import comparison, effects, training
from benchmarks.study.published import TABLE
from benchmarks.study.training import Runner, Training, last_line, log_of
from seaway.domain.errors import RejectedError
from seaway.learning.evaluation.summary import Row, summarise
from seaway.learning.runs.assemble import new_run
from seaway.learning.runs.folder import RunFolder
from seaway.learning.runs.table import EpisodeTable
from seaway.learning.training.listener import EpisodeResult, Evaluation, Plan
from seaway.learning.training.listener import Row as Episode

FINISHES = """
import sys
from pathlib import Path
folder = Path(sys.argv[sys.argv.index("--out") + 1])
tries = folder / "tries"
folder.mkdir(exist_ok=True)
tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
if "fails" in folder.name or ("once" in folder.name and tries.read_text() == "x"):
    sys.exit("error: out of luck")
(folder / "best.policy").write_text("")
(folder / "episodes.csv").write_text((folder.parent / "episodes.csv").read_text())
"""
"""Replacement of `seaway train`, which fails, fails once or finishes, by the folder's name."""


def write_episodes(path: Path, rewards: list[float], placed: int = 5) -> None:
    """Write the episodes of a run like a run, evaluated after the last."""
    table = EpisodeTable(path)
    table.begins(Plan(path.parent, "ddpg", len(rewards)))
    for at, reward in enumerate(rewards, 1):
        found = Evaluation(9, placed, 0, 0.0, 0.0) if at == len(rewards) else None
        table.played(Episode(at, EpisodeResult("a", reward, 9, 4, 0, 5, None, None, 2.0), found))


def finished(each: Training, rewards: list[float]) -> None:
    """Finish a training."""
    each.folder.mkdir(parents=True)
    write_episodes(RunFolder(each.folder).episodes, rewards)
    RunFolder(each.folder).policy.write_text("")


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace `seaway train` with a script, and return the folder of runs."""
    (tmp_path / "fake_seaway.py").write_text(FINISHES)
    write_episodes(tmp_path / "episodes.csv", [-1.0, -2.0])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(training, "LOOK_EVERY_S", 0.05)
    command = Training.command
    monkeypatch.setattr(Training, "command", lambda self: ["fake_seaway", *command(self)[1:]])
    return tmp_path


def test_comparison_trains_five_algorithms_on_each_instance(tmp_path: Path) -> None:
    """All five and the ablations of Seaway's method train on the first instance first."""
    asked = comparison.Comparison(tmp_path, [Path("x-seed0"), Path("x-seed1")], seeds=(0, 1))
    names = [each.name for each in comparison.trainings(asked)]
    assert len(set(names)) == len(names) == 28
    first = [name.removesuffix("-x-seed0-seed0") for name in names[:7]]
    assert set(first[:5]) == {"eade-ddpg", "ddpg", "td3", "sac", "ppo"}
    assert {each.algo for each in comparison.trainings(asked) if each.name.startswith("eade")} == {"eade-ddpg"}


def test_published_results_need_no_training(tmp_path: Path) -> None:
    """Rows of trained policies from a stored study count for the same length alone; those of heuristics do not."""
    rows = [Row("sac", "cluster", "x-seed0", 0, placed=7), Row("greedy", "cluster", "x-seed0", 0, placed=8)]
    retained = tmp_path / "comparison.json"
    retained.write_text(json.dumps({"episodes": 200, "rows": [row.record() for row in rows]}))

    known = comparison.known_rows(retained, 200)

    assert known == rows[:1]
    asked = comparison.Comparison(tmp_path, [Path("x-seed0")], known=known)
    assert [each.algo for each in comparison.trainings(asked)][:4] == ["eade-ddpg", "ddpg", "td3", "ppo"]
    assert comparison.measured(asked, []) == []
    with pytest.raises(RejectedError, match="trainings of 200 episodes, not 1000"):
        comparison.known_rows(retained, 1000)
    retained.write_text("[]")
    with pytest.raises(RejectedError, match="no kept comparison"):
        comparison.known_rows(retained, 200)


def test_effects_share_the_default_training(tmp_path: Path) -> None:
    """Of the 28 values, seven effects share the default, which is trained once; so is another shared value."""
    asked = effects.Effects(tmp_path, Path("x-seed0"))
    assert sum(map(len, effects.EFFECTS.values())) == 28
    found = effects.trainings(asked)
    assert len(found) == 21
    (defaults,) = (each for each in found if each.name.startswith("defaults"))
    assert all(effects.training_of(asked, values, 0).folder == defaults.folder for values in ({"batch": "256"}, {}))


def test_training_is_a_command_line_with_changed_settings() -> None:
    """The command starts or resumes the run, with every setting that is not the default."""
    made = Training(Path("runs/a"), "eade-ddpg", Path("x"), 3, 200, {"batch": "32"}).command()
    assert made[:2] == ["seaway", "train"]
    assert "--resume" in made
    assert made[-2:] == ["--set", "batch=32"]


def test_failed_training_is_retried_while_others_continue(train: Path) -> None:
    """A training that fails twice is reported with the last line of its log; one that fails once is finished."""
    said: list[str] = []
    work = [Training(train / name, "ddpg", Path("x"), 0, 2) for name in ("fails", "once", "well")]
    failed = Runner(2, said.append).run(work)
    assert [each.name for each in failed] == ["fails"]
    assert all(each.finished for each in work[1:])
    assert last_line(work[0]) == "error: out of luck"
    assert any("fails: failed after" in line and str(log_of(work[0])) in line for line in said)


def test_finished_trainings_are_reused(train: Path) -> None:
    """The same command trains nothing again, unless it asks for more episodes."""
    done = Training(train / "well", "ddpg", Path("x"), 0, 2)
    finished(done, [-1.0, -2.0])
    said: list[str] = []
    assert Runner(1, said.append).run([done]) == []
    assert said == ["1 of 1 trainings were finished before"]
    assert not (done.folder / "tries").exists()
    assert not Training(train / "well", "ddpg", Path("x"), 0, 3).finished


def test_run_with_other_settings_is_stale(tmp_path: Path) -> None:
    """Results of former and present defaults would be mixed. Only the length of a run may change."""
    made = Training(tmp_path / "run", "eade-ddpg", Path("x"), 0, 2, {"batch": "32"})
    before = made.stale
    made.folder.mkdir()
    run = new_run("eade-ddpg", ["x"], [], {"batch": "64", "episodes": 9})
    RunFolder(made.folder).write_config(run, {})
    assert (before, made.stale, replace(made, settings={"batch": "64"}).stale) == (False, True, False)


def test_effects_are_listed_beside_published_scores(tmp_path: Path) -> None:
    """Each finished value has its best score and placed jobs, as means over seeds; others have no row."""
    asked = effects.Effects(tmp_path, Path("x-seed0"), seeds=(0, 1), episodes=2)
    for seed, best in ((0, -10.0), (1, -20.0)):
        finished(effects.training_of(asked, {"expert_share": "0.2"}, seed), [-100.0, best])
    (row,) = effects.table(asked)
    assert (row["effect"], row["value"], row["seeds"]) == ("expert share", "0.2", 2)
    assert (row["best score"], row["published best score"], row["most placed"], row["seconds"]) == (-15, -7765, 5, 4)
    assert row["std of best score"] == pytest.approx(50**0.5, abs=0.1)
    assert len(effects.files(asked)["expert share"]["0.2"]) == 2
    assert effects.files(asked)["batch"]["32"] == []


def test_picture_has_a_panel_per_effect_and_a_line_per_value(tmp_path: Path) -> None:
    """Each trained value has a line with its name; a value without a training has none."""
    pytest.importorskip("matplotlib", reason="needs seaway[chart]")
    from benchmarks.study.picture import draw

    episodes = tmp_path / "episodes.csv"
    write_episodes(episodes, [-3.0, -2.0, -1.0])
    effects = {"batch": {"32": [episodes], "64": []}, "layers": {"8": [episodes]}, "discount": {"0.5": [episodes]}}
    _, drawn = draw(effects, tmp_path / "effects")
    said = drawn.read_text(encoding="utf-8")
    assert all(f"<!-- {each} -->" in said for each in (*effects, "32", "8", "0.5"))
    assert "<!-- 64 -->" not in said


def test_agreement_with_published_order_is_reported() -> None:
    """In the published order all pairs agree; with two neighbours swapped, all but one."""
    rows = [
        Row(
            name,
            "cluster",
            "a",
            0,
            placed=each.placed,
            gpu_load_variance=each.gpu_load_variance,
            gpu_memory_pct=each.gpu_memory_pct,
        )
        for name, each in TABLE.items()
    ]
    said = comparison.findings(summarise(rows))
    assert sum("holds (" in line for line in said) == 3
    assert said[-1].endswith("36 of 36")
    turned = [Row("bestfit", "cluster", "a", 0, placed=185), *(row for row in rows if row.policy != "bestfit")]
    said = comparison.findings(summarise(turned))
    assert said[-2:] == ["pairs in the published order of jobs placed: 35 of 36", "turned round: bestfit before random"]


def test_missing_results_are_listed() -> None:
    """An unfinished study has a table of the measured values and lists the others."""
    lines = summarise([Row("random", "cluster", "a", 0, placed=5)])
    assert comparison.findings(lines)[0].startswith("not measured yet: eade-ddpg, sac")
    table = comparison.beside_published(lines)
    assert [row["policy"] for row in table] == list(TABLE)
    assert [row.get("placed") for row in table if row["policy"] in {"random", "greedy"}] == [5, None]
