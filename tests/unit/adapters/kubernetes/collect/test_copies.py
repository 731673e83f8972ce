from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.adapters.kubernetes.collect.pod_status import Verdict, Wait
from seaway.adapters.kubernetes.collect.pods import Seen
from seaway.adapters.kubernetes.collect.workloads import Workload, assemble
from seaway.domain.deployment import Cause, Copy, CopyPhase

KEY = ("0123456789abc", 2)
RUNS = Verdict(CopyPhase.RUNNING)
DONE = Verdict(CopyPhase.SUCCEEDED)


def workload(part: str = "a", replicas: tuple[int, ...] = (0, 1), trouble: str = "") -> Workload:
    """Make a workload of the attempt."""
    return Workload(*KEY, part, replicas, trouble)


def pod(name: str, verdict: Verdict = RUNS, part: str = "a", replicas: tuple[int, ...] = (0, 1)) -> Seen:
    """Make a pod of the attempt; those with later names were made later."""
    return Seen("seaway", name, name, name, f"node-{name}", (), 0, 0, True, KEY, part, replicas, verdict=verdict)


def copy(workloads: list[Workload], pods: list[Seen], refused: frozenset[str] = frozenset()) -> Copy:
    """Put a copy together that is there."""
    made = assemble(KEY, "east", workloads, pods, lasting=dict.fromkeys(refused, Cause.REFUSED))
    assert made is not None
    return made


def test_nothing_there_is_no_copy() -> None:
    """Objects that run nothing, like a service that is left, do not make one."""
    assert assemble(KEY, "east", [], [], lasting={}) is None
    assert assemble(KEY, "east", [workload(replicas=())], [], lasting={}) is None


def test_a_workload_without_pods_is_starting_and_says_why() -> None:
    """A quota that forbids pods shows up on the workload only."""
    made = copy([workload(trouble="exceeded quota")], [])
    assert (made.phase, made.reason) == (CopyPhase.STARTING, "exceeded quota")
    assert [each.replica for each in made.replicas] == [0, 1]


def ray(phase: CopyPhase, reason: str = "") -> list[Workload]:
    """Make a RayJob that is over, and the RayCluster that KubeRay made of it, with the same marks."""
    return [Workload(*KEY, "a", (0, 1), ended=Verdict(phase, reason), decides=True), workload()]


@pytest.mark.parametrize(
    ("end", "phase"), [(CopyPhase.SUCCEEDED, CopyPhase.SUCCEEDED), (CopyPhase.FAILED, CopyPhase.FAILED)]
)
def test_a_workload_that_decides_is_over_when_its_pods_are_gone(end: CopyPhase, phase: CopyPhase) -> None:
    """Ray's pods do not end when its job does: they are removed, and hold their devices until then."""
    made = ray(end, "its Ray job failed: no data")
    assert copy(made, [pod("p1"), pod("p2")]).phase is CopyPhase.RUNNING
    over = copy(made, [])
    assert (over.phase, {each.phase for each in over.replicas}) == (phase, {phase})
    assert over.reason == ("its Ray job failed: no data" if end is CopyPhase.FAILED else "")


def test_a_failure_is_told_with_the_first_pod_that_is_gone() -> None:
    """The others are still there, and are still to be removed."""
    made = copy(ray(CopyPhase.FAILED, "its Ray job failed"), [pod("p1")])
    assert (made.phase, made.reason) == (CopyPhase.FAILED, "its Ray job failed")
    assert [each.phase for each in made.replicas] == [CopyPhase.RUNNING, CopyPhase.FAILED]


def test_pods_that_are_removed_as_their_job_failed_do_not_say_why() -> None:
    """KubeRay ends them when all is over: that is no failure of what they ran on, which would be tried for ever."""
    stopped = pod("p1", Verdict(CopyPhase.FAILED, "its pod was deleted", Cause.INFRASTRUCTURE))
    stopped = replace(stopped, leaves=True, holds=False)
    for pods in ([stopped], [stopped, replace(pod("p2"), leaves=True)]):
        made = copy(ray(CopyPhase.FAILED, "its Ray job failed"), pods)
        assert (made.phase, made.cause, made.reason) == (CopyPhase.FAILED, Cause.WORKLOAD, "its Ray job failed")
    assert [each.phase for each in made.replicas] == [CopyPhase.FAILED, CopyPhase.RUNNING]


