from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from random import Random

import pytest

from seaway.application.control.pending import entry, is_fresh
from seaway.application.control.rejections import NEVER_REFUSED, Refusals
from seaway.domain.job_state import JobState
from seaway.domain.queues import Backfill, Queue
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.waiting import Waiting
from seaway.scheduling.queueing.registry import FairShare
from seaway.scheduling.queueing.tree import LimitHit, Owner, QueueTree
from tests.fakes.records import NOW_NS, job_record
from tests.unit.application.scene import spec

QUEUE = Queue("default")


def entered(at: int = 0, refusals: Refusals = NEVER_REFUSED, **fields: object) -> Entry:
    """Create a pending job, submitted at a time."""
    return entry(job_record(spec=spec(**fields), submitted_ns=NOW_NS + at), QUEUE, frozenset(), FairShare(), refusals)


def alike(_: Entry) -> Hashable:
    """Return one group for all jobs."""
    return None


def tried(waiting: Waiting, most: int = 100) -> list[str]:
    """Take the next jobs to try; return ids."""
    return [each.id for each in waiting.take(most, alike)]


def first_of(waiting: Waiting, tenant: str, queue: str) -> Entry | None:
    """Return the first job of a tenant in a queue."""
    return next((each for each in waiting.in_turn(queue) if each.spec.tenant == tenant), None)


def waiting_of(*entries: Entry) -> Waiting:
    """Add pending jobs."""
    made = Waiting(FairShare(), QueueTree())
    for each in entries:
        made.put(each)
    return made


def test_priority_goes_first_then_who_came_first() -> None:
    """Within a tenant, the order is by priority, then by submit time, whatever the kind."""
    late, early = entered(2), entered(1, cpu_milli=2000)
    urgent, idle = entered(3, priority=5), entered(0, priority=-1)
    waiting = waiting_of(late, idle, early, urgent)
    assert tried(waiting) == [each.id for each in (urgent, early, late, idle)]
    assert not len(waiting)


def test_tenants_take_rounds() -> None:
    """One tenant's many jobs do not precede another's few, and the last tenant is not first again."""
    many = [entered(at, tenant="a") for at in range(4)]
    few = [entered(10 + at, tenant="b", priority=-5) for at in range(2)]
    waiting = waiting_of(*many, *few)
    assert tried(waiting, 3) == [each.id for each in (many[0], few[0], many[1])]
    assert tried(waiting) == [each.id for each in (few[1], many[2], many[3])]


def test_what_does_not_fit_is_not_tried_again_until_the_fleet_changes() -> None:
    """When one of a kind is infeasible, equal ones wait too; others are tried, and so are all after a change."""
    small, like, other = entered(0), entered(1), entered(2, cpu_milli=5000)
    waiting = waiting_of(small, like, other)
    waiting.refuse(small.kind)
    assert tried(waiting) == [other.id]
    assert waiting.idle
    waiting.put(entered(3))
    assert waiting.idle, "one more of a kind that does not fit"
    waiting.try_all()
    assert tried(waiting)[:2] == [small.id, like.id]


@pytest.mark.parametrize("seed", range(5))
def test_infeasible_jobs_are_skipped_together_without_a_change_of_the_order(seed: int) -> None:
    """Where order does not matter, infeasible jobs of all lanes are skipped at once. The others stay in order."""
    random = Random(seed)
    jobs = [
        entered(
            at,
            cpu_milli=1000 + at,
            priority=random.randrange(3),
            tenant=random.choice("ab"),
            queue=random.choice(("default", "other")),
        )
        for at in range(40)
    ]
    large = {each.id for each in jobs if random.random() < 0.7}

    def infeasible(each: Entry) -> bool:
        return each.id in large

    def taken(*, at_once: bool) -> list[Entry]:
        waiting, found = waiting_of(*jobs), list[Entry]()
        while run := waiting.take(40, alike, infeasible, lambda _: at_once):
            found += run
        return found

    together = taken(at_once=True)
    assert taken(at_once=False) == together
    assert {each.id for each in together} == {each.id for each in jobs} - large


def test_a_batch_ends_where_jobs_are_decided_otherwise() -> None:
    """Jobs are taken together only while they are in the same group."""
    jobs = [entered(at, cpu_milli=2000 if at == 2 else 1000) for at in range(4)]
    waiting = waiting_of(*jobs)
    taken = waiting.take(10, lambda each: each.job.demand)
    assert [each.id for each in taken] == [each.id for each in jobs[:2]]


def test_a_job_that_changed_waits_as_it_is_now() -> None:
    """A newer record of a job replaces the older one; a removed job is skipped."""
    first, second = entered(0), entered(1)
    waiting = waiting_of(first, second)
    waiting.put(replace(entered(0, priority=-1), id=first.id))
    assert len(waiting) == 2
    assert tried(waiting, 1) == [second.id]
    waiting.remove(first.id)
    waiting.remove("nobody")
    assert tried(waiting) == []


