"""Waiting for a job: what counts as having got there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from seaway.client.errors import WaitedTooLongError
from seaway.client.feed import OVER, Heard

if TYPE_CHECKING:
    from seaway.wire.job_out import JobOut

Until = Literal["running", "over"]


class Wait:
    """Knows when a wait ends.

    Parameters
    ----------
    until
        ``running`` ends too when the job is over without having run.
    timeout_s
        After how many seconds to give up; None for never.
    now_s
        Seconds of the clock that `left_s` is asked by.
    """

    def __init__(self, until: Until, timeout_s: float | None, now_s: float) -> None:
        self._wanted = OVER | {"running"} if until == "running" else OVER
        self._until = until
        self._timeout_s = timeout_s
        self._ends_s = None if timeout_s is None else now_s + timeout_s

    def done(self, job: JobOut) -> bool:
        """Tell whether a job is where it was waited for."""
        return job.state in self._wanted

    def matters(self, heard: Heard) -> bool:
        """Tell whether an event is a reason to look at the job."""
        return heard.body.get("state") in self._wanted

    def left_s(self, now_s: float, most_s: float) -> float:
        """Return for how long to listen, at most `most_s`.

        Raises
        ------
        WaitedTooLongError
            When the time is over.
        """
        if self._ends_s is None:
            return most_s
        if now_s >= self._ends_s:
            raise WaitedTooLongError(f"the job is not {self._until} after {self._timeout_s:g} s")
        return min(most_s, self._ends_s - now_s)
