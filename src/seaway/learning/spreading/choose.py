"""Which spread users asked for."""

from __future__ import annotations

from importlib.util import find_spec

from seaway.domain.errors import RejectedError
from seaway.learning.spreading.over_ray import OverRay
from seaway.learning.spreading.processes import Processes
from seaway.learning.spreading.spread import Serial, Spread, Tell


def choose_spread(workers: int, ray: str | None, tell: Tell) -> Spread:
    """Return what spreads work.

    Parameters
    ----------
    workers
        How many processes; 1 for this one alone.
    ray
        Address of a Ray cluster, see `seaway.learning.spreading.over_ray.OverRay`; None for none.
    tell
        Who is told that a worker died.

    Raises
    ------
    RejectedError
        When there would be no worker, or Ray is not installed.
    """
    if workers < 1:
        raise RejectedError(f"{workers} is not at least 1", where="--workers")
    if ray is not None:
        if not find_spec("ray"):
            raise RejectedError("needs Ray, which is an extra: pip install 'seaway[ray]'", where="--ray")
        return OverRay(ray, workers, tell)
    return Serial() if workers == 1 else Processes(workers, tell)
