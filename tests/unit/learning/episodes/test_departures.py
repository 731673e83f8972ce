from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from seaway.domain.job import Job
from seaway.learning.episodes.episode import Episode, EpisodeOptions
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import drawn
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.simulation.timeline import replay_with_departures
from tests.unit.learning.episodes.playing import begun, halves, play


def timed(instance: Instance, span_s: int) -> Instance:
    """Give each job a time to come within `span_s`, one to run, four times as long, and a priority; a few stay."""
    random = Random(1)

    def at_some_time(job: Job) -> Job:
        return replace(
            job,
            arrives_s=random.randrange(span_s),
            expected_duration_s=None if random.random() < 0.05 else random.randrange(4 * span_s),
            priority=random.randrange(2),
        )

    return replace(instance, jobs=tuple(map(at_some_time, instance.jobs)))


@pytest.mark.parametrize("kind", ["placement", "network", "any"])
def test_heuristics_equal_a_replay_with_departures(kind: str) -> None:
    """Greedy placement in the first cluster gives the same counts, use, waiting times and curve."""
    for plain in drawn(kind, 2, seed=6):
        instance = timed(plain, 500)
        episode = Episode(instance, EpisodeOptions(departures=True))
        play(episode)
        own = episode.outcome("greedy")
        greedy = lambda: make_policy("greedy", PolicyOptions(level="cluster"))  # noqa: E731
        other = replay_with_departures(instance.fleet, instance.jobs, greedy)
        assert own.waits == other.waits
        assert own.waits
        assert own.waits.queue_wait_mean_s
        assert (own.counts, own.shares, own.use) == (other.counts, other.shares, other.use)
        for name in ("arrived_pct", "allocated_pct", "time_s"):
            np.testing.assert_array_equal(getattr(own.curve, name), getattr(other.curve, name))


def test_a_waiting_job_is_offered_again_after_a_departure() -> None:
    """The fifth of five half devices is offered again when the first job departs, with its waiting time."""
    episode = begun(halves(5, expected_duration_s=7), departures=True)
    for c in (0, 0, 1, 1):
        episode.place_in_cluster(c)
    assert episode.wait()
    assert episode.job.name == "job-4"
    assert episode.waited_s == 7
    assert episode.fits


def test_a_deferred_job_is_offered_after_each_departure_and_at_the_end() -> None:
    """Without a due departure, waiting refuses the job."""
    episode = begun(halves(3, expected_duration_s=7), departures=True)
    assert not episode.wait()
    episode.place_in_cluster(0)
    episode.place_in_cluster(1)
    offers = []
    while not episode.done:
        offers.append((episode.job.name, episode.waited_s, episode.may_wait))
        episode.wait()
    assert offers == [("job-0", 7, True), ("job-0", 7, False)]
    counts = episode.outcome("").counts
    assert (counts.placed, counts.refused, counts.failed) == (2, 0, 1)


def test_deferral_in_the_last_pass() -> None:
    """In the last pass, a job may wait only after a placement whose departure is due."""
    episode = begun(halves(3, expected_duration_s=7), departures=True)
    for _ in range(3):
        episode.wait()
    assert (episode.job.name, episode.may_wait) == ("job-0", False)
    episode.wait()
    assert (episode.job.name, episode.may_wait) == ("job-1", False)
    episode.place_in_cluster(0)
    assert (episode.job.name, episode.may_wait) == ("job-2", True)
    episode.wait()
    assert (episode.job.name, episode.waited_s, episode.may_wait) == ("job-2", 7, False)
    episode.wait()
    assert episode.done
    assert episode.outcome("").counts.placed == 1


def test_a_reset_restarts_the_clock() -> None:
    """A second episode has the same outcome, with departures."""
    (plain,) = drawn("placement", 1, seed=3)
    episode = Episode(timed(plain, 300), EpisodeOptions(departures=True))
    decisions = play(episode)
    once = episode.outcome("")
    episode.reset()
    assert play(episode) == decisions
    again = episode.outcome("")
    assert (once.counts, once.use, once.waits, once.shares) == (again.counts, again.use, again.waits, again.shares)
