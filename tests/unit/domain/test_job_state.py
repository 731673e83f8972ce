from __future__ import annotations

import pytest

from seaway.domain.errors import ConflictError
from seaway.domain.job_state import FINAL, FOLLOWS, PLACED, WAITING, AttemptState, JobState, require_may_follow


def test_every_state_knows_what_may_follow() -> None:
    """No state is forgotten, and none follows itself."""
    assert set(FOLLOWS) == set(JobState)
    assert all(state not in after for state, after in FOLLOWS.items())


def test_every_state_can_be_reached_and_left_for_deletion() -> None:
    """From pending every state can be reached, and from every state a job can be deleted in the end."""
    reached, todo = {JobState.PENDING}, [JobState.PENDING]
    while todo:
        for state in FOLLOWS[todo.pop()] - reached:
            reached.add(state)
            todo.append(state)
    assert reached == set(JobState)
    assert all(JobState.DELETED in FOLLOWS[state] for state in JobState if state is not JobState.DELETED)


def test_what_is_over_stays_over() -> None:
    """After the end only deletion comes, and a retry of what did not complete."""
    again = {JobState.HELD, JobState.PENDING}
    for state in FINAL:
        done = state in (JobState.COMPLETED, JobState.DELETED)
        assert FOLLOWS[state] - {JobState.DELETED} == (frozenset() if done else again)


def test_states_are_sorted() -> None:
    """Each state is over, waits, has a place, or is outside its queue; one of these."""
    kinds = [FINAL, WAITING, PLACED, frozenset({JobState.HELD, JobState.SUSPENDED})]
    assert sum(len(kind) for kind in kinds) == len(JobState)
    for state in JobState:
        assert (state.final, state.waits, state.placed) == tuple(state in kind for kind in kinds[:3])


def test_only_what_waits_is_placed() -> None:
    """A place is given from the queue alone, so that each placement is decided."""
    assert {state for state in JobState if JobState.SCHEDULED in FOLLOWS[state]} == {JobState.QUEUED}


def test_a_wrong_step_says_which_are_right() -> None:
    """The message names the state and all that could follow."""
    with pytest.raises(ConflictError, match="suspended, so it cannot be running; it can only be cancelled, deleted"):
        require_may_follow(JobState.SUSPENDED, JobState.RUNNING)
    with pytest.raises(ConflictError, match="cannot change any more"):
        require_may_follow(JobState.DELETED, JobState.QUEUED)


def test_an_attempt_holds_until_it_ended() -> None:
    """An attempt that is being removed is not live any more, and still holds its devices."""
    assert [state for state in AttemptState if state.live] == list(AttemptState)[:3]
    assert [state for state in AttemptState if state.holds] == list(AttemptState)[:4]
