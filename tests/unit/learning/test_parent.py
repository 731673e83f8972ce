"""Processes end with the one that started them."""

from __future__ import annotations

import subprocess
import sys

import pytest

PARENT = """
import subprocess
from seaway.learning.parent import end_with_parent
child = subprocess.Popen(["sleep", "60"], preexec_fn=end_with_parent)
print("started", flush=True)
child.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has it")
def test_a_program_that_is_started_so_ends_when_its_parent_is_killed() -> None:
    """Even SIGKILL leaves no one behind: what the child printed to is closed when it is gone."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"started\n"
        parent.kill()
        parent.communicate(timeout=30)
