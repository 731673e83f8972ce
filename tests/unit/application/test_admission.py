from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.changes import Change
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.job import GpuTopology, NodeRules
from seaway.domain.job_spec import Standby
from seaway.domain.network import Link, NetworkNeed
from seaway.domain.node import Toleration
from seaway.domain.queues import Queue
from seaway.domain.runtime import Run, Runtime, Volume, VolumeKind
from seaway.domain.tenancy import Pool, Tenant
from seaway.testing.plugins import cluster, fleet, gpu, mig_gpu, node
from tests.fakes.control_plane import SmallControlPlane
from tests.unit.application.scene import Scene, scene, spec


def refused(made: Scene, **fields: object) -> dict[str, str]:
    """Return where a job is wrong and why; empty when it may pass."""
    try:
        made.plane.admission.admit(spec(**fields))
    except RejectedError as error:
        return {each.where: each.message for each in (error, *error.also)}
    return {}


def test_every_unknown_name_is_reported_together() -> None:
    """All wrong names are reported at once, with those that there are."""
    made = scene()
    problems = refused(made, tenant="t", queue="q", template="x", gateway="g", clusters={"nowhere"})
    assert set(problems) == {"tenant", "queue", "template", "gateway", "placement.clusters"}
    assert problems["tenant"] == "unknown tenant 't'; available: default"
    assert problems["placement.clusters"] == "unknown cluster 'nowhere'; available: alpha, beta"
    assert refused(made, clusters={"betta"})["placement.clusters"] == "unknown cluster 'betta'; available: beta, alpha"
    assert refused(made, template="deploy")["template"].startswith(
        "unknown template 'deploy'; available: deployment, job"
    )


def test_queues_of_others_and_closed_ones_take_nothing() -> None:
    """A queue may be another tenant's alone, or closed."""
    made = scene()
    queues = [Queue("theirs", tenant="team"), Queue("shut", open=False)]
    made.plane.writer.commit([Change(put=[Tenant("team"), *queues])])
    made.plane.settle()
    assert "another tenant" in refused(made, queue="theirs")["queue"]
    assert "closed" in refused(made, queue="shut")["queue"]
    assert not refused(made, queue="theirs", tenant="team")


def test_a_job_uses_only_secrets_that_its_tenant_may_use() -> None:
    """Every Secret is on the list of the tenant, which is empty at first; * stands for any text."""
    made = scene()
    volumes = (
        Volume("/hf", VolumeKind.SECRET, "hf", read_only=True),
        Volume("/s3", VolumeKind.CSI, "s3.example", read_only=True, secret="s3-keys"),
    )
    job = spec(run=Run(env_from_secret=(("KEY", "wandb/key"),)), runtime=Runtime(volumes))

    def wrong(*secrets: str) -> set[str]:
        made.plane.writer.commit([Change(put=[Tenant("default", secrets=secrets)])])
        made.plane.settle()
        try:
            made.plane.admission.admit(job)
        except RejectedError as error:
            return {each.where for each in (error, *error.also)}
        return set()

    assert wrong() == {"run.env_from_secret.KEY", "volumes[0].secret", "volumes[1].csi.secret"}
    assert wrong("hf", "s3-*") == {"run.env_from_secret.KEY"}
    assert wrong("*") == set()


LABELS, TAINTS = "placement.node_labels", "placement.tolerations"
EVERY, GPU, DATABASE = Toleration(), Toleration("gpu"), Toleration("database", "x")


