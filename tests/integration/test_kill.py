"""A control plane that is killed repeatedly, with clusters that outlive it."""

from __future__ import annotations

import pytest

from benchmarks.kill.harness import MAX_STEPS, Aftermath, kill_over_and_over, random_steps

pytestmark = pytest.mark.slow

RANDOM_KILLS = 60


def test_killed_at_every_persisted_step_nothing_is_lost_or_doubled() -> None:
    """Whichever commit or command was the last before SIGKILL, every accepted job ends once."""
    wanted = ("storing job pending", "storing attempt assumed", "sending deployment", "removal")
    after = kill_over_and_over(iter(range(1, MAX_STEPS + 1)), seed=1, wanted=wanted)
    prove(after, MAX_STEPS)
    assert after.displaced, "no job was displaced"
    for step in wanted:
        assert any(step in each for each in after.steps), f"never killed while {step}: {after.steps}"


def test_killed_at_random_under_more_load_nothing_is_lost_or_doubled() -> None:
    """With more load and random kills, every accepted job still ends once."""
    prove(kill_over_and_over(random_steps(RANDOM_KILLS, seed=2), seed=2, pause_s=0.0), RANDOM_KILLS)


def prove(after: Aftermath, kills: int) -> None:
    """Check the result."""
    assert after.kills >= kills
    assert after.accepted > after.kills // 2, "too little was under way to prove anything"
    assert after.lost == []
    assert after.duplicated == []
    assert after.broken == []
