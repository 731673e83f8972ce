from __future__ import annotations

import pytest

from seaway.domain.errors import ConflictError, UnavailableError
from tests.fakes.control_plane import SmallControlPlane
from tests.unit.application.scene import scene


def test_it_is_ready_when_memory_is_what_is_stored() -> None:
    """Before the first step, and while something may be stored that memory does not have, it is not."""
    made = scene()
    assert made.plane.overview.ready()
    made.plane.store.fail_next(after=True)
    with pytest.raises(UnavailableError):
        made.submit()
    assert not made.plane.overview.ready()
    made.plane.settle()
    assert made.plane.overview.ready()
    assert not SmallControlPlane(made.clusters).overview.ready()


def test_manifests_and_logs_are_of_the_latest_attempt() -> None:
    """Anything that a job became can be read where it is; a job that never had a place has neither."""
    made = scene()
    jobs = [made.submit(gpus=2, replicas=2), made.submit(gpus=2)]
    made.plane.run(5)
    manifests = made.plane.overview.manifests(made.job(jobs[0]))
    assert len(manifests) == 2
    assert all(jobs[0] in each["metadata"]["name"] for each in manifests)
    assert list(made.plane.overview.latest_log(made.job(jobs[0]), 1).lines(5))
    with pytest.raises(ConflictError, match="replicas 0 to 1, not 7"):
        made.plane.overview.latest_log(made.job(jobs[0]), 7)
    with pytest.raises(ConflictError, match="no place yet"):
        made.plane.overview.manifests(made.job(jobs[1]))


def test_figures_count() -> None:
    """Monitoring sees jobs by state, what waits, what was decided, and how long clusters are silent."""
    made = scene()
    for _ in range(3):
        made.submit(gpus=2)
    made.plane.run(5)
    made.cluster("alpha").disconnect()
    made.plane.run(3)
    figures = made.plane.overview.figures()
    assert figures.ready
    assert figures.jobs.states == {"running": 2, "queued": 1}
    assert figures.jobs.waiting == {"default": 1}
    reached = {state: count for state, count in figures.jobs.reached.items() if count}
    assert reached == {"pending": 3, "queued": 1, "scheduled": 2, "deploying": 2, "running": 2}
    assert (figures.placed, figures.conflicts) == ({"bestfit": 2}, 0)
    assert {name: each.count for name, each in figures.pending_commands.items()} == {"alpha": 0, "beta": 0}
    assert figures.last_seen_s == {"alpha": 3, "beta": 0}
    assert figures.clusters == {"up": 2}
    assert figures.store.transactions <= figures.store.changes
    assert sum(figures.store.took.counts) == figures.store.transactions


def test_jobs_that_wait_are_counted_by_the_rule_that_keeps_them() -> None:
    """The one that refuses most nodes to them counts; what waits for something else than a rule is distinguished."""
    made = scene()
    for _ in range(3):
        made.submit(gpus=2)
    made.submit(cpu_milli=50_000_000)
    assert made.plane.overview.waiting_rules() == {"DeviceFit": 1, "NodeResources": 1, "paused": 0, "others": 0}
    made = scene()
    for name in ("alpha", "beta"):
        made.cluster(name).refuse("not today")
    made.submit()
    assert made.plane.overview.waiting_rules() == {"paused": 1, "others": 0}


def test_policies_say_which_queues_use_them() -> None:
    """Each policy comes with what it does and who uses it."""
    made = scene()
    policies = {each.name: each for each in made.plane.overview.policies()}
    assert policies["bestfit"].queues == ("default",)
    assert all(each.says for each in policies.values())


def test_gateways_and_links_are_those_of_the_fleet() -> None:
    """They are shown as they were measured last."""
    made = scene()
    assert {*made.plane.overview.sides()} == {each.name for each in made.clusters.gateways()}
    assert [each.link for each in made.plane.overview.links()] == list(made.clusters.links())
