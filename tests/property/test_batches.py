"""Property tests: the number of jobs that the control loop decides together has no effect on its decisions."""

from __future__ import annotations

import pytest

from tools.draw_histories import history
from tools.record_cycle import Recorder


@pytest.mark.parametrize("seed", [0, 1, 25])
def test_the_size_of_batches_has_no_effect(seed: int) -> None:
    """Every start, resize and end of a history is the same, to the second, with batches of 1, 4 and 512 jobs."""
    drawn = history(seed)
    for event in drawn["events"]:
        event.pop("asked", None)
    one, four, all_at_once = (Recorder({**drawn, "batch_size": size}).run()["decisions"] for size in (1, 4, 512))
    assert one == four == all_at_once
    assert any(what == "starts" for _, what, *_ in one)