@pytest.mark.parametrize(
    ("allowed", "asked", "where"),
    [
        ({}, {}, set()),
        ({}, {"tolerations": (EVERY,)}, {TAINTS}),
        ({}, {"tolerations": (GPU,), "node_labels": (("disk", "fast"),)}, {TAINTS, LABELS}),
        ({"allowed_taints": ("gpu",)}, {"tolerations": (GPU,)}, set()),
        ({"allowed_taints": ("gpu",)}, {"tolerations": (GPU, DATABASE)}, {TAINTS}),
        ({"allowed_taints": ("gpu",)}, {"tolerations": (EVERY,)}, {TAINTS}),
        ({"allowed_taints": ("*",)}, {"tolerations": (EVERY, DATABASE)}, set()),
        ({"allowed_taints": ("*",)}, {"node_labels": (("disk", "fast"),)}, {LABELS}),
        ({"allowed_node_labels": ("disk",)}, {"node_labels": (("disk", "fast"),)}, set()),
        ({"allowed_node_labels": ("disk",)}, {"node_labels": (("disk", "fast"), ("zone", "a"))}, {LABELS}),
    ],
)
def test_jobs_choose_nodes_as_their_queue_allows(
    allowed: dict[str, tuple[str, ...]], asked: dict[str, object], where: set[str]
) -> None:
    """A job may tolerate taints and require node labels that an operator allowed for its queue, and no others."""
    queue = Queue("q", **allowed)  # type: ignore[arg-type]
    assert {each.where for each in queue.forbidden(NodeRules(**asked))} == where  # type: ignore[arg-type]


def test_a_queue_allows_no_taints_by_default() -> None:
    """Admission reports what the queue forbids, and the command that allows it."""
    made = scene()
    problems = refused(made, tolerations=(EVERY,), node_labels=(("disk", "fast"),))
    assert "every taint" in problems[TAINTS]
    assert problems[LABELS].endswith("seaway queue set default --allow-node-label disk")
    one = refused(made, tolerations=(Toleration("spot"),))[TAINTS]
    assert one != refused(made, tolerations=(Toleration("spot"), EVERY))[TAINTS]  # an update is compared by its message


def test_a_queue_takes_jobs_as_soon_as_it_is_stored() -> None:
    """However long the loop takes to hear of it; what is removed or closed takes none from then on."""
    made = scene()
    writer = made.plane.writer
    pool, queue = Pool("small", frozenset({"alpha"})), Queue("new", tenant="team", pool="small")
    writer.commit([Change(put=[Tenant("team"), pool, queue])])
    assert "new" not in made.plane.controller.live.queues
    assert not refused(made, queue="new", tenant="team")
    assert "5 replicas exceed" in refused(made, queue="new", tenant="team", replicas=5)["resources"]
    trial = made.plane.overview.dry_run(spec(queue="new", tenant="team"))
    assert {each.cluster for each in trial.placements} == {"alpha"}
    writer.commit([Change(put=[replace(queue, open=False)])])
    assert "closed" in refused(made, queue="new", tenant="team")["queue"]
    writer.commit([Change(delete=[queue])])
    assert "unknown queue" in refused(made, queue="new", tenant="team")["queue"]
    made.plane.settle()
    assert "unknown queue" in refused(made, queue="new", tenant="team")["queue"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"gpus": 3}, "no cluster can run this job, even when idle"),
        ({"replicas": 5}, "5 replicas exceed the capacity of the empty fleet: 4 of them fit"),
        ({"replicas": 5, "gang": True}, "placed together, even on the empty fleet; it would fit with 4 replicas"),
        (
            {"replicas": 3, "gang": True, "single_cluster": True},
            "placed in one cluster, even on the empty fleet; it would fit",
        ),
        (
            {"replicas": 3, "gang": True, "single_cluster": True, "run": Run(command=("train",))},
            "it would fit with 2 replicas or with MASTER_ADDR in run.env",
        ),
        ({"mig": "3g.40gb"}, "2 nodes have no such MIG profile; it would fit without mig (alpha/node-0)"),
        ({"gpus": 3, "cpu_milli": 10**9}, "it would fit with gpus 2 instead of 3 and with cpu"),
        (
            {"gpus": 3, "regions": {"nowhere"}},
            "it would fit with gpus 2 instead of 3 and without regions (alpha/node-0)",
        ),
    ],
)
def test_what_no_cluster_could_ever_hold_is_refused(fields: dict[str, object], why: str) -> None:
    """A job that would wait for ever is refused with the reason."""
    assert why in refused(scene(), **fields)["resources"]


