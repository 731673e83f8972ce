"""What-if questions about queues and tenants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from seaway.application.control.scheduler.waiting_reasons import BEHIND, DELAYS
from seaway.application.whatif.question import Question
from seaway.application.whatif.queues import MovedJobs, QueueChanges
from seaway.application.whatif.trial import NewNodes
from seaway.application.whatif.waits import WaitChange, WaitChanges
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Backfill, Order, Preemption, Queue, Reclaim
from seaway.domain.tenancy import Tenant
from seaway.scheduling.plugins.priority_sort import PrioritySort
from seaway.scheduling.policies.registry import make_profile
from seaway.scheduling.profile import Profile, WeightedPlugin
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec
from tests.unit.application.test_forecast import NS, starts_s
from tests.unit.application.test_whatif import what_if

LASTS_S = 100


def busy(queues: tuple[Queue, ...] = (), tenants: tuple[Tenant, ...] = ()) -> Scene:
    """Make a fleet of four GPUs, all of which one job holds for a while."""
    made = scene()
    for tenant in tenants:
        made.plane.operations.put_tenant(tenant, "ada")
    for queue in queues:
        made.plane.operations.put_queue(queue, "ada")
    made.submit(name="first", gpus=2, replicas=2, gang=True, expected_duration_s=LASTS_S)
    made.plane.run(3)
    return made


def submit(made: Scene, name: str, **fields: Any) -> str:  # noqa: ANN401  # as `spec` takes them
    """Submit a job that needs all GPUs."""
    whole = {"gpus": 2, "replicas": 2, "gang": True, "expected_duration_s": LASTS_S}
    return made.submit(name=name, **{**whole, **fields})


def ask(made: Scene, *, window_s: int = 3600, **changes: Any) -> WaitChanges:  # noqa: ANN401  # of `QueueChanges`
    """Return the waits before and after changes of queues and tenants."""
    return what_if(made).ask(Question(changes=QueueChanges(**changes), window_s=window_s)).waits


def of(rows: tuple[WaitChange, ...], name: str) -> WaitChange:
    """Return the row of a name."""
    return next(each for each in rows if each.name == name)


def single_gpus(*queues: Queue) -> tuple[Scene, list[str]]:
    """Make a fleet of four GPUs, each of which a job of the last queue holds."""
    made = scene()
    for queue in queues:
        made.plane.operations.put_queue(queue, "ada")
    running = [made.submit(name=f"r{at}", queue=queues[-1].name, expected_duration_s=1000) for at in range(4)]
    made.plane.run(10)
    return made, running


def two_tenants() -> Scene:
    """Make a fleet on which two tenants wait with three jobs each."""
    made = busy(tenants=(Tenant("x"), Tenant("y")))
    for at in range(3):
        for tenant in ("y", "x"):
            submit(made, f"{tenant}{at}", tenant=tenant)
    return made


def test_a_larger_share_shortens_the_waits_of_a_tenant() -> None:
    """With three times the weight, three jobs of a tenant run beside one of the other, and shares of GPUs follow."""
    made = busy(tenants=(Tenant("x"), Tenant("y")))
    for _ in range(6):
        for tenant in ("y", "x"):
            made.submit(tenant=tenant, gpus=1, expected_duration_s=LASTS_S)
    waits = ask(made, tenants=(("x", {"weight": 3}),), window_s=2 * LASTS_S)
    x, y = of(waits.tenants, "x"), of(waits.tenants, "y")
    assert (x.before.waiting, x.after.waiting, x.before.unknown, x.after.unknown) == (6, 6, 0, 0)
    assert x.before.mean_s is not None
    assert x.after.mean_s is not None
    assert y.before.mean_s is not None
    assert y.after.mean_s is not None
    assert x.after.mean_s < x.before.mean_s
    assert y.after.mean_s - y.before.mean_s == pytest.approx(x.before.mean_s - x.after.mean_s)
    assert x.after.gpu_share > x.before.gpu_share
    for side in ("before", "after"):
        assert sum(getattr(each, side).gpu_share for each in waits.tenants) == pytest.approx(1)
    assert waits.earlier == waits.later > 0
    assert {each.tenant for each in waits.earlier_jobs} == {"x"}
    assert {each.tenant for each in waits.later_jobs} == {"y"}
    assert made.plane.controller.live.tree.tenant("default", "x").weight == 1


@pytest.mark.parametrize(
    "change",
    [
        {"tenants": (("x", {"weight": 3}),)},
        {"tenants": (("y", {"quotas": {"default": {"limit": {"jobs": 1}}}}),)},
        {"tenants": (("x", {"quotas": {"default": {"guarantee": {"gpus": 4000}}}}),)},
        {"queues": (("default", {"order": Order.SHORTEST}),)},
        {"queues": (("default", {"order": Order.FIFO, "backfill": Backfill.NONE}),)},
        {"queues": (("default", {"limit": {"gpus": 2000}}),)},
    ],
)
def test_an_answer_is_what_the_change_has_as_consequence(change: dict[str, Any]) -> None:
    """The starts of an answer are those that are expected after an operator stores the change."""
    made = two_tenants()
    submit(made, "short", tenant="y", gpus=1, replicas=1, expected_duration_s=10)
    waits, now_ns = ask(made, **change), made.clock.now_ns()
    names = {each.id: each.spec.name for each in made.plane.controller.live.waiting.entries()}
    after = QueueChanges(**change).applied(made.plane.controller.names)
    for name, _ in change.get("tenants", ()):
        made.plane.operations.put_tenant(after.tenants[name], "ada")
    for name, _ in change.get("queues", ()):
        made.plane.operations.put_queue(after.queues[name], "ada")
    made.plane.controller.live.apply([])
    made.plane.settle()
    made.clock.advance_s(60)  # until the plan is made again
    expected = {name: at + 60 for name, at in starts_s(made).items() if at is not None}
    answered = {names[job_id]: (at - now_ns) / NS for job_id, at in waits.starts_ns.items()}
    assert answered.keys() == expected.keys()
    for name, at in answered.items():
        assert at == pytest.approx(expected[name], abs=3), name


def test_jobs_that_move_to_a_new_queue_get_its_share() -> None:
    """A queue with a guarantee can be added, with jobs as if they had been submitted to it."""
    made = busy(tenants=(Tenant("x"),))
    for name in ("a", "b", "c"):
        submit(made, name)
    late = submit(made, "late", tenant="x", priority=-9)
    made.plane.operations.put_queue(Queue("default", order=Order.FIFO), "ada")
    moved = (MovedJobs("default", "urgent", "x"),)
    waits = ask(made, queues=(("urgent", {"guarantee": {"gpus": 4000}}),), moved=moved)
    assert [(each.job_id, each.queue) for each in waits.earlier_jobs] == [(late, "urgent")]
    assert of(waits.queues, "urgent").after.waiting == 1
    assert of(waits.queues, "urgent").before.waiting == 0
    assert of(waits.queues, "default").after.waiting == 4, "the running job, which the moved one displaces, among them"
    assert waits.later == 3


def test_a_queue_is_removed_once_its_jobs_move() -> None:
    """Unfinished jobs are never left without a queue, nor in one that gets children."""
    made = busy((Queue("old"), Queue("new")))
    submit(made, "a", queue="old")
    with pytest.raises(RejectedError, match="queue 'old' is removed, and has 1 unfinished job; move") as error:
        ask(made, removed=("old",))
    assert error.value.where == "move_jobs"
    waits = ask(made, removed=("old",), moved=(MovedJobs("old", "new"),))
    rows = {each.name: (each.before.waiting, each.after.waiting) for each in waits.queues}
    assert rows == {"default": (0, 0), "new": (0, 1), "old": (1, 0)}
    with pytest.raises(RejectedError, match="queue 'old' has children then, and has 1 unfinished job"):
        ask(made, queues=(("child", {"parent": "old"}),))


def test_a_larger_limit_starts_jobs_at_once() -> None:
    """A job behind a limit would start where the limit allows it, and the answer names its place."""
    made = scene()
    made.plane.operations.put_queue(Queue("q", limit={"gpus": 1000}), "ada")
    made.submit(queue="q", expected_duration_s=LASTS_S)
    job_id = made.submit(queue="q", expected_duration_s=LASTS_S)
    assert not what_if(made).ask(Question(changes=QueueChanges(tenants=(("default", {"weight": 3}),)))).started
    question = Question(changes=QueueChanges(queues=(("q", {"limit": {"gpus": 2000}}),)))
    answer = what_if(made).ask(question)
    assert [each.job_id for each in answer.started] == [job_id]
    row = of(answer.waits.queues, "q")
    assert row.before.mean_s == pytest.approx(LASTS_S, abs=3)
    assert row.after.mean_s == 0
    assert answer.message.endswith("1 waiting task would start earlier than expected now, 0 later")


def test_starts_that_move_by_less_than_a_second_have_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two sides are planned one after the other, so the same start differs by the time between."""
    made = two_tenants()
    read = type(made.clock).monotonic_ns

    def ticking(clock: VirtualClock) -> int:
        clock.advance_s(0.001)
        return read(clock)

    monkeypatch.setattr(type(made.clock), "monotonic_ns", ticking)
    waits = ask(made, tenants=(("default", {"weight": 3}),))
    assert (waits.earlier, waits.later) == (0, 0)


