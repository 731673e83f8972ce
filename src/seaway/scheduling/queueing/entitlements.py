"""Entitlements of queues whose jobs can use different GPU models.

The order of queues looks at one level of the tree at a time. That is fair while each job can use each GPU. If some jobs
need single models, a child of a queue can get too much of one model, because its sibling cannot use the GPU that is
free. Another queue that could use both models does not change that. So the shares of all levels, and the models that
they consist of, are computed together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from seaway.scheduling.queueing.tree import QueueNode

MAX_SETS = 64
"""Maximum number of sets of models with a bound."""

NEAR = 1e-9

EXHAUSTED = 1e-6
"""Share of a set of models that may be left if queues need all of them."""

FITTED = 0.001
"""Relative error of the parts of a model."""

MAX_ROUNDS = 1000
"""Maximum number of times that the parts are fitted to the shares of queues and to the models."""

Models = frozenset[str]
"""GPU models. All that no job needs alone can be one model."""


@dataclass(frozen=True)
class Entitlements:
    """Weighted max-min shares of the queues with waiting jobs, from the root of the tree to its leaves.

    All siblings rise together by their weights, from their guarantees on, until the models that some of them can use
    are exhausted. These keep their shares, and the others continue.

    Attributes
    ----------
    usable
        Models that the waiting jobs of each leaf can use.
    capacity
        Share of the pool that each model is, without what queues without waiting jobs hold.
    held
        Share that queues without waiting jobs hold.

    References
    ----------
    Hall's theorem: shares fit if, for each set of models, those that need it are no more than it has.
    """

    usable: Mapping[QueueNode, Models]
    capacity: Mapping[str, float]
    held: Mapping[QueueNode, float]

    @cached_property
    def shares(self) -> Mapping[QueueNode, float]:
        """Share of each queue with waiting jobs, and of its ancestors."""
        found: dict[QueueNode, float] = {}
        undivided = defaultdict[Models, float](float)  # rest of the shares that are not divided yet, and of leaves
        for parent in sorted(self._children, key=lambda each: len(each.path) if each else 0):
            rooms = {models: self._room(models) for models in self._sets}
            if parent:
                grows = found[parent] - self._fixed[parent]
                undivided[self._below[parent]] -= grows
                for models in self._sets:
                    rooms[models] -= sum(share for of, share in undivided.items() if of <= models)
                rooms[self._sets[-1]] = min(rooms[self._sets[-1]], grows)
            found.update(self._divided(self._children[parent], rooms))
            for each in self._children[parent]:
                undivided[self._below[each]] += found[each] - self._fixed[each]
        return found

    @cached_property
    def parts(self) -> Mapping[tuple[Models, str], float]:
        """Share of each model that the leaves with the same usable models get together.

        Several divisions can be right. This one depends continuously on the shares.

        References
        ----------
        Deming and Stephan, iterative proportional fitting, doi:10.1214/aoms/1177731829.
        """
        totals = defaultdict[Models, float](float)
        for leaf, usable in self.usable.items():
            totals[usable] += self.shares[leaf]
        exhausted = [
            models
            for models in self._sets
            if sum(total for usable, total in totals.items() if usable <= models) >= self._room(models) - EXHAUSTED
        ]
        found = {
            (usable, model): self.capacity[model]
            for usable in totals
            for model in usable
            if all(usable <= models for models in exhausted if model in models)  # others need all of it
        }
        for _ in range(MAX_ROUNDS):
            of_usable, of_model = defaultdict[Models, float](float), defaultdict[str, float](float)
            for (usable, _), part in found.items():
                of_usable[usable] += part
            for (usable, model), part in found.items():
                fitted = found[usable, model] = part * totals[usable] / (of_usable[usable] or 1.0)
                of_model[model] += fitted
            if all(part <= self.capacity[model] * (1 + FITTED) for model, part in of_model.items()):
                break
            for usable, model in found:
                found[usable, model] *= min(1.0, self.capacity[model] / (of_model[model] or 1.0))
        return found

    @property
    def has_few_sets(self) -> bool:
        """True unless jobs allow so many different sets of models that the shares would take long to compute."""
        return len(self._sets) <= MAX_SETS

    @cached_property
    def _sets(self) -> Sequence[Models]:
        """Sets of models with a bound, the smallest ones first, all models last.

        These are the unions of usable models that overlap. The bound of any other set follows from those of its parts.
        """
        of_queues, all_models = set(self._below.values()), frozenset(self.capacity)
        found, new = of_queues | {all_models}, list(of_queues)
        while new and len(found) <= MAX_SETS:
            one = new.pop()
            unions = {one | other for other in of_queues if not one.isdisjoint(other)} - found
            found |= unions
            new += unions
        return sorted(found, key=lambda models: (models == all_models, len(models), sorted(models)))

    @cached_property
    def _below(self) -> Mapping[QueueNode, Models]:
        """Models that the waiting jobs of each queue and its descendants can use."""
        found = defaultdict[QueueNode, Models](frozenset)
        for leaf, models in self.usable.items():
            for node in leaf.path:
                found[node] |= models
        return found

    @cached_property
    def _children(self) -> Mapping[QueueNode | None, Sequence[QueueNode]]:
        found = defaultdict[QueueNode | None, list[QueueNode]](list)
        for node in self._below:
            found[node.parent].append(node)
        return found

    @cached_property
    def _fixed(self) -> Mapping[QueueNode, float]:
        """Share of descendants without waiting jobs, of each queue."""
        found = defaultdict[QueueNode, float](float)
        for leaf, share in self.held.items():
            for node in leaf.path:
                found[node] += share
        return found

    def _room(self, models: Models) -> float:
        return sum(self.capacity[each] for each in models)

    def _divided(self, children: Collection[QueueNode], rooms: Mapping[Models, float]) -> Mapping[QueueNode, float]:
        """Return the shares of siblings, to which sets of models leave some room."""
        level = _Level(children, self._below, self._fixed, rooms)
        level.rise({each: each.guaranteed_share for each in children}, dict.fromkeys(children, 0.0), 1.0)
        for priority in sorted({each.queue.priority for each in level.rising}, reverse=True):
            first = {each: float(each.queue.weight) for each in level.rising if each.queue.priority == priority}
            level.rise(first, {each: level.shares[each] for each in first}, math.inf)
        return level.shares


class _Level:
    """Siblings that rise together, and the room that sets of models have for them.

    Attributes
    ----------
    shares
        Share of each sibling so far.
    rising
        Siblings that no set of models bounds yet.
    """

    def __init__(
        self,
        siblings: Collection[QueueNode],
        usable: Mapping[QueueNode, Models],
        fixed: Mapping[QueueNode, float],
        rooms: Mapping[Models, float],
    ) -> None:
        self.shares = dict.fromkeys(siblings, 0.0)
        self.rising = dict.fromkeys(siblings)
        self._usable = usable
        self._fixed = fixed
        self._rooms = rooms

    def rise(self, weights: Mapping[QueueNode, float], base: Mapping[QueueNode, float], top: float) -> None:
        """Raise some siblings by their weights up to a level, or until all are bounded."""
        rising = {each: weight for each, weight in weights.items() if weight > 0}
        while rising:
            levels = {models: self._level(models, rising, base) for models in self._rooms}
            level = min(top, *levels.values())
            for each, weight in rising.items():
                self.shares[each] = base[each] + level * weight
            if level >= top:
                return
            full = [models for models, at in levels.items() if at <= level + NEAR]
            for each in [each for each in rising if any(self._usable[each] <= models for models in full)]:
                del rising[each], self.rising[each]

    def _level(self, models: Models, rising: Mapping[QueueNode, float], base: Mapping[QueueNode, float]) -> float:
        """Return the level at which some models are exhausted; infinite if no rising sibling needs one of them."""
        inside = [each for each in self.shares if self._usable[each] <= models]
        room = self._rooms[models]
        room -= sum(max(0.0, self.shares[each] - self._fixed[each]) for each in inside if each not in rising)
        return max(
            0.0, level_of([(self._fixed[each] - base[each], rising[each]) for each in inside if each in rising], room)
        )


def level_of(candidates: Iterable[tuple[float, float]], room: float) -> float:
    """Return the level to which candidates can rise together; infinite without one that rises.

    Parameters
    ----------
    candidates
        What each of them has, and its weight. It rises from there on once the level times its weight is more.
    room
        What they get beyond that, in all.
    """
    starts = sorted((has / weight, weight) for has, weight in candidates if weight > 0)
    level, total, ahead = math.inf, 0.0, 0.0
    for at, (start, weight) in enumerate(starts):
        total, ahead = total + weight, ahead + start * weight
        level = (room + ahead) / total
        if at + 1 == len(starts) or level <= starts[at + 1][0]:
            break
    return level
