"""Process that solves the integer programs on standard input, since OR-Tools and highspy cannot be loaded into one."""

from __future__ import annotations

import os
import pickle
import sys

from seaway.learning.packing.cp_sat import solve_model
from seaway.learning.packing.integer_program import Effort

EFFORT = Effort(seconds=10, workers=1, seed=0)

if __name__ == "__main__":
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries may print
    with answers:
        pickle.dump([solve_model(each, EFFORT) for each in pickle.load(sys.stdin.buffer)], answers)
