import csv
import json
import re
from pathlib import Path
from typing import NoReturn

import pytest

from seaway.cli.learning.contestants import contestants, seed_list
from seaway.cli.learning.pictures import comparison
from seaway.cli.main import main
from seaway.domain.errors import RejectedError
from seaway.learning.evaluation.measure import Task, Trial
from seaway.learning.evaluation.statistics import Estimate
from seaway.learning.evaluation.summary import COLUMNS, Summary
from seaway.learning.policies.file import write_policy
from seaway.learning.policies.library import ShippedLibrary
from seaway.learning.runs.assemble import new_run
from seaway.learning.runs.folder import RunFolder
from tests.fakes.policies import cluster_policy

NODES = "cluster,node,cpu_milli,memory_mib,gpu,model,gpu_memory_mib\n" + "".join(
    f"c{at},n{at},32000,65536,1,G,16384\n" for at in range(2)
)
JOBS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_memory_mib\n" + "".join(
    f"job-{at},4000,8192,1,600,8192\n" for at in range(3)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write two small instances, and return the folder that has them."""
    for name in ("small-0", "small-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "nodes.csv").write_text(NODES)
        (tmp_path / name / "jobs.csv").write_text(JOBS)
    return tmp_path


def evaluate(*arguments: str) -> int:
    """Run `seaway evaluate` and return its exit code."""
    with pytest.raises(SystemExit) as done:
        main(["evaluate", *arguments])
    return int(done.value.code or 0)


def test_json_is_a_row_a_policy_instance_and_seed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts get a list of objects with every figure by its name; only what is random has several seeds."""
    assert evaluate("--instances", str(folder), "--policy", "bestfit@cluster,random", "--seeds", "2", "-o", "json") == 0
    out = capsys.readouterr()
    rows = json.loads(out.out)
    assert [(row["policy"], row["level"], row["instance"], row["seed"]) for row in rows] == [
        (policy, level, name, seed)
        for name in ("small-0", "small-1")
        for policy, level, seed in (("bestfit", "cluster", 0), ("random", "node", 0), ("random", "node", 1))
    ]
    assert {(row["jobs"], row["placed"], row["refused"], row["failed"]) for row in rows} == {(3, 2, 1, 0)}
    assert list(rows[0]) == list(COLUMNS)
    assert out.err == ""


def test_a_trained_policy_beside_other_plugins_is_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example of the page on trained policies plays like any policy, under the name of its file."""
    text = (Path(__file__).resolve().parents[3] / "docs" / "learned.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(name = .*?)```", text, re.DOTALL)
    (folder / "pilot-near.toml").write_text(example, encoding="utf-8")
    assert evaluate("--instances", str(folder), "--policy", str(folder / "pilot-near.toml"), "-o", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(row["policy"], row["level"], row["placed"]) for row in rows} == {("pilot-near", "node", 2)}
    nodes, jobs = str(folder / "small-0" / "nodes.csv"), str(folder / "small-0" / "jobs.csv")
    with pytest.raises(SystemExit) as done:
        main(["replay", "--nodes", nodes, "--jobs", jobs, "--policy", str(folder / "pilot-near.toml"), "-o", "json"])
    assert not done.value.code
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["policy"], row["placed"]) == ("pilot-near", 2)


def test_several_folders_and_a_file_of_best_packings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--instances takes folders as a shell spells a star out, and --best gives ratios."""
    best = folder / "known.csv"
    best.write_text("instance,placed\nsmall-1,4\n")
    both = [str(folder / "small-0"), str(folder / "small-1")]
    assert evaluate("--instances", *both, "--policy", "bestfit", "--best", str(best), "-o", "csv") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(row["instance"], row["best_known"], row["ratio"]) for row in rows] == [
        ("small-0", "", ""),
        ("small-1", "4", "0.5"),
    ]


def test_the_table_says_how_the_interval_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """People see the order with intervals, jobs placed on each instance, and the method."""
    monkeypatch.setenv("COLUMNS", "200")
    assert evaluate("--instances", str(folder), "--policy", "bestfit,volcano-duplicated") == 0
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines()]
    assert lines[1][:6] == ["1", "bestfit", "node", "2.0", "±", "0.0"]
    assert ["bestfit", "node", "2", "2"] in lines
    assert "Student's t" in text


