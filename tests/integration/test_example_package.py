"""The example package works as its README says, as if it had been installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "seaway-warm-nodes"

pytestmark = pytest.mark.slow


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process with the example installed: its code, and its entry points."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / "seaway_warm_nodes-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    places = [str(tmp_path), str(EXAMPLE / "src"), str(ROOT / "src")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places)}


def run(arguments: list[str], environment: dict[str, str], folder: Path) -> str:
    """Run Python and return its output."""
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_tests_of_the_example_pass(installed: dict[str, str], tmp_path: Path) -> None:
    """The example's own tests pass."""
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(EXAMPLE / "tests")]
    assert "2 passed" in run(arguments, installed, tmp_path)


def test_entry_points_are_found(installed: dict[str, str], tmp_path: Path) -> None:
    """Its policy is available by name on the command line, beside Seaway's, and its plugin in profile files."""
    assert "warm-nodes" in run(["-m", "seaway", "policies"], installed, tmp_path)
    (tmp_path / "nodes.csv").write_text("node,cpu_milli,memory_mib,gpu,gpu_memory_mib\na,8000,8000,1,16000\n")
    (tmp_path / "jobs.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_memory_mib\nj,1000,1000,1,500,4000\n"
    )
    (tmp_path / "warm.toml").write_text('[[plugin]]\nname = "WarmNodes"\nsettings = { remembered = 4 }\n')
    table = run(
        ["-m", "seaway", "replay", "--nodes", "nodes.csv", "--jobs", "jobs.csv", "--policy", "warm-nodes,warm.toml"],
        installed,
        tmp_path,
    )
    assert "warm-nodes" in table
    assert "warm" in table.replace("warm-nodes", "")
