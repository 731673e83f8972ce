"""Search for the best packing, and an upper bound.

References
----------
Schrimpf et al.: Record Breaking Optimization Results Using the Ruin and Recreate Principle. Journal of Computational
Physics 159, 2000, doi:10.1006/jcph.1999.6413.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from seaway.learning.instances.instance import Instance
from seaway.learning.packing.exact import PackingModel
from seaway.learning.packing.integer_program import Effort, IntegerProgram
from seaway.learning.packing.packing import Listener, Packing, PackingProblem, PackingState, Progress, replayed
from seaway.learning.packing.solver import solve
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.arrays import Float64, Int64

BOUND_EFFORT_S = 2.0
"""Maximum effort for the upper bound."""

FUNCTIONS = 20
"""Number of dual feasible functions to try."""


def upper_bound(problem: PackingProblem, seed: int) -> int:
    """Return an upper bound of the number of jobs in any packing.

    Raises
    ------
    RejectedError, UnavailableError
        As in `seaway.learning.packing.solver.solve`.
    """
    program = IntegerProgram()
    kinds = [k for k in problem.kinds if problem.nodes[k]]
    counts = {k: program.add_variable(len(problem.jobs[k])) for k in kinds}
    for weights, capacity in _conditions(problem, kinds):
        program.add_constraint(((weights[k], counts[k]) for k in kinds), capacity)
    program.objective = list(counts.values())
    return solve(program, Effort(BOUND_EFFORT_S, workers=1, seed=seed)).bound


def _conditions(problem: PackingProblem, kinds: list[int]) -> Iterator[tuple[Mapping[int, int], int]]:
    """Yield necessary conditions of a packing: the minimum request of each kind of jobs, and the capacity."""
    nodes = sorted({n for k in kinds for n in problem.nodes[k]})
    capacities = [problem.capacity(n) for n in nodes]
    yield {k: problem.cpu_memory(k)[0] for k in kinds}, sum(cpu for cpu, _, _ in capacities)
    yield {k: problem.cpu_memory(k)[1] for k in kinds}, sum(memory for _, memory, _ in capacities)
    yield dict.fromkeys(kinds, 1), sum(pods for _, _, pods in capacities)
    devices = sorted({d for _, d in problem.shares})
    if devices:
        capacity = [problem.device_capacity(d) for d in devices]
        yield from _device_conditions(_requests(problem, kinds, "memory_mib"), [each.memory_mib for each in capacity])
        yield from _device_conditions(_requests(problem, kinds, "core_milli"), [each.core_milli for each in capacity])


def _requests(problem: PackingProblem, kinds: list[int], resource: str) -> dict[int, tuple[int, int]]:
    """Return the number of slices of each kind of jobs, and the minimum request of a slice."""
    requests = dict.fromkeys(kinds, (0, 0))
    for (k, _), share in problem.shares.items():
        gpus, amount = requests[k]
        requests[k] = problem.gpus(k), min(getattr(share, resource), amount if gpus else getattr(share, resource))
    return requests


def _device_conditions(
    requests: Mapping[int, tuple[int, int]], capacity: list[int]
) -> Iterator[tuple[Mapping[int, int], int]]:
    """Yield conditions for a resource of devices: for its sum, and for the number of slices per device.

    The latter use dual feasible functions. With capacity 1, the function of order k maps x to itself if (k + 1) x is an
    integer, and otherwise to the integer part of (k + 1) x, divided by k. The images of slices on one device also have
    a sum of at most 1.
    """
    yield {k: gpus * amount for k, (gpus, amount) in requests.items()}, sum(capacity)
    largest = max(capacity)
    for order in range(1, FUNCTIONS + 1 if largest else 1):
        weights = {}
        for k, (gpus, amount) in requests.items():
            whole, rest = divmod((order + 1) * amount, largest)
            weights[k] = gpus * (whole * largest if rest else order * amount)
        yield weights, order * largest * len(capacity)


ITERATION_COST_S = 5e-4
JOB_COST_S = 3.5e-5
"""Measured cost of an iteration, and of each job in it, seconds of CPU. Effort is counted in these, so that the result
depends on the seed only.
"""

START_SHARE = 0.1
"""Share of the effort for packings from scratch."""

MAX_NODES = 4
"""Maximum number of nodes that are emptied in an iteration."""

SIZE_WEIGHT = 0.3
"""Reduction of the value of a job of mean size, because small jobs leave more free resources."""

PROGRESS_SHARE = 0.005
"""Share of the effort between two progress reports."""

MIN_VALUE = 0.1
"""Minimum value of a job."""

INITIAL_TEMPERATURE = 0.1
"""Initial temperature of simulated annealing, in jobs. It decreases linearly to 0."""


class Search:
    """Ruin and recreate with simulated annealing.

    Parameters
    ----------
    state
        State without placed jobs.
    seed
        Random seed.

    Attributes
    ----------
    best
        Allocations of the best packing so far, by number of the job.
    """

    def __init__(self, state: PackingState, seed: int) -> None:
        self._state = state
        self._rng = np.random.default_rng(seed)
        self._scarcity = state.shares.sum(axis=0) ** 2
        size = state.shares @ self._scarcity
        self._values: Float64 = np.maximum(1 - SIZE_WEIGHT * size / max(float(size.mean()), 1e-12), MIN_VALUE)
        self.best: dict[int, Allocation] = {}

    def run(self, effort_s: float, target: int, report: Callable[[float], None]) -> None:
        """Search until the effort is spent or `target` jobs are placed. The state then has the best packing.

        Parameters
        ----------
        report
            Callback for the spent share of the effort, 0-1.
        """
        spent = self._start(effort_s * START_SHARE, target)
        reported = 0.0
        while spent < effort_s and len(self.best) < target:
            spent += ITERATION_COST_S + JOB_COST_S * self._iterate(INITIAL_TEMPERATURE * (1 - spent / effort_s))
            if spent / effort_s >= reported + PROGRESS_SHARE:
                reported = spent / effort_s
                report(min(reported, 1.0))
        self._state.remove(self._state.placed)
        self._state.restore({j: allocation.copy() for j, allocation in self.best.items()})

    def _start(self, effort_s: float, target: int) -> float:
        """Create packings from scratch, leave the best one in the state, and return the cost."""
        state, spent = self._state, 0.0
        jobs = np.arange(len(state.queue))
        while (spent < effort_s or not spent) and len(self.best) < target:
            state.remove(state.placed)
            state.add(self._large_first(jobs, int(self._rng.integers(len(self.best), len(jobs) + 1))))
            self._record_best()
            spent += ITERATION_COST_S + JOB_COST_S * len(jobs)
        state.remove(state.placed)
        state.restore({j: allocation.copy() for j, allocation in self.best.items()})
        return spent

    def _iterate(self, temperature: float) -> int:
        """Empty some nodes and fill them again. Return the number of tried jobs."""
        state, rng = self._state, self._rng
        nodes = len(state.snapshot.nodes)
        emptied = rng.choice(nodes, min(int(rng.integers(2, MAX_NODES + 1)), nodes), replace=False)
        removed = state.remove(state.jobs_on(emptied.tolist()))
        waiting = np.array(state.waiting)
        added = state.add(self._large_first(waiting, len(removed) + int(rng.integers(-2, 4))))
        gain = self._values[added].sum() - self._values[list(removed)].sum()
        if gain >= temperature * math.log(rng.random() + 1e-12):
            self._record_best()
        else:
            state.remove(added)
            state.restore(removed)
        return len(waiting)

    def _large_first(self, jobs: Int64, count: int) -> list[int]:
        """Return an order of jobs: the `count` smallest, largest first, then the others.

        The weights of resources are random, so sizes differ between calls.
        """
        size = self._state.shares[jobs] @ (self._scarcity * self._rng.random(self._scarcity.shape))
        by_size = jobs[np.argsort(size, kind="stable")]
        count = max(count, 1)
        order: list[int] = [*by_size[:count][::-1].tolist(), *by_size[count:].tolist()]
        return order

    def _record_best(self) -> None:
        """Record the packing if it is the best so far."""
        if len(self._state.placed) > len(self.best):
            self.best = self._state.allocations()


SEARCH_SHARE = 0.3
"""Share of the effort for local search before the solver."""

SOLVER_COST = 3.0
"""Seconds of CPU per second on the deterministic clock of the solver; measured 3 to 4."""


def no_listener(_: Progress) -> None:
    """Ignore progress."""


def best_packing(
    instance: Instance, seconds: float = 30.0, *, workers: int = 1, seed: int = 0, listener: Listener = no_listener
) -> Packing:
    """Find a packing of as many jobs as possible, with all jobs known in advance.

    Local search uses the engine. For small instances, a solver then finds and proves the optimum. Departures are
    ignored.

    Parameters
    ----------
    instance
        Instance of jobs with one replica each.
    seconds
        Effort in seconds of CPU, as measured on one machine. It does not include the start of the solver, a second or
        two. The search ends early at a proven optimum.
    workers
        Number of threads of the solver. With one, the result depends on the seed only.
    listener
        Callback for progress.

    Raises
    ------
    RejectedError
        When the instance has no cluster, no job, or a job with several replicas, or OR-Tools is not installed.
    UnavailableError
        When the solver process died.
    """
    state = PackingState(instance)
    problem = PackingProblem(state.snapshot, state.queue)
    bound = upper_bound(problem, seed)
    exact = PackingModel.is_tractable(problem)
    search = Search(state, seed)

    def report(share: float) -> None:
        listener(Progress(len(search.best), bound, share * (SEARCH_SHARE if exact else 1.0)))

    search.run(seconds * SEARCH_SHARE if exact else seconds, bound, report)
    assignments = state.assignments()
    if exact and len(assignments) < bound:
        better, proven = PackingModel(problem).solve(
            Effort(seconds * (1 - SEARCH_SHARE) / SOLVER_COST, workers, seed), assignments
        )
        assignments, bound = max(assignments, better, key=len), min(bound, proven)
    packing = replayed(instance, assignments, bound)
    listener(Progress(packing.count, bound, 1.0))
    return packing
