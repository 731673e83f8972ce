from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.observing.clusters import action_of, choice_of


def test_bins_have_equal_width() -> None:
    """Three clusters have four bins with a width of one half, and the last one waits."""
    assert [choice_of(action, 3) for action in (-1, -0.51, -0.5, -0.01, 0, 0.49, 0.5, 1)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_actions_are_clipped() -> None:
    """Exploration noise can exceed the interval."""
    assert (choice_of(-7, 16), choice_of(7, 16)) == (0, 16)


@pytest.mark.parametrize("action", [float("nan"), float("inf")])
def test_actions_that_are_not_finite_are_rejected(action: float) -> None:
    """NaN and infinity are neither a cluster nor waiting."""
    with pytest.raises(RejectedError, match="an action is a number from -1 to 1, not"):
        choice_of(action, 3)


@pytest.mark.parametrize("clusters", [1, 3, 16, 101])
def test_actions_of_choices_are_in_their_bins(clusters: int) -> None:
    """The conversion from choice to action and back is exact."""
    assert [choice_of(action_of(choice, clusters), clusters) for choice in range(clusters + 1)] == [
        *range(clusters + 1)
    ]
