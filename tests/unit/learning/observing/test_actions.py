from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.observing.clusters import action_of, choice_of


def test_the_interval_is_cut_into_bins_of_one_width() -> None:
    """Three clusters make four bins of one half each; the last waits. Bins begin where the one before ends."""
    assert [choice_of(action, 3) for action in (-1, -0.51, -0.5, -0.01, 0, 0.49, 0.5, 1)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_actions_beyond_the_interval_count_as_its_ends() -> None:
    """Noise may push them there."""
    assert (choice_of(-7, 16), choice_of(7, 16)) == (0, 16)


@pytest.mark.parametrize("action", [float("nan"), float("inf")])
def test_what_is_no_number_is_no_action(action: float) -> None:
    """It stands for no cluster, and not for waiting either."""
    with pytest.raises(RejectedError, match="an action is a number from -1 to 1, not"):
        choice_of(action, 3)


@pytest.mark.parametrize("clusters", [1, 3, 16, 101])
def test_a_choice_is_read_back_from_its_action(clusters: int) -> None:
    """The action of a choice lies in its bin."""
    assert [choice_of(action_of(choice, clusters), clusters) for choice in range(clusters + 1)] == [
        *range(clusters + 1)
    ]
