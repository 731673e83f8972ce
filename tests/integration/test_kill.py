"""A control plane that is killed repeatedly, with clusters that outlive it."""

from __future__ import annotations

import re

import pytest

from benchmarks.kill.deadly import Fatal
from benchmarks.kill.harness import DISPLACES, MAX_STEPS, Aftermath, kill_over_and_over, random_steps

pytestmark = pytest.mark.slow

RANDOM_KILLS = 40

WANTED = (
    "storing .*job pending",
    "storing .*attempt assumed",
    "sending .*deployment",
    f"before storing .*{DISPLACES}",
    f"after storing .*{DISPLACES}",
    "before sending .*removal of a victim",
    "after sending .*removal of a victim",
    "before storing .*winner scheduled",
    "after storing .*winner scheduled",
    "before storing .*resize",
    "after storing .*resize",
)


def test_killed_at_every_persisted_step_nothing_is_lost_or_doubled() -> None:
    """Whichever commit or command was the last before SIGKILL, every accepted job ends once."""
    after = kill_over_and_over([Fatal(step) for step in range(1, MAX_STEPS + 1)], seed=1, wanted=WANTED)
    prove(after, MAX_STEPS)
    for step in WANTED:
        assert any(re.search(step, each) for each in after.steps), f"never killed while {step}: {after.steps}"


def test_killed_at_random_under_more_load_nothing_is_lost_or_doubled() -> None:
    """With more load and random kills, also while room is reserved, every accepted job still ends once."""
    after = kill_over_and_over(random_steps(RANDOM_KILLS, seed=2), seed=2, pause_s=0.0)
    prove(after, RANDOM_KILLS)
    assert after.reserved, "no kill fell while a place was reserved"


def prove(after: Aftermath, kills: int) -> None:
    """Check the result."""
    assert after.kills >= kills
    assert after.accepted > after.kills // 2, "too little was under way to prove anything"
    assert after.displaced, "no job was displaced"
    assert after.resized, "no job was resized"
    assert after.lost == []
    assert after.duplicated == []
    assert after.broken == []
