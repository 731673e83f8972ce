"""Dependencies between jobs: conditions on predecessors, and cycles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from seaway.domain.job_state import JobState


class When(StrEnum):
    """Condition on a predecessor."""

    SUCCEEDED = "succeeded"
    """Met by its completion."""
    FINISHED = "finished"
    """Met by any end."""
    STARTED = "started"
    """Met when it runs."""
    FAILED = "failed"
    """Met by its failure."""


@dataclass(frozen=True, slots=True)
class After:
    """A predecessor of a job, and the condition on it.

    Attributes
    ----------
    job
        ID of the predecessor. In a request that is not stored yet, also the name of a job of the same request.
    when
        Condition under which the job may start.
    """

    job: str
    when: When = When.SUCCEEDED

    def met(self, state: JobState, *, started: bool) -> bool | None:
        """Report whether the condition is met; None while it is open, False if it can never be met.

        Parameters
        ----------
        state
            State of the predecessor.
        started
            Whether it has run.
        """
        match self.when:
            case When.STARTED if started or state is JobState.COMPLETED:
                return True
            case When.FINISHED if state.final:
                return True
            case When.SUCCEEDED if state is JobState.COMPLETED:
                return True
            case When.FAILED if state is JobState.FAILED:
                return True
        return False if state.final else None


def cycle_in(predecessors: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the jobs of a cycle, the first one again at the end; empty without a cycle.

    Parameters
    ----------
    predecessors
        Predecessors of each job. Jobs without an entry have none.

    Examples
    --------
    >>> cycle_in({"a": ["b"], "b": ["c"], "c": ["a"]})
    ['a', 'b', 'c', 'a']
    >>> cycle_in({"a": ["b"], "b": ["c"]})
    []
    """
    done: set[str] = set()
    for first in predecessors:
        path: dict[str, None] = {}
        rest = [iter([first])]
        while rest:
            job = next(rest[-1], None)
            if job is None:
                rest.pop()
                if path:
                    done.add(path.popitem()[0])
            elif job in path:
                jobs = list(path)
                return [*jobs[jobs.index(job) :], job]
            elif job not in done:
                path[job] = None
                rest.append(iter(predecessors.get(job, ())))
    return []
