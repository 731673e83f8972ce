from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.adapters.kubernetes.collect.pod_status import PodState, Wait
from seaway.adapters.kubernetes.collect.pods import PodSummary
from seaway.adapters.kubernetes.collect.workloads import WorkloadPart, assemble
from seaway.domain.deployment import Cause, Workload, WorkloadPhase

KEY = ("0123456789abc", 2)
RUNS = PodState(WorkloadPhase.RUNNING)
DONE = PodState(WorkloadPhase.SUCCEEDED)


def workload(part: str = "a", replicas: tuple[int, ...] = (0, 1), trouble: str = "") -> WorkloadPart:
    """Create a workload of the attempt."""
    return WorkloadPart(*KEY, part, replicas, trouble)


def pod(name: str, verdict: PodState = RUNS, part: str = "a", replicas: tuple[int, ...] = (0, 1)) -> PodSummary:
    """Create a pod of the attempt; a later name means a later creation."""
    return PodSummary("seaway", name, name, name, f"node-{name}", (), 0, 0, True, KEY, part, replicas, state=verdict)


def copy(workloads: list[WorkloadPart], pods: list[PodSummary], refused: frozenset[str] = frozenset()) -> Workload:
    """Combine objects and pods into an existing workload."""
    made = assemble(KEY, "east", workloads, pods, persistent_waits=dict.fromkeys(refused, Cause.UNSCHEDULABLE))
    assert made is not None
    return made


def test_nothing_there_is_no_copy() -> None:
    """Objects that run nothing, like a remaining service, do not make a workload."""
    assert assemble(KEY, "east", [], [], persistent_waits={}) is None
    assert assemble(KEY, "east", [workload(replicas=())], [], persistent_waits={}) is None


def test_a_workload_without_pods_is_starting_and_says_why() -> None:
    """A quota that forbids pods is visible only on the workload."""
    made = copy([workload(trouble="exceeded quota")], [])
    assert (made.phase, made.reason) == (WorkloadPhase.STARTING, "exceeded quota")
    assert [each.replica for each in made.replicas] == [0, 1]


def ray(phase: WorkloadPhase, reason: str = "") -> list[WorkloadPart]:
    """Create a finished RayJob, and the RayCluster that KubeRay created for it, with the same labels."""
    return [WorkloadPart(*KEY, "a", (0, 1), ended=PodState(phase, reason), decides=True), workload()]


@pytest.mark.parametrize(
    ("end", "phase"), [(WorkloadPhase.SUCCEEDED, WorkloadPhase.SUCCEEDED), (WorkloadPhase.FAILED, WorkloadPhase.FAILED)]
)
def test_a_workload_that_decides_is_over_when_its_pods_are_gone(end: WorkloadPhase, phase: WorkloadPhase) -> None:
    """Ray's pods do not end with their job: they are deleted, and hold their devices until then."""
    made = ray(end, "its Ray job failed: no data")
    assert copy(made, [pod("p1"), pod("p2")]).phase is WorkloadPhase.RUNNING
    over = copy(made, [])
    assert (over.phase, {each.phase for each in over.replicas}) == (phase, {phase})
    assert over.reason == ("its Ray job failed: no data" if end is WorkloadPhase.FAILED else "")


def test_a_failure_is_reported_with_the_first_pod_that_is_gone() -> None:
    """The other pods still exist, and are still to be deleted."""
    made = copy(ray(WorkloadPhase.FAILED, "its Ray job failed"), [pod("p1")])
    assert (made.phase, made.reason) == (WorkloadPhase.FAILED, "its Ray job failed")
    assert [each.phase for each in made.replicas] == [WorkloadPhase.RUNNING, WorkloadPhase.FAILED]


def test_pods_that_are_removed_as_their_job_failed_do_not_say_why() -> None:
    """KubeRay deletes pods after the end: that is no failure of the cluster, which would cause retries for ever."""
    stopped = pod("p1", PodState(WorkloadPhase.FAILED, "its pod was deleted", Cause.INFRASTRUCTURE))
    stopped = replace(stopped, deleting=True, holds_resources=False)
    for pods in ([stopped], [stopped, replace(pod("p2"), deleting=True)]):
        made = copy(ray(WorkloadPhase.FAILED, "its Ray job failed"), pods)
        assert (made.phase, made.cause, made.reason) == (WorkloadPhase.FAILED, Cause.WORKLOAD, "its Ray job failed")
    assert [each.phase for each in made.replicas] == [WorkloadPhase.FAILED, WorkloadPhase.RUNNING]


