from __future__ import annotations

import pytest

from seaway.domain.dependencies import After, When, cycle_in
from seaway.domain.job_state import FINAL, JobState

S = JobState


@pytest.mark.parametrize(
    ("when", "met"),
    [
        (When.SUCCEEDED, {S.COMPLETED}),
        (When.FINISHED, FINAL),
        (When.STARTED, {S.COMPLETED}),
        (When.FAILED, {S.FAILED}),
    ],
)
@pytest.mark.parametrize("state", S)
def test_a_condition_is_open_until_its_predecessor_ends(when: When, met: set[JobState], state: JobState) -> None:
    """Only ends decide: the ones that a condition names meet it, and all others make it impossible."""
    wanted = True if state in met else False if state.final else None
    assert After("a", when).met(state, started=False) is wanted


@pytest.mark.parametrize("state", S)
def test_a_job_that_ran_has_started_whatever_comes_later(state: JobState) -> None:
    """A start is never undone, not even by a later failure or preemption."""
    assert After("a", When.STARTED).met(state, started=True) is True


def test_cycles_are_named_in_their_order() -> None:
    """A cycle is found behind jobs that are not part of it; without one, nothing is reported."""
    assert cycle_in({"x": ["a"], "a": ["b", "y"], "b": ["c"], "c": ["a"]}) == ["a", "b", "c", "a"]
    assert cycle_in({"a": ["a"]}) == ["a", "a"]
    assert cycle_in({"d": ["b", "c"], "b": ["a"], "c": ["a"]}) == []
    deep = {str(at): [str(at + 1)] for at in range(5000)}
    assert cycle_in(deep) == []
    assert len(cycle_in({**deep, "5000": ["0"]})) == 5002
