import numpy as np
import pytest

pytest.importorskip("torch", reason="needs seaway[learn]")

from seaway.learning.agents.replay import MixedReplay, ReplayBuffer

SIZE = 4


def filled(size: int, rewards: list[int]) -> ReplayBuffer:
    """Make a buffer of transitions that are distinguished by their rewards."""
    buffer = ReplayBuffer(size, SIZE)
    for reward in rewards:
        buffer.add(
            np.full(SIZE, reward, np.float32), 0.5, reward, np.full(SIZE, reward + 1, np.float32), reward % 2 == 0
        )
    return buffer


def test_a_row_holds_its_transition() -> None:
    """Each part of a transition is in its columns."""
    buffer = filled(3, [2, 3])
    rows = np.zeros((50, buffer.columns.width), np.float32)

    buffer.sample(np.random.default_rng(0), rows)

    columns = buffer.columns
    for row in rows:
        reward = row[columns.reward]
        assert (row[: columns.action] == reward).all()
        assert row[columns.action] == 0.5
        assert (row[columns.next_observation] == reward + 1).all()
        assert row[columns.not_done] == reward - 2  # 2 terminated, 3 did not


def test_the_oldest_is_overwritten() -> None:
    """A full buffer has the latest transitions only, and samples all of them."""
    buffer = filled(3, [1, 2, 3, 4, 5])
    rows = np.zeros((200, buffer.columns.width), np.float32)

    buffer.sample(np.random.default_rng(0), rows)

    assert set(rows[:, buffer.columns.reward]) == {3, 4, 5}


@pytest.mark.parametrize(("share", "demonstrations"), [(0.0, 0), (0.1, 26), (0.2, 51), (0.5, 128), (1.0, 256)])
def test_each_batch_has_the_experts_share(share: float, demonstrations: int) -> None:
    """Of 256 rows, beta times 256, rounded, are demonstrations, in every batch."""
    replay = MixedReplay(filled(5, [1, 2, 3]), filled(5, [101, 102]), share, 256)
    rng = np.random.default_rng(0)

    for _ in range(3):
        rewards = replay.sample(rng)[:, replay.live.columns.reward]
        assert (rewards > 100).sum() == demonstrations


def test_batches_without_demonstrations() -> None:
    """Without demonstrations, batches have only transitions of the agent."""
    replay = MixedReplay(filled(5, [1, 2, 3]), filled(5, []), 0.5, 64)

    rewards = replay.sample(np.random.default_rng(0))[:, replay.live.columns.reward]

    assert set(rewards) == {1, 2, 3}


def test_a_restored_buffer_equals_the_stored_one() -> None:
    """A restored buffer samples the same, and overwrites the same transition next."""
    buffer, other = filled(3, [1, 2, 3, 4]), ReplayBuffer(3, SIZE)
    other.restore(buffer.state())
    for each in (buffer, other):
        each.add(np.zeros(SIZE, np.float32), 0.0, 9.0, np.zeros(SIZE, np.float32), False)

    drawn = []
    for each in (buffer, other):
        drawn.append(np.zeros((50, buffer.columns.width), np.float32))
        each.sample(np.random.default_rng(0), drawn[-1])

    assert (drawn[0] == drawn[1]).all()
    assert set(drawn[0][:, buffer.columns.reward]) == {3, 4, 9}