def test_what_succeeded_did_so_whatever_became_of_a_pod() -> None:
    """Ray tolerates a failed worker, and its job's success counts; for a failure the pod has the better reason."""
    dead = replace(pod("p2", PodState(WorkloadPhase.FAILED, "out of memory")), holds_resources=False)
    assert copy(ray(WorkloadPhase.SUCCEEDED), [pod("p1"), dead]).phase is WorkloadPhase.RUNNING
    assert copy(ray(WorkloadPhase.SUCCEEDED), [dead]).phase is WorkloadPhase.SUCCEEDED
    assert copy(ray(WorkloadPhase.FAILED, "its Ray job failed"), [dead]).reason == "out of memory"


def test_pods_without_a_workload_are_still_a_copy() -> None:
    """Pods that remain after a user deleted the workload still run."""
    assert [each.replica for each in copy([], [pod("p1"), pod("p2")]).replicas] == [0, 1]


def test_a_copy_runs_when_all_its_replicas_do() -> None:
    """A workload runs when all its replicas run, in all parts, including finished ones."""
    other = workload("b", (2,))
    assert copy([workload(), other], [pod("p1"), pod("p2")]).phase is WorkloadPhase.STARTING
    third = pod("p3", DONE, "b", (2,))
    assert copy([workload(), other], [pod("p1"), pod("p2"), third]).phase is WorkloadPhase.RUNNING
    all_done = [pod("p1", DONE), pod("p2", DONE), third]
    assert copy([workload(), other], all_done).phase is WorkloadPhase.SUCCEEDED


def test_one_failure_fails_the_copy_and_a_refusal_leads() -> None:
    """Of several failures, the reported one says most about where to retry."""
    bad = pod("p1", PodState(WorkloadPhase.FAILED, "exited with 1"))
    evicted = pod("p2", PodState(WorkloadPhase.FAILED, "evicted", Cause.INFRASTRUCTURE))
    assert copy([workload()], [bad, pod("p2")]).cause is Cause.WORKLOAD
    made = copy([workload()], [bad, evicted])
    assert (made.phase, made.cause, made.reason) == (WorkloadPhase.FAILED, Cause.INFRASTRUCTURE, "evicted")


def test_a_pod_that_no_node_takes_fails_the_copy_once_that_has_lasted() -> None:
    """Before that its scheduler may only be slow."""
    turned_away = pod("p1", PodState(WorkloadPhase.STARTING, "no node accepts it", Cause.INFRASTRUCTURE, Wait.NODE))
    assert copy([workload()], [turned_away]).phase is WorkloadPhase.STARTING
    made = copy([workload()], [turned_away], frozenset({"p1"}))
    assert (made.phase, made.cause) == (WorkloadPhase.FAILED, Cause.UNSCHEDULABLE)


def test_a_pod_that_is_stuck_for_too_long_fails_the_copy_but_holds_what_it_holds() -> None:
    """Its devices do not count as free before the pod is deleted."""
    stuck = pod("p1", PodState(WorkloadPhase.STARTING, "no such image", wait=Wait.USER_FIX))
    assert copy([workload(replicas=(0,))], [stuck]).phase is WorkloadPhase.STARTING
    made = assemble(KEY, "east", [workload(replicas=(0,))], [stuck], persistent_waits={"p1": Cause.WORKLOAD})
    assert made is not None
    assert (made.phase, made.reason, made.cause) == (WorkloadPhase.FAILED, "no such image", Cause.WORKLOAD)
    assert made.replicas[0].phase is WorkloadPhase.STARTING


