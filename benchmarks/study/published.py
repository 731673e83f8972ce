"""Published results of EADE-DDPG: 16 clusters of 4 nodes, 220 jobs; the instance itself is not public."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    """Published figures of one policy."""

    placed: int
    fragmentation: float
    gpu_load_variance: float
    gpu_memory_pct: float


TABLE: dict[str, Published] = {
    "eade-ddpg": Published(209, 1.985, 0.0020, 95.4),
    "sac": Published(195, 2.091, 0.0050, 92.5),
    "ppo": Published(193, 2.206, 0.0030, 91.2),
    "td3": Published(191, 2.126, 0.0038, 92.1),
    "utilization": Published(188, 2.146, 0.0096, 90.5),
    "ddpg": Published(185, 2.147, 0.0179, 89.6),
    "random": Published(184, 2.255, 0.0111, 89.0),
    "bestfit": Published(183, 2.164, 0.0067, 91.5),
    "greedy": Published(182, 2.322, 0.0129, 90.0),
}
"""Results in the published order, by placed jobs."""

LEARNED = ("eade-ddpg", "ddpg", "td3", "sac", "ppo")

LITERAL: dict[str, dict[str, str]] = {
    "eade-ddpg-actor-alone": {"candidates": "1"},
    "eade-ddpg-all-nodes": {"fitting": "false"},
}
"""EADE-DDPG without one of our two interpretations, by name: the changed settings."""

FIRST = "eade-ddpg"
"""First in placed jobs, in GPU load variance and in mean GPU memory use."""

BEST_SCORE_BY_EXPERT_SHARE = {"0": -11742, "0.1": -6211, "0.2": -7765, "0.5": -8684}
"""Best training score; none is published for a share of 1."""

DEFAULTS = {"expert_share": "0.1", "batch": "256", "hidden": "128-64", "actor_rate": "1e-4", "critic_rate": "1e-3"}
"""Final settings of the study."""

TRIED: dict[str, tuple[dict[str, str], ...]] = {
    "expert share": tuple({"expert_share": value} for value in ("0", "0.1", "0.2", "0.5", "1")),
    "batch": tuple({"batch": value} for value in ("32", "64", "128", "256")),
    "layers": tuple({"hidden": value} for value in ("32-32", "64-64", "128-64", "128-128", "256-128")),
    "learning rates": tuple(
        {"actor_rate": actor, "critic_rate": critic}
        for actor, critic in (("1e-4", "1e-3"), ("1e-4", "1e-4"), ("1e-3", "1e-4"), ("1e-4", "5e-4"))
    ),
}
"""Values that the study tried, with the other settings as above."""
