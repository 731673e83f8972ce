"""Solver process: reads an integer program from standard input, solves it and writes the solution.

It is a separate process, because OR-Tools and highspy can be incompatible in one process: their copies of libhighs
share a name, and the one that is loaded first serves both. This module must not import anything that imports highspy.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback

from seaway.learning.packing.integer_program import Effort, IntegerProgram, Solution
from seaway.learning.parent import end_with_parent


def solve_model(program: IntegerProgram, effort: Effort) -> Solution:
    """Solve an integer program in this process."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    variables = [model.new_int_var(0, upper, "") for upper in program.upper_bounds]
    for terms, lower, upper in program.constraints:
        total = cp_model.LinearExpr.weighted_sum([variables[v] for _, v in terms], [factor for factor, _ in terms])
        model.add_linear_constraint(total, cp_model.INT_MIN if lower is None else lower, upper)
    for variable, value in program.hint.items():
        model.add_hint(variables[variable], value)
    model.maximize(cp_model.LinearExpr.sum([variables[v] for v in program.objective]))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = effort.workers
    solver.parameters.random_seed = effort.seed
    solver.parameters.max_deterministic_time = effort.seconds
    solved = solver.solve(model) in {cp_model.OPTIMAL, cp_model.FEASIBLE}
    values = tuple(solver.value(variable) for variable in variables) if solved else None
    return Solution(values, int(solver.best_objective_bound + 1e-6))


def main() -> None:
    """Solve the integer program on standard input; write the solution or the exception to standard output."""
    end_with_parent()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries may print
    program, effort = pickle.load(sys.stdin.buffer)
    answer: Solution | Exception
    try:
        answer = solve_model(program, effort)
    except Exception as error:  # noqa: BLE001  # the caller raises it
        error.add_note("".join(traceback.format_exception(error)))
        answer = error
    with answers:
        pickle.dump(answer, answers)


if __name__ == "__main__":
    main()
