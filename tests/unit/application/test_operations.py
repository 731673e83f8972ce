from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NoReturn

import pytest

from seaway.application import operations as module
from seaway.application.changes import Change
from seaway.application.jobs import SubmitKey
from seaway.application.policies import Gate
from seaway.application.ports.store import JobFilter
from seaway.application.records import AuditEntry
from seaway.domain.errors import ConflictError, RejectedError, StaleError, UnknownError
from seaway.domain.job_state import JobState
from seaway.domain.queues import Queue
from seaway.domain.tenancy import DEFAULT, Pool, Tenant
from seaway.learning.policies.file import pack
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.policies import cluster_policy
from tests.fakes.records import token
from tests.unit.application.scene import scene, spec


def test_cordons_are_of_what_there_is() -> None:
    """A cordon names a known cluster or node; everything is reported with a user who did it."""
    made = scene()
    operations = made.plane.operations
    for name, place in (("nowhere", ""), ("alpha", "node-7")):
        with pytest.raises(UnknownError):
            operations.cordon(name, place, "ada", "why")
        with pytest.raises(UnknownError):
            operations.uncordon(name, place, "ada")
    operations.cordon("alpha", "node-0", "ada", "disk")
    operations.cordon("alpha", "", "ada", "move", drain=True)
    operations.uncordon("alpha", "node-0", "bob")
    operations.uncordon("alpha", "node-0", "bob")
    reported = [(e.kind, e.actor, e.reason) for e in made.plane.store.events(0, 100) if e.kind != "cluster"]
    assert reported == [
        ("cordoned", "ada", "alpha/node-0: disk"),
        ("drained", "ada", "alpha: move"),
        ("uncordoned", "bob", "alpha/node-0 accepts new jobs again"),
    ]
    assert [each.node for each in made.plane.store.cordons()] == [""]


def test_a_cordon_comes_off_what_is_not_there() -> None:
    """A cordon on a cluster that left the fleet can be taken off."""
    made = scene()
    made.plane.operations.cordon("alpha", "", "ada", "broken")
    everything = made.clusters.clusters()
    made.clusters.clusters = lambda: everything[1:]  # type: ignore[method-assign]
    made.plane.settle()
    made.plane.operations.uncordon("alpha", "", "ada")
    assert not made.plane.store.cordons()


def test_cordons_outlive_a_restart() -> None:
    """Anything that was cordoned stays so until a user says otherwise."""
    made = scene()
    made.plane.operations.cordon("alpha", "", "ada", "broken")
    made.plane.restart()
    made.plane.settle()
    assert made.where(made.submit()) == "beta"


def test_queues_name_what_there_is() -> None:
    """A queue's policy, shadow, pool and tenant must be there."""
    made = scene()
    for queue, where in (
        (Queue("q", policy="nonsense"), "policy"),
        (Queue("q", shadow="nonsense"), "shadow"),
        (Queue("q", pool="nowhere"), "pool"),
        (Queue("q", tenant="nobody"), "tenant"),
    ):
        with pytest.raises(RejectedError) as error:
            made.plane.operations.put_queue(queue, "ada")
        assert error.value.where == where
    made.plane.operations.put_queue(Queue("q", policy="fgd", shadow="greedy"), "ada")
    made.plane.settle()
    assert made.plane.controller.live.queues["q"].policy == "fgd"


def test_a_tree_is_checked_where_it_is_stored() -> None:
    """A queue names a parent that exists, and a parent cannot guarantee less than its children do."""
    operations = scene().plane.operations
    operations.put_queue(Queue("all", guarantee={"gpus": 8000}), "ada")
    operations.put_queue(Queue("a", parent="all", guarantee={"gpus": 6000}), "ada")
    for queue, where, text in (
        (Queue("b", parent="nowhere"), "parent", "unknown queue 'nowhere'"),
        (Queue("all", parent="a"), "parent", "is a cycle"),
        (Queue("b", parent="all", guarantee={"gpus": 3000}), "guarantee.gpus", "8 gpus, but .* 9 gpus together"),
        (Queue("all", guarantee={"gpus": 5000}), "guarantee.gpus", "5 gpus, but its children guarantee 6 gpus"),
    ):
        with pytest.raises(RejectedError, match=text) as error:
            operations.put_queue(queue, "ada")
        assert error.value.where == where
    with pytest.raises(ConflictError, match="'all' has the child 'a'; remove or move"):
        operations.delete_queue("all", "ada")
    operations.delete_queue("a", "ada")
    operations.delete_queue("all", "ada")


