from __future__ import annotations

import pytest

from seaway.domain.errors import ConflictError, UnavailableError
from seaway.testing.planes import SmallPlane
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
    assert not SmallPlane(made.clusters).overview.ready()


def test_manifests_and_logs_are_of_the_latest_attempt() -> None:
    """What a job became can be read where it is; a job that never had a place has neither."""
    made = scene()
    jobs = [made.submit(gpus=2, replicas=2), made.submit(gpus=2)]
    made.plane.run(5)
    manifests = made.plane.overview.manifests(made.job(jobs[0]))
    assert len(manifests) == 2
    assert all(jobs[0] in each["metadata"]["name"] for each in manifests)
    assert list(made.plane.overview.logs(made.job(jobs[0]), 1, 5))
    with pytest.raises(ConflictError, match="replicas 0 to 1, not 7"):
        made.plane.overview.logs(made.job(jobs[0]), 7, 5)
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
    assert figures.jobs == {"running": 2, "queued": 1}
    assert figures.waiting == {"default": 1}
    assert (figures.placed, figures.conflicts, figures.outgoing) == (2, 0, {})
    assert figures.silent_s == {"alpha": 3, "beta": 0}
    assert figures.clusters == {"up": 2}
    assert figures.transactions <= figures.changes


def test_policies_say_which_queues_use_them() -> None:
    """Each policy comes with what it does and who uses it."""
    made = scene()
    policies = {each.name: each for each in made.plane.overview.policies()}
    assert policies["bestfit"].queues == ("default",)
    assert all(each.says for each in policies.values())


def test_gateways_and_links_are_those_of_the_fleet() -> None:
    """They are shown as they were measured last."""
    made = scene()
    assert made.plane.overview.gateways() == list(made.clusters.gateways())
    assert [each.link for each in made.plane.overview.links()] == list(made.clusters.links())