def test_a_summary_is_a_row_a_policy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--summary gives programs means with deviations and intervals."""
    assert evaluate("--instances", str(folder), "--policy", "bestfit", "--summary", "-o", "csv") == 0
    (row,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert (row["policy"], row["instances"], row["placed"], row["placed.ci95"]) == ("bestfit", "2", "2", "0")


def test_a_ratio_stands_for_all_instances_or_is_left_out(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside jobs placed on all instances no ratio of some stands.

    Not for people, who are reported, nor for programs.
    """
    monkeypatch.setenv("COLUMNS", "200")
    best = folder / "known.csv"
    reported = "ratio: left out, as no best packing is known of small-0"
    asked = ("--instances", str(folder), "--policy", "bestfit", "--best", str(best))
    for known, ratio in (("small-1,4\n", None), ("small-1,4\nsmall-0,4\n", 0.5)):
        best.write_text(f"instance,placed\n{known}")
        assert evaluate(*asked, "--summary", "-o", "json") == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["ratio"], row["best_known"]) == (ratio, ratio and 4)
        assert evaluate(*asked, "--summary", "-o", "csv") == 0
        (row,) = csv.DictReader(capsys.readouterr().out.splitlines())
        assert row["ratio"] == (str(ratio) if ratio else "")
        assert evaluate(*asked) == 0
        text = capsys.readouterr().out
        assert (reported in text, "0.500" in text) == (ratio is None, ratio is not None)


