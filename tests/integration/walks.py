"""Commands of the walks in `docs/`, run as a user would."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND_S = 60


def commands_of(page: str) -> list[str]:
    """Return the commands of a page, in order."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def run(command: str, environment: Mapping[str, str], folder: Path = ROOT, timeout_s: float = COMMAND_S) -> str:
    """Run shell commands up to the first that fails, and return their output with their errors."""
    path = f'export PATH="{Path(sys.executable).parent}:$PATH"; set -e\n'
    done = subprocess.run(
        ["bash", "-c", path + command],
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr
