import numpy as np
import pytest

pytest.importorskip("torch", reason="needs seaway[learn]")

from seaway.learning.agents.replay import Pool, Replay

SIZE = 4


def filled(size: int, rewards: list[int]) -> Pool:
    """Make a pool of transitions that are distinguished by their rewards."""
    pool = Pool(size, SIZE)
    for reward in rewards:
        pool.add(np.full(SIZE, reward, np.float32), 0.5, reward, np.full(SIZE, reward + 1, np.float32), reward % 2 == 0)
    return pool


def test_a_row_holds_its_transition() -> None:
    """Each part of a transition is found in its columns."""
    pool = filled(3, [2, 3])
    rows = np.zeros((50, pool.columns.width), np.float32)

    pool.draw(np.random.default_rng(0), rows)

    columns = pool.columns
    for row in rows:
        reward = row[columns.reward]
        assert (row[: columns.action] == reward).all()
        assert row[columns.action] == 0.5
        assert (row[columns.following] == reward + 1).all()
        assert row[columns.going_on] == reward - 2  # 2 ended, 3 goes on


def test_the_oldest_gives_way() -> None:
    """A full pool holds the newest transitions, each of them drawn in its turn, and no other."""
    pool = filled(3, [1, 2, 3, 4, 5])
    rows = np.zeros((200, pool.columns.width), np.float32)

    pool.draw(np.random.default_rng(0), rows)

    assert set(rows[:, pool.columns.reward]) == {3, 4, 5}


@pytest.mark.parametrize(("share", "taught"), [(0.0, 0), (0.1, 26), (0.2, 51), (0.5, 128), (1.0, 256)])
def test_each_batch_has_the_experts_share(share: float, taught: int) -> None:
    """Of 256 rows, beta times 256, rounded, are the expert's: in every batch, not on average."""
    replay = Replay(filled(5, [1, 2, 3]), filled(5, [101, 102]), share, 256)
    rng = np.random.default_rng(0)

    for _ in range(3):
        rewards = replay.draw(rng)[:, replay.live.columns.reward]
        assert (rewards > 100).sum() == taught


def test_without_an_expert_all_is_live() -> None:
    """As long as no one taught anything, batches are of what was lived."""
    replay = Replay(filled(5, [1, 2, 3]), filled(5, []), 0.5, 64)

    rewards = replay.draw(np.random.default_rng(0))[:, replay.live.columns.reward]

    assert set(rewards) == {1, 2, 3}


def test_a_restored_pool_goes_on() -> None:
    """Anything that a pool gives, and what gives way next, is the same after its state was taken up by another."""
    pool, other = filled(3, [1, 2, 3, 4]), Pool(3, SIZE)
    other.restore(pool.state())
    for each in (pool, other):
        each.add(np.zeros(SIZE, np.float32), 0.0, 9.0, np.zeros(SIZE, np.float32), False)

    drawn = []
    for each in (pool, other):
        drawn.append(np.zeros((50, pool.columns.width), np.float32))
        each.draw(np.random.default_rng(0), drawn[-1])

    assert (drawn[0] == drawn[1]).all()
    assert set(drawn[0][:, pool.columns.reward]) == {3, 4, 9}
