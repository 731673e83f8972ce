from __future__ import annotations

from typing import Any

import pytest

from seaway.application.changes import Change
from seaway.application.whatif import dry_run
from seaway.application.whatif.dry_run import free_slices
from seaway.application.whatif.limitations import RESERVED
from seaway.application.whatif.question import Question
from seaway.application.whatif.trial import NewNodes
from seaway.application.whatif.whatif import WhatIf
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.job_spec import NO_CLUSTER, Checkpoint, Standby, StandbyMode
from seaway.domain.network import Link
from seaway.domain.placement import Explanation
from seaway.domain.queues import Backfill, Queue
from seaway.domain.reasons import time_param
from seaway.domain.tenancy import Tenant
from seaway.scheduling.explain import explain
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.control_plane import SmallControlPlane
from tests.unit.application.scene import Scene, scene, spec


def what_if(made: Scene) -> WhatIf:
    """Make what answers questions about a scene."""
    return WhatIf(made.plane.controller, made.plane.admission, made.plane.store)


def test_a_trial_says_where_a_job_would_go_and_changes_nothing() -> None:
    """Candidates come with free slices, link and price, one is marked, and the fleet is as it was."""
    parts = fleet(
        cluster(node(gpu(), gpu()), name="alpha", gateway="door", prices={"*": 2_000_000}),
        links=[Link("user", "door", 5_000_000, bandwidth_mbps=100)],
    )
    made = scene(parts)
    for _ in range(2):
        trial = made.plane.overview.dry_run(spec(gateway="user", gpu_memory_mib=20_480, gpu_milli=250))
        assert trial.fits
        (choice,) = trial.candidates
        assert (choice.cluster, choice.node, choice.chosen) == ("alpha", "node-0", True)
        assert (choice.free_slices, choice.microprice_per_hour) == (8, 500_000)
        assert choice.link is not None
        assert choice.link.latency_ns == 5_000_000
    assert not made.plane.overview.dry_run(spec(gpus=3)).fits
    with pytest.raises(RejectedError, match="unknown gateway"):
        made.plane.overview.dry_run(spec(gateway="nowhere"))


def test_free_bandwidth_is_that_of_links() -> None:
    """A trial shows the bandwidth that `links` does, and an explanation names the part that waiting jobs reserve."""
    door = cluster(node(gpu(), gpu(), gpu()), name="alpha", gateway="door")
    made = scene(fleet(door, links=[Link("user", "door", 5_000_000, bandwidth_mbps=5_000)]))
    made.submit(gateway="user", min_bandwidth_mbps=4_000, expected_duration_s=50)
    waiting = made.submit(gateway="user", min_bandwidth_mbps=3_000)
    (link,) = made.plane.overview.links()
    (choice,) = made.plane.overview.dry_run(spec(gateway="user")).candidates
    assert choice.link is not None
    assert (link.left_mbps, choice.link.free_mbps) == (0, 0)
    behind = made.submit(gateway="user", min_bandwidth_mbps=2_000)
    said = ("user to door: 1Gbps free, bound 3Gbps", "user to door: 1Gbps free, bound 2Gbps")
    others = ("", ", 1Gbps of that is reserved for waiting jobs")
    for job_id, text, reserved in zip((waiting, behind), said, others, strict=True):
        explanation = made.plane.overview.reason(made.job(job_id)).explanation
        assert explanation is not None
        assert explanation.links == (text + reserved,)


@pytest.mark.parametrize(
    ("fields", "price", "total"),
    [
        ({}, 2_000_000, 2_000_000),
        ({"gpu_memory_mib": 20_480, "gpu_milli": 250}, 500_000, 500_000),
        ({"gpu_memory_mib": 8_192, "gpu_milli": 500}, 1_000_000, 1_000_000),
        ({"gpus": 2, "gpu_milli": 500, "gpu_memory_mib": 8_192, "replicas": 2}, 2_000_000, 4_000_000),
        ({"gpus": 0, "cpu_milli": 1}, None, None),
    ],
)
def test_a_slice_costs_its_share_of_the_device(fields: dict[str, int], price: int | None, total: int | None) -> None:
    """The price of a replica is that of its share of memory or cores, the larger one; the total is that of all."""
    made = scene(fleet(cluster(node(gpu(), gpu()), name="alpha", prices={"*": 2_000_000})))
    trial = made.plane.overview.dry_run(spec(**fields))
    assert (trial.candidates[0].microprice_per_hour, trial.microprice_per_hour) == (price, total)