def test_what_ended_well_did_so_whatever_became_of_a_pod() -> None:
    """Ray does without a worker that died, and its job's word counts; of a failure the pod knows more."""
    dead = replace(pod("p2", Verdict(CopyPhase.FAILED, "out of memory")), holds=False)
    assert copy(ray(CopyPhase.SUCCEEDED), [pod("p1"), dead]).phase is CopyPhase.RUNNING
    assert copy(ray(CopyPhase.SUCCEEDED), [dead]).phase is CopyPhase.SUCCEEDED
    assert copy(ray(CopyPhase.FAILED, "its Ray job failed"), [dead]).reason == "out of memory"


def test_pods_without_a_workload_are_still_a_copy() -> None:
    """What is left after somebody deleted the workload runs on all the same."""
    assert [each.replica for each in copy([], [pod("p1"), pod("p2")]).replicas] == [0, 1]


def test_a_copy_runs_when_all_its_replicas_do() -> None:
    """Also those of other parts, and those that are over."""
    other = workload("b", (2,))
    assert copy([workload(), other], [pod("p1"), pod("p2")]).phase is CopyPhase.STARTING
    third = pod("p3", DONE, "b", (2,))
    assert copy([workload(), other], [pod("p1"), pod("p2"), third]).phase is CopyPhase.RUNNING
    all_done = [pod("p1", DONE), pod("p2", DONE), third]
    assert copy([workload(), other], all_done).phase is CopyPhase.SUCCEEDED


def test_one_failure_fails_the_copy_and_a_refusal_leads() -> None:
    """Of several failures the one tells that says most about where to go next."""
    bad = pod("p1", Verdict(CopyPhase.FAILED, "exited with 1"))
    evicted = pod("p2", Verdict(CopyPhase.FAILED, "evicted", Cause.INFRASTRUCTURE))
    assert copy([workload()], [bad, pod("p2")]).cause is Cause.WORKLOAD
    made = copy([workload()], [bad, evicted])
    assert (made.phase, made.cause, made.reason) == (CopyPhase.FAILED, Cause.INFRASTRUCTURE, "evicted")


def test_a_pod_that_no_node_takes_fails_the_copy_once_that_has_lasted() -> None:
    """Until then its scheduler may only be slow."""
    turned_away = pod("p1", Verdict(CopyPhase.STARTING, "no node takes it", Cause.INFRASTRUCTURE, Wait.NODE))
    assert copy([workload()], [turned_away]).phase is CopyPhase.STARTING
    made = copy([workload()], [turned_away], frozenset({"p1"}))
    assert (made.phase, made.cause) == (CopyPhase.FAILED, Cause.REFUSED)


def test_a_pod_that_is_stuck_for_too_long_fails_the_copy_but_holds_what_it_holds() -> None:
    """So that its devices are not taken for free before it is removed."""
    stuck = pod("p1", Verdict(CopyPhase.STARTING, "no such image", wait=Wait.MENDING))
    assert copy([workload(replicas=(0,))], [stuck]).phase is CopyPhase.STARTING
    made = assemble(KEY, "east", [workload(replicas=(0,))], [stuck], lasting={"p1": Cause.WORKLOAD})
    assert made is not None
    assert (made.phase, made.reason, made.cause) == (CopyPhase.FAILED, "no such image", Cause.WORKLOAD)
    assert made.replicas[0].phase is CopyPhase.STARTING


def test_that_a_pod_waits_for_its_turn_is_told_only_when_that_lasts() -> None:
    """Nearly every pod does, for some 0.1 s."""
    waits = pod("p1", Verdict(CopyPhase.STARTING, "waits for its cluster's scheduler", wait=Wait.TURN))
    assert copy([workload(replicas=(0,))], [waits]).reason == ""
    assert copy([workload(replicas=(0,))], [waits], frozenset({"p1"})).reason == "waits for its cluster's scheduler"
    assert copy([workload(replicas=(0,))], [waits], frozenset({"p1"})).phase is CopyPhase.STARTING


