from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.changes import Change
from seaway.application.control.fleet import MIN_DEMANDS
from seaway.application.control.scheduler.scheduler import MIN_TO_LEARN
from seaway.domain.job_state import JobState
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Pool, Tenant
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec


def one_node(gpus: int = 4, **settings: float) -> Scene:
    """Create one node."""
    return scene(fleet(cluster(node(*[gpu() for _ in range(gpus)]), name="alpha")), **settings)


def submit(made: Scene, **fields: object) -> str:
    """Submit a job without trying it."""
    return made.plane.submit(spec(**fields))[0]


def test_priority_then_first_come() -> None:
    """With room for one job, the most urgent goes first, then the first submitted."""
    made = one_node(1)
    blocker = made.submit(expected_duration_s=10)
    late = submit(made, expected_duration_s=10)
    made.clock.advance_s(1)
    later, urgent = submit(made, expected_duration_s=10), submit(made, expected_duration_s=10, priority=1)
    order: list[str] = []
    for _ in range(80):
        made.plane.run(1)
        order += [each for each in (late, later, urgent) if made.state(each) == "running" and each not in order]
    assert made.state(blocker) == "completed"
    assert order == [urgent, late, later]


def test_tenants_share_what_comes_free() -> None:
    """A tenant with a hundred jobs gets every other place, not all of them."""
    made = one_node(4)
    made.plane.writer.commit([Change(put=[Tenant("a"), Tenant("b")])])
    many = [submit(made, tenant="a") for _ in range(20)]
    few = [submit(made, tenant="b") for _ in range(2)]
    made.plane.settle()
    assert [made.state(each) for each in few] == ["deploying"] * 2
    assert sum(made.state(each) == "deploying" for each in many) == 2


def test_queues_with_other_policies_share_a_commit() -> None:
    """Tenants in queues of different policies alternate and are still decided in batches, in their order."""
    made = one_node(8)
    queues = [Queue("one", policy="bestfit"), Queue("two", policy="greedy")]
    made.plane.writer.commit([Change(put=[Tenant("a"), Tenant("b"), *queues])])
    for _ in range(4):
        submit(made, tenant="a", queue="one")
        submit(made, tenant="b", queue="two")
    before = len(made.plane.store.commits)
    made.plane.controller.step()
    assert len(made.plane.store.commits) == before + 1
    assert {each.policy for each in made.plane.store.held_attempts()} == {"bestfit", "greedy"}


def test_a_pool_holds_its_jobs() -> None:
    """Jobs of a queue use the clusters of its pool, and wait when those are full, until the pool grows."""
    made = scene()
    pool = Pool("west", frozenset({"beta"}))
    made.plane.writer.commit([Change(put=[pool, Queue("west", pool="west")])])
    jobs = [submit(made, queue="west") for _ in range(3)]
    made.plane.settle()
    assert [made.job(each).clusters for each in jobs] == [("beta",), ("beta",), ()]
    made.plane.operations.put_pool(replace(pool, clusters=frozenset({"alpha", "beta"})), "ada")
    made.plane.settle()
    assert made.job(jobs[2]).clusters == ("alpha",)


def test_ten_thousand_alike_cost_a_few_decisions() -> None:
    """Pending jobs equal to one that does not fit are not decided, neither now nor while nothing changes."""
    made = one_node(4, batch_size=64)
    made.plane.submit(*[spec(gpus=2 + at % 3, expected_duration_s=1000) for at in range(10_000)])
    made.plane.settle()
    tally = made.plane.controller.scheduler.tally
    assert tally.placed.total() == 2
    assert tally.decided < 1000
    before = tally.decided
    made.plane.run(10)
    assert tally.decided == before
    made.plane.jobs.cancel(next(iter(made.plane.controller.live.attempts))[0], "ada")
    made.plane.settle()
    assert tally.decided - before < 1000


def test_what_is_far_behind_is_tried_though_the_fleet_keeps_changing() -> None:
    """A pass over more jobs than one step tries continues in the next, so that all are tried."""
    made = one_node(4, batch_size=4, max_tried_per_cycle=4, reservations=False)
    made.plane.submit(*[spec(gpus=5 + at) for at in range(30)])
    last = submit(made, priority=-1)
    for _ in range(12):
        made.plane.controller.step()
        made.plane.controller.live.fleet.version += 1  # as when something ends in every step
    assert made.state(last) in {"scheduled", "deploying"}


def test_only_so_many_are_tried_at_a_stretch() -> None:
    """Readers get the lock before all pending jobs were tried; the same step continues afterwards."""
    made = one_node(1, batch_size=8, max_tried_per_cycle=16, reservations=False)
    made.plane.submit(*[spec(gpus=1, gpu_memory_mib=60_000 + at, gpu_milli=500 - at) for at in range(100)])
    holder = made.plane.controller
    with holder.lock:
        holder.live.apply(holder._inbox.pop())  # noqa: SLF001  # as a step would
        decided: list[int] = []
        while not decided or not holder.live.waiting.idle:
            before = holder.scheduler.tally.decided
            holder.scheduler.next()
            decided.append(holder.scheduler.tally.decided - before)
    assert max(decided) <= 16 + 8
    assert sum(decided) >= 100