def test_two_changes_at_once_cannot_overfill_a_parent() -> None:
    """Of two queues whose guarantees do not fit together, the one that is stored second is rejected."""
    made = scene()
    operations, store = made.plane.operations, made.plane.store
    operations.put_queue(Queue("all", guarantee={"gpus": 8000}), "ada")
    with ThreadPoolExecutor(2) as pool, made.plane.writer.setting_up:
        both = [
            pool.submit(operations.put_queue, Queue(name, parent="all", guarantee={"gpus": 5000}), "ada")
            for name in ("a", "b")
        ]
        assert not wait(both, 0.2).done
    failed = [each.exception() for each in both]
    assert sorted(isinstance(each, RejectedError) for each in failed) == [False, True]
    assert sum(queue.parent == "all" for queue in store.queues()) == 1


def test_a_queue_with_jobs_does_not_become_a_parent() -> None:
    """A queue gets children once its jobs have ended; a child that it already has can still be changed."""
    made = scene()
    operations = made.plane.operations
    operations.put_queue(Queue("q"), "ada")
    made.plane.settle()
    job_id = made.submit(queue="q")
    with pytest.raises(ConflictError, match="queue 'q' has 1 unfinished job; a queue with children takes no jobs"):
        operations.put_queue(Queue("a", parent="q"), "ada")
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.run(5)
    operations.put_queue(Queue("a", parent="q"), "ada")
    operations.put_queue(Queue("a", parent="q", weight=3), "ada")


def test_a_policy_changes_for_what_waits() -> None:
    """Jobs are placed by the policy that their queue has when they are."""
    made = scene()
    made.plane.operations.put_queue(Queue(DEFAULT, policy="fgd"), "ada")
    job_id = made.submit()
    assert made.plane.attempt(job_id).policy == "fgd"


def test_what_is_in_use_cannot_be_removed() -> None:
    """Queues with jobs, pools with queues, tenants with either stay, and so do the defaults."""
    made = scene()
    operations = made.plane.operations
    operations.put_pool(Pool("p", frozenset({"alpha"})), "ada")
    operations.put_tenant(Tenant("t"), "ada")
    operations.put_queue(Queue("q", tenant="t", pool="p"), "ada")
    made.plane.settle()
    job_id = made.submit(queue="q", tenant="t")
    removals = (operations.delete_queue, "q"), (operations.delete_pool, "p"), (operations.delete_tenant, "t")
    for remove, name in removals:
        with pytest.raises(ConflictError):
            remove(name, "ada")
        with pytest.raises(ConflictError, match=r"cannot be removed|not finished"):
            remove(DEFAULT, "ada")
        with pytest.raises(UnknownError):
            remove("nothing", "ada")
    made.plane.jobs.cancel(job_id, "ada")
    with pytest.raises(ConflictError, match="belongs to"):
        operations.delete_tenant("t", "ada")
    made.plane.run(5)
    for remove, name in removals:
        remove(name, "ada")
    made.plane.settle()
    live = made.plane.controller.live
    assert set(live.queues) | set(live.pools) | set(live.tenants) == {DEFAULT}


def test_tokens_end_with_their_tenant() -> None:
    """Removing a tenant revokes its tokens in the same step, and no one gets in with them from then on."""
    made = scene()
    operations, store = made.plane.operations, made.plane.store
    operations.put_tenant(Tenant("t"), "ada")
    made.plane.settle()
    mine, others, old = token(id="a", tenant="t"), token(id="b"), token(id="c", tenant="t", revoked_ns=1)
    made.plane.writer.commit([Change(insert=[mine, others, old])])
    operations.delete_tenant("t", "ada")
    assert [(each.id, each.revoked_ns) for each in store.tokens()] == [
        ("a", made.clock.now_ns()),
        ("b", None),
        ("c", 1),
    ]
    assert store.events(0, 100)[-1].reason == "tenant t removed; 1 token of it revoked"


