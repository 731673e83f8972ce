"""Runs are stored, can be resumed exactly, and are rejected if invalid."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs seaway[learn]")
pytest.importorskip("stable_baselines3", reason="needs seaway[learn]")

from seaway.domain.errors import RejectedError  # noqa: E402  # where torch is
from seaway.learning.algos import ALGOS, make_learner  # noqa: E402
from seaway.learning.evaluation.trained import from_runs  # noqa: E402
from seaway.learning.policies.check import read_policy  # noqa: E402
from seaway.learning.runs import folder as checkpoint  # noqa: E402
from seaway.learning.runs.assemble import new_run  # noqa: E402
from seaway.learning.runs.folder import RunFolder  # noqa: E402
from seaway.learning.runs.instances import digest_of, read_all  # noqa: E402
from seaway.learning.runs.run import resume, train  # noqa: E402
from seaway.learning.runs.table import read_rows  # noqa: E402
from seaway.learning.training.listener import NullListener  # noqa: E402
from tests.unit.learning.runs.small import (  # noqa: E402
    NODES,
    SETTINGS,
    Hasty,
    Kill,
    Killer,
    Notes,
    small_run,
    write_instance,
)

QUICK = ("eade-ddpg", "ddpg", "td3", "ppo")
OTHERS = tuple(name for name in SETTINGS if name not in QUICK)


@pytest.fixture
def policy_files() -> None:
    """Fixture of tests that need policy files, whose export takes seconds."""


@pytest.fixture(autouse=True)
def _without_policy_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write none where the test is not about that."""
    if "policy_files" not in request.fixturenames:
        monkeypatch.setattr("seaway.learning.runs.run.export", lambda *_: None)


def same(one: object, other: object) -> bool:
    """Report whether two states are equal to the bit."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "shape") and hasattr(other, "shape"):
        return bool(one.shape == other.shape and (one == other).all())  # type: ignore[attr-defined]
    return one == other


def end_of(path: Path) -> dict[str, object]:
    """Return the final state of a run."""
    return checkpoint.read(RunFolder(path).checkpoint)


def learned(path: Path) -> list[dict[str, str]]:
    """Return the rows of a run's episodes without durations."""
    return [{name: text for name, text in row.items() if name != "seconds"} for row in read_rows(path / "episodes.csv")]


def test_there_is_a_small_run_of_each_algorithm() -> None:
    """Tests with all algorithms use these settings."""
    assert set(ALGOS) == set(SETTINGS)


@pytest.mark.parametrize("algo", [*QUICK, *(pytest.param(algo, marks=pytest.mark.slow) for algo in OTHERS)])
def test_a_killed_run_resumes_exactly(algo: str, toy: Path, tmp_path: Path) -> None:
    """Weights, optimisers, replay buffers and random numbers equal those of an uninterrupted run to the bit."""
    run = small_run(algo, toy, write_instance(tmp_path / "zoo", 6), checkpoint_every=3)
    train(run, tmp_path / "whole")
    with pytest.raises(Kill):
        train(run, tmp_path / "killed", Killer(5))
    notes = Notes()
    resume(tmp_path / "killed", {}, listener=notes)
    assert 0 < notes.plans[0].done < 5
    assert same(end_of(tmp_path / "whole"), end_of(tmp_path / "killed"))
    assert learned(tmp_path / "whole") == learned(tmp_path / "killed")


@pytest.mark.slow
def test_a_killed_process_resumes_exactly(toy: Path, tmp_path: Path) -> None:
    """A process that gets SIGKILL between two checkpoints, and is resumed, has the same result."""
    words = ["--algo", "eade-ddpg", "--instances", str(toy), "--episodes", "30", "--set", "checkpoint_every=1"]
    words += ["--hidden", "8", "--batch", "8", "--attention", "8", "--set", "warm_up=20"]
    command = [sys.executable, "-m", "seaway", "train", *words, "--out"]
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    with subprocess.Popen([*command, str(tmp_path / "killed")], stderr=subprocess.DEVNULL) as process:
        table = tmp_path / "killed" / "episodes.csv"
        while len(read_rows(table)) < 6 and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert int(str(end_of(tmp_path / "killed")["episodes"])) < 30
    subprocess.run([*command, str(tmp_path / "killed"), "--resume"], check=True, capture_output=True)
    assert same(end_of(tmp_path / "whole"), end_of(tmp_path / "killed"))
    assert learned(tmp_path / "whole") == learned(tmp_path / "killed")