def test_what_could_be_held_some_day_may_wait() -> None:
    """A fleet that is full, silent, cordoned or broken now may hold the job later."""
    made = scene()
    for _ in range(2):
        made.submit(gpus=2)
    assert not refused(made, gpus=2)
    made.cluster("alpha").fail_node("node-0")
    made.plane.operations.cordon("beta", "", "ada", "repair")
    made.plane.run(2)
    assert not refused(made, gpus=2, replicas=2)


def test_a_pool_bounds_what_its_queue_may_ask_for() -> None:
    """Anything that only clusters outside the queue's pool could hold is refused, until the pool grows."""
    parts = fleet(cluster(node(gpu()), name="small"), cluster(node(gpu(), gpu()), name="large"))
    made = scene(parts)
    made.plane.writer.commit([Change(put=[Pool("p", frozenset({"small"})), Queue("q", pool="p")])])
    made.plane.settle()
    assert "it would fit with gpus 1 instead of 2 (small/node-0)" in refused(made, gpus=2, queue="q")["resources"]
    made.plane.operations.put_pool(Pool("p"), "ada")
    made.plane.settle()
    assert not refused(made, gpus=2, queue="q")


def test_what_is_bound_to_a_part_of_the_fleet_is_reported_what_fits_there() -> None:
    """The nearest that fits keeps to the job's regions and to its queue's pool, as long as anything fits in them."""
    parts = fleet(
        cluster(node(gpu()), name="small", region="eu"),
        cluster(node(gpu(), gpu(), labels={"disk": "fast"}), name="large", region="us"),
    )
    made = scene(parts)
    made.plane.writer.commit(
        [Change(put=[Pool("p", frozenset({"small"})), Queue("q", pool="p", allowed_node_labels=("disk",))])]
    )
    made.plane.settle()
    bounds: tuple[tuple[str, object, str], ...] = (
        ("regions", {"eu"}, "region not requested"),
        ("queue", "q", "cluster not in the pool of the queue"),
    )
    for field, value, reason in bounds:
        reported = refused(made, gpus=2, **{field: value})["resources"]
        assert reported.endswith("it would fit with gpus 1 instead of 2 (small/node-0)")
        assert f"1 node: {reason}" in reported
    reported = refused(made, queue="q", node_labels={"disk": "fast"}, regions={"us"})["resources"]
    assert reported.endswith("it would fit without regions and without node_labels (small/node-0)")
    reported = refused(made, queue="q", clusters={"large"})["resources"]
    assert reported.endswith("it would fit in a queue of another pool (large/node-0)")


def test_a_gang_is_reported_when_its_bounds_alone_are_in_the_way() -> None:
    """A gang that is spread over clusters too far apart fits in part, or as a whole without its bounds."""
    links = [Link("a", "b", latency_ns=9_000_000), Link("b", "a", latency_ns=9_000_000)]
    parts = fleet(
        cluster(node(gpu(), gpu()), name="alpha", gateway="a"),
        cluster(node(gpu()), name="beta", gateway="b"),
        links=links,
    )
    reported = refused(scene(parts), replicas=3, gang=True, between_replicas=NetworkNeed(max_latency_ns=1_000_000))
    assert reported["resources"].endswith(
        "it would fit with 2 replicas or without between_replicas (a to b: latency 9 ms, bound 1 ms; "
        "b to a: latency 9 ms, bound 1 ms)"
    )


def test_before_anything_is_known_anyone_comes_is_asked_to_come_again() -> None:
    """A control plane that has not read its names yet does not call a valid job wrong."""
    made = scene()
    fresh = SmallControlPlane(made.clusters, clock=made.clock)
    with pytest.raises(UnavailableError):
        fresh.admission.admit(spec())


def test_jobs_pass_when_no_cluster_has_answered_yet() -> None:
    """Without a fleet to check against, a job is taken in and waits."""
    made = scene()
    for each in made.clusters.clusters():
        each.disconnect()
    fresh = SmallControlPlane(made.clusters, clock=made.clock)
    fresh.settle()
    fresh.admission.admit(spec(gpus=99))