def test_a_tenant_goes_with_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who makes a tenant of the same name again finds nothing of the old one; others keep all that they have."""
    monkeypatch.setattr(module, "AT_ONCE", 2)
    made = scene()
    operations, store = made.plane.operations, made.plane.store
    operations.put_tenant(Tenant("t"), "ada")
    others = made.submit()
    jobs = [made.submit(tenant="t", labels={"team": "x"}) for _ in range(5)]
    store.commit([Change(insert=[AuditEntry(1, "ada", "admin", "t", "submit", jobs[0], 201)])])
    for job_id in jobs:
        made.plane.jobs.delete(job_id, "ada") if job_id == jobs[1] else made.plane.jobs.cancel(job_id, "ada")
    with pytest.raises(ConflictError, match="still removing workloads of"):
        operations.delete_tenant("t", "ada")
    assert store.tenants() == [Tenant(DEFAULT), Tenant("t")]
    made.plane.run(5)
    operations.delete_tenant("t", "ada")
    assert store.events(0, 1000)[-1].reason == "tenant t removed; 5 finished jobs of it removed"
    operations.put_tenant(Tenant("t"), "ada")
    assert not store.jobs(JobFilter(tenant="t", states=frozenset(JobState)), 10)
    assert not [each for each in store.events(0, 1000, tenant="t") if each.tenant]
    assert all(store.job(job_id) is None and not store.attempts(job_id) for job_id in jobs)
    assert made.state(others) == "running"
    assert store.events(0, 1000, job_id=others)
    assert len(store.audit(0, 10)) == 1
    assert made.plane.controller.live.jobs.keys() == {others}


def test_a_key_of_a_tenant_that_went_leads_to_no_job() -> None:
    """An idempotency key that the old tenant used does not give its job to the new one."""
    made = scene()
    operations, writer = made.plane.operations, made.plane.writer
    writer.start()
    key = SubmitKey("k", "digest")
    operations.put_tenant(Tenant("t"), "ada")
    (job,), _ = asyncio.run(made.plane.jobs.submit([spec(tenant="t")], "ada", key))
    made.plane.jobs.cancel(job.id, "ada")
    made.plane.run(5)
    operations.delete_tenant("t", "ada")
    operations.put_tenant(Tenant("t"), "ada")
    with pytest.raises(ConflictError, match="a deleted job"):
        asyncio.run(made.plane.jobs.submit([spec(tenant="t")], "bob", key))
    writer.stop()


def test_a_policy_that_a_queue_has_stays() -> None:
    """A trained policy can be removed when no queue decides by it or compares it, and then no queue can have it."""
    made = scene()
    operations, store = made.plane.operations, made.plane.store
    operations.policies.import_policy(pack(cluster_policy("mine")), "ada")
    for queue in (Queue("q", policy="mine"), Queue("q", shadow="mine")):
        store.commit([Change(put=[queue])])
        with pytest.raises(ConflictError, match="used by queue 'q'"):
            operations.delete_policy("mine", "ada")
        store.commit([Change(delete=[queue])])
    operations.delete_policy("mine", "ada")
    with pytest.raises(RejectedError):
        operations.put_queue(Queue("q", policy="mine"), "ada")


def test_a_policy_becomes_a_queues_own() -> None:
    """It stops being the queue's shadow by it; what the queue has besides stays."""
    operations = scene().plane.operations
    operations.put_queue(Queue("q", policy="bestfit", shadow="greedy", description="mine"), "ada")
    queue, left = operations.activate_policy("greedy", "q", "ada")
    assert (queue, left) == (Queue("q", policy="greedy", description="mine"), "")
    assert operations.activate_policy("greedy", "q", "ada") == (queue, "")
    for name, where in (("nothing", "q"), ("greedy", "nowhere")):
        with pytest.raises(UnknownError):
            operations.activate_policy(name, where, "ada")


