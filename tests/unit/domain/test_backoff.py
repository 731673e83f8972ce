"""Rules of exponential back-off."""

from __future__ import annotations

from random import Random

import pytest

from seaway.domain.backoff import backoff


@pytest.mark.parametrize(("failures", "delay_s"), [(1, 0.5), (2, 1), (3, 2), (5, 8), (6, 10), (10_000, 10)])
def test_delay_doubles_up_to_its_maximum(failures: int, delay_s: float) -> None:
    """The delay doubles with each failure; a huge number of failures does not overflow."""
    assert backoff(failures, 0.5, 10) == delay_s


def test_jitter_shortens_a_delay_by_at_most_half() -> None:
    """Clients with different random streams have different delays within this range."""
    delays = [backoff(3, 0.5, 10, Random(seed)) for seed in range(100)]
    assert min(delays) >= 1
    assert max(delays) <= 2
    assert len(set(delays)) == 100
