import pytest

pytest.importorskip("torch", reason="needs seaway[learn]")

from seaway.learning.settings import DdpgSettings
from seaway.learning.training.ddpg import noise_at


@pytest.mark.parametrize(("episode", "noise"), [(0, 0.4), (5, 0.2), (10, 0.0), (20, 0.0)])
def test_noise_changes_linearly(episode: int, noise: float) -> None:
    """Noise changes linearly from the first to the last episode, and is constant after that."""
    assert noise_at(DdpgSettings(noise=0.4, noise_end=0.0), episode, 11) == pytest.approx(noise)


def test_a_single_episode_has_the_initial_noise() -> None:
    """A run of one episode has the initial noise, not the final one."""
    assert noise_at(DdpgSettings(noise=0.4, noise_end=0.1), 0, 1) == 0.4