def test_jobs_are_taken_in_once_they_were_tried() -> None:
    """New jobs are reported, each once, when they are known not to fit, and a limited number at a time."""
    new = [entered(at) for at in range(5)]
    waiting = waiting_of(replace(new[0], id=new[0].id[::-1]))
    for each in new:
        waiting.put(each, fresh=True)
    assert not waiting.fresh(10)
    waiting.refuse(new[0].kind)
    assert [each.id for each in waiting.fresh(3)] == [each.id for each in new[:3]]
    assert [each.id for each in waiting.fresh(3)] == [each.id for each in new[3:]]
    assert not waiting.fresh(3)


def test_jobs_that_were_taken_from_a_place_are_distinguished_once_they_were_tried() -> None:
    """Their earlier reason is valid until then; after several tries they are still reported once."""
    back = job_record(spec=spec(), state=JobState.QUEUED, reason="alpha is drained; it is queued for another place")
    first = entry(back, QUEUE, frozenset(), FairShare())
    waiting = waiting_of()
    waiting.put(first, fresh=is_fresh(back))
    assert not waiting.fresh(3)
    for _ in range(2):
        waiting.put_back(waiting.take(1, lambda _: 0))
    waiting.refuse(first.kind)
    assert [each.id for each in waiting.fresh(3)] == [back.id]
    assert not waiting.fresh(3)


def test_the_first_of_a_queue_is_known() -> None:
    """Each tenant's first job in each queue can be queried, also when earlier ones left."""
    a, b = entered(0, queue="fast"), entered(1, queue="fast")
    waiting = waiting_of(b, a, entered(0, queue="fast", tenant="other"), entered(0, priority=9))
    assert first_of(waiting, "default", "fast") is a
    waiting.remove(a.id)
    assert first_of(waiting, "default", "fast") is b
    assert first_of(waiting, "nobody", "fast") is None


def test_jobs_stored_from_somewhere_are_another_kind() -> None:
    """A job with excluded devices or nodes is tried separately from equal ones."""
    by_device, by_node = Refusals(1, frozenset({"GPU-1"})), Refusals(1, places=frozenset({("alpha", "node-1")}))
    kinds = {entered(0, each).kind for each in (Refusals(), by_device, by_node)}
    assert len(kinds) == 3
    assert entered(1, by_node).kind in kinds
    assert "GPU-1" in entered(0, by_device).job.demand.devices.avoid_uuids
    assert ("alpha", "node-1") in entered(0, by_node).job.demand.nodes.avoid


@pytest.mark.parametrize("seed", range(5))
def test_any_history_is_taken_in_order(seed: int) -> None:
    """After any history, jobs are taken in order, completely and once each."""
    random = Random(seed)
    waiting = Waiting(FairShare(), QueueTree())
    there: dict[str, Entry] = {}
    for at in range(600):
        what = random.random()
        if what < 0.5 or not there:
            one = entered(random.randrange(50), cpu_milli=random.randrange(1, 4), priority=random.randrange(3))
            there[one.id] = one
            waiting.put(one)
        elif what < 0.7:
            waiting.remove(there.pop(random.choice(list(there))).id)
        elif what < 0.9:
            waiting.put_back(waiting.take(random.randrange(1, 5), alike))
        elif what < 0.95:
            waiting.refuse(random.choice(list(there.values())).kind)
        else:
            waiting.try_all()
        first = min(there.values(), key=lambda each: each.order, default=None)
        assert first_of(waiting, "default", "default") is first, at
    waiting.try_all()
    assert tried(waiting, 1000) == [each.id for each in sorted(there.values(), key=lambda each: each.order)]


def test_without_backfill_a_job_that_was_put_back_is_tried_again() -> None:
    """The first job of a strict queue stays the first one after a try."""
    strict = Queue("default", backfill=Backfill.NONE)
    waiting = Waiting(FairShare(), QueueTree([strict]))
    first = entry(job_record(spec=spec(), submitted_ns=NOW_NS), strict, frozenset(), FairShare())
    waiting.put(first)
    for _ in range(2):
        assert waiting.take(1, alike) == [first]
        waiting.put_back([first])


def test_a_limit_of_a_model_is_checked_again_when_use_falls() -> None:
    """A job that exceeded the limit of its only model is tried again once another job has released devices."""
    limited = Queue("default", limit={"gpus/a100": 300})
    tree = QueueTree([limited])
    waiting = Waiting(FairShare(), tree)
    record = job_record(spec=spec(gpus=1, gpu_memory_mib=9000, models=frozenset({"A100"})), submitted_ns=NOW_NS)
    one = entry(record, limited, frozenset(), FairShare())
    tree.hold(("other", 1), Owner("default", "default"), {"gpus/a100": 290})
    waiting.put(one)
    (taken,) = waiting.take(1, alike)
    waiting.put_back([taken])
    waiting.limit(one, LimitHit(tree.node("default"), "gpus/a100", 290, 300, 220))
    assert waiting.take(1, alike) == []
    tree.release(("other", 1))
    assert waiting.take(1, alike) == [one]
