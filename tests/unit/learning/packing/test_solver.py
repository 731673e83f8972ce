"""The process that solves programmes."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError, UnavailableError
from seaway.learning.packing import solver
from seaway.learning.packing.programme import Effort, Programme
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


def knapsack() -> Programme:
    """Ask how many things of sizes 3 and 5 fit into 14, of each four at most."""
    programme = Programme()
    small, large = programme.add_variable(4), programme.add_variable(4)
    programme.limit([(3, small), (5, large)], 14)
    programme.goal = [small, large]
    return programme


@needs_ortools
def test_the_largest_sum_is_found_and_proven() -> None:
    """Four things of size 3 fit, and no fifth of either size."""
    solution = solve(knapsack(), EFFORT)
    assert (solution.values, solution.bound) == ((4, 0), 4)


@needs_ortools
def test_lower_limits_are_stored() -> None:
    """A sum that has to reach something does, though more would fit without."""
    programme = knapsack()
    programme.limit([(1, 1)], 4, least=2)
    solution = solve(programme, EFFORT)
    assert (solution.values, solution.bound) == ((1, 2), 3)


@needs_ortools
def test_without_a_solution_there_are_no_values() -> None:
    """Limits that nothing keeps leave no values."""
    programme = knapsack()
    programme.limit([(1, 0)], 4, least=5)
    assert solve(programme, EFFORT).values is None


@needs_ortools
def test_errors_return() -> None:
    """Anything that the solver raises is raised here."""
    programme = knapsack()
    programme.goal = [7]
    with pytest.raises(IndexError):
        solve(programme, EFFORT)


def test_without_ortools_it_is_reported_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where OR-Tools is missing, one line names the extra."""
    monkeypatch.setitem(sys.modules, "ortools", None)
    with pytest.raises(RejectedError, match=r"pip install 'seaway\[learn\]'"):
        solve(knapsack(), EFFORT)


@needs_ortools
def test_a_solver_that_dies_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process that is killed, as for want of memory, fails the one solution that it was asked for."""
    (tmp_path / "dies.py").write_text("import os; os.kill(os.getpid(), 9)", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(solver, "SOLVER", "dies")
    with pytest.raises(UnavailableError, match="was ended by SIGKILL"):
        solve(knapsack(), EFFORT)


@needs_ortools
def test_files_where_it_starts_do_not_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file of the user's that has the name of a module is not taken for it."""
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