def test_pods_are_told_apart_by_their_index_where_they_have_one() -> None:
    """The index counts within the part."""
    second = replace(pod("p1"), index=1, replicas=(4, 7))
    made = copy([workload(replicas=(4, 7))], [second])
    assert [(each.replica, each.node) for each in made.replicas] == [(4, ""), (7, "node-p1")]


def test_one_workload_may_stand_for_several_parts_of_pods() -> None:
    """An operator's object names all replicas, its pods come in parts: none is counted twice."""
    whole = workload("whole", (0, 1, 2))
    head, workers = pod("head", part="h", replicas=(0,)), [pod(f"w{n}", part="w", replicas=(1, 2)) for n in (1, 2)]
    assert copy([whole], [head, *workers]).phase is CopyPhase.RUNNING
    made = copy([whole], [head])
    assert made.phase is CopyPhase.STARTING
    assert [each.replica for each in made.replicas] == [0, 1, 2]


def test_a_pod_that_leaves_gives_its_seat_to_the_one_made_for_it() -> None:
    """A controller makes the next one while the old one is still ending."""
    leaving = replace(pod("p1", replicas=(0,)), leaves=True)
    made = copy([workload(replicas=(0,))], [leaving, pod("p2", Verdict(CopyPhase.STARTING), replicas=(0,))])
    assert made.phase is CopyPhase.STARTING
    assert [each.node for each in made.replicas] == ["node-p2"]
    assert copy([workload(replicas=(0,))], [leaving]).replicas[0].node == "node-p1"


ENDED_WELL = replace(workload(replicas=(0, 1)), uid="w", ended=DONE)
FAILED = Verdict(CopyPhase.FAILED, "its pods are gone: backoff limit", Cause.INFRASTRUCTURE)
ENDED_BADLY = replace(ENDED_WELL, ended=FAILED, trouble="backoff limit")


def test_a_workload_that_ended_well_speaks_for_pods_that_are_gone() -> None:
    """Pods that ended go with their node before anybody heard of their end; one that is left counts."""
    assert copy([ENDED_WELL], []).phase is CopyPhase.SUCCEEDED
    assert copy([ENDED_WELL], [replace(pod("p1", DONE), index=0)]).phase is CopyPhase.SUCCEEDED
    assert copy([ENDED_WELL], [replace(pod("p1"), index=0)]).phase is CopyPhase.RUNNING


def test_a_workload_that_failed_speaks_for_lost_pods_once_that_has_lasted() -> None:
    """Who deletes a Job's pod fails it; it counts as starting until pods that say better why had time to be heard."""
    assert copy([ENDED_BADLY], []).phase is CopyPhase.STARTING
    leaving = replace(pod("p1"), leaves=True, index=0)
    for pods in ([], [leaving]):
        made = assemble(KEY, "east", [ENDED_BADLY], pods, lasting={}, lost={"w"})
        assert made is not None
        assert (made.phase, made.cause, made.reason) == (CopyPhase.FAILED, Cause.INFRASTRUCTURE, FAILED.reason)
    stays = assemble(KEY, "east", [ENDED_BADLY], [pod("p1"), pod("p2")], lasting={}, lost={"w"})
    assert stays is not None
    assert stays.phase is CopyPhase.RUNNING


def test_a_pod_that_failed_says_best_why() -> None:
    """A Job whose one pod crashed deletes the others: that is the crash's fault, not the cluster's."""
    crashed = replace(pod("p1", Verdict(CopyPhase.FAILED, "exited with 1")), index=0)
    made = assemble(KEY, "east", [ENDED_BADLY], [crashed], lasting={}, lost={"w"})
    assert made is not None
    assert (made.cause, made.reason) == (Cause.WORKLOAD, "exited with 1")
