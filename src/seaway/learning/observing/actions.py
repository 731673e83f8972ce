"""Actions: how one number between -1 and 1 stands for a cluster, or for waiting."""

from __future__ import annotations

from math import isfinite

from seaway.domain.errors import RejectedError


def choice_of(action: float, clusters: int) -> int:
    """Return what an action stands for: the interval from -1 to 1 is cut into C + 1 bins of one width.

    Returns
    -------
    int
        A cluster, or C, of the last bin, to wait. What lies beyond the interval counts as its nearer end.

    Raises
    ------
    RejectedError
        When it is not a finite number.
    """
    if not isfinite(action):
        raise RejectedError(f"an action is a number from -1 to 1, not {action}")
    return min(max(int((action + 1.0) / 2.0 * (clusters + 1)), 0), clusters)


def checked(number: int, most: int) -> int:
    """Return the number of an action.

    Raises
    ------
    RejectedError
        When there is none of that number.
    """
    if not 0 <= number <= most:
        raise RejectedError(f"there is no action {number}: they are 0 to {most}")
    return number


def action_of(choice: int, clusters: int) -> float:
    """Return the action in the middle of the bin of a choice."""
    return (choice + 0.5) * 2.0 / (clusters + 1) - 1.0