def test_jobs_wait_for_the_gpus_of_a_cluster_that_is_lost_since_the_start() -> None:
    """Its stored inventory says which models it has; others are refused, and so are jobs that may not use it."""
    parts = fleet(
        cluster(node(gpu(model="Tesla T4")), name="alpha"), cluster(node(gpu(), gpu(model="NVIDIA L4")), name="beta")
    )
    made = scene(parts)
    made.submit(models={"A100"})
    made.plane.run(5)
    made.cluster("beta").disconnect()
    made.plane.restart()
    made.plane.settle()
    made.plane.admission.admit(spec(models={"A100"}))
    made.plane.admission.admit(spec(models={"A100"}, clusters={"beta"}))
    assert "no cluster can run" in refused(made, models={"A100"}, clusters={"alpha"})["resources"]
    assert "models here: NVIDIA A100-SXM4-80GB, NVIDIA L4" in refused(made, models={"H100"})["resources.gpu_model"]
    assert "unknown cluster 'gamma'; available: alpha, beta" in refused(made, clusters={"gamma"})["placement.clusters"]


def test_a_tenant_learns_nothing_of_others() -> None:
    """Queues of others are unknown as those are that are not there, and no list names them; nor are tenants listed."""
    made = scene()
    made.plane.writer.commit([Change(put=[Tenant("team"), Tenant("mine"), Queue("theirs", tenant="team")])])
    made.plane.writer.commit([Change(put=[Queue("ours", tenant="mine")])])
    made.plane.settle()
    reported = {}
    for name in ("theirs", "nowhere"):
        with pytest.raises(RejectedError) as caught:
            made.plane.admission.admit(spec(queue=name, tenant="mine"), "mine")
        reported[name] = str(caught.value).replace(name, "")
    assert reported["theirs"] == reported["nowhere"] == "queue: unknown queue ''; available: default, ours"
    with pytest.raises(RejectedError, match="unknown tenant 'lost'; none is visible to you"):
        made.plane.admission.admit(spec(tenant="lost"), "lost")


def test_a_change_is_held_against_what_it_changes() -> None:
    """Anything that was let in once may change in other ways, though its queue is closed or the fleet shrank since."""
    made = scene()
    made.plane.writer.commit([Change(put=[Queue("shut", open=False), Queue("closed", open=False)])])
    made.plane.settle()
    admission, before = made.plane.admission, spec(queue="shut", gpus=99, clusters={"gone"})
    admission.admit(replace(before, priority=7), before=before)
    for worse, why in (({"queue": "closed"}, "'closed' is closed"), ({"clusters": {"lost"}}, "unknown cluster 'lost'")):
        with pytest.raises(RejectedError, match=why):
            admission.admit(spec(**{"queue": "shut", "gpus": 99, **worse}), before=before)
    with pytest.raises(RejectedError, match="no cluster can run this job, even when idle"):
        admission.admit(spec(gpus=98), before=spec(gpus=99))


def test_only_what_is_remembered_is_answered_at_once() -> None:
    """A request that must be held against the fleet is not; the same one is from then on, until the fleet changes."""
    made = scene()
    admission = made.plane.admission
    assert not admission.admits_at_once(spec())
    admission.admit(spec())
    assert admission.admits_at_once(spec(name="another"))
    assert not admission.admits_at_once(spec(gpus=99))
    with pytest.raises(RejectedError):
        admission.admit(spec(gpus=99))
    with pytest.raises(RejectedError, match="no cluster can run this job, even when idle"):
        admission.admits_at_once(spec(gpus=99))
    with pytest.raises(RejectedError, match="unknown queue"):
        admission.admits_at_once(spec(queue="nowhere"))
    made.plane.controller.live.fleet.make += 1
    assert not admission.admits_at_once(spec())


