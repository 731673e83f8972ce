"""How far an agent strays from what it thinks best, to find better."""

from __future__ import annotations

from seaway.learning.agents.settings import DdpgSettings


def noise_at(settings: DdpgSettings, episode: int, episodes: int) -> float:
    """Give the standard deviation of the noise on actions in an episode, counted from 0: a line from first to last."""
    if episodes < 2:
        return settings.noise
    share = min(episode / (episodes - 1), 1.0)
    return settings.noise + share * (settings.noise_end - settings.noise)
