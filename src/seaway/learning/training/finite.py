"""What learns must not come to weights that are no numbers."""

from __future__ import annotations

from math import isfinite

from seaway.domain.errors import RejectedError

LOWER_RATES = "give it lower learning rates"


def check_finite(figure: float, remedy: str = LOWER_RATES) -> None:
    """Reject a figure that is no number any more.

    Parameters
    ----------
    figure
        An action, or a sum of weights.
    remedy
        What helps.

    Raises
    ------
    RejectedError
        When weights have grown beyond all bounds.
    """
    if not isfinite(figure):
        raise RejectedError(f"the weights have diverged: {remedy}")
