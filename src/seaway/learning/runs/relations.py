"""Settings beside each other: each may be right, and nothing be learned by them, or one of them change nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from seaway.learning.agents.settings import DdpgSettings
from seaway.learning.pilot.settings import PilotSettings
from seaway.learning.rivals.settings import PpoSettings

LEAST_OF_PPO = 2
"""Steps of a part, and of all, that advantages can be compared within."""

ONLY_LATER = ("soft_update", "target_noise", "target_clip", "trace_decay")
"""What is about the value of what comes later, which counts for nothing without a discount."""


@dataclass(frozen=True, slots=True)
class Odds:
    """Settings by which nothing can be learned.

    Attributes
    ----------
    names
        Which of them could be changed.
    says
        What is wrong, and what would be right.
    """

    names: tuple[str, ...]
    says: str


def odds_in(settings: object) -> Iterator[Odds]:
    """Find what cannot be in the settings of an algorithm, or of anything else, where there is nothing."""
    if isinstance(settings, DdpgSettings) and settings.live_pool < settings.warm_up:
        pool, first = settings.live_pool, settings.warm_up
        says = f"live_pool keeps {pool} transitions, and learning begins when it holds {first} (warm_up): "
        yield Odds(("live_pool", "warm_up"), f"{says}it never would; give live_pool {first}, or warm_up {pool}")
    if isinstance(settings, PpoSettings):
        for name in ("batch", "steps"):
            if getattr(settings, name) < LEAST_OF_PPO:
                yield Odds((name,), f"{getattr(settings, name)} is not at least {LEAST_OF_PPO}, as ppo needs it")


def unused(settings: object, given: Collection[str]) -> dict[str, str]:
    """Return which of the settings that were given change nothing, each with what would make it count, a clause."""
    found: dict[str, str] = {}
    if not getattr(settings, "discount", 1.0):
        found |= dict.fromkeys(ONLY_LATER, "it counts with a discount above 0")
    if isinstance(settings, DdpgSettings):
        if not settings.candidates and not settings.discount:
            found["actor_rate"] = "an actor is trained with candidates above 0, or a discount above 0"
        if not settings.attention:
            found["heads"] = "there are heads with attention above 0, which eade-ddpg has"
        if not settings.expert_share:
            found["expert_pool"] = "an expert is asked with expert_share above 0"
    if isinstance(settings, PilotSettings) and not settings.packings:
        found["packing_s"] = "instances are packed with packings above 0"
    return {name: why for name, why in found.items() if name in given}
