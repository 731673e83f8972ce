"""The best packing of an instance, as far as the effort goes."""

from __future__ import annotations

from seaway.learning.instances.instance import Instance
from seaway.learning.packing.board import Board
from seaway.learning.packing.bound import most_jobs
from seaway.learning.packing.exact import Exact
from seaway.learning.packing.needs import Needs
from seaway.learning.packing.packing import Listener, Packing, Step, booked
from seaway.learning.packing.programme import Effort
from seaway.learning.packing.search import Search

SEARCH_SHARE = 0.3
"""Share of the effort that goes into searching where the solver is asked afterwards."""

SOLVER_COST = 3.0
"""Seconds of CPU for a second of the solver's own clock: 3 to 4 were measured."""


def nobody(_: Step) -> None:
    """Listen to nothing."""


def best_packing(
    instance: Instance, seconds: float = 30.0, *, workers: int = 1, seed: int = 0, listener: Listener = nobody
) -> Packing:
    """Find where as many jobs as possible fit at once, with all of them known beforehand.

    They are packed and packed anew on the engine. Of a small instance a solver then finds the best and proves it.
    Departures count for nothing: what is packed stays.

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
        Told now and then how far it is.

    Raises
    ------
    RejectedError
        When an instance has no cluster, no job, or a job of several replicas, or OR-Tools is not installed.
    UnavailableError
        When the solver's process died.
    """
    board = Board(instance)
    needs = Needs(board.snapshot, board.queue)
    bound = most_jobs(needs, seed)
    asked = Exact.suits(needs)
    search = Search(board, seed)

    def tell(share: float) -> None:
        listener(Step(len(search.best), bound, share * (SEARCH_SHARE if asked else 1.0)))

    search.run(seconds * SEARCH_SHARE if asked else seconds, bound, tell)
    seats = board.seats()
    if asked and len(seats) < bound:
        better, proven = Exact(needs).solve(Effort(seconds * (1 - SEARCH_SHARE) / SOLVER_COST, workers, seed), seats)
        seats, bound = max(seats, better, key=len), min(bound, proven)
    packing = booked(instance, seats, bound)
    listener(Step(packing.count, bound, 1.0))
    return packing
