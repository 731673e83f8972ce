"""Quotas of tenants and users, through the control loop."""

from __future__ import annotations

import asyncio
from copy import copy
from dataclasses import replace

import pytest

from seaway.adapters.simulated.faults import Faults
from seaway.application.changes import Change
from seaway.application.whatif.dry_run import DryRuns
from seaway.domain.amounts import JOBS
from seaway.domain.arrays import TaskArray
from seaway.domain.cluster import Fleet
from seaway.domain.errors import ConflictError, RejectedError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.queues import Order, Preemption, Queue
from seaway.domain.runtime import Run
from seaway.domain.tenancy import Pool, Quota, Tenant
from seaway.scheduling.queueing.tree import Use, quota_key
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.memory_store import MemoryDatabase, MemoryStore
from tests.unit.application.scene import Scene, scene, spec
from tests.unit.application.test_forecast import starts_s


def gpus(count: int, **figures: object) -> Fleet:
    """Return a fleet of one node; `figures` are those of each GPU."""
    return fleet(cluster(node(*[gpu(**figures) for _ in range(count)]), name="alpha"))


def with_quota(parts: Fleet, quota: Quota, *, weight: int = 1, pool: str = "default", **settings: object) -> Scene:
    """Create a control plane with the tenant `a`, which has a quota, the tenant `b`, and two queues of the pool."""
    made = scene(parts, **settings)
    put(made, Tenant("a", weight=weight, quotas={pool: quota}), Tenant("b"), Queue("x"), Queue("y", order=Order.FIFO))
    return made


def put(made: Scene, *records: Tenant | Queue | Pool) -> None:
    """Store records, and let the loop follow."""
    made.plane.writer.commit([Change(put=[*records])])
    made.plane.settle()


def use_of_a(made: Scene) -> Use:
    """Return what the tenant `a` holds of its quota."""
    return made.plane.controller.live.tree.use_lately(quota_key("default", "a"))


def placed(made: Scene, jobs: list[str]) -> int:
    """Return the number of jobs with a place."""
    made.plane.settle()
    return sum(made.plane.state(job_id).placed for job_id in jobs)


def many(count: int, tenant: str = "a", queues: str = "xy", **fields: object) -> list[JobSpec]:
    """Return jobs of a tenant, in its queues in turn."""
    return [spec(tenant=tenant, queue=queues[at % len(queues)], **fields) for at in range(count)]


def test_a_tenant_never_exceeds_its_limit_in_a_pool() -> None:
    """The limit holds over all queues of the pool, others pass, and the waiting job names the quota."""
    made = with_quota(gpus(6), Quota(limit={"gpus": 3000}))
    jobs = made.plane.submit(*many(5))
    others = made.plane.submit(*many(3, "b"))
    assert (placed(made, jobs), placed(made, others)) == (3, 3)
    waits = next(job for job in jobs if not made.plane.state(job).placed)
    reason = DryRuns(made.plane.controller).reason(made.job(waits), None)
    assert reason.code == "tenant_quota"
    assert reason.message == "waits: tenant 'a' in pool 'default' holds 3 of its limit of 3 gpus"
    assert reason.params == {"tenant": "a", "pool": "default", "held": "3", "limit": "3 gpus", "requested": "1"}
    made.plane.jobs.cancel(next(job for job in jobs if made.plane.state(job).placed), "ada")
    made.plane.run(5)
    assert placed(made, jobs) == 3


def test_a_quota_of_another_pool_does_not_matter() -> None:
    """A quota applies to queues of its pool only."""
    made = with_quota(gpus(4), Quota(limit={"gpus": 1000}), pool="gold")
    put(made, Pool("gold"), Queue("z", pool="gold"))
    assert placed(made, made.plane.submit(*many(2))) == 2
    assert placed(made, made.plane.submit(*many(2, queues="z"))) == 1


def test_a_changed_quota_takes_effect_at_once() -> None:
    """Waiting jobs start when an operator raises or removes the quota; a lower one stops no running job."""
    made = with_quota(gpus(4), Quota(limit={"gpus": 1000}))
    jobs = made.plane.submit(*many(4))
    assert placed(made, jobs) == 1
    put(made, Tenant("a", quotas={"default": Quota(limit={"gpus": 2000})}))
    assert placed(made, jobs) == 2
    put(made, Tenant("a", quotas={"default": Quota(limit={"gpus": 0})}))
    assert placed(made, jobs) == 2
    put(made, Tenant("a"))
    assert placed(made, jobs) == 4


