"""The process that solves integer programs."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError, UnavailableError
from seaway.learning.packing import solver
from seaway.learning.packing.integer_program import Effort, IntegerProgram
from seaway.learning.packing.solver import solve

EFFORT = Effort(seconds=1.0, workers=1, seed=0)

needs_ortools = pytest.mark.skipif(find_spec("ortools") is None, reason="needs seaway[learn]")

BOTH = """
import sys

from seaway.learning.packing.search import best_packing
from seaway.learning.instances.instance import Instance
from seaway.scheduling.policies.job_mix import typical_jobs
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import fleet, gpu, job, node

place, jobs = fleet(node(gpu(memory_mib=10_000))), (job("a", gpus=1, gpu_memory_mib=1_000, gpu_milli=100),)

def packs():
    print("packed", best_packing(Instance("small", place, jobs), seconds=0.1).count)

def prices():
    from seaway.simulation.bound import fluid_problem, solve_fluid
    print("priced", solve_fluid(fluid_problem(Snapshot(place), typical_jobs(jobs, share=1.0))).value)

for name in sys.argv[1:]:
    {"packs": packs, "prices": prices}[name]()
"""


def knapsack() -> IntegerProgram:
    """Return a knapsack of size 14 for up to four items each of sizes 3 and 5."""
    program = IntegerProgram()
    small, large = program.add_variable(4), program.add_variable(4)
    program.add_constraint([(3, small), (5, large)], 14)
    program.objective = [small, large]
    return program


@needs_ortools
def test_the_largest_sum_is_found_and_proven() -> None:
    """Four items of size 3 fit, and no fifth one."""
    solution = solve(knapsack(), EFFORT)
    assert (solution.values, solution.bound) == ((4, 0), 4)


@needs_ortools
def test_lower_bounds() -> None:
    """A lower bound holds even if the objective is smaller with it."""
    program = knapsack()
    program.add_constraint([(1, 1)], 4, lower=2)
    solution = solve(program, EFFORT)
    assert (solution.values, solution.bound) == ((1, 2), 3)


@needs_ortools
def test_without_a_solution_there_are_no_values() -> None:
    """Contradictory constraints leave no values."""
    program = knapsack()
    program.add_constraint([(1, 0)], 4, lower=5)
    assert solve(program, EFFORT).values is None


@needs_ortools
def test_errors_of_the_solver_are_raised() -> None:
    """An exception of the solver is raised in the client."""
    program = knapsack()
    program.objective = [7]
    with pytest.raises(IndexError):
        solve(program, EFFORT)


def test_missing_ortools_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OR-Tools, the error names the extra."""
    monkeypatch.setitem(sys.modules, "ortools", None)
    with pytest.raises(RejectedError, match=r"pip install 'seaway\[learn\]'"):
        solve(knapsack(), EFFORT)


@needs_ortools
def test_a_solver_that_dies_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A killed process, for example without memory, fails its solution only."""
    (tmp_path / "dies.py").write_text("import os; os.kill(os.getpid(), 9)", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(solver, "SOLVER", "dies")
    with pytest.raises(UnavailableError, match="was ended by SIGKILL"):
        solve(knapsack(), EFFORT)


@needs_ortools
def test_files_where_it_starts_do_not_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file in the working directory with the name of a module is not imported."""
    (tmp_path / "pickle.py").write_text("raise SystemExit(1)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert solve(knapsack(), EFFORT).bound == 4


@needs_ortools
@pytest.mark.slow
@pytest.mark.parametrize("order", [("packs", "prices"), ("prices", "packs")])
def test_packing_and_prices_go_together(order: tuple[str, str]) -> None:
    """One process packs (with OR-Tools) and prices jobs (with highspy), whichever comes first."""
    done = subprocess.run([sys.executable, "-c", BOTH, *order], capture_output=True, text=True, check=False)
    assert sorted(done.stdout.splitlines()) == ["packed 1", "priced 100.0"], done.stderr
