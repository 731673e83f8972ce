"""Search of the best packing, and an upper bound.

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
from seaway.learning.packing.exact import Exact
from seaway.learning.packing.packing import Listener, Needs, Packing, PackingState, Step, packed
from seaway.learning.packing.programme import Effort, Programme
from seaway.learning.packing.solver import solve
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.arrays import Float64, Int64

SPENT_S = 2.0
"""Effort that goes into it at most."""

FUNCTIONS = 20
"""Number of dual feasible functions to try."""


def most_jobs(needs: Needs, seed: int) -> int:
    """Bound the jobs that any packing holds.

    Raises
    ------
    RejectedError, UnavailableError
        As `seaway.learning.packing.solver.solve` does.
    """
    programme = Programme()
    kinds = [k for k in needs.kinds if needs.nodes[k]]
    counts = {k: programme.add_variable(len(needs.jobs[k])) for k in kinds}
    for weights, there in _budgets(needs, kinds):
        programme.limit(((weights[k], counts[k]) for k in kinds), there)
    programme.goal = list(counts.values())
    return solve(programme, Effort(SPENT_S, workers=1, seed=seed)).bound


def _budgets(needs: Needs, kinds: list[int]) -> Iterator[tuple[Mapping[int, int], int]]:
    """Write budgets that every packing keeps: what a job of each kind takes of it at least, and what there is."""
    nodes = sorted({n for k in kinds for n in needs.nodes[k]})
    capacities = [needs.capacity(n) for n in nodes]
    yield {k: needs.cpu_memory(k)[0] for k in kinds}, sum(cpu for cpu, _, _ in capacities)
    yield {k: needs.cpu_memory(k)[1] for k in kinds}, sum(memory for _, memory, _ in capacities)
    yield dict.fromkeys(kinds, 1), sum(pods for _, _, pods in capacities)
    devices = sorted({d for _, d in needs.slots})
    if devices:
        there = [needs.device_capacity(d) for d in devices]
        yield from _of_devices(_least(needs, kinds, "memory_mib"), [each.memory_mib for each in there])
        yield from _of_devices(_least(needs, kinds, "core_milli"), [each.core_milli for each in there])


def _least(needs: Needs, kinds: list[int], figure: str) -> dict[int, tuple[int, int]]:
    """Tell how many slices a job of each kind has, and what each takes of its device at least."""
    least = dict.fromkeys(kinds, (0, 0))
    for (k, _), slot in needs.slots.items():
        gpus, amount = least[k]
        least[k] = needs.gpus(k), min(getattr(slot, figure), amount if gpus else getattr(slot, figure))
    return least


def _of_devices(least: Mapping[int, tuple[int, int]], there: list[int]) -> Iterator[tuple[Mapping[int, int], int]]:
    """Return budgets of device resources: of their sum, and of the number of slices of a size on one device.

    With capacity 1, the function u of order k maps x to itself if (k + 1) x is an integer, and otherwise to the integer
    part of (k + 1) x, divided by k. Slices that share a device sum up to at most 1 by that as well.
    """
    yield {k: gpus * amount for k, (gpus, amount) in least.items()}, sum(there)
    largest = max(there)
    for order in range(1, FUNCTIONS + 1 if largest else 1):
        weights = {}
        for k, (gpus, amount) in least.items():
            whole, rest = divmod((order + 1) * amount, largest)
            weights[k] = gpus * (whole * largest if rest else order * amount)
        yield weights, order * largest * len(there)


TRY_COST_S = 5e-4
JOB_COST_S = 3.5e-5
"""Measured cost of a try, and of each job tried in it, seconds of CPU. Effort is counted in these, so that the result
depends on the seed only.
"""

START_SHARE = 0.1
"""Share of the effort that goes into packings from scratch."""

MAX_NODES = 4
"""Nodes that are emptied at a time, at most."""

SIZE_WEIGHT = 0.3
"""Discount of a job of mean size against one without any: small jobs leave more room."""

TELL_SHARE = 0.005
"""Share of the effort between two progress reports."""

MIN_WORTH = 0.1
"""Weight of the largest job."""

INITIAL_TOLERANCE = 0.1
"""Initial tolerance for worse packings, in jobs; it decreases to 0."""


class Search:
    """A search for the packing of most jobs.

    Parameters
    ----------
    board
        Empty.
    seed
        Seed of everything that is drawn.

    Attributes
    ----------
    best
        What the jobs of the best packing so far hold.
    """

    def __init__(self, state: PackingState, seed: int) -> None:
        self._state = state
        self._rng = np.random.default_rng(seed)
        self._scarcity = state.shares.sum(axis=0) ** 2
        size = state.shares @ self._scarcity
        self._worth: Float64 = np.maximum(1 - SIZE_WEIGHT * size / max(float(size.mean()), 1e-12), MIN_WORTH)
        self.best: dict[int, Allocation] = {}

    def run(self, effort_s: float, enough: int, tell: Callable[[float], None]) -> None:
        """Search until the effort is spent or `enough` jobs are packed; leave the best packing in the state.

        Parameters
        ----------
        tell
            Called regularly with the spent share of the effort, 0-1.
        """
        spent = self._start(effort_s * START_SHARE, enough)
        reported = 0.0
        while spent < effort_s and len(self.best) < enough:
            spent += TRY_COST_S + JOB_COST_S * self._try(INITIAL_TOLERANCE * (1 - spent / effort_s))
            if spent / effort_s >= reported + TELL_SHARE:
                reported = spent / effort_s
                tell(min(reported, 1.0))
        self._state.take_out(self._state.held)
        self._state.put_back({j: booking.copy() for j, booking in self.best.items()})

    def _start(self, effort_s: float, enough: int) -> float:
        """Pack from scratch a few times; leave the best packing in the state and return the cost."""
        state, spent = self._state, 0.0
        jobs = np.arange(len(state.queue))
        while (spent < effort_s or not spent) and len(self.best) < enough:
            state.take_out(state.held)
            state.put(self._large_first(jobs, int(self._rng.integers(len(self.best), len(jobs) + 1))))
            self._note()
            spent += TRY_COST_S + JOB_COST_S * len(jobs)
        state.take_out(state.held)
        state.put_back({j: booking.copy() for j, booking in self.best.items()})
        return spent

    def _try(self, readiness: float) -> int:
        """Empty some nodes and pack them again; return how many jobs were tried."""
        state, rng = self._state, self._rng
        nodes = len(state.snapshot.nodes)
        emptied = rng.choice(nodes, min(int(rng.integers(2, MAX_NODES + 1)), nodes), replace=False)
        out = state.take_out(state.on_nodes(emptied.tolist()))
        waiting = np.array(state.waiting)
        new = state.put(self._large_first(waiting, len(out) + int(rng.integers(-2, 4))))
        gain = self._worth[new].sum() - self._worth[list(out)].sum()
        if gain >= readiness * math.log(rng.random() + 1e-12):
            self._note()
        else:
            state.take_out(new)
            state.put_back(out)
        return len(waiting)

    def _large_first(self, jobs: Int64, many: int) -> list[int]:
        """Put jobs in order: the `many` smallest, the large of them first, then the others.

        What is scarce is drawn again each time, and so is who is small.
        """
        size = self._state.shares[jobs] @ (self._scarcity * self._rng.random(self._scarcity.shape))
        by_size = jobs[np.argsort(size, kind="stable")]
        many = max(many, 1)
        order: list[int] = [*by_size[:many][::-1].tolist(), *by_size[many:].tolist()]
        return order

    def _note(self) -> None:
        """Keep what is packed if it is the best so far."""
        if len(self._state.held) > len(self.best):
            self.best = self._state.retained()


SEARCH_SHARE = 0.3
"""Share of the effort that goes into searching where the solver is asked afterwards."""

SOLVER_COST = 3.0
"""Seconds of CPU for a second of the solver's own clock: 3 to 4 were measured."""