def test_questions_write_nothing_into_what_the_loop_works_on() -> None:
    """Trials, explanations and what-ifs run beside the loop, so they keep their demands to themselves."""
    made = scene()
    job_id = made.submit()
    live = made.plane.controller.live
    before = len(live.fleet.snapshot.demands)
    made.plane.overview.dry_run(spec(cpu_milli=7))
    made.plane.overview.reason(made.job(job_id))
    what_if(made).ask(Question(jobs=(spec(cpu_milli=8),)))
    assert len(live.fleet.snapshot.demands) == before


def test_questions_and_standbys_name_cordons_and_lost_clusters() -> None:
    """Nodes that a question drains, or that are cordoned already, are named as explanations name them."""
    made = scene()
    standby = Standby(StandbyMode.COLD)
    job_id = made.submit(template="deployment", restarts=True, standby=standby, tenant="default")
    made.plane.run(10)
    (home,) = made.job(job_id).clusters
    (other,) = {"alpha", "beta"} - {home}
    made.plane.operations.cordon(other, "", "ada", "new driver")
    made.plane.run(60)
    assert "1 node cordoned: new driver" in made.plane.overview.standby_of(made.job(job_id)).reason
    answer = what_if(made).ask(Question(jobs=(spec(gpus=2),), drain=(home,)))
    assert {each.why for each in answer.waiting} == {"0 of 2 nodes fit: 1 node cordoned, 1 node cordoned: new driver"}


@pytest.mark.parametrize("resource", ["gpus", "gpus/a100"])
def test_advice_names_limits_queues_and_holders_that_the_caller_may_see(resource: str) -> None:
    """A job at a limit reads which limit to raise, another queue with room, and who holds how much of the limit."""
    models = {"models": {"A100"}} if "/" in resource else {}
    made = scene()
    for name in ("other", "third"):
        made.plane.operations.put_tenant(Tenant(name), "ada")
    for queue in (Queue("full", limit={resource: 2000}), Queue("free"), Queue("theirs", tenant="third")):
        made.plane.operations.put_queue(queue, "ada")
    made.submit(queue="full", expected_duration_s=100, **models)
    made.submit(queue="full", tenant="other", expected_duration_s=100, **models)
    waits = made.job(made.submit(queue="full", **models))
    everybody, own = (made.plane.overview.reason(waits, sees).advice for sees in (lambda _: True, "default".__eq__))
    one = "gpu" if resource == "gpus" else resource
    ways = (
        f"raise the limit of queue 'full' from 2 {resource} to 3 {resource}",
        "move it to queue 'default', where it would start now on beta/node-0",
        "move it to queue 'free', where it would start now on beta/node-0",
        f"user 'ada' of tenant 'default' holds 1 {one} in queue 'full'",
    )
    assert everybody == (*ways, f"user 'ada' of tenant 'other' holds 1 {one} in queue 'full'")
    assert own == (*ways, f"other tenants hold 1 {one} in queue 'full'")


def test_jobs_that_wait_for_nodes_read_who_holds_the_gpus() -> None:
    """Without a limit, the holders are those of the GPUs that the job may use; raising limits would not help."""
    made = scene()
    for _ in range(2):
        made.submit(gpus=2)
    waits = made.job(made.submit())
    assert made.plane.overview.reason(waits).advice == (
        "user 'ada' of tenant 'default' holds 4 gpus in queue 'default'",
    )
    assert made.plane.overview.reason(waits, remedies=False).advice == ()