def test_parents_count_the_jobs_of_their_children() -> None:
    """The row of a queue has all jobs below it, and rows are in the order of the tree."""
    made = busy((Queue("all"), Queue("a", parent="all"), Queue("b", parent="all")))
    submit(made, "one", queue="a")
    submit(made, "two", queue="b")
    waits = ask(made, queues=(("b", {"weight": 5}),))
    assert [(each.name, each.depth, each.after.waiting) for each in waits.queues] == [
        ("all", 0, 2),
        ("a", 1, 1),
        ("b", 1, 1),
        ("default", 0, 0),
    ]


def test_starts_behind_unknown_ends_are_the_longest_waits() -> None:
    """A mean covers jobs with a known start on both sides; a percentile is unknown where the start is."""
    made = scene()
    made.submit(gpus=2, expected_duration_s=LASTS_S)
    made.submit(gpus=2, expected_duration_s=LASTS_S)
    made.plane.run(3)
    made.submit(name="known", gpus=2, expected_duration_s=None)
    made.submit(name="behind", gpus=2, replicas=2, gang=True)
    row = of(ask(made, tenants=(("default", {"weight": 2}),)).tenants, "default").after
    assert (row.waiting, row.unknown, row.p95_s) == (2, 1, None)
    assert row.mean_s == row.p50_s == pytest.approx(LASTS_S, abs=5)