def test_that_a_pod_waits_for_its_turn_is_reported_only_when_that_lasts() -> None:
    """Nearly every pod waits for some 0.1 s, so a short wait is not reported."""
    waits = pod("p1", PodState(WorkloadPhase.STARTING, "waits for its cluster's scheduler", wait=Wait.SCHEDULER))
    assert copy([workload(replicas=(0,))], [waits]).reason == ""
    assert copy([workload(replicas=(0,))], [waits], frozenset({"p1"})).reason == "waits for its cluster's scheduler"
    assert copy([workload(replicas=(0,))], [waits], frozenset({"p1"})).phase is WorkloadPhase.STARTING


def test_pods_are_distinguished_by_their_index_where_they_have_one() -> None:
    """The index counts within the part."""
    second = replace(pod("p1"), index=1, replicas=(4, 7))
    made = copy([workload(replicas=(4, 7))], [second])
    assert [(each.replica, each.node) for each in made.replicas] == [(4, ""), (7, "node-p1")]


def test_one_workload_may_stand_for_several_parts_of_pods() -> None:
    """An operator's object names all replicas, and its pods come in parts: none is counted twice."""
    whole = workload("whole", (0, 1, 2))
    head, workers = pod("head", part="h", replicas=(0,)), [pod(f"w{n}", part="w", replicas=(1, 2)) for n in (1, 2)]
    assert copy([whole], [head, *workers]).phase is WorkloadPhase.RUNNING
    made = copy([whole], [head])
    assert made.phase is WorkloadPhase.STARTING
    assert [each.replica for each in made.replicas] == [0, 1, 2]


def test_a_pod_that_leaves_gives_its_seat_to_the_one_made_for_it() -> None:
    """A controller creates the next pod while the old one is still terminating."""
    leaving = replace(pod("p1", replicas=(0,)), deleting=True)
    made = copy([workload(replicas=(0,))], [leaving, pod("p2", PodState(WorkloadPhase.STARTING), replicas=(0,))])
    assert made.phase is WorkloadPhase.STARTING
    assert [each.node for each in made.replicas] == ["node-p2"]
    assert copy([workload(replicas=(0,))], [leaving]).replicas[0].node == "node-p1"


SUCCEEDED = replace(workload(replicas=(0, 1)), uid="w", ended=DONE)
FAILED = PodState(WorkloadPhase.FAILED, "its pods are gone: backoff limit", Cause.INFRASTRUCTURE)
ENDED_BADLY = replace(SUCCEEDED, ended=FAILED, rejection="backoff limit")


def test_a_workload_that_succeeded_speaks_for_pods_that_are_gone() -> None:
    """Finished pods may be deleted with their node before they are observed; a remaining pod counts."""
    assert copy([SUCCEEDED], []).phase is WorkloadPhase.SUCCEEDED
    assert copy([SUCCEEDED], [replace(pod("p1", DONE), index=0)]).phase is WorkloadPhase.SUCCEEDED
    assert copy([SUCCEEDED], [replace(pod("p1"), index=0)]).phase is WorkloadPhase.RUNNING


def test_a_workload_that_failed_speaks_for_lost_pods_once_that_has_lasted() -> None:
    """Deleting a Job's pod fails it; it counts as starting until better reasons of pods had time to arrive."""
    assert copy([ENDED_BADLY], []).phase is WorkloadPhase.STARTING
    leaving = replace(pod("p1"), deleting=True, index=0)
    for pods in ([], [leaving]):
        made = assemble(KEY, "east", [ENDED_BADLY], pods, persistent_waits={}, lost={"w"})
        assert made is not None
        assert (made.phase, made.cause, made.reason) == (WorkloadPhase.FAILED, Cause.INFRASTRUCTURE, FAILED.reason)
    stays = assemble(KEY, "east", [ENDED_BADLY], [pod("p1"), pod("p2")], persistent_waits={}, lost={"w"})
    assert stays is not None
    assert stays.phase is WorkloadPhase.RUNNING


def test_a_pod_that_failed_says_best_why() -> None:
    """A Job deletes its other pods after one crash: the crash is the cause, not the cluster."""
    crashed = replace(pod("p1", PodState(WorkloadPhase.FAILED, "exited with 1")), index=0)
    made = assemble(KEY, "east", [ENDED_BADLY], [crashed], persistent_waits={}, lost={"w"})
    assert made is not None
    assert (made.cause, made.reason) == (Cause.WORKLOAD, "exited with 1")