def test_results_depend_on_the_seed(toy: Path, tmp_path: Path) -> None:
    """Equal seeds have equal results, and other seeds have others."""
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        train(small_run("eade-ddpg", toy, seed=seed), tmp_path / name)
    one, again, other = (end_of(tmp_path / name) for name in ("one", "same", "other"))
    assert same(one, again)
    assert not same(one, other)


@pytest.mark.slow
@pytest.mark.usefixtures("policy_files")
def test_files_of_a_run(toy: Path, tmp_path: Path) -> None:
    """They are settings, digests and versions, the table, events, the best weights and a readable policy file."""
    notes = Notes()
    reached = train(small_run("eade-ddpg", toy), tmp_path / "run", notes)
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    assert config["run"]["learner"]["attention"] == 8
    assert set(config["digests"]) == {"toy"}
    assert "torch" in config["versions"]
    assert [int(row["episode"]) for row in read_rows(tmp_path / "run" / "episodes.csv")] == list(range(1, 10))
    assert [row.episode for row in notes.rows if row.evaluated] == [2, 4, 6, 8, 9]
    assert list((tmp_path / "run").glob("events.out.tfevents.*"))
    assert reached.policy
    manifest = read_policy(reached.policy).manifest
    assert (manifest.algo, manifest.clusters, manifest.name) == ("eade-ddpg", 3, "run")
    assert reached.best
    assert manifest.figures["trained_on_placed"] == reached.best.placed


@pytest.mark.slow
@pytest.mark.usefixtures("policy_files")
@pytest.mark.parametrize("algo", [name for name in SETTINGS if name != "pilot"])
def test_the_policy_file_has_the_best_weights(algo: str, toy: Path, tmp_path: Path) -> None:
    """Its trials equal the answers of the evaluated weights."""
    run = small_run(algo, toy)
    reached = train(run, tmp_path / "run")
    learner = make_learner(run, read_all(run))
    learner.load_weights(checkpoint.read(tmp_path / "run" / "best.pt")["weights"])
    assert reached.policy
    actor = learner.trained_actor().actor
    for trial in read_policy(reached.policy).trials:
        with torch.inference_mode():
            answer = float(actor(torch.from_numpy(trial.inputs["observation"]))[0, 0])
        assert answer == pytest.approx(float(trial.outputs["action"][0, 0]), abs=1e-5)


@pytest.mark.parametrize("algo", ["ddpg", "td3"])
def test_diverged_weights_are_reported(algo: str, toy: Path) -> None:
    """The error is raised at the first decision, also in an evaluation, and has a remedy."""
    run = small_run(algo, toy)
    learner = make_learner(run, read_all(run))
    learner.load_weights({name: weights * float("nan") for name, weights in learner.weights().items()})
    with pytest.raises(RejectedError, match="the weights have diverged: give it lower learning rates"):
        learner.evaluate()


@pytest.mark.parametrize("share", [0.25, 0.0])
def test_each_step_adds_a_demonstration(share: float, toy: Path, tmp_path: Path) -> None:
    """Without a share of demonstrations, the expert is not used."""
    train(small_run("eade-ddpg", toy, expert_share=share), tmp_path / "run", Notes(until=1))
    agent = end_of(tmp_path / "run")["learner"]["agent"]  # type: ignore[index]
    lived, taught = (agent[pool]["rows"] for pool in ("live", "expert"))
    size = (lived.shape[1] - 3) // 2
    assert len(lived) > 0
    assert len(taught) == (len(lived) if share else 0)
    assert torch.equal(taught[:, :size], lived[: len(taught), :size])


def test_a_stopped_run_can_be_resumed(toy: Path, tmp_path: Path) -> None:
    """It ends after the current episode, with a checkpoint."""
    reached = train(small_run("ddpg", toy), tmp_path / "run", Notes(until=3))
    assert (reached.episodes, reached.unfinished) == (3, True)
    notes = Notes()
    reached = resume(tmp_path / "run", {}, listener=notes)
    assert (notes.plans[0].done, reached.episodes, reached.unfinished) == (3, 9, False)


