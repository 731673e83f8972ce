"""The agent learns the best packing of a small fleet in seconds."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

torch = pytest.importorskip("torch", reason="needs seaway[learn]")
pytest.importorskip("gymnasium", reason="needs seaway[learn]")

from seaway.learning.runs.assemble import new_run  # noqa: E402  # where torch is
from seaway.learning.runs.folder import RunFolder  # noqa: E402
from seaway.learning.runs.run import train  # noqa: E402
from seaway.learning.runs.table import read_rows  # noqa: E402

NODES = """cluster,node,cpu_milli,memory_mib,gpu,model,gpu_memory_mib
a-small,a-small-0,4000,16384,1,T4,8192
b-large,b-large-0,16000,65536,1,T4,16384
"""
JOBS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_memory_mib
quarter-1,1000,4096,1,250,2048
quarter-2,1000,4096,1,250,2048
quarter-3,1000,4096,1,250,2048
quarter-4,1000,4096,1,250,2048
whole,8000,32768,1,1000,16384
"""

EPISODES = 60
SETTINGS = {
    "attention": 32,
    "hidden": "32-16",
    "batch": 64,
    "critic_rate": 1e-2,
    "discount": 0.5,
    "soft_update": 0.05,
    "noise": 0.6,
    "noise_end": 0.3,
    "warm_up": 100,
    "episodes": EPISODES,
    "evaluate_every": 10,
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Write an instance with five jobs that fit only if the first four leave a card to the last one."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "nodes.csv").write_text(NODES, encoding="utf-8")
    (folder / "jobs.csv").write_text(JOBS, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_learns_the_best_packing(toy: Path, tmp_path: Path, seed: int) -> None:
    """Jobs that fit on the small cluster are placed there, so that the large job fits on the other one.

    Random actions, as in the first 100 steps, do not place all jobs.
    """
    run = new_run("eade-ddpg", [str(toy)], [], {**SETTINGS, "seed": seed})

    result = train(run, tmp_path / "run")

    rows = read_rows(RunFolder(tmp_path / "run").episodes)
    assert fmean(int(row["placed"]) for row in rows[:10]) < 4.5
    assert int(rows[-1]["evaluated_placed"]) == 5
    assert result.best is not None
    assert result.best.placed == 5
