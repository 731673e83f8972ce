"""Evaluation of policies on instances, in one or several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from seaway.domain.errors import RejectedError
from seaway.learning.evaluation.contestants import OFFERS, Contestant
from seaway.learning.evaluation.summary import Row
from seaway.learning.instances.instance import Instance
from seaway.learning.parallel import Spread
from seaway.learning.runs.instances import digest_of
from seaway.simulation.outcome import Float64


@dataclass(frozen=True, slots=True)
class Trial:
    """Evaluation of a policy on an instance.

    Attributes
    ----------
    row
        Its figures.
    used
        Share of each resource in use at the end, shape (4, C), see `used_shares`; None without figures.
    """

    row: Row
    used: Float64 | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One evaluation: the key fields of its row, and the number of offers of deferred jobs."""

    contestant: Contestant
    instance: Instance
    seed: int
    trained_on_instance: bool | None = None
    offers: int = OFFERS


def tasks(
    contestants: Sequence[Contestant], instances: Sequence[Instance], seeds: Sequence[int], offers: int = OFFERS
) -> list[Task]:
    """Return all tasks, instance by instance, so that an interrupted evaluation compares all policies on some."""
    found = []
    for instance in instances:
        digest = digest_of(instance)
        for each in contestants:
            own = None if each.trained_on is None else each.trained_on.has(instance, digest)
            if own or not each.own_only:
                found += [Task(each, instance, seed, own, offers) for seed in each.seeds(seeds)]
    return found


def measure(work: Sequence[Task], spread: Spread) -> Iterator[tuple[int, Trial]]:
    """Run tasks, and yield each result with the number of its task."""
    return spread.map(run, work)


def run(task: Task) -> Trial:
    """Run a task. The row of a policy that does not support the instance has a note instead of figures."""
    contestant, instance = task.contestant, task.instance
    row = Row(
        policy=contestant.name,
        level=contestant.level,
        instance=instance.name,
        seed=task.seed,
        trained_on_instance=task.trained_on_instance,
        jobs=len(instance.jobs),
        best_known=instance.best_known,
    )
    try:
        played = contestant.player.play(instance, task.seed, task.offers)
    except RejectedError as error:
        return Trial(replace(row, note=str(error)))
    return Trial(replace(row.with_outcome(played.outcome), note=played.note), played.outcome.used)