def test_what_requests_for_more_than_what_did_not_fit_is_not_tried() -> None:
    """A thousand different jobs need few tries when each requests at least as much as the first."""
    made = one_node(4)
    made.submit(gpus=4)
    made.plane.submit(*[spec(gpus=2, cpu_milli=1000 + at, memory_mib=at) for at in range(1000)])
    made.plane.settle()
    tally = made.plane.controller.scheduler.tally
    assert tally.decided < 200
    assert sum(job.state is JobState.QUEUED for job in made.plane.store.live_jobs()) == 1000
    made.plane.jobs.cancel(next(iter(made.plane.controller.live.attempts))[0], "ada")
    made.plane.settle()
    assert tally.placed.total() == 1 + 2


def test_the_first_of_each_queue_gets_a_place_stored_though_others_were_refused() -> None:
    """The first job of a queue is tried even if it requests more than an infeasible one of another queue."""
    made = one_node(4)
    made.plane.writer.commit([Change(put=[Queue("fast")])])
    made.submit(gpus=4, expected_duration_s=100)
    small, large = made.submit(gpus=1), made.submit(gpus=2, queue="fast")
    reservations = made.plane.controller.scheduler.reservations
    assert reservations.of(small)
    assert reservations.of(large)


def test_a_refusal_behind_what_was_given_back_is_not_believed() -> None:
    """Resources that two of three replicas used before the third did not fit are free for the next job."""
    made = one_node(2, reservations=False)
    spread, single = made.plane.submit(spec(replicas=3, priority=1), spec())
    made.plane.settle()
    assert (made.state(spread), made.state(single)) == ("queued", "deploying")


def test_what_was_asked_for_is_forgotten_when_no_one_holds_it() -> None:
    """However many different jobs come and go, the snapshot stores few; running ones can still be released."""
    made = one_node(4)
    stays = made.submit(gpus=1)
    for at in range(0, MIN_DEMANDS + 1024, 512):
        jobs = made.plane.submit(
            *[spec(memory_mib=at + each, gpus=5, cpu_milli=9000 - at - each) for each in range(512)]
        )
        made.plane.settle()
        for job_id in jobs:
            made.plane.jobs.cancel(job_id, "ada")
        made.plane.settle()
    assert len(made.plane.controller.live.fleet.snapshot.demands) < MIN_DEMANDS
    made.plane.jobs.cancel(stays, "ada")
    made.plane.run(5)
    assert made.state(made.submit(gpus=4)) == "deploying"


def test_a_change_in_between_is_not_overwritten() -> None:
    """A job that is cancelled while its placement is stored stays cancelled, and this one has nothing."""
    made = one_node()
    job_id = submit(made)
    made.plane.writer.meanwhile.append(lambda: made.plane.jobs.cancel(job_id, "ada"))
    made.plane.settle()
    made.plane.run(3)
    assert made.state(job_id) == "cancelled"
    assert made.plane.controller.scheduler.tally.conflicts == 1
    assert not made.plane.controller.live.bookings
    assert made.state(made.submit(gpus=4)) == "deploying"


def test_a_job_reprioritized_in_between_is_placed_at_once() -> None:
    """A job that changes while its placement is stored is decided again."""
    made = one_node()
    job_id = submit(made)
    made.plane.writer.meanwhile.append(
        lambda: made.plane.jobs.change(job_id, replace(made.job(job_id).spec, priority=3), "ada")
    )
    made.plane.settle()
    made.plane.run(5)
    assert made.state(job_id) == "running"
    assert made.job(job_id).spec.priority == 3


def test_a_gateway_that_left_keeps_its_jobs_waiting_alone() -> None:
    """Jobs for a missing gateway wait without delaying others; running ones continue, also after a restart."""
    parts = fleet(cluster(node(gpu(), gpu()), name="alpha", gateway="door"), gateways=["user"])
    made = scene(parts)
    runs = made.submit(gateway="user")
    made.plane.run(5)
    made.clusters.gateways = lambda: [each for each in parts.gateways if each.name != "user"]  # type: ignore[method-assign]
    made.plane.restart()
    made.plane.settle()
    waits, other = made.submit(gateway="user"), made.submit()
    assert (made.state(runs), made.state(waits), made.state(other)) == ("running", "queued", "deploying")


def test_a_policy_that_is_gone_is_stood_in_for() -> None:
    """If the package of a queue's policy is no longer installed, a fallback decides, and other queues continue."""
    made = scene()
    made.plane.writer.commit([Change(put=[Queue("old", policy="of-another-package")])])
    made.plane.settle()
    jobs = [made.submit(queue="old"), made.submit()]
    assert [made.state(each) for each in jobs] == ["deploying", "deploying"]
    first = made.plane.attempt(jobs[0])
    assert first.policy == "seaway"
    assert first.why.startswith("seaway chose ")
    assert " in place of of-another-package: unknown policy 'of-another-package'" in first.why


def test_a_request_that_the_engine_cannot_take_holds_up_no_one() -> None:
    """A job submitted before any cluster answered, with a request too large for the engine, waits."""
    made = scene()
    jobs = [made.submit(cpu_milli=10**12), made.submit()]
    assert [made.state(each) for each in jobs] == ["queued", "deploying"]


@pytest.mark.parametrize("policy", ["seaway", "fgd"])
def test_past_jobs_that_the_engine_cannot_take_are_left_out_of_the_mix(policy: str) -> None:
    """A request too large for the engine, or with a gateway that is gone, ends no decision of a policy that learns."""
    made = scene()
    made.plane.operations.put_queue(Queue("learns", policy=policy), "ada")
    made.plane.submit(spec(cpu_milli=10**12), spec(gateway="gone", max_latency_ns=1))
    for _ in range(MIN_TO_LEARN):
        made.submit(gpus=0)
    job_id = made.submit(queue="learns")
    assert (made.state(job_id), made.plane.attempt(job_id).policy) == ("deploying", policy)
