"""Attempts whose workloads have no pod: their reported state, and when they count as rejected by the cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from seaway.adapters.kubernetes.collect.attempts import NO_POD, NO_POD_YET, Attempts
from seaway.adapters.kubernetes.collect.changes import Limits
from seaway.adapters.kubernetes.collect.pod_status import PodState
from seaway.adapters.kubernetes.collect.pods import PodSummary
from seaway.adapters.kubernetes.collect.rejections import Rejection
from seaway.adapters.kubernetes.collect.workloads import WorkloadPart
from seaway.domain.deployment import Cause, WorkloadPhase

KEY = ("01k9zj5q8e0ab", 3)
PLACE = ("/apis/kubeflow.org/v1/pytorchjobs", "seaway/sw")
LIMITS = Limits(scheduling_delay_s=3, pod_start_timeout_s=300)
SUSPENDED = "it is suspended there: Job suspended"
QUIET = (WorkloadPhase.STARTING, "")
LATE = (WorkloadPhase.STARTING, NO_POD_YET)


class Cluster:
    """The objects of one attempt, with a clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.reported: list[tuple[str, int]] = []
        self.attempts = Attempts(
            "alpha", LIMITS, self._soon, self.reported.append, lambda _: Cause.UNSCHEDULABLE, lambda _: None
        )

    def _soon(self, seconds: float, call: Callable[[], None]) -> None:
        self.due.append((self.now_s + seconds, call))

    def workload(self, **fields: object) -> None:
        """Report the current state of its workload."""
        self.attempts.put_workload(PLACE, WorkloadPart(*KEY, "a", (0, 1), uid="w", **fields))  # type: ignore[arg-type]

    def pod(self) -> PodSummary:
        """Create a starting pod of it."""
        starts = PodState(WorkloadPhase.STARTING)
        return PodSummary("seaway", "p", "p", "p", "node", (), 0, 0, True, KEY, "a", (0, 1), state=starts)

    def wait(self, seconds: float) -> tuple[WorkloadPhase, str]:
        """Advance time; return the phase and the reason of the workload."""
        end = self.now_s + seconds
        while self.due and min(at for at, _ in self.due) <= end:
            self.due.sort(key=lambda timer: timer[0])
            self.now_s, call = self.due.pop(0)
            call()
        self.now_s = end
        copy = self.attempts.workload(KEY)
        assert copy is not None
        return copy.phase, copy.reason


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster in which a workload was just created."""
    made = Cluster()
    made.workload()
    made.reported.clear()
    return made


def test_who_makes_no_pod_for_long_refuses(cluster: Cluster) -> None:
    """A kind without a running operator would otherwise never end."""
    assert cluster.wait(2.9) == QUIET
    assert cluster.wait(1) == LATE
    assert cluster.reported == [KEY]
    assert cluster.wait(298) == LATE
    assert cluster.wait(2) == (WorkloadPhase.FAILED, NO_POD)
    copy = cluster.attempts.workload(KEY)
    assert copy is not None
    assert copy.cause is Cause.REJECTED, "no other node of the cluster would do"
    assert cluster.reported == [KEY, KEY]


def test_a_pod_ends_that_and_when_it_goes_it_begins_again(cluster: Cluster) -> None:
    """A pod shows that the controller works; when it is deleted the timeout begins again."""
    assert cluster.wait(200) == LATE
    cluster.attempts.put_pod(None, cluster.pod())
    assert cluster.wait(200) == QUIET
    cluster.attempts.put_pod(cluster.pod(), None)
    assert cluster.wait(2) == QUIET
    assert cluster.wait(298) == LATE
    assert cluster.wait(4) == (WorkloadPhase.FAILED, NO_POD)


def test_what_is_suspended_is_reported_and_waits(cluster: Cluster) -> None:
    """A suspended workload waits for Kueue's quota, which may take longer than any failure."""
    cluster.workload(gate=SUSPENDED)
    assert cluster.wait(1000) == (WorkloadPhase.STARTING, SUSPENDED)
    cluster.workload()
    assert cluster.wait(299) == LATE
    assert cluster.wait(5) == (WorkloadPhase.FAILED, NO_POD)


def test_who_suspends_late_stops_the_clock(cluster: Cluster) -> None:
    """The time before a suspension does not count after it."""
    assert cluster.wait(250) == LATE
    cluster.workload(gate=SUSPENDED)
    assert cluster.wait(100) == (WorkloadPhase.STARTING, SUSPENDED)


def test_a_denial_says_better_why(cluster: Cluster) -> None:
    """The cluster's own denial is reported, while it lasts."""
    cluster.wait(200)
    cluster.attempts.rejections.reject(KEY, "event", Rejection("a webhook does not answer", is_final=False))
    assert cluster.wait(110) == (WorkloadPhase.STARTING, "a webhook does not answer")
    assert cluster.wait(200) == (WorkloadPhase.FAILED, "a webhook does not answer")


def test_what_ended_or_is_gone_waits_for_no_pod(cluster: Cluster) -> None:
    """After the end, pods and workload may be deleted."""
    cluster.workload(ended=PodState(WorkloadPhase.SUCCEEDED))
    assert cluster.wait(400) == (WorkloadPhase.SUCCEEDED, "")
    cluster.attempts.put_workload(PLACE, None)
    assert cluster.attempts.workload(KEY) is None


def test_what_runs_nothing_is_to_have_no_pod() -> None:
    """A service or a claim exists before its pods."""
    cluster = Cluster()
    cluster.attempts.put_workload(("/api/v1/services", "seaway/sw"), WorkloadPart(*KEY, "", ()))
    assert not cluster.due
