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
"""Choice that waits, after two clusters."""


class Scripted:
    """Model that returns given choices in order, then waits; the first call is a warm-up."""

    def __init__(self, choices: Sequence[int]) -> None:
        self._choices = [WAIT, *choices]

    def run(self, inputs: Tensors) -> Tensors:
        """Return the action at the midpoint of the bin of the next choice."""
        assert inputs["observation"].shape == (1, 12)
        choice = self._choices.pop(0) if self._choices else WAIT
        return {"action": np.array([[action_of(choice, 2)]], np.float32)}


def played(*choices: int) -> Outcome:
    """Return the outcome of choices for three jobs of a whole device, on two clusters with one device each."""
    two = fleet(cluster(node(gpu())), cluster(node(gpu())))
    jobs = tuple(job(f"job-{at}", gpus=1, gpu_milli=1000) for at in range(3))
    return play(Episode(Instance("two", two, jobs)), Scripted(choices), lambda at: observe(at.snapshot, at.line), "it")


def test_feasible_choices_are_placed() -> None:
    """The third job waits twice without a free device, which is a correct refusal."""
    counts = played(0, 1, WAIT, WAIT).counts
    assert (counts.placed, counts.refused, counts.failed) == (2, 1, 0)


def test_an_illegal_choice_loses_the_job() -> None:
    """A job that would fit in another cluster counts as failed."""
    counts = played(0, 0, 1).counts
    assert (counts.placed, counts.refused, counts.failed) == (2, 0, 1)


def test_a_waiting_job_is_offered_again() -> None:
    """The first job waits, and is placed after the others."""
    counts = played(WAIT, 0, WAIT, 1, WAIT).counts
    assert counts.placed == 2


def test_decision_times_and_use_by_cluster() -> None:
    """Times are the median and the 99th percentile in microseconds; the chosen cluster is full."""
    outcome = played(1)
    assert outcome.speed.p50_us is not None
    assert outcome.speed.p99_us is not None
    assert 0 < outcome.speed.p50_us <= outcome.speed.p99_us
    assert outcome.used is not None
    assert outcome.used[3].tolist() == [0, 1]


def test_fallbacks_are_reported() -> None:
    """The note has the number of fallbacks by reason."""
    watch = FallBacks()
    assert watch.reported() == ""
    watch.decided("it", 5)
    for reason in (Reason.FAILED, Reason.WAITED, Reason.WAITED):
        watch.fell_back("it", reason, "")
    assert watch.reported() == "the heuristic decided in its place (waited: 2, failed: 1)"
