"""Client of the solver process. OR-Tools and highspy cannot be loaded into one process."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from importlib.util import find_spec

from seaway.domain.errors import RejectedError, UnavailableError
from seaway.learning.packing.integer_program import Effort, IntegerProgram, Solution

SOLVER = "seaway.learning.packing.cp_sat"
"""Module of the process. It is not imported here."""


def solve(program: IntegerProgram, effort: Effort) -> Solution:
    """Solve an integer program.

    The solver process starts each time, which takes about half a second, and ends with its parent.

    Raises
    ------
    RejectedError
        When OR-Tools is not installed.
    UnavailableError
        When the process died.
    Exception
        An error of the solver.
    """
    if find_spec("ortools") is None:
        raise RejectedError("packing needs OR-Tools: pip install 'seaway[learn]'")
    done = subprocess.run(
        [sys.executable, "-P", "-m", SOLVER],
        input=pickle.dumps((program, effort)),
        stdout=subprocess.PIPE,
        check=False,
        process_group=0,  # Ctrl-C reaches this process only, which then ends the other
    )
    if done.returncode:
        raise UnavailableError(f"the packing solver {_ended(done.returncode)}; try again")
    answer: Solution | Exception = pickle.loads(done.stdout)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _ended(code: int) -> str:
    """Describe the end of the process in one clause."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended by itself with exit code {code}"