def no_listener(_: Step) -> None:
    """Listen to nothing."""


def best_packing(
    instance: Instance, seconds: float = 30.0, *, workers: int = 1, seed: int = 0, listener: Listener = no_listener
) -> Packing:
    """Find a packing of as many jobs as possible, with all of them known beforehand.

    A local search packs them on the engine. For a small instance, a solver then finds and proves the optimum.
    Departures are ignored.

    Parameters
    ----------
    instance
        Jobs of one replica each.
    seconds
        How much is tried: about as many seconds of CPU as that took where it was measured, whatever the machine. A
        second or two for starting the solver comes on top. It ends early when nothing better is possible.
    workers
        Threads of the solver. With one, the same seed gives the same packing, however fast the machine is.
    listener
        Called regularly with the progress.

    Raises
    ------
    RejectedError
        When an instance has no cluster, no job, or a job of several replicas, or OR-Tools is not installed.
    UnavailableError
        When the solver's process died.
    """
    state = PackingState(instance)
    needs = Needs(state.snapshot, state.queue)
    bound = most_jobs(needs, seed)
    asked = Exact.suits(needs)
    search = Search(state, seed)

    def tell(share: float) -> None:
        listener(Step(len(search.best), bound, share * (SEARCH_SHARE if asked else 1.0)))

    search.run(seconds * SEARCH_SHARE if asked else seconds, bound, tell)
    seats = state.seats()
    if asked and len(seats) < bound:
        better, proven = Exact(needs).solve(Effort(seconds * (1 - SEARCH_SHARE) / SOLVER_COST, workers, seed), seats)
        seats, bound = max(seats, better, key=len), min(bound, proven)
    packing = packed(instance, seats, bound)
    listener(Step(packing.count, bound, 1.0))
    return packing