def test_each_user_has_limits_of_its_own() -> None:
    """One user at the limit does not block the jobs of another user of the same tenant, also after a restart."""
    made = with_quota(gpus(6), Quota(limit={"gpus": 5000}, user_limit={"gpus": 2000}))
    ada = made.plane.submit(*many(4), actor="ada")
    bob = made.plane.submit(*many(1), actor="bob")
    assert (placed(made, ada), placed(made, bob)) == (2, 1)
    made.plane.restart()
    more = made.plane.submit(*many(3), actor="bob")
    assert (placed(made, ada), placed(made, bob + more)) == (2, 2)
    reason = DryRuns(made.plane.controller).reason(made.job(more[-1]), None)
    assert reason.code == "user_quota"
    assert reason.message == "waits: user 'bob' of tenant 'a' in pool 'default' holds 2 of its limit of 2 gpus"


def test_user_limits_that_are_set_later_apply_to_waiting_jobs() -> None:
    """Waiting jobs of one kind are separated by user when users get limits."""
    made = with_quota(gpus(2), Quota())
    blocker = made.plane.submit(spec(gpus=2))
    assert placed(made, blocker) == 1
    ada = made.plane.submit(*many(3, queues="x"), actor="ada")
    bob = made.plane.submit(*many(3, queues="x"), actor="bob")
    made.plane.settle()
    put(made, Tenant("a", quotas={"default": Quota(user_limit={"gpus": 1000})}))
    made.plane.jobs.cancel(blocker[0], "ada")
    made.plane.run(5)
    assert (placed(made, ada), placed(made, bob)) == (1, 1)


def test_a_job_that_fails_over_counts_once() -> None:
    """A job at the limit of jobs starts again elsewhere while its lost attempt still counts with its amounts."""
    parts = fleet(cluster(node(gpu()), name="alpha"), cluster(node(gpu()), name="beta"))
    made = scene(parts, Faults(), grace_period_s=30)
    put(made, Tenant("a", quotas={"default": Quota(limit={JOBS: 1, "gpus": 2000})}))
    job = made.plane.submit(spec(tenant="a"))[0]
    made.plane.run(10)
    first = made.where(job)
    made.cluster(first).disconnect()
    made.plane.run(120)
    assert made.job(job).attempt == 2
    assert made.where(job) != first
    use = use_of_a(made)
    assert (use.jobs, use.held["gpus"]) == (1, 2000)
    made.cluster(first).reconnect()
    made.plane.run(60)
    assert (use.jobs, use.held["gpus"]) == (1, 1000)


def test_nothing_waits_for_an_attempt_on_a_lost_cluster_to_end() -> None:
    """Its amounts stay in the quota: no place is reserved and no start expected as if they were about to be released.

    A job of a higher priority displaces the attempt that runs, since the other cannot make room.
    """
    parts = fleet(cluster(node(gpu()), name="alpha"), cluster(node(gpu(), gpu(), gpu()), name="beta"))
    made = scene(parts, Faults(), grace_period_s=30)
    put(made, Tenant("a", quotas={"default": Quota(limit={"gpus": 2000})}))
    put(made, Queue("x", preemption=Preemption.PREEMPT_LOWER_PRIORITY))
    job = made.submit(tenant="a", queue="x", clusters=frozenset({"alpha"}), expected_duration_s=1000)
    made.plane.run(10)
    made.plane.jobs.cancel(job, "ada")
    made.cluster("alpha").disconnect()
    made.plane.run(120)
    runs = made.submit(tenant="a", queue="x", expected_duration_s=1000)
    waits = made.submit(tenant="a", queue="x", name="waits", expected_duration_s=1000)
    made.plane.run(100)
    assert [made.state(each) for each in (runs, waits)] == ["running", "queued"]
    assert use_of_a(made).held["gpus"] == 2000
    assert not made.plane.controller.scheduler.reservations.made()
    assert starts_s(made)["waits"] == pytest.approx(900, abs=5)
    urgent = made.submit(tenant="a", queue="x", priority=5)
    made.plane.run(20)
    assert [made.state(each) for each in (runs, waits, urgent)] == ["queued", "queued", "running"]
    made.cluster("alpha").reconnect()
    made.plane.run(60)
    assert use_of_a(made).held["gpus"] == 2000
    assert [made.state(each) for each in (runs, waits, urgent)] == ["running", "queued", "running"]


