"""Anything that commands say where the extras are not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.learning.runs.small import write_instance

LEARN = "gymnasium onnx onnxscript ortools ray stable_baselines3 tensorboard torch"
POLICY = "onnxruntime"
ROOT = Path(__file__).resolve().parents[3]

WITHOUT = """
import sys

for name in sys.argv.pop(1).split():
    sys.modules[name] = None  # neither imported nor found

from {module} import main
main()
"""


@pytest.fixture
def toy(tmp_path: Path) -> str:
    """Write a small instance; return its folder."""
    return str(write_instance(tmp_path / "toy", 3))


def run(missing: str, typed: str, cwd: Path, module: str = "seaway.cli.main") -> subprocess.CompletedProcess[str]:
    """Run a command where some packages are missing."""
    wide = {**os.environ, "COLUMNS": "200", "PYTHONPATH": str(ROOT)}  # no cell of a table is broken into lines
    command = [sys.executable, "-c", WITHOUT.replace("{module}", module), missing, *typed.split()]
    return subprocess.run(command, cwd=cwd, env=wide, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("train --algo ddpg --instances TOY", "pip install 'seaway[learn]'"),
        ("train --algo ddpg --instances TOY --seeds 2", "pip install 'seaway[learn]'"),
        ("train --algo ddpg --instances TOY --seeds 2 --ray auto", "pip install 'seaway[ray]'"),
        ("evaluate --instances TOY --pack 1 --policy bestfit", "pip install 'seaway[learn]'"),
        ("evaluate --instances TOY --policy pilot", "pip install 'seaway[policy]'"),
        ("evaluate --instances TOY --policy joined.toml", "'pilot': trained policies need onnxruntime: pip install"),
        ("policies import pilot.policy", "pip install 'seaway[policy]'"),
    ],
)
def test_it_is_reported_what_to_install(typed: str, says: str, toy: str, tmp_path: Path) -> None:
    """A command that needs an extra names it in one line, the last, without a traceback."""
    run(f"{LEARN} {POLICY}", "policies export pilot", tmp_path)
    (tmp_path / "joined.toml").write_text('[[plugin]]\nname = "trained"\npolicy = "pilot"\n', encoding="utf-8")
    done = run(f"{LEARN} {POLICY}", typed.replace("TOY", toy), tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("--help", "train"),
        ("up --once", "completed"),
        ("evaluate --instances TOY", "without the trained policy pilot"),
        ("policies", "pip install 'seaway[policy]'"),
        ("policies show pilot", "signed by"),
        ("policies export pilot", "is written to pilot.policy"),
    ],
)
def test_all_else_works(typed: str, says: str, toy: str, tmp_path: Path) -> None:
    """Anything that needs no extra is done without them; what of it cannot be done is reported."""
    done = run(f"{LEARN} {POLICY}", typed.replace("TOY", toy), tmp_path)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout + done.stderr


@pytest.mark.slow
def test_trained_policies_decide_without_what_trains_them(toy: str, tmp_path: Path) -> None:
    """With the extra policy alone a trained policy decides."""
    pytest.importorskip("onnxruntime", reason="needs seaway[policy]")
    done = run(LEARN, f"evaluate --instances {toy} --policy pilot -o csv", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pilot,node" in done.stdout