def test_lists_of_a_busy_fleet_reuse_explanations_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list shows an explanation for twenty times as long as it took. One of the job renews it for lists, too."""
    made = scene()
    for gpus in (2, 1):
        made.submit(gpus=gpus)
    waits = made.submit(gpus=2)

    def slow(*given: Any, **options: Any) -> Explanation:  # noqa: ANN401  # forwarded
        made.clock.advance_s(0.1)
        return explain(*given, **options)

    monkeypatch.setattr(dry_run, "explain", slow)

    def listed() -> str:
        return next(made.plane.overview.present([made.job(waits)])).reason

    first = listed()
    made.plane.operations.cordon("beta", "", "ada", "broken")
    made.plane.settle()
    assert listed() == first
    made.clock.advance_s(2)
    assert "cordoned: broken" in listed()
    made.plane.operations.uncordon("beta", "", "ada")
    made.plane.settle()
    assert "cordoned: broken" in listed()
    assert made.plane.overview.reason(made.job(waits)).why == listed() == first


def test_no_one_promises_a_job_a_place_without_queue_or_pool() -> None:
    """While the queue or pool of a job is missing, no part of the control plane gives it a cluster."""
    made = scene()
    for queue in (None, Queue("lost", pool="gone")):
        if queue:
            made.plane.writer.commit([Change(put=[queue])])
        job_id = made.submit(queue="lost")
        made.plane.settle()
        with pytest.raises(RejectedError, match="unknown queue" if queue is None else "the pool 'gone' of its queue"):
            made.plane.admission.admit(spec(queue="lost"))
        assert made.state(job_id) == "queued"
        assert not made.plane.overview.dry_run(spec(queue="lost")).fits
        reason = made.plane.overview.reason(made.job(job_id))
        assert reason.message == f"waits: {made.job(job_id).reason}"
        assert reason.explanation is not None
        assert not reason.explanation.fits
        with pytest.raises(RejectedError, match="queue"):
            what_if(made).ask(Question(jobs=(spec(queue="lost"),)))
        assert not what_if(made).ask(Question(replan=True)).started
        assert made.plane.overview.clusters_of(made.job(job_id)) == NO_CLUSTER


@pytest.mark.parametrize("lost", [(), ("small",)])
@pytest.mark.parametrize("asked", [{"gpu_milli": 500, "gpu_memory_mib": 1}, {"gpu_memory_mib": gpu().memory_mib // 2}])
def test_what_would_be_allocated_counts_slices_as_queues_do(lost: tuple[str, ...], asked: dict[str, int]) -> None:
    """A slice is its larger share of cores and memory, of all GPUs whatever the size of clusters."""
    made = scene(fleet(cluster(node(*[gpu()] * 8), name="large"), cluster(node(gpu()), name="small")))
    made.submit(**asked)
    made.plane.run(3)
    answer = what_if(made).ask(Question(drain=lost, replan=True))
    assert answer.before.allocation_percent == pytest.approx(100 * 0.5 / 9)
    assert answer.after.allocation_percent == pytest.approx(100 * 0.5 / (9 - len(lost)))
    for sums, gpus in ("before", 9), ("after", 9 - len(lost)):
        rows = [getattr(each, sums).gpu_milli for each in answer.clusters]
        assert (sum(each.used for each in rows), sum(each.total for each in rows)) == (500, 1000 * gpus)


def test_before_queues_are_known_nothing_is_promised_nor_denied() -> None:
    """A control plane that has not read its queues yet says so, and not that they are gone."""
    made = scene()
    job_id = made.submit(gpus=2, replicas=3)
    fresh = SmallControlPlane(made.clusters, made.plane.store, made.clock)
    for ask in (lambda: fresh.overview.dry_run(spec()), lambda: fresh.overview.reason(made.job(job_id))):
        with pytest.raises(UnavailableError, match="starting"):
            ask()


def test_reasons_follow_a_job() -> None:
    """Why a job is where it is: how many are before it, the stored data for it, why it was put where it runs."""
    made = scene()
    first, second = made.submit(gpus=2, expected_duration_s=50), made.submit(gpus=2, expected_duration_s=50)
    made.plane.run(5)
    head = made.submit(gpus=2)
    other = made.submit(gpus=2, cpu_milli=77)
    made.clock.advance_s(3)
    reason = made.plane.overview.reason(made.job(head))
    assert (reason.position, reason.ahead) == (1, 0)
    assert "is reserved for it, free at about 20" in reason.message
    reason = made.plane.overview.reason(made.job(other))
    assert reason.position == 2
    assert reason.message.startswith("waits: 0 of 2 nodes fit")
    reason = made.plane.overview.reason(made.job(first))
    assert reason.message.startswith("running: runs on")
    assert reason.placement_reason.startswith("bestfit chose")
    assert len(reason.placements) == 1
    made.plane.jobs.cancel(second, "ada", "enough")
    assert made.plane.overview.reason(made.job(second)).message == "cancelled: enough"


def test_requesting_why_a_job_pauses_leaves_no_trace() -> None:
    """However often a user asks, nothing is added to what the loop has to look after."""
    made = scene()
    job_id = made.submit(retries=1)
    made.plane.run(5)
    made.cluster(made.where(job_id)).fail_copy(job_id, 1, "killed")
    made.plane.settle()
    deadlines = made.plane.controller.live.deadlines
    before = len(deadlines._heap)  # noqa: SLF001
    for _ in range(5):
        assert "after a pause" in made.plane.overview.reason(made.job(job_id)).message
    assert len(deadlines._heap) == before  # noqa: SLF001


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"gpus": 1}, 3),
        ({"gpus": 2}, 1),
        ({"gpus": 2, "gpu_memory_percent": 50, "gpu_milli": 500}, 3),
        ({"gpus": 1, "cpu_milli": 30_000}, 2),
        ({"gpus": 0, "cpu_milli": 1_000, "memory_mib": 100_000}, 2),
        ({"gpus": 1, "gpu_memory_mib": 8_192}, 30),
        ({"gpus": 4}, 0),
    ],
)
def test_free_slices_are_counted(fields: dict[str, int], count: int) -> None:
    """As many replicas as devices, cores and memory of a node allow, each on devices that differ."""
    made = scene(fleet(cluster(node(gpu(), gpu(), gpu()), name="alpha")))
    snapshot = made.plane.controller.live.fleet.snapshot
    assert free_slices(snapshot, spec(**fields).job("x"), 0) == count


@pytest.mark.parametrize(
    ("shares", "fields", "count"),
    [
        (1, {}, 3),
        (1, {"gpu_memory_mib": 8_192}, 3),
        (1, {"gpu_memory_mib": 90_000}, 0),
        (4, {"gpu_memory_mib": 8_192}, 12),
        (4, {"gpu_memory_mib": 30_000}, 6),
        (4, {"gpu_memory_percent": 10, "gpu_milli": 600}, 3),
    ],
)
def test_free_slices_of_even_shares_are_counted(shares: int, fields: dict[str, int], count: int) -> None:
    """A card that is given out whole takes one replica, and one in even shares as many as whole shares allow."""
    card = {"share_limit": shares, "even_shares": True}
    made = scene(fleet(cluster(node(gpu(**card), gpu(**card), gpu(**card)), name="alpha")))
    snapshot = made.plane.controller.live.fleet.snapshot
    assert free_slices(snapshot, spec(gpus=1, **fields).job("x"), 0) == count


def test_free_slices_of_cards_of_unknown_memory_are_counted() -> None:
    """Where only the number of cards is known, one that asks for a card gets any."""
    made = scene(fleet(cluster(node(gpu(memory_mib=0, share_limit=1, even_shares=True)), name="alpha")))
    snapshot = made.plane.controller.live.fleet.snapshot
    assert free_slices(snapshot, spec(gpus=1).job("x"), 0) == 1


def test_a_question_names_what_there_is() -> None:
    """An unknown policy, queue or tenant is turned away, as a submit would, and so is what never fits."""
    made = scene()
    ask = what_if(made).ask
    with pytest.raises(RejectedError, match=r"nix.*bestfit") as error:
        ask(Question(policy="nix"))
    assert error.value.where == "policy"
    with pytest.raises(RejectedError, match="unknown queue 'nowhere'") as error:
        ask(Question(jobs=(spec(), spec(queue="nowhere"))))
    assert error.value.where == "jobs.1.queue"
    with pytest.raises(RejectedError, match="unknown tenant"):
        ask(Question(jobs=(spec(tenant="nobody"),)))
    with pytest.raises(RejectedError, match="no cluster can run this job, even when idle"):
        ask(Question(jobs=(spec(gpus=9),)))
    with pytest.raises(RejectedError, match="exceed the capacity of the empty fleet"):
        ask(Question(jobs=(spec(replicas=5),)))


def test_what_is_too_large_may_fit_a_fleet_that_grows() -> None:
    """With nodes that are added, jobs may be asked about that the fleet could never hold without them."""
    made = scene()
    nodes = (NewNodes("alpha", "node-0", 1),)
    assert len(what_if(made).ask(Question(add_nodes=nodes, jobs=(spec(replicas=5),))).started) == 1
    (left,) = what_if(made).ask(Question(add_nodes=nodes, jobs=(spec(replicas=7),))).waiting
    assert (
        "7 replicas are needed together, and there is room for 6 now; it would fit with replicas 6 instead of 7 ("
        in left.why
    )


def test_no_job_starts_that_would_delay_the_first_of_its_queue() -> None:
    """As in the queue, only jobs that end before the first one can start use the capacity that it waits for."""
    made = scene(fleet(cluster(node(gpu(), gpu(), gpu()), name="alpha")))
    made.submit(expected_duration_s=100)
    first = made.submit(gpus=3, expected_duration_s=10)
    waits = made.submit(gpus=2, expected_duration_s=1000)
    assert [made.state(each) for each in (first, waits)] == ["queued", "queued"]
    short, long, endless = (
        spec(name=name, expected_duration_s=at) for name, at in (("s", 50), ("l", 200), ("e", None))
    )
    answer = what_if(made).ask(Question(jobs=(long, short, endless)))
    assert [each.job for each in answer.started] == ["s"]
    why = {each.job: each.why for each in answer.waiting}
    assert why["l"].endswith(RESERVED)
    assert why["e"].endswith(RESERVED)
    assert answer.after.allocation_percent == pytest.approx(200 / 3), "a reservation is no allocation"
    more = what_if(made).ask(Question(add_nodes=(NewNodes("alpha", "node-0", 1),), jobs=(long,)))
    assert {each.job_id for each in more.started} >= {first, waits}


def test_it_is_reported_why_a_job_that_is_asked_about_would_wait() -> None:
    """Each job that would wait says what is in its way, and those that would run say nothing."""
    made = scene()
    answer = what_if(made).ask(Question(jobs=(spec(gpus=2), spec(gpus=2), spec(gpus=1))))
    assert [each.why for each in answer.started] == ["", ""]
    (left,) = answer.waiting
    assert left.why.startswith("0 of 2 nodes fit")


def test_a_question_says_how_each_cluster_would_be() -> None:
    """Anything that leaves a cluster is missing there and found where it goes; what comes is counted where it comes."""
    made = scene()
    where = made.where(made.submit())
    (other,) = {"alpha", "beta"} - {where}
    question = Question(drain=(where,), add_nodes=(NewNodes(other, "node-0", 3),))
    found = {each.name: (each.before, each.after) for each in what_if(made).ask(question).clusters}
    assert [(each.nodes, each.jobs, each.gpu_milli.used) for each in found[where]] == [(1, 1, 1000), (0, 0, 0)]
    assert [(each.nodes, each.jobs, each.gpu_milli.used) for each in found[other]] == [(1, 0, 0), (4, 1, 1000)]
    assert [each.gpu_milli.total for each in found[other]] == [2000, 8000]


def test_a_gang_that_waits_says_how_many_have_room() -> None:
    """Replicas that are needed together: how many there are, how many have room, and how many would be let in."""
    made = scene()
    made.submit(gpus=1)
    gang = made.submit(replicas=4, gang=True)
    said = (
        "but 4 replicas are needed together, and there is room for 3 now; it would fit with replicas 3 instead of 4 ("
    )
    assert said in made.plane.overview.reason(made.job(gang)).message
    made.plane.jobs.cancel(gang, "ada")
    made.plane.settle()
    trial = made.plane.overview.dry_run(spec(replicas=4, gang=True))
    assert not trial.fits
    assert said in trial.message
    assert made.plane.overview.dry_run(spec(replicas=3, gang=True)).fits


def test_replicas_that_stay_together_say_how_many_one_cluster_holds() -> None:
    """Anything that all clusters have room for together is no help to them."""
    made = scene()
    waits = made.submit(replicas=3, single_cluster=True)
    said = "3 replicas are needed in one cluster, and there is room for 2 now; it would fit with replicas 2 instead of"
    assert said in made.plane.overview.reason(made.job(waits)).message
    assert made.job(made.submit(replicas=3, gang=True)).clusters == ("alpha", "beta")


def test_several_nodes_are_stored_and_one_is() -> None:
    """Anything that is reported of the first of a queue is a sentence, whether one node is kept for it or more."""
    for replicas, said in (
        (1, ", and alpha/node-0 is reserved for it"),
        (2, "alpha/node-0, beta/node-0 are reserved for it"),
    ):
        made = scene()
        made.submit(gpus=2, expected_duration_s=100)
        made.submit(gpus=2, expected_duration_s=100)
        made.plane.run(3)
        head = made.submit(gpus=2, replicas=replicas, gang=True)
        made.plane.run(1)
        assert said in made.plane.overview.reason(made.job(head)).message


def test_nodes_that_are_reserved_name_the_job_and_the_time() -> None:
    """A job, or one that is only tried, reads for which job a node is reserved and when that starts."""
    made = scene(fleet(cluster(node(gpu(), gpu(), gpu()), name="alpha")))
    made.submit(gpus=1, expected_duration_s=400)
    head = made.submit(name="head", gpus=3, expected_duration_s=10)
    gang = made.submit(replicas=2, gang=True)
    assert "is reserved for it" in made.plane.overview.reason(made.job(head)).message
    reason, tried = made.plane.overview.reason(made.job(gang)), made.plane.overview.dry_run(spec(replicas=2, gang=True))
    assert (reason.code, reason.params["job"], reason.params["job_id"]) == ("reserved_for_others", "head", head)
    assert reason.explanation is not None
    reservation = made.plane.controller.scheduler.reservations.of(head)
    assert reservation is not None
    assert reservation.starts_ns is not None
    wall_ns = reservation.starts_ns + made.clock.now_ns() - made.clock.monotonic_ns()
    assert reason.params["starts_at"] == time_param(wall_ns)
    for explanation in (reason.explanation, tried.explanation):
        (refusal,) = explanation.refusals
        assert (refusal.plugin, refusal.code, refusal.nodes) == ("Reservations", "reserved_for_job", 1)
        assert refusal.reason.startswith("reserved for job head (starts at about ")
        assert not explanation.fits
    assert "1 node reserved for job head" in reason.message
    assert "1 node reserved for job head" in tried.message


def test_a_run_time_that_lets_a_job_pass_is_offered_and_works() -> None:
    """A job that ends before a reserved node is needed starts there; the remedy is the longest such time in minutes."""
    made = scene(fleet(cluster(node(gpu(), gpu(), gpu()), name="alpha")))
    made.submit(gpus=1, expected_duration_s=400)
    made.submit(gpus=3, expected_duration_s=10)
    trial = made.plane.overview.dry_run(spec(gpus=2))
    remedy = trial.explanation.remedies[0]
    assert (remedy.field, remedy.current, remedy.required) == ("time_limit_s", 0, 360)
    assert not trial.fits
    assert "it would fit with time_limit 6m (alpha/node-0)" in trial.message
    assert made.plane.overview.dry_run(spec(gpus=2, time_limit_s=360)).fits
    assert not made.plane.overview.dry_run(spec(gpus=2, time_limit_s=460)).fits
    assert made.state(made.submit(gpus=2, time_limit_s=360)) != "queued"


def test_a_job_behind_others_of_a_queue_without_backfill_says_so() -> None:
    """No change of such a job admits it, whether it waits or is only tried, and whichever tenant has the turn."""
    made = scene(fleet(cluster(node(gpu(), gpu()), node(gpu()), name="alpha")))
    made.plane.operations.put_tenant(Tenant("rival"), "ada")
    made.plane.writer.commit([Change(put=[Queue("strict", backfill=Backfill.NONE)])])
    made.submit(gpus=2)
    made.submit(queue="strict", gpus=2)
    for tenant in ("default", "rival"):
        trial = made.plane.overview.dry_run(spec(queue="strict", gpus=1, tenant=tenant))
        assert not trial.fits
        assert not trial.explanation.remedies
        assert trial.message.endswith("; but its queue has no backfill, and an earlier job does not fit")
        reason = made.plane.overview.reason(made.job(made.submit(queue="strict", gpus=1, tenant=tenant)))
        assert reason.code == "behind_earlier_jobs", reason.message
    assert made.plane.overview.dry_run(spec(gpus=1)).fits


def test_jobs_of_other_tenants_are_not_named() -> None:
    """A node that is reserved for a job of another tenant says no more than that, and when it starts."""
    made = scene(fleet(cluster(node(gpu(), gpu(), gpu()), name="alpha")))
    made.plane.operations.put_tenant(Tenant("rival"), "ada")
    made.submit(gpus=1, expected_duration_s=400)
    made.submit(name="secret", gpus=3, expected_duration_s=10)
    trial = made.plane.overview.dry_run(spec(gpus=1, tenant="rival"))
    (refusal,) = trial.explanation.refusals
    assert refusal.code == "reserved_for_other_tenant"
    assert set(refusal.params) == {"starts_at"}
    assert "secret" not in trial.message


def test_a_job_that_was_refused_on_all_devices_says_so() -> None:
    """Where a job is kept from counts, and is no doing of a job that would be first."""
    made = scene()
    for each in made.clusters.clusters():
        each.refuse("no such card")
    job_id = made.submit()
    made.plane.run(99)
    reason = made.plane.overview.reason(made.job(job_id))
    assert reason.message.endswith("; it avoids 4 devices that rejected it, for a while"), reason.message
    assert reason.explanation is not None
    assert not reason.explanation.fits
    assert not reason.explanation.remedies, "it is not the job that says where it keeps away from"
    assert "refused" not in made.plane.overview.reason(made.job(made.submit(gpus=3))).message


def test_a_drain_counts_the_work_of_jobs_without_checkpoints() -> None:
    """Jobs that move or stop lose the GPU-hours since their starts; those with checkpoints and others lose nothing."""
    made = scene(fleet(cluster(node(gpu(), gpu(), gpu(), name="a"), name="alpha"), cluster(node(gpu()), name="beta")))
    made.submit(name="plain", gpus=2)
    made.submit(name="saves", gpus=1, checkpoint=Checkpoint())
    made.plane.run(3600)
    answer = what_if(made).ask(Question(drain=("alpha",)))
    ran = next(each for each in made.plane.controller.live.attempts.values() if each.spec.name == "plain")
    hours = (made.clock.now_ns() - (ran.running_ns or 0)) / 3600e9
    assert answer.lost_gpu_hours == pytest.approx(2 * hours, rel=0.01)
    assert what_if(made).ask(Question(drain=("beta",))).lost_gpu_hours == 0
