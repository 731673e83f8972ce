"""Small runs and instances."""

from __future__ import annotations

from pathlib import Path

from seaway.learning.runs.assemble import new_run
from seaway.learning.settings import Run
from seaway.learning.training.listener import EpisodeResult, Evaluation, NullListener, Plan, Row, TrainingResult

NODES = """cluster,node,cpu_milli,memory_mib,gpu,model,gpu_memory_mib
a,a-0,8000,32768,1,T4,16384
b,b-0,8000,32768,1,T4,16384
c,c-0,16000,65536,2,T4,16384
"""

SMALL = {"hidden": (8,), "batch": 8}
POOLED = {**SMALL, "warm_up": 15, "live_pool": 60}
SETTINGS: dict[str, dict[str, object]] = {
    "eade-ddpg": {**POOLED, "attention": 8, "expert_share": 0.25},
    "ddpg": POOLED,
    "td3": POOLED,
    "sac": POOLED,
    "sb3-ddpg": POOLED,
    "ppo": {**SMALL, "steps": 16, "epochs": 2},  # updates come in the middle of episodes
    "pilot": {"width": 4, "heads": 1, "pairs": 1, "batch": 1, "judged": 2},
}
"""Settings by algorithm, with replay buffers that overflow during the run."""


def write_instance(folder: Path, jobs: int, nodes: str = NODES) -> Path:
    """Write an instance, and return its folder."""
    folder.mkdir(parents=True)
    (folder / "nodes.csv").write_text(nodes, encoding="utf-8")
    lines = [
        f"job-{n},{1000 + 500 * (n % 3)},2048,1,{300 + 100 * (n % 5)},{6144 + 1024 * (n % 4)}" for n in range(jobs)
    ]
    heading = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_memory_mib"
    (folder / "jobs.csv").write_text("\n".join([heading, *lines]) + "\n", encoding="utf-8")
    return folder


def small_run(algo: str, *folders: Path, **given: object) -> Run:
    """Return a run of 9 episodes with an evaluation after every second one."""
    settings = {"episodes": 9, "evaluate_every": 2, **SETTINGS[algo], **given}
    return new_run(algo, [str(folder) for folder in folders], [], settings)


class Notes(NullListener):
    """Listener that records all events, and stops the run after an episode."""

    def __init__(self, until: int = 0) -> None:
        self.until = until
        self.plans: list[Plan] = []
        self.rows: list[Row] = []
        self.retained: list[int] = []
        self.result: list[TrainingResult] = []

    @property
    def stopping(self) -> bool:  # type: ignore[override]  # what a class has as a value, this works out
        """True after that episode."""
        return bool(self.until) and len(self.rows) >= self.until

    def begins(self, plan: Plan) -> None:
        """Record the event."""
        self.plans.append(plan)

    def played(self, row: Row) -> None:
        """Record the event."""
        self.rows.append(row)

    def saved(self, episode: int) -> None:
        """Record the event."""
        self.retained.append(episode)

    def ends(self, result: TrainingResult) -> None:
        """Record the event."""
        self.result.append(result)


class Hasty(NullListener):
    """Listener that stops the run before its first episode."""

    stopping = True


class Kill(Exception):  # noqa: N818  # it stands for no error
    """Simulated death of the process."""


class Killer(NullListener):
    """Listener that kills the run after an episode."""

    def __init__(self, after: int) -> None:
        self._after = after

    def played(self, row: Row) -> None:
        """Kill the run."""
        if row.episode == self._after:
            raise Kill


def evaluated(placed: int, variance: float = 0.0) -> Evaluation:
    """Return an evaluation."""
    return Evaluation(jobs=10, placed=placed, refused=0, gpu_load_variance=variance, reward=0.0)


def play(**figures: float) -> EpisodeResult:
    """Return the result of an episode."""
    return EpisodeResult("toy", -12.5, 10, 7, 2, 1, 0.5, 0.25, figures=figures)