def test_a_baseline_decides_for_a_queue_with_a_warning() -> None:
    """`volcano-divided` considers one cluster per replica, so a job waits although it fits elsewhere.

    The event of the change has the warning, and each placement names the rule.
    """
    made = scene(fleet(cluster(node(gpu(), gpu(), gpu()), name="alpha"), cluster(node(gpu()), name="beta")))
    made.plane.operations.put_queue(Queue(DEFAULT, policy="volcano-divided"), "ada")
    (changed,) = [each for each in made.plane.store.events(0, 100) if each.kind == "queue"]
    assert "policy volcano-divided: This is a baseline for comparison." in changed.reason
    made.plane.settle()
    for _ in range(3):  # then alpha has the most free GPU, but no whole one
        part = made.submit(gpu_milli=550, gpu_memory_percent=55)
        assert made.where(part) == "alpha"
    attempt = made.plane.store.attempts(part)[0]
    assert attempt.policy == "volcano-divided"
    assert "volcano-divided considers only alpha, the cluster with the most free GPU" in attempt.why
    whole = made.submit(gpus=1)
    assert made.state(whole) == "queued"
    made.plane.operations.put_queue(Queue(DEFAULT, policy="bestfit"), "ada")
    made.plane.settle()
    assert made.where(whole) == "beta"
    warnings = {each.name: each.warning for each in made.plane.overview.policies()}
    assert warnings["volcano-divided"].startswith("This is a baseline")
    assert not warnings["bestfit"]
    with pytest.raises(RejectedError, match="only for replay and evaluate: it runs a job once in every"):
        made.plane.operations.put_queue(Queue(DEFAULT, policy="volcano-duplicated"), "ada")


def test_a_gang_is_divided_over_clusters() -> None:
    """With `volcano-divided`, each of its replicas goes to the cluster with the most free GPU at that moment."""
    made = scene()
    made.plane.operations.put_queue(Queue(DEFAULT, policy="volcano-divided"), "ada")
    made.plane.settle()
    gang = made.plane.store.attempts(made.submit(replicas=2, gang=True))[0]
    assert gang.clusters == ("alpha", "beta")


def test_a_policy_of_the_published_kind_says_where_it_does_not_decide() -> None:
    """A warning names the clusters that it was trained for if the fleet has another number, else its fallback."""
    made = scene()
    policies = made.plane.policies
    for clusters in (2, 3):
        policies.import_policy(pack(cluster_policy(f"for-{clusters}", clusters=clusters)), "ada")
    assert "does not fit there, the fallback decides" in made.plane.overview.policy_warning("for-2")
    warning = "It was trained for 3 clusters, and the fleet has 2: the fallback decides."
    assert made.plane.overview.policy_warning("for-3") == warning


def test_a_policy_that_may_not_decide_yet_becomes_a_shadow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to, it is compared, and what is left is reported; else it is refused."""
    operations = scene().plane.operations
    operations.put_queue(Queue("q", policy="bestfit"), "ada")

    def closed(*_: object) -> NoReturn:
        raise ConflictError("100 jobs are left")

    monkeypatch.setattr(Gate, "require", closed)
    with pytest.raises(ConflictError, match="100 jobs are left"):
        operations.activate_policy("greedy", "q", "ada")
    for _ in range(2):
        queue, left = operations.activate_policy("greedy", "q", "ada", shadow=True)
        assert (queue, left) == (Queue("q", policy="bestfit", shadow="greedy"), "100 jobs are left")


def test_a_policy_that_may_decide_is_put_in_the_shadow_alone_where_that_is_asked() -> None:
    """Anything that decides for the queue stays, also when nothing is left until the policy may."""
    operations = scene().plane.operations
    operations.put_queue(Queue("q", policy="bestfit"), "ada")
    queue, left = operations.activate_policy("greedy", "q", "ada", shadow=True)
    assert (queue, left) == (Queue("q", policy="bestfit", shadow="greedy"), "")


def test_a_queue_that_was_changed_meanwhile_is_not_activated() -> None:
    """Another user's change of the queue is not undone by an activation that did not see it."""
    made = scene()
    operations = made.plane.operations
    operations.put_queue(Queue("q", policy="bestfit"), "ada")
    other = Queue("q", policy="bestfit", description="changed")
    queues = made.plane.store.queues
    answers = [queues(), [other]]
    made.plane.store.queues = lambda: answers.pop(0) if len(answers) > 1 else answers[0]  # type: ignore[method-assign]
    with pytest.raises(StaleError):
        operations.activate_policy("greedy", "q", "ada", shadow=True)