def test_an_orphan_counts_in_the_fleet_and_in_no_quota() -> None:
    """After the loss of stored jobs, their workloads hold devices, and their tenant has its whole quota."""
    made = with_quota(gpus(3), Quota(limit={"gpus": 2000}))
    rows = {kind: copy(each) for kind, each in made.plane.store.database.rows.items()}
    made.plane.submit(*many(2))
    made.plane.run(5)
    assert use_of_a(made).held["gpus"] == 2000
    made.plane.store = MemoryStore(MemoryDatabase(rows))
    made.plane.restart()
    made.plane.run(5)
    assert not use_of_a(made).held
    jobs = made.plane.submit(*many(3))
    made.plane.run(5)
    assert (placed(made, jobs), use_of_a(made).held["gpus"], use_of_a(made).jobs) == (1, 1000, 1)
    made.plane.operations.remove_orphans("alpha", "ada")
    made.plane.run(5)
    assert (placed(made, jobs), use_of_a(made).held["gpus"], use_of_a(made).jobs) == (2, 2000, 2)


def test_a_workload_that_does_not_start_counts_once() -> None:
    """A job that its cluster holds, as Kueue does, is in its quota from the decision on, and leaves it when displaced.

    It is displaced first, since it has lost no work.
    """
    made = with_quota(gpus(4), Quota(limit={"gpus": 2000}))
    put(made, Queue("z", guarantee={"gpus": 3000}))
    runs = made.submit(tenant="a", queue="x")
    made.plane.run(10)
    made.cluster("alpha").slow_down(10_000)
    held = made.submit(tenant="a", queue="x", template="kueue")
    waits = made.submit(tenant="a", queue="x")
    made.plane.run(200)
    for _ in range(2):
        assert [made.state(each) for each in (runs, held, waits)] == ["running", "deploying", "queued"]
        assert (use_of_a(made).held["gpus"], use_of_a(made).jobs, use_of_a(made).attempts) == (2000, 2, 2)
        made.plane.restart()
        made.plane.run(5)
    made.cluster("alpha").slow_down(None)
    guaranteed = made.plane.submit(*many(3, "b", queues="z"))
    made.plane.run(20)
    assert placed(made, guaranteed) == 3
    assert [made.state(each) for each in (runs, held, waits)] == ["running", "queued", "queued"]
    assert (use_of_a(made).held["gpus"], use_of_a(made).jobs, use_of_a(made).attempts) == (1000, 1, 1)


def test_a_job_that_its_quota_can_never_admit_is_rejected() -> None:
    """Admission names the quota, its limit and what is left, for the tenant and for each user."""
    made = with_quota(gpus(4), Quota(limit={"gpus": 2000, JOBS: 5}, user_limit={"memory": 100}))
    made.plane.submit(*many(1))
    made.plane.settle()
    with pytest.raises(RejectedError) as beyond:
        made.plane.admission.admit(spec(queue="x", tenant="a", gpus=3))
    assert beyond.value.where == "tenant"
    assert (
        beyond.value.message
        == "the job requests 3, but tenant 'a' in pool 'default' has a limit of 2 gpus, of which 1 is left"
    )
    with pytest.raises(RejectedError, match="each user of tenant 'a' in pool 'default' has a limit of 100Mi memory"):
        made.plane.admission.admit(spec(queue="x", tenant="a", memory_mib=200))
    made.plane.admission.admit(spec(queue="x", tenant="a", gpus=2))


