"""Orphaned workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from seaway.application.control.state import deployment
from seaway.application.ports.store import Retention
from seaway.domain.deployment import WorkloadPhase
from seaway.domain.errors import UnknownError
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.records import IDS, NOW_NS
from tests.unit.application.scene import Scene, scene, spec


def with_orphan(expected_duration_s: int | None = None, **settings: float) -> tuple[Scene, str]:
    """Create a scene whose only device is held by a workload of a job outside the database; return its id."""
    made = scene(fleet(cluster(node(gpu()), name="alpha")), **settings)
    job_id = made.submit(expected_duration_s=expected_duration_s)
    reported = deployment(made.plane.attempt(job_id), "alpha")
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.settle()
    strange = IDS.generate(NOW_NS)
    assert made.cluster("alpha").send([replace(reported, job_id=strange)])[0].done
    made.plane.run(1)
    return made, strange


def test_what_an_orphan_holds_is_given_to_no_one() -> None:
    """A job that needs an orphan's device waits, is never rejected, and gets it when the orphan is gone."""
    made, strange = with_orphan()
    job_id = made.submit()
    made.plane.run(20)
    assert (made.state(job_id), made.job(job_id).attempt) == ("queued", 0)
    made.cluster("alpha").vanish(strange, 1)
    made.plane.run(5)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)


def test_orphans_are_reserved_after_every_restart_and_change_of_the_fleet() -> None:
    """After a rebuild of the fleet and a restart, orphans still hold their devices."""
    made, _ = with_orphan()
    made.plane.controller.live.fleet.rebuild()
    first = made.submit()
    made.plane.restart()
    made.plane.run(20)
    assert (made.state(first), made.job(first).attempt) == ("queued", 0)


def test_what_orphans_hold_is_in_the_history() -> None:
    """Samples of a cluster count the resources of orphans, as its view does; an orphan is not a job."""
    made, _ = with_orphan(sample_interval_s=1)
    made.plane.run(2)
    (view,) = made.plane.overview.clusters()
    last = made.plane.store.cluster_samples("alpha", 0, 100)[-1]
    assert (last.gpu_milli_used, last.cpu_milli_used) == (view.gpu_milli.used, view.cpu_milli.used) == (1000, 1000)
    assert (last.gpu_memory_mib_used, last.jobs) == (view.gpu_memory_mib.used, 0)


def test_what_orphans_hold_is_shown_where_it_is() -> None:
    """A cluster, its nodes and its devices show the resources of orphans, under the orphan's name."""
    made, strange = with_orphan()
    (view,) = made.plane.overview.clusters()
    assert (view.gpu_milli.free, view.cpu_milli.used, view.orphans) == (0, 1000, (f"sw-{strange}-1",))
    (shown,) = made.plane.overview.nodes()
    assert (shown.cpu_milli.used, shown.devices[0].core_milli.free) == (1000, 0)
    assert [(each.job, each.job_id, each.tenant) for each in shown.devices[0].slices] == [
        (f"sw-{strange}-1", strange, "")
    ]


def test_operators_have_orphans_removed() -> None:
    """An operator removes orphans, by name or all, with an event."""
    for one in (True, False):
        made, strange = with_orphan()
        name = f"sw-{strange}-1"
        assert made.plane.operations.remove_orphans("alpha", "ada", name if one else "") == [name]
        made.plane.run(2)
        assert made.phase("alpha", strange) is None
        assert not made.plane.overview.clusters()[0].orphans
        reported = [
            (each.actor, each.reason) for each in made.plane.store.events(0, 100) if each.kind == "orphans_removed"
        ]
        assert reported == [("ada", f"alpha removes {name}, which belong to no job")]
        assert made.plane.operations.remove_orphans("alpha", "ada") == []


def test_only_orphans_can_be_removed_so() -> None:
    """A workload that is not an orphan, or does not exist, cannot be removed this way."""
    made = scene()
    job_id = made.submit()
    for where, name in (("nowhere", ""), (made.where(job_id), f"sw-{job_id}-1")):
        with pytest.raises(UnknownError):
            made.plane.operations.remove_orphans(where, "ada", name)


def test_an_orphan_that_is_over_goes_after_a_while() -> None:
    """A finished workload of an unknown job this one has nothing, and is removed after the retention time."""
    made, strange = with_orphan(expected_duration_s=5, ttl_after_finished_s=100)
    made.plane.run(20)
    assert made.phase("alpha", strange) is WorkloadPhase.SUCCEEDED
    assert made.plane.overview.clusters()[0].gpu_milli.used == 0
    made.plane.run(120, 10)
    assert made.phase("alpha", strange) is None
    assert not made.plane.overview.clusters()[0].orphans


def test_finished_copies_are_stored_by_when_their_job_ended() -> None:
    """Restarts, and pruning of the job, do not extend the retention of a finished workload."""
    for pruned in (False, True):
        made = scene(ttl_after_finished_s=100)
        job_id = made.submit(expected_duration_s=5)
        made.plane.run(10)
        where = made.where(job_id)
        for _ in range(3):
            made.plane.run(30, 10)
            assert made.phase(where, job_id) is WorkloadPhase.SUCCEEDED
            made.plane.restart()
        if pruned:
            made.plane.jobs.delete(job_id, "ada")
            made.plane.store.prune(Retention(None, None, None, None), made.clock.now_ns())
        made.plane.run(110 if pruned else 20, 10)
        assert made.phase(where, job_id) is None


def test_unknown_jobs_are_looked_up_together() -> None:
    """However many workloads of ended jobs appear, the store is queried once."""
    made = scene(ttl_after_finished_s=100)
    ids = made.plane.submit(*(spec(gpus=0, cpu_milli=1, expected_duration_s=1) for _ in range(30)))
    made.plane.run(10)
    assert {made.state(job_id) for job_id in ids} == {"completed"}
    made.plane.restart()
    asked: list[int] = []
    store = made.plane.store
    whole = store.known

    def known(job_ids: Sequence[str]) -> dict[str, int | None]:
        asked.append(len(job_ids))
        return whole(job_ids)

    store.known = known  # type: ignore[method-assign]
    store.job = None  # type: ignore[method-assign,assignment]  # no one looks a job up alone
    made.plane.settle()
    assert asked == [30]