def test_mig_profile_is_allocated_by_name_and_the_nearest_is_named() -> None:
    """A job gets an instance of its profile; one that no device has is refused with the nearest that would fit."""
    made = scene(fleet(cluster(node(gpu(), mig_gpu()), name="alpha")))
    job_id = made.submit(mig="3g.20gb")
    made.plane.run(3)
    made.plane.run(3)
    assert made.state(job_id) == "running"
    [placement] = made.plane.store.attempts(job_id)[-1].placements
    assert [each.mig_profile for each in placement.slices] == ["3g.20gb"]
    said = refused(made, mig="3g.40gb")["resources"]
    assert "it would fit with mig 7g.40gb instead of 3g.40gb (alpha/node-0)" in said


def test_gpus_of_one_island_are_allocated_together() -> None:
    """A job gets linked GPUs of a simulated node; without enough of them it is refused with the nearest that fits."""
    made = scene(fleet(cluster(node(gpu(island=0), gpu(island=1), gpu(island=1)), name="alpha")))
    job_id = made.submit(gpus=2, topology=GpuTopology.SAME_ISLAND)
    [placement] = made.plane.store.attempts(job_id)[-1].placements
    assert {each.uuid[-1] for each in placement.slices} == {"1", "2"}
    said = refused(made, gpus=3, topology=GpuTopology.SAME_ISLAND)["resources"]
    assert "it would fit with gpus 2 instead of 3" in said
    assert not refused(made, gpus=3, topology=GpuTopology.BEST_EFFORT)


def test_queue_matches_the_size_of_gpus() -> None:
    """The aim `memory` of the policy `balanced` leaves large GPUs free; other queues place as before."""
    made = scene(fleet(cluster(node(gpu(), cpu_milli=2_000), node(gpu(memory_mib=23_034)), name="alpha")))
    matched = Queue("matched", policy="balanced", policy_options={"weights": {"memory": 9}})
    made.plane.writer.commit([Change(put=[matched])])
    made.plane.settle()
    nodes = [
        made.plane.store.attempts(made.submit(gpu_memory_mib=10_000, queue=queue))[-1].placements[0].node
        for queue in ("default", "matched")
    ]
    assert nodes == ["node-0", "node-1"]


def test_jobs_get_devices_of_their_vendor() -> None:
    """A job for Gaudi does not get a GPU, and is refused where no cluster has enough of the cards."""
    cards = [gpu(model="Intel Gaudi 2", vendor="Gaudi", memory_mib=98_304, island=0) for _ in range(2)]
    made = scene(fleet(cluster(node(gpu(), gpu()), node(*cards), name="alpha")))
    asked = {"vendors": {"Gaudi"}, "topology": GpuTopology.SAME_ISLAND}
    [placement] = made.plane.store.attempts(made.submit(gpus=2, **asked))[-1].placements
    assert placement.node == "node-1"
    said = refused(made, gpus=3, vendors={"Gaudi"})["resources"]
    assert "it would fit with gpus 2 instead of 3 (alpha/node-1)" in said


def test_a_standby_needs_a_service_and_two_clusters_with_room() -> None:
    """Each reason says what is missing. A cluster counts if its empty nodes have room for all replicas of a copy."""
    service = {"template": "deployment", "restarts": True, "standby": Standby()}
    made = scene(fleet(cluster(node(gpu(), gpu()), name="alpha"), cluster(node(gpu()), name="beta")))
    assert not refused(made, **service)
    assert "is for services only" in refused(made, standby=Standby())["standby"]
    assert refused(made, **service, clusters={"alpha"})["standby"] == (
        "needs a second cluster, but placement.clusters has only 'alpha'"
    )
    assert refused(made, **service, replicas=2)["resources"].startswith("no cluster but alpha can run its standby")
    made.plane.writer.commit([Change(put=[Pool("one", frozenset({"beta"})), Queue("small", pool="one")])])
    made.plane.settle()
    assert "the pool of its queue has only 'beta'" in refused(made, **service, queue="small")["standby"]