def test_a_lost_cluster_never_shortens_the_mean_wait() -> None:
    """The mean of all jobs is of the same jobs on both sides, and counts unknown starts as the longest known wait."""
    made = busy()
    for at in range(3):
        submit(made, f"gang{at}")
        submit(made, f"small{at}", gpus=1, replicas=1, gang=False, expected_duration_s=10)
    fleet = what_if(made).ask(Question(drain=("beta",))).waits.fleet
    before, after = fleet.before, fleet.after
    assert (before.waiting, before.unknown, after.unknown) == (6, 0, 4), "three gangs and the running one have no room"
    assert (before.compared, after.compared) == (3, 3)
    assert after.mean_s is not None
    assert before.mean_s is not None
    assert before.mean_all_s is not None
    assert after.mean_all_s is not None
    assert after.mean_s < before.mean_s, "the small ones start earlier without the gangs"
    assert after.mean_all_s > before.mean_all_s
    waits_s = [each for each in starts_s(made).values() if each is not None]
    assert before.mean_all_s == pytest.approx(sum(waits_s) / 7, abs=1), "the running job counts with 0"


def test_fewer_nodes_delay_and_more_nodes_advance_starts() -> None:
    """Waits are compared for every question, also for one about nodes or further jobs."""
    made = two_tenants()
    waits = what_if(made).ask(Question(drain=("beta",), jobs=(spec(name="more", gpus=2, expected_duration_s=5),))).waits
    assert (waits.earlier, waits.later) == (0, 6)
    assert {each.after_ns for each in waits.later_jobs} == {None}, "gangs of four GPUs have no place any more"
    nodes = (NewNodes("alpha", "node-0", 1), NewNodes("alpha", "node-0", 1), NewNodes("beta", "node-0", 2))
    waits = what_if(made).ask(Question(add_nodes=nodes)).waits
    assert (waits.earlier, waits.later) == (6, 0), "also the first one, which has a reservation"