@pytest.mark.usefixtures("policy_files")
def test_a_stopped_run_exports_its_best_policy(toy: Path, tmp_path: Path) -> None:
    """A later end replaces it; without a best policy there is no file."""
    run = small_run("ddpg", toy)
    assert train(run, tmp_path / "early", Notes(until=1)).policy is None
    reached = train(run, tmp_path / "run", Notes(until=3))
    assert reached.policy
    assert reached.best
    manifest = read_policy(reached.policy).manifest
    assert manifest.figures["trained_on_placed"] == reached.best.placed
    assert [point.episode for point in manifest.curve] == [2]
    (contestant,) = from_runs(tmp_path, lambda _: None)
    assert contestant.name == "ddpg"
    assert resume(tmp_path / "run", {}).policy == reached.policy
    assert [point.episode for point in read_policy(reached.policy).manifest.curve] == [2, 4, 6, 8, 9]


def test_a_stop_with_later_best_weights_than_the_checkpoint(toy: Path, tmp_path: Path) -> None:
    """After a kill, the run has no policy until it plays that episode again."""
    train(small_run("ddpg", toy), tmp_path / "run", Notes(until=3))
    best = tmp_path / "run" / "best.pt"
    checkpoint.write(best, {**checkpoint.read(best), "episode": 4})
    reached = resume(tmp_path / "run", {}, listener=Hasty())
    assert (reached.unfinished, reached.policy) == (True, None)


def test_a_run_that_is_stopped_during_preparation_restarts(toy: Path, tmp_path: Path) -> None:
    """Demonstrations are not stored partially, so the result equals an uninterrupted run."""
    run = small_run("pilot", toy, packings=1, packing_s=0.1)
    reached = train(run, tmp_path / "stopped", Hasty())
    assert (reached.episodes, reached.unfinished) == (0, True)
    assert not RunFolder(tmp_path / "stopped").checkpoint.exists()
    resume(tmp_path / "stopped", {})
    train(run, tmp_path / "whole")
    assert same(end_of(tmp_path / "stopped"), end_of(tmp_path / "whole"))


def test_a_completed_run_resumes_with_more_episodes(toy: Path, tmp_path: Path) -> None:
    """Otherwise nothing is played."""
    train(small_run("ddpg", toy), tmp_path / "run")
    notes = Notes()
    assert resume(tmp_path / "run", {}, listener=notes).episodes == 9
    assert notes.rows == []
    assert resume(tmp_path / "run", {"episodes": 11}).episodes == 11
    assert RunFolder(tmp_path / "run").read_config()[0].settings.episodes == 11


def test_a_run_ends_early_without_improvement(toy: Path, tmp_path: Path) -> None:
    """With a tiny learning rate, the policy does not improve."""
    run = small_run("ddpg", toy, patience=2, actor_rate=1e-12, critic_rate=1e-12)
    reached = train(run, tmp_path / "run")
    assert (reached.episodes, reached.best_episode, reached.why) == (6, 2, "no better for 2 evaluations")


def test_a_folder_has_one_run(toy: Path, tmp_path: Path) -> None:
    """A second run in the folder is rejected."""
    run = small_run("ppo", toy)
    train(run, tmp_path / "run")
    with pytest.raises(RejectedError, match="has a run already: add --resume to continue it, or choose another"):
        train(run, tmp_path / "run")


def test_folders_are_locked(toy: Path, tmp_path: Path) -> None:
    """A second process in the folder is rejected."""
    folder = RunFolder(tmp_path / "run")
    with folder.locked(), pytest.raises(RejectedError, match="another process is training in this folder"):
        train(small_run("ppo", toy), folder.path)


def test_concurrent_starts_in_a_folder(toy: Path, tmp_path: Path) -> None:
    """The slower process finds the new run, and does not change it."""
    folder, first = RunFolder(tmp_path / "run"), small_run("ppo", toy)

    class Baseline(NullListener):
        def doing(self, text: str) -> None:
            with folder.locked():
                folder.write_config(first, {})

    with pytest.raises(RejectedError, match="has a run already"):
        train(small_run("td3", toy), folder.path, Baseline())
    assert folder.read_config()[0] == first


