from collections.abc import Sequence

import numpy as np

from seaway.learning.episodes.episode import Episode
from seaway.learning.evaluation.trained import FallBacks, play
from seaway.learning.instances.instance import Instance
from seaway.learning.observing.clusters import action_of, observe
from seaway.learning.policies.file import Tensors
from seaway.learning.policies.monitor import Reason
from seaway.simulation.outcome import Outcome
from seaway.testing.plugins import cluster, fleet, gpu, job, node

WAIT = 2
"""The choice after the two clusters."""


class Scripted:
    """Answers with choices in their order, and after those waits; a first call is for warming up."""

    def __init__(self, choices: Sequence[int]) -> None:
        self._choices = [WAIT, *choices]

    def run(self, inputs: Tensors) -> Tensors:
        """Answer with the middle of the next choice's bin."""
        assert inputs["observation"].shape == (1, 12)
        choice = self._choices.pop(0) if self._choices else WAIT
        return {"action": np.array([[action_of(choice, 2)]], np.float32)}


def played(*choices: int) -> Outcome:
    """Let a script decide three jobs of a whole device each, on two clusters of one device each."""
    two = fleet(cluster(node(gpu())), cluster(node(gpu())))
    jobs = tuple(job(f"job-{at}", gpus=1, gpu_milli=1000) for at in range(3))
    return play(Episode(Instance("two", two, jobs)), Scripted(choices), lambda at: observe(at.snapshot, at.line), "it")


def test_what_fits_where_it_is_put_is_placed() -> None:
    """A job in each cluster, and the third waits twice with nothing free: a correct refusal."""
    counts = played(0, 1, WAIT, WAIT).counts
    assert (counts.placed, counts.refused, counts.failed) == (2, 1, 0)


def test_an_illegal_choice_loses_the_job() -> None:
    """Nothing keeps a published policy from a full cluster: what could have been placed elsewhere failed."""
    counts = played(0, 0, 1).counts
    assert (counts.placed, counts.refused, counts.failed) == (2, 0, 1)


def test_a_job_that_waits_is_offered_once_more_after_the_last_arrival() -> None:
    """The first job waits, the second and third are decided, and then the first is placed after all."""
    counts = played(WAIT, 0, WAIT, 1, WAIT).counts
    assert counts.placed == 2


def test_decisions_are_timed_and_use_is_reported_by_cluster() -> None:
    """Median and 99th percentile in microseconds; the cluster that was chosen is full."""
    outcome = played(1)
    assert outcome.speed.p50_us is not None
    assert outcome.speed.p99_us is not None
    assert 0 < outcome.speed.p50_us <= outcome.speed.p99_us
    assert outcome.used is not None
    assert outcome.used[3].tolist() == [0, 1]


def test_decisions_of_a_heuristic_in_place_of_a_trained_policy_are_reported() -> None:
    """Figures that are not all the policy's own say so, with reasons."""
    watch = FallBacks()
    assert watch.reported() == ""
    watch.decided("it", 5)
    for reason in (Reason.FAILED, Reason.WAITED, Reason.WAITED):
        watch.fell_back("it", reason, "")
    assert watch.reported() == "the heuristic decided in its place (waited: 2, failed: 1)"
