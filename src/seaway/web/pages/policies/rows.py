"""Rows of the policies page: policies with their queues, and comparisons of shadows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.policies import PolicyOut
    from seaway.wire.tenancy import QueueOut, ShadowOut

JOBS, PLACED, APART, ON = "jobs", "placed", "kept_apart_", "trained_on_"
"""Names and prefixes of training figures in policy files."""


@dataclass(slots=True)
class Duel:
    """Comparison of a shadow with the active policy of a queue.

    Attributes
    ----------
    live, shadow
        The policies; a trained one with its model.
    jobs
        Jobs that both decided.
    live_placed, shadow_placed
        Jobs that each of them placed.
    same_node
        Jobs that both placed on the same nodes.
    answered, fallbacks
        Jobs that the shadow decided itself, and jobs that a fallback decided.
    live_fragmentation, shadow_fragmentation
        Fragmentation of the fleet afterwards, 0 to 4; mean over groups of jobs with equal weights.
    """

    queue: str
    live: str
    shadow: str
    jobs: int = 0
    live_placed: int = 0
    shadow_placed: int = 0
    same_node: int = 0
    answered: int = 0
    fallbacks: int = 0
    live_fragmentation: float = 0.0
    shadow_fragmentation: float = 0.0
    groups: int = 0

    def add(self, row: ShadowOut) -> None:
        """Add a group of jobs."""
        self.jobs += row.jobs
        self.live_placed += row.live_placed
        self.shadow_placed += row.shadow_placed
        self.same_node += row.same_node
        self.answered += row.answered
        self.fallbacks += row.fallbacks
        self.groups += 1
        self.live_fragmentation += (row.live_fragmentation_milli / 1000 - self.live_fragmentation) / self.groups
        self.shadow_fragmentation += (row.shadow_fragmentation_milli / 1000 - self.shadow_fragmentation) / self.groups


def duels(rows: Iterable[ShadowOut]) -> list[Duel]:
    """Sum comparisons by queue and policies, the latest first."""
    found: dict[tuple[str, str, str], Duel] = {}
    for row in rows:
        key = row.queue, row.live, row.shadow
        found.setdefault(key, Duel(*key)).add(row)
    return list(found.values())


def policy_rows(policies: Sequence[PolicyOut], queues: Sequence[QueueOut]) -> Iterator[dict[str, object]]:
    """List policies with the queues that use them, and the queues whose shadow they are."""
    for policy in policies:
        decides = [each.name for each in queues if each.policy == policy.name]
        shadows = [each.name for each in queues if each.shadow == policy.name]
        yield {"policy": policy, "decides": decides, "shadows": shadows}


def figure_rows(figures: Mapping[str, float], words: Words) -> Iterator[tuple[str, float]]:
    """List the figures of a policy file, with titles for known ones."""
    known = {
        "jobs": words("Jobs that came"),
        "placed": words("Jobs placed"),
        "refused": words("Infeasible jobs"),
        "gpu_load_variance": words("Variance of GPU load between clusters"),
        "reward": words("Reward"),
    }
    for name, value in figures.items():
        plain = name.removeprefix(APART).removeprefix(ON)
        yield known.get(plain, name.replace("_", " ")), value


def placed_share(figures: Mapping[str, float]) -> float | None:
    """Return the share of jobs that a trained policy placed in its measurements, in percent; None if unknown."""
    for where in (APART, ON):
        jobs, placed = figures.get(f"{where}{JOBS}"), figures.get(f"{where}{PLACED}")
        if jobs and placed is not None:
            return 100 * placed / jobs
    return None
