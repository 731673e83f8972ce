"""The sums of attempts in a cluster are stored, and equal a new computation."""

from __future__ import annotations

import random

import pytest

from seaway.application.control.allocations import holders
from seaway.application.control.attempt_totals import Held, Holdings, held_by
from seaway.application.control.state import ControlState
from seaway.domain.attempt import Attempt
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import AttemptState
from seaway.domain.placement import DeviceSlice, Placement
from tests.unit.application.scene import scene


def attempt(number: int) -> Attempt:
    """Return an attempt with a replica in each of two clusters, whose amounts depend on its number."""
    places = tuple(
        Placement("a", at, cluster, "n", (DeviceSlice(f"GPU-{cluster}", 10 * number, 100 * number),))
        for at, cluster in enumerate(("alpha", "beta"))
    )
    spec = JobSpec("a", Demand(ResourceRequest(number, 2 * number)), tenant="t")
    amounts = {"gpus": 400 * number}  # half of it is in each cluster, since the slices hold more memory than cores
    return Attempt(f"job-{number % 3}", number, AttemptState.RUNNING, spec, "bestfit", places, 0, 0, amounts=amounts)


def test_what_comes_counts_once_until_it_goes() -> None:
    """Adding twice counts once, removing a missing one changes nothing, and a job with two attempts counts once."""
    holdings, held = Holdings("alpha"), [attempt(1), attempt(4)]
    for each in [*held, held[0]]:
        holdings.add(each)
    assert holdings.held() == held_by(held, "alpha") == Held(5, 10, 1000, 500, 50, 1)
    holdings.discard(("job-1", 1))
    holdings.discard(("job-1", 1))
    holdings.discard(("job-1", 9))
    assert holdings.held() == held_by(held[1:], "alpha") == Held(4, 8, 800, 400, 40, 1)
    holdings.discard(("job-1", 4))
    assert holdings.held() == Held()


def test_a_device_that_is_elsewhere_does_not_count() -> None:
    """Its use counts in its other cluster; CPU and memory count here."""
    assert held_by([attempt(1)], "alpha", {"GPU-alpha"}) == Held(1, 2, 0, 0, 0, 1)


def retained(live: ControlState) -> tuple[dict[str, Held], dict[str, Held]]:
    """Return the stored sums of each cluster, and the computed ones."""
    clusters = live.fleet.clusters.values()
    return (
        {each.name: live.holdings[each.name].held() if each.name in live.holdings else Held() for each in clusters},
        {each.name: held_by(holders(live, each), each.name) for each in clusters},
    )


@pytest.mark.parametrize("seed", range(3))
def test_it_is_stored_true_while_jobs_come_and_go(seed: int) -> None:
    """For any submits, cancels, outages and restarts, the stored sums are right."""
    made, choice = scene(), random.Random(seed)
    jobs: list[str] = []
    for _ in range(30):
        match choice.randrange(5):
            case 0 | 1 | 2:
                jobs.append(made.submit(cpu_milli=choice.randrange(1, 9) * 500, replicas=choice.randrange(1, 4)))
            case 3 if jobs:
                made.plane.jobs.cancel(jobs.pop(choice.randrange(len(jobs))), "ada")
            case _:
                made.plane.run(choice.randrange(1, 40))
        now, summed = retained(made.plane.controller.live)
        assert now == summed
    assert any(each.jobs for each in retained(made.plane.controller.live)[0].values())