def test_conservative_backfill_delays_no_earlier_job() -> None:
    """A job that would delay the third one of its queue stays where it is, unless only the first has a reservation."""
    made = scene()
    made.plane.operations.put_queue(Queue("q", order=Order.FIFO, backfill=Backfill.CONSERVATIVE), "ada")
    for name, gpus, lasts_s in (("runs", 3, 100), ("head", 2, 100), ("all", 4, 100), ("late", 1, 250)):
        made.submit(name=name, queue="q", gpus=1, replicas=gpus, gang=True, expected_duration_s=lasts_s)
        made.plane.run(2)
    assert sorted(starts_s(made)) == ["all", "head", "late"]
    for fields, started in (({"weight": 2}, []), ({"backfill": Backfill.EASY}, ["late"])):
        answer = what_if(made).ask(Question(changes=QueueChanges(queues=(("q", fields),))))
        assert [each.job for each in answer.started] == started
        assert (answer.waiting[-1].why == DELAYS) == (not started)


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"queues": (("q", {"parent": "nowhere"}),)}, "queues.0.parent", "unknown queue 'nowhere'"),
        ({"queues": (("a", {"parent": "b"}), ("b", {"parent": "a"}))}, "queues.0.parent", "a cycle"),
        ({"queues": (("q", {"pool": "gold"}),)}, "queues.0.pool", "unknown pool 'gold'; available: default"),
        ({"queues": (("q", {"tenant": "missing"}),)}, "queues.0.tenant", "unknown tenant 'missing'"),
        ({"queues": (("q", {"policy": "nix"}),)}, "queues.0.policy", "nix"),
        ({"queues": (("q", {"weight": -1}),)}, "queues.0.weight", "must be between 0"),
        ({"queues": (("Q", {}),)}, "queues.0.name", "queue 'Q': use"),
        ({"tenants": (("default", {"weight": -1}),)}, "tenants.0.weight", "must be between 0"),
        ({"tenants": (("t", {"quotas": {"gold": {}}}),)}, "tenants.0.quotas.gold", "unknown pool 'gold'"),
        (
            {"tenants": (("t", {"quotas": {"default": {"guarantee": {"gpus": 1000, "gpus/l4": 2000}}}}),)},
            "tenants.0.quotas.default.guarantee.gpus",
            "2 gpus of single models, more than its guarantee of 1 gpu",
        ),
        ({"removed": ("nowhere",)}, "remove_queues.0", "unknown queue 'nowhere'"),
        ({"removed": ("default",)}, "remove_queues.0", "cannot be removed"),
        ({"removed": ("all",)}, "remove_queues.0", "has the child 'leaf'"),
        ({"removed": ("leaf",), "queues": (("leaf", {}),)}, "queues.0.name", "changed and removed"),
        ({"moved": (MovedJobs("nowhere", "leaf"),)}, "move_jobs.0.queue", "unknown queue 'nowhere'"),
        ({"moved": (MovedJobs("default", "leaf", "x"),)}, "move_jobs.0.tenant", "unknown tenant 'x'"),
        ({"moved": (MovedJobs("default", "nowhere"),)}, "move_jobs.0.to", "unknown queue 'nowhere'"),
        ({"moved": (MovedJobs("default", "all"),)}, "move_jobs.0.to", "only divides its share"),
        ({"moved": (MovedJobs("default", "own"),)}, "move_jobs.0.to", "accepts only jobs of tenant 't'"),
    ],
)
def test_changes_are_checked_as_if_they_were_stored(changes: dict[str, Any], field: str, says: str) -> None:
    """The error of a change names its field in the question."""
    made = scene()
    made.plane.operations.put_tenant(Tenant("t"), "ada")
    for queue in (Queue("all"), Queue("leaf", parent="all"), Queue("own", tenant="t")):
        made.plane.operations.put_queue(queue, "ada")
    with pytest.raises(RejectedError, match=says) as error:
        ask(made, **changes)
    assert error.value.where == field


