"""How long to wait before something is tried again."""

from __future__ import annotations

from random import Random

LEAST_S = 0.2
MOST_S = 5.0
"""Short enough that a cluster which comes back is seen soon: each of its sources waits for itself."""


class Backoff:
    """Doubles the wait with every failure, and takes up to half off by chance, so that no two come together.

    Parameters
    ----------
    random
        Where the chance comes from.
    """

    def __init__(self, random: Random, least_s: float = LEAST_S, most_s: float = MOST_S) -> None:
        self._random = random
        self._least_s = least_s
        self._most_s = most_s
        self._failures = 0

    def failed(self) -> float:
        """Note a failure; return how long to wait, seconds."""
        longest_s: float = min(self._least_s * 2 ** min(self._failures, 20), self._most_s)
        self._failures += 1
        return longest_s * self._random.uniform(0.5, 1)

    def worked(self) -> None:
        """Note that it worked."""
        self._failures = 0
