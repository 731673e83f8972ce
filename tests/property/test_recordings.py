"""The present code decides and answers as in the recordings below `tests/golden`."""

from __future__ import annotations

import pytest

from tools.golden import FOLDER, HISTORIES, WHOLE, digest, recorded

RENEW = "If it is meant, run `python -m tools.golden`, and name the reason in tests/golden/changes.md."


@pytest.mark.slow
@pytest.mark.parametrize("seed", [19, 22, 30])
def test_decisions_and_answers_are_as_recorded(seed: int) -> None:
    """Starts, resizes and ends of a history, expected starts, dry runs and what-if answers are those of the file."""
    stored = (FOLDER / f"{seed:03}.txt").read_text(encoding="utf-8")
    assert recorded(seed) == stored, RENEW


def test_recordings_are_of_one_time() -> None:
    """Every history has a digest, and that of each file is its own."""
    lines = (FOLDER / "digests.txt").read_text(encoding="utf-8").splitlines()
    digests = {int(seed): found for seed, found in map(str.split, lines)}
    assert digests.keys() == {*HISTORIES}
    for seed in WHOLE:
        assert digests[seed] == digest((FOLDER / f"{seed:03}.txt").read_text(encoding="utf-8")), RENEW