def test_jobs_of_a_question_can_be_in_a_queue_of_the_question() -> None:
    """A queue and its first jobs are tried together, also with a limit that rejects a job."""
    made = scene()
    changes = QueueChanges(queues=(("new", {"limit": {"gpus": 1000}}),))
    answer = what_if(made).ask(Question(changes=changes, jobs=(spec(queue="new"), spec(queue="new"))))
    assert (len(answer.started), len(answer.waiting)) == (1, 1)
    assert answer.waiting[0].why == "queue 'new' holds 1 of its limit of 1 gpu"
    with pytest.raises(RejectedError, match="queue 'new' has a limit of 1 gpu") as error:
        what_if(made).ask(Question(changes=changes, jobs=(spec(queue="new", gpus=2),)))
    assert error.value.where == "jobs.0.queue"


def test_a_job_does_not_overtake_where_its_queue_has_no_backfill() -> None:
    """A queue without backfill starts nothing behind a job that does not fit, in a question as in the loop."""
    made = scene()
    jobs = tuple(spec(name=name, gpus=gpus, queue="q") for name, gpus in (("a", 1), ("b", 2), ("c", 2), ("d", 1)))
    for backfill, started in ((Backfill.NONE, ["a", "b"]), (Backfill.GREEDY, ["a", "b", "d"])):
        fields = {"order": Order.FIFO, "backfill": backfill}
        answer = what_if(made).ask(Question(changes=QueueChanges(queues=(("q", fields),)), jobs=jobs))
        assert [each.job for each in answer.started] == started
        assert (answer.waiting[-1].why == BEHIND) == (backfill is Backfill.NONE)


def test_jobs_are_paired_with_their_places_whatever_order_a_plugin_has() -> None:
    """A QueueSort plugin may decide the last job first. It then gets the place, and what a limit leaves."""
    made = scene()

    def sorting(name: str, _: object = ()) -> Profile:
        plain = make_profile("bestfit")
        return Profile(name, (*plain.plugins, WeightedPlugin(PrioritySort())))

    made.plane.controller.scheduler._make = sorting
    made.plane.operations.put_queue(Queue("q", order=Order.FIFO, limit={"gpus": 2000}), "ada")
    jobs = (spec(name="low", queue="q"), spec(name="high", queue="q", priority=9, gpus=2))
    answer = what_if(made).ask(Question(jobs=jobs))
    assert [each.job for each in answer.started] == ["low"]


def test_a_slice_by_memory_counts_by_its_memory() -> None:
    """The share of GPUs of a waiting job without cores is that of its memory."""
    made = scene(fleet(cluster(node(gpu(memory_mib=1000), gpu(memory_mib=1000)), name="alpha")))
    job = spec(gpu_memory_mib=500, expected_duration_s=LASTS_S)
    (row,) = what_if(made).ask(Question(jobs=(job,), window_s=LASTS_S)).waits.queues
    assert row.after.gpu_share == pytest.approx(0.25)


@pytest.mark.parametrize(("reclaim", "taken"), [(Reclaim.GUARANTEE, 2), (Reclaim.NEVER, 0)])
def test_a_guarantee_that_is_raised_is_taken_back(reclaim: Reclaim, taken: int) -> None:
    """As many running jobs of another queue would have to wait as the guarantee needs, and starts count that."""
    made, running = single_gpus(Queue("x", reclaim=reclaim), Queue("y"))
    waiting = [made.submit(name=f"w{at}", queue="x", expected_duration_s=100) for at in range(3)]
    changes = QueueChanges(queues=(("x", {"guarantee": {"gpus": 2000}}),))
    answer = what_if(made).ask(Question(changes=changes))
    assert [each.job_id for each in answer.started] == waiting[:taken]
    assert {each.job_id for each in answer.stopped} <= {*running}
    assert [each.why for each in answer.stopped] == [f"displaced by job 'w{at}' of queue 'x'" for at in range(taken)]
    row = of(answer.waits.queues, "x")
    assert row.before.p50_s == pytest.approx(990, abs=5)
    assert row.after.p50_s == pytest.approx(0 if taken else 990, abs=5)
    assert of(answer.waits.queues, "y").after.waiting == taken
    assert answer.after.placed == 4
    assert not what_if(made).ask(Question()).stopped, "nothing changes"


