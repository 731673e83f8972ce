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
    """Player that places three of five jobs, two of which are infeasible, or rejects the instance."""

    suits: bool = True

    def play(self, instance: Instance, seed: int, offers: int = OFFERS) -> Played:
        """Return made-up figures."""
        if not self.suits:
            raise RejectedError("it was trained for 3 clusters, and here is 1")
        counts, none = Counts(jobs=5, placed=3, refused=1, failed=1), np.zeros(0)
        shares, speed = Shares(None, None), Speed(1.0, 2.0, 3.0)
        return Played(Outcome("fake", counts, shares, use(USED), speed, Curve(none, none), used=USED))


def test_a_row_has_the_published_metrics() -> None:
    """It has counts with correct refusals, use, fragmentation, variance, times, and the ratio to the best packing."""
    trial = run(Task(Contestant("fake", "node", Fake()), instance("a"), 7))
    row = trial.row
    assert (row.policy, row.level, row.instance, row.seed) == ("fake", "node", "a", 7)
    assert (row.jobs, row.placed, row.refused, row.failed, row.right) == (5, 3, 1, 1, 4)
    assert (row.gpu_memory_pct, row.gpu_memory_pct_std, row.fragmentation, row.gpu_load_variance) == (50, 0, 2, 0)
    assert (row.p50_us, row.p99_us, row.best_known, row.ratio) == (2, 3, 4, 0.75)
    assert trial.used is USED


def test_an_unsuitable_policy_has_a_note() -> None:
    """Its row has no figures, and other policies are evaluated."""
    work = tasks(
        [Contestant("odd", "cluster", Fake(suits=False)), Contestant("fake", "node", Fake())], [instance("a")], [0]
    )
    odd, fake = (trial.row for _, trial in measure(work, Serial()))
    assert (odd.placed, odd.note) == (None, "it was trained for 3 clusters, and here is 1")
    assert fake.placed == 3


def test_only_random_policies_use_all_seeds() -> None:
    """Deterministic policies use one seed, and a run the seed of its training."""
    who = [
        Contestant("drawn", "node", Fake(), seeded=True),
        Contestant("fixed", "node", Fake()),
        Contestant("run", "cluster", Fake(), seed=9),
    ]
    seeds = [(task.contestant.name, task.seed) for task in tasks(who, [instance("a")], [1, 2])]
    assert seeds == [("drawn", 1), ("drawn", 2), ("fixed", 1), ("run", 9)]


def test_training_instances_are_identified_by_digest() -> None:
    """The name has no influence, and heuristics have no training instances."""
    mine, other = instance("mine"), instance("other", cores=600)
    trained = Contestant("run", "cluster", Fake(), trained_on=TrainingSet(frozenset([digest_of(instance("copy"))])))
    work = tasks([trained, Contestant("fake", "node", Fake())], [mine, other], [0])
    assert [task.trained_on_instance for task in work] == [True, None, False, None]


def test_runs_of_a_folder_are_evaluated_on_their_own_instances() -> None:
    """For each instance, an algorithm is evaluated by the run that was trained on it."""
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
    """The registry records which built-in policies use random choices."""
    assert heuristic("random", "cluster").seeded
    assert not heuristic("bestfit", "node").seeded


def test_reference_modes_have_the_cluster_level() -> None:
    """The requested level has no influence."""
    assert heuristic("volcano-divided", "node").level == "cluster"


def test_unsupported_levels_are_rejected() -> None:
    """The policy `seaway` chooses nodes only."""
    with pytest.raises(RejectedError, match="level 'cluster'"):
        heuristic("seaway", "cluster")