def test_instances_of_different_sizes_are_rejected_before_writing(toy: Path, tmp_path: Path) -> None:
    """A network for three clusters cannot learn on two."""
    other = write_instance(tmp_path / "two", 5, "\n".join(NODES.splitlines()[:3]) + "\n")
    with pytest.raises(RejectedError, match="--instances: instances have 2 and 3 clusters"):
        train(small_run("td3", toy, other), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_resumes_on_its_own_instances(toy: Path, tmp_path: Path) -> None:
    """They may be in another folder, but must not differ."""
    train(small_run("ddpg", toy), tmp_path / "run", Notes(until=2))
    moved = toy.rename(tmp_path / "elsewhere") / ""
    (tmp_path / "new").mkdir()
    moved = moved.rename(tmp_path / "new" / "toy")
    assert resume(tmp_path / "run", {"episodes": 3}, [str(moved)]).episodes == 3
    jobs = (moved / "jobs.csv").read_text(encoding="utf-8")
    (moved / "jobs.csv").write_text(jobs.replace("job-0,1000", "job-0,1001"), encoding="utf-8")
    with pytest.raises(RejectedError, match="instances have changed since the run began: toy"):
        resume(tmp_path / "run", {"episodes": 4})


@pytest.mark.parametrize("left", ["episodes.csv", "best.pt", "best.policy"])
def test_results_without_a_checkpoint_are_not_overwritten(left: str, toy: Path, tmp_path: Path) -> None:
    """The error names the files, which do not change."""
    run = small_run("ddpg", toy)
    train(run, tmp_path / "run", Notes(until=2))
    (tmp_path / "run" / "best.policy").touch()
    for path in (tmp_path / "run").iterdir():
        if path.name not in (left, "config.json"):
            path.unlink()
    before = (tmp_path / "run" / left).read_bytes()
    with pytest.raises(RejectedError, match=rf"checkpoint.pt: is missing, .*\({left}\): .* remove this folder"):
        resume(tmp_path / "run", {})
    (tmp_path / "run" / "config.json").unlink()
    with pytest.raises(RejectedError, match="is missing"):
        train(run, tmp_path / "run")
    assert (tmp_path / "run" / left).read_bytes() == before


def test_a_checkpoint_without_a_configuration_is_not_overwritten(toy: Path, tmp_path: Path) -> None:
    """The configuration may be restored."""
    run = small_run("ddpg", toy)
    train(run, tmp_path / "run", Notes(until=2))
    (tmp_path / "run" / "config.json").unlink()
    with pytest.raises(RejectedError, match=r"config.json: is missing, .*\(checkpoint.pt, best.pt, episodes.csv\)"):
        train(run, tmp_path / "run")


def test_a_run_with_only_a_configuration_restarts(toy: Path, tmp_path: Path) -> None:
    """It ended before its first episode, so nothing is lost."""
    RunFolder(tmp_path).write_config(
        small_run("ddpg", toy, episodes=1), {"toy": digest_of(*read_all(small_run("ddpg", toy)))}
    )
    (tmp_path / "episodes.csv").write_text("episode,instance\n", encoding="utf-8")
    assert resume(tmp_path, {}).episodes == 1


def test_the_first_episode_has_a_checkpoint(toy: Path, tmp_path: Path) -> None:
    """A run that is killed in the second episode can be resumed."""
    with pytest.raises(Kill):
        train(small_run("ddpg", toy), tmp_path / "run", Killer(2))
    notes = Notes()
    resume(tmp_path / "run", {}, listener=notes)
    assert notes.plans[0].done == 1


@pytest.mark.parametrize(
    ("line", "text", "says"),
    [
        (1, "episode,other", ":1: is not the heading of this table"),
        (2, "\x00\x00", ":2: is not a row of an episode"),
        (3, "2,toy,-1", ":3: is not a row of an episode"),
        (3, "", ":3: is not a row of an episode"),
        (3, "7,toy,0,1,1,0,0,,,0.1,,,,,0", ":3: is not of the episode that comes next"),
        (3, "2,toy,nan,1,1,0,0,,,0.1,,,,,0", ":3: is not a row of an episode"),
        (4, None, ":4: is missing, and all up to episode 3"),
    ],
)
def test_an_invalid_table_is_not_overwritten(line: int, text: str | None, says: str, toy: Path, tmp_path: Path) -> None:
    """The error has the line, and the file does not change; without the file the run resumes."""
    train(small_run("ddpg", toy), tmp_path / "run", Notes(until=3))
    table = tmp_path / "run" / "episodes.csv"
    lines = table.read_text(encoding="utf-8").splitlines()
    lines[line - 1 : line] = [] if text is None else [text]
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    before = table.read_bytes()
    with pytest.raises(RejectedError, match=f"episodes.csv{says}: fix the file, or move it"):
        resume(tmp_path / "run", {})
    assert table.read_bytes() == before
    table.rename(tmp_path / "episodes.bad")
    resume(tmp_path / "run", {}, listener=Notes(until=2))
    assert resume(tmp_path / "run", {}).episodes == 9
    assert [row["episode"] for row in read_rows(table)] == ["4", "5", "6", "7", "8", "9"]


def test_fewer_episodes_than_played_are_rejected(toy: Path, tmp_path: Path) -> None:
    """The setting of the run does not change."""
    train(small_run("ddpg", toy), tmp_path / "run", Notes(until=3))
    with pytest.raises(RejectedError, match="--episodes: 2 is fewer than the 3 episodes that were played: give 3 or"):
        resume(tmp_path / "run", {"episodes": 2})
    assert RunFolder(tmp_path / "run").read_config()[0].settings.episodes == 9
    assert resume(tmp_path / "run", {"episodes": 3}).episodes == 3


def test_damaged_best_weights_are_found_before_training(toy: Path, tmp_path: Path) -> None:
    """They are needed at the end, possibly hours later."""
    train(small_run("ddpg", toy), tmp_path / "run", Notes(until=3))
    best, notes = tmp_path / "run" / "best.pt", Notes()
    whole = best.read_bytes()
    best.write_bytes(whole[:999])
    with pytest.raises(RejectedError, match=r"best.pt: is cut off or damaged"):
        resume(tmp_path / "run", {}, listener=notes)
    checkpoint.write(best, {"weights": 1})
    with pytest.raises(RejectedError, match=r"best.pt: is of another run"):
        resume(tmp_path / "run", {}, listener=notes)
    best.unlink()
    with pytest.raises(RejectedError, match=r"best.pt: is not there"):
        resume(tmp_path / "run", {}, listener=notes)
    assert not notes.plans
    best.write_bytes(whole)
    assert resume(tmp_path / "run", {}).episodes == 9


def test_damaged_and_foreign_checkpoints_are_rejected(toy: Path, tmp_path: Path) -> None:
    """Nothing is played."""
    train(small_run("ddpg", toy), tmp_path / "run", Notes(until=2))
    train(small_run("td3", toy), tmp_path / "other", Notes(until=2))
    path = tmp_path / "run" / "checkpoint.pt"
    path.write_bytes((tmp_path / "other" / "checkpoint.pt").read_bytes())
    with pytest.raises(RejectedError, match=r"checkpoint.pt: is of another run"):
        resume(tmp_path / "run", {})
    path.write_bytes(path.read_bytes()[:999])
    with pytest.raises(RejectedError, match="is cut off or damaged"):
        resume(tmp_path / "run", {})


def test_weights_of_another_episode_are_not_exported_as_the_best(toy: Path, tmp_path: Path) -> None:
    """A kill between two writes can leave later weights than the checkpoint, which is reported."""
    train(small_run("ddpg", toy), tmp_path / "run")
    best = tmp_path / "run" / "best.pt"
    checkpoint.write(best, {**checkpoint.read(best), "episode": 77})
    with pytest.raises(RejectedError, match="has weights of episode 77, the checkpoint's best is of"):
        resume(tmp_path / "run", {})


def test_invalid_configurations_are_rejected(tmp_path: Path) -> None:
    """The folder has none, or the file has other content."""
    with pytest.raises(RejectedError, match="no run found"):
        resume(tmp_path, {})
    for text in ("", "[]", '{"format": 99}', '{"format": 1}', '{"format": 1, "digests": {}, "run": {"algo": "x"}}'):
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
        with pytest.raises(RejectedError):
            resume(tmp_path, {})


def test_instances_are_played_in_rotation(toy: Path, tmp_path: Path) -> None:
    """Each is played equally often, and all are evaluated."""
    other = write_instance(tmp_path / "other", 6)
    notes = Notes()
    train(small_run("sb3-ddpg", toy, other, episodes=4), tmp_path / "run", notes)
    assert [row.play.instance for row in notes.rows] == ["other", "toy", "other", "toy"]
    assert [row.evaluated.jobs for row in notes.rows if row.evaluated] == [16, 16]


def test_generated_instances_do_not_depend_on_the_seed() -> None:
    """Runs with several seeds learn on the same instances."""
    runs = [new_run("ppo", [], ["placement"], {"seed": seed, "draws": 2}) for seed in (1, 2)]
    one, other = ([digest_of(each) for each in read_all(run)] for run in runs)
    assert one == other
    assert len(set(one)) == 2
