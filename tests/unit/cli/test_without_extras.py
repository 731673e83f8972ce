"""What commands say where the extras are not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.learning.runs.small import write_instance

WITHOUT = """
import sys

for name in "gymnasium onnx onnxruntime onnxscript ortools ray stable_baselines3 tensorboard torch".split():
    sys.modules[name] = None  # neither imported nor found

from seaway.cli.main import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("train --algo ddpg --instances TOY", "pip install 'seaway[learn]'"),
        ("evaluate --instances TOY --pack 1 --policy bestfit", "pip install 'seaway[learn]'"),
        ("policies", "pip install 'seaway[policy]'"),
    ],
)
def test_it_is_said_what_to_install(typed: str, says: str, tmp_path: Path) -> None:
    """A command that needs an extra names it, without a traceback."""
    toy = str(write_instance(tmp_path / "toy", 3))
    words = typed.replace("TOY", toy).split()
    wide = {**os.environ, "COLUMNS": "200"}  # no cell of a table is broken into lines
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words], cwd=tmp_path, env=wide, capture_output=True, text=True, check=False
    )
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