def test_the_number_of_waiting_jobs_is_limited_at_submit() -> None:
    """Concurrent submits never exceed the maximum of a tenant or a user, and a job that starts makes room."""
    made = with_quota(gpus(1), Quota(max_waiting=3, user_max_waiting=2))

    async def submit(actor: str, count: int) -> list[object]:
        each = [made.plane.jobs.submit([one], actor) for one in many(count)]
        return await asyncio.gather(*each, return_exceptions=True)

    found = asyncio.run(submit("ada", 5))
    refused = [each for each in found if isinstance(each, ConflictError)]
    assert len(refused) == 3
    assert str(refused[0]).startswith("user 'ada' of tenant 'a' has 2 waiting jobs in pool 'default', and its quota")
    refused = [each for each in asyncio.run(submit("bob", 5)) if isinstance(each, ConflictError)]
    assert len(refused) == 4
    assert str(refused[0]).startswith("tenant 'a' has 3 waiting jobs in pool 'default', and its quota allows 3")
    made.plane.settle()
    assert sum(not isinstance(each, Exception) for each in asyncio.run(submit("bob", 5))) == 1
    made.plane.restart()
    made.plane.settle()
    assert all(isinstance(each, ConflictError) for each in asyncio.run(submit("eve", 2)))


def test_what_unfinished_jobs_of_a_tenant_request_is_limited() -> None:
    """Submits, changes and retries beyond the limit are refused. An array counts once, a finished job no more."""
    made = with_quota(gpus(1), Quota(), max_unfinished_mib=1)
    large = Run(image="a", env=(("TEXT", "x" * 500_000),))

    def submit(**fields: object) -> JobRecord:
        ((job,), _) = asyncio.run(made.plane.jobs.submit([spec(**{"tenant": "a", "queue": "x", **fields})], "ada"))
        return job

    first = submit(run=large, array=TaskArray("0-999"))
    second = submit(run=large)
    small = submit()
    with pytest.raises(ConflictError, match=r"may have 1 MiB\. .* control\.max_unfinished_mib"):
        submit(run=large)
    submit(run=large, tenant="b")
    made.plane.jobs.cancel(second.id, "ada")
    third = submit(run=large)
    with pytest.raises(ConflictError, match="may have 1 MiB"):
        made.plane.jobs.retry(second.id, "ada")
    made.plane.jobs.delete(third.id, "ada")
    made.plane.restart()
    made.plane.settle()
    made.plane.jobs.retry(second.id, "ada")
    with pytest.raises(ConflictError, match="may have 1 MiB"):
        made.plane.jobs.change(small.id, replace(small.spec, run=large), "ada")
    made.plane.jobs.delete(first.id, "ada")
    made.plane.jobs.change(small.id, replace(small.spec, run=large), "ada")


@pytest.mark.parametrize("queue", ["x", "y"])
def test_many_waiting_jobs_of_a_tenant_delay_no_other(queue: str) -> None:
    """With 10,000 waiting jobs of a tenant at its quota, a job of another starts in the cycle after its submission."""
    made = with_quota(gpus(2), Quota(limit={"gpus": 1000}))
    waiting = made.plane.submit(*many(10_000, queues="x"))
    assert placed(made, waiting) == 1
    (other,) = made.plane.submit(*many(1, "b", queue))
    made.plane.controller.step()
    assert made.plane.state(other).placed


@pytest.mark.parametrize(("queue", "kinds"), [("x", 1000), ("y", 1)])
def test_jobs_that_wait_only_for_free_gpus_delay_no_other_tenant(queue: str, kinds: int) -> None:
    """With 10,000 waiting jobs of a tenant, those of another start in the next cycle, or get the next free GPU."""
    made = with_quota(gpus(2), Quota(), max_tried_per_cycle=16)
    jobs = [spec(tenant="a", queue="x", cpu_milli=1000 + at % kinds) for at in range(10_000)]
    waiting = made.plane.submit(*jobs)
    made.plane.settle()
    (without,) = made.plane.submit(spec(tenant="b", queue=queue, gpus=0))
    made.plane.controller.step()
    assert made.plane.state(without).placed
    (other,) = made.plane.submit(spec(tenant="b", queue=queue))
    made.plane.settle()
    assert not made.plane.state(other).placed
    ends = next(job for job in waiting if made.plane.state(job).placed)
    made.plane.jobs.cancel(ends, "ada")
    made.plane.run(5)
    assert made.plane.state(other).placed
    assert sum(made.plane.state(job).placed for job in waiting) == 1