def test_ctrl_c_keeps_what_was_measured(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C, the results so far are printed with their number, and the exit code reports the interruption."""
    from seaway.learning.evaluation import measure as trials

    real, done = trials.run, list[Task]()

    def interrupted(task: Task) -> Trial:
        if done:
            raise KeyboardInterrupt
        done.append(task)
        return real(task)

    monkeypatch.setattr(trials, "run", interrupted)
    assert evaluate("--instances", str(folder), "--policy", "bestfit,greedy", "-o", "json") == 130
    out = capsys.readouterr()
    assert [row["policy"] for row in json.loads(out.out)] == ["bestfit"]
    assert "stopped after 1 of 4 trials" in out.err


def test_pictures_are_drawn_as_png_and_svg(folder: Path, tmp_path: Path) -> None:
    """--plots makes the folder and draws the comparison, and use by cluster for each instance."""
    plots = tmp_path / "made" / "here"
    assert evaluate("--instances", str(folder), "--policy", "bestfit,greedy", "--plots", str(plots), "-o", "csv") == 0
    names = ("comparison", "use-small-0", "use-small-1")
    assert sorted(each.name for each in plots.iterdir()) == sorted(f"{a}.{b}" for a in names for b in ("png", "svg"))
    assert (plots / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_policy_files_are_distinguished_by_their_names(tmp_path: Path) -> None:
    """Two copies of one policy are measured beside each other, and beside the one that they are called after."""
    pytest.importorskip("onnxruntime", reason="needs seaway[policy]")
    for name in ("old", "new"):
        write_policy(tmp_path / f"{name}.policy", cluster_policy("pilot"))
    text = f"{tmp_path / 'old.policy'},{tmp_path / 'new.policy'}"
    assert [each.name for each in contestants(text, "node")] == ["old", "new"]


def test_runs_that_cannot_be_read_are_left_out_of_a_folder_of_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One bad file does not stop the comparison of the others: it is reported which run is missing, and why."""
    pytest.importorskip("onnxruntime", reason="needs seaway[policy]")
    for name in ("good", "without-settings", "without-policy"):
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        folder.write_config(new_run("ddpg", ["somewhere"], [], {}), {})
        write_policy(folder.policy, cluster_policy())
    (tmp_path / "without-settings" / "config.json").write_text("{", encoding="utf-8")
    (tmp_path / "without-policy" / "best.policy").write_bytes(b"PK")
    assert [each.name for each in contestants(str(tmp_path), "node")] == ["ddpg"]
    policy, settings = capsys.readouterr().err.splitlines()
    assert policy.startswith(f"without the run {tmp_path}/without-policy: {tmp_path}/without-policy/best.policy: not a")
    assert settings.startswith(f"without the run {tmp_path}/without-settings: {tmp_path}/without-settings/config.json:")
    (tmp_path / "good" / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(RejectedError, match="no run in it has made a policy that can be used"):
        contestants(str(tmp_path), "node")


def test_trained_policies_that_cannot_run_are_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without onnxruntime the heuristics are compared nevertheless, and it is reported who is missing."""

    def missing(*_: object) -> NoReturn:
        raise RejectedError("trained policies need onnxruntime")

    monkeypatch.setattr(ShippedLibrary, "load", missing)
    names = [each.name for each in contestants(None, "node")]
    assert "seaway" in names
    assert "pilot" not in names
    assert "without the trained policy pilot: trained policies need onnxruntime" in capsys.readouterr().err


def test_figures_stand_beside_their_bars() -> None:
    """Anything that a bar stands for is to be read however short it is: dark, past its end and its interval."""
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    figures = {"placed": Estimate(0.5, 0.1, 0.25, 2)}
    drawn = comparison([Summary("tiny", "node", 1, 2, 0, None, figures)])
    axes = drawn.axes[0]
    assert [(text.get_position(), text.get_color()) for text in axes.texts] == [((0.75, 0), "#222222")]
    assert axes.get_xlim()[1] > 0.75


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ((), "--instances: name folders"),
        (("--instances", "absent"), "folder not found"),
        (("--instances", "{folder}", "--policy", "nonsense"), "--policy: unknown policy 'nonsense'; available: seaway"),
        (
            ("--instances", "{folder}", "--policy", "bestfit@planet"),
            "--policy: 'bestfit@planet': level 'planet' not found",
        ),
        (("--instances", "{folder}", "--policy", "seaway@cluster"), "has no level 'cluster'"),
        (("--instances", "{folder}", "--policy", "pilot@cluster"), "pilot chooses at level node; leave the level out"),
        (("--instances", "{folder}", "--policy", "{folder}"), "is not a run of seaway train"),
        (("--instances", "{folder}", "--policy", "bestfit,"), "--policy: a name is missing"),
        (("--instances", "{folder}", "--policy", "no.policy"), "no.policy: cannot be read"),
        (("--instances", "{folder}", "--policy", "no.toml"), "no.toml"),
        (
            ("--instances", "{folder}", "--policy", "bestfit", "--best", "no.csv"),
            "--best: file 'no.csv' not found",
        ),
        (("--instances", "{folder}", "--policy", "bestfit", "--seeds", "x"), "--seeds: 'x' is neither"),
        (("--instances", "{folder}", "--policy", "bestfit", "--workers", "0"), "--workers: 0 is not at least 1"),
        (("--instances", "{folder}", "--policy", "bestfit", "--offers", "0"), "--offers: 0 is not at least 1"),
        (("--instances", "{folder}", "--policy", "bestfit", "--pack", "0"), "--pack: 0.0 is not more than 0"),
        (("--instances", "{folder}", "--policy", "bestfit", "--plots", "{folder}/small-0/jobs.csv"), "--plots"),
    ],
)
def test_bad_input_is_reported_in_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], reported: str
) -> None:
    """Anything that is wrong is reported with where it stands, before anything is measured."""
    assert evaluate(*(each.format(folder=folder) for each in arguments)) == 2
    out = capsys.readouterr()
    assert reported in out.err
    assert out.out == ""


@pytest.mark.parametrize(("text", "seeds"), [("3", [0, 1, 2]), ("7,", [7]), ("0,2, 2", [0, 2])])
def test_seeds_are_how_many_or_which(text: str, seeds: list[int]) -> None:
    """A number alone is how many; with a comma they are listed."""
    assert seed_list(text) == seeds


@pytest.mark.parametrize("text", ["", "0", "-1", "a,b", "99999999", "1,-2"])
def test_other_seeds_are_rejected(text: str) -> None:
    """None, and those below 0, make no sense."""
    with pytest.raises(RejectedError, match="--seeds"):
        seed_list(text)
