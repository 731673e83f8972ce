from dataclasses import dataclass

import numpy as np
import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.evaluation.contestants import OFFERS, Contestant, Played, TrainingSet, heuristic
from seaway.learning.evaluation.measure import Task, measure, run, tasks
from seaway.learning.instances.instance import Instance
from seaway.learning.parallel import Serial
from seaway.learning.runs.instances import digest_of
from seaway.simulation.outcome import Counts, Curve, Outcome, Shares, Speed, use
from seaway.testing.plugins import fleet, gpu, job, node

USED = np.full((4, 1), 0.5)


def instance(name: str, cores: int = 500) -> Instance:
    """Return an instance of one device and one job."""
    return Instance(name, fleet(node(gpu())), (job(gpus=1, gpu_milli=cores),), best_known=4)


@dataclass(frozen=True)
class Fake:
    """Places three jobs of five, two of which nothing could have held; or does not suit."""

    suits: bool = True

    def play(self, instance: Instance, seed: int, offers: int = OFFERS) -> Played:
        """Return made-up figures."""
        if not self.suits:
            raise RejectedError("it was trained for 3 clusters, and here is 1")
        counts, none = Counts(jobs=5, placed=3, refused=1, failed=1), np.zeros(0)
        shares, speed = Shares(None, None), Speed(1.0, 2.0, 3.0)
        return Played(Outcome("fake", counts, shares, use(USED), speed, Curve(none, none), used=USED))


def test_a_row_has_the_published_measures() -> None:
    """Jobs, correct refusals with them, use, fragmentation, variance, times, and the ratio to the best packing."""
    trial = run(Task(Contestant("fake", "node", Fake()), instance("a"), 7))
    row = trial.row
    assert (row.policy, row.level, row.instance, row.seed) == ("fake", "node", "a", 7)
    assert (row.jobs, row.placed, row.refused, row.failed, row.right) == (5, 3, 1, 1, 4)
    assert (row.gpu_memory_pct, row.gpu_memory_pct_std, row.fragmentation, row.gpu_load_variance) == (50, 0, 2, 0)
    assert (row.p50_us, row.p99_us, row.best_known, row.ratio) == (2, 3, 4, 0.75)
    assert trial.used is USED


def test_a_policy_that_does_not_suit_says_why_in_its_row() -> None:
    """It has no figures, and the others are measured all the same."""
    work = tasks(
        [Contestant("odd", "cluster", Fake(suits=False)), Contestant("fake", "node", Fake())], [instance("a")], [0]
    )
    odd, fake = (trial.row for _, trial in measure(work, Serial()))
    assert (odd.placed, odd.note) == (None, "it was trained for 3 clusters, and here is 1")
    assert fake.placed == 3


def test_only_what_draws_lots_is_tried_with_every_seed() -> None:
    """A policy without lots does the same with any seed, and a run has the seed it was trained with."""
    who = [
        Contestant("drawn", "node", Fake(), seeded=True),
        Contestant("fixed", "node", Fake()),
        Contestant("run", "cluster", Fake(), seed=9),
    ]
    seeds = [(task.contestant.name, task.seed) for task in tasks(who, [instance("a")], [1, 2])]
    assert seeds == [("drawn", 1), ("drawn", 2), ("fixed", 1), ("run", 9)]


def test_what_was_trained_on_an_instance_is_known_by_its_content() -> None:
    """A run is reported by digests, whatever the folder is called; of a heuristic there is nothing to tell."""
    mine, other = instance("mine"), instance("other", cores=600)
    trained = Contestant("run", "cluster", Fake(), trained_on=TrainingSet(frozenset([digest_of(instance("copy"))])))
    work = tasks([trained, Contestant("fake", "node", Fake())], [mine, other], [0])
    assert [task.trained_on_instance for task in work] == [True, None, False, None]


def test_runs_of_a_folder_are_measured_on_their_own_instances_alone() -> None:
    """Each algorithm is measured on an instance by the run that was trained on it."""
    mine, other = instance("mine"), instance("other", cores=600)
    own = [
        Contestant(
            "algo", "cluster", Fake(), trained_on=TrainingSet(frozenset([digest_of(each)])), own_only=True, seed=at
        )
        for at, each in enumerate((mine, other))
    ]
    work = tasks(own, [mine, other], [0])
    assert [(task.instance.name, task.seed) for task in work] == [("mine", 0), ("other", 1)]


def test_random_is_seeded_and_bestfit_is_not() -> None:
    """Of the engine's own policies it is known which draw lots."""
    assert heuristic("random", "cluster").seeded
    assert not heuristic("bestfit", "node").seeded


def test_reference_modes_choose_among_clusters_at_whatever_level_they_are_asked_for() -> None:
    """They have one form."""
    assert heuristic("volcano-divided", "node").level == "cluster"


def test_a_level_that_a_policy_does_not_have_is_rejected() -> None:
    """`seaway` chooses among nodes alone."""
    with pytest.raises(RejectedError, match="level 'cluster'"):
        heuristic("seaway", "cluster")