def test_elastic_jobs_shrink_off_drained_nodes_as_in_the_loop() -> None:
    """They do not move while their minimum stays; otherwise they move whole. If a node is drained, the same happens."""
    made = scene(fleet(cluster(node(gpu(), gpu(), name="n1"), node(gpu(), gpu(), name="n2"), name="alpha")))
    elastic = made.submit(name="elastic", replicas=3, min_replicas=2, max_replicas=3)
    made.plane.run(10)
    nodes = [each.node for each in made.plane.attempt(elastic).placements]
    fewer, more = sorted(set(nodes), key=nodes.count)
    answer = what_if(made).ask(Question(drain=(f"alpha/{fewer}",)))
    (shrunk,) = answer.shrunk
    assert (shrunk.job_id, shrunk.after) == (elastic, (f"alpha/{more}",) * 2)
    assert shrunk.why == f"shrinks off alpha/{fewer}"
    assert not answer.moved
    assert not answer.stopped
    assert (answer.after.placed, answer.after.allocation_percent) == (1, 100)
    assert not what_if(made).ask(Question(drain=(f"alpha/{more}",))).shrunk
    made.plane.operations.cordon("alpha", fewer, "ada", "a fan", drain=True)
    made.plane.run(10)
    assert {each.node for each in made.plane.attempt(elastic).remaining} == {more}
    assert made.job(elastic).attempt == 1


def test_elastic_jobs_of_a_question_shrink_as_in_the_loop() -> None:
    """They shrink before another job would wait, by as many replicas as are needed, down to the minimum in all.

    If a job is asked for in earnest, the same happens.
    """
    made = scene(fleet(cluster(node(*[gpu()] * 4), name="alpha")))
    made.plane.operations.put_queue(Queue("x", preemption=Preemption.PREEMPT_LOWER_PRIORITY), "ada")
    made.submit(name="rigid", queue="x", expected_duration_s=1000)
    elastic = made.submit(name="elastic", queue="x", replicas=8, min_replicas=1, max_replicas=8)
    made.plane.run(100)
    assert len(made.plane.attempt(elastic).placements) == 3
    asked = [spec(name=f"u{at}", queue="x", priority=5, expected_duration_s=500) for at in range(2)]
    for most in (1, 2):
        answer = what_if(made).ask(Question(jobs=tuple(asked[:most]), window_s=500))
        (shrunk,) = answer.shrunk
        assert (shrunk.job_id, len(shrunk.before), len(shrunk.after)) == (elastic, 3, 3 - most)
        assert not answer.stopped
        assert len(answer.started) == most
        assert "1 elastic job would shrink" in answer.message
        assert (answer.after.placed, answer.after.allocation_percent) == (2 + most, 100)
        assert of(answer.waits.queues, "x").after.gpu_share == pytest.approx(1, abs=0.02), "what it gives up counts"
    assert shrunk.why == "shrinks by 2 replicas for job 'u0' of queue 'x' and 1 more"
    answer = what_if(made).ask(Question(jobs=(*asked, replace(asked[0], name="u2"))))
    assert [(each.job, each.why) for each in answer.stopped] == [("rigid", "displaced by job 'u2' of queue 'x'")]
    assert [len(each.after) for each in answer.shrunk] == [1]
    made.plane.submit(*asked)
    made.plane.run(30)
    assert (len(made.plane.attempt(elastic).placements), made.job(elastic).attempt) == (1, 1)
