"""What is seen of a job in a cluster, as the API shows it."""

from __future__ import annotations

from seaway.domain.deployment import Copy, CopyPhase, ReplicaStatus
from seaway.wire.job_out import SeenCopy, copy_fields


def test_a_copy_says_where_it_answers_and_what_runs_it() -> None:
    """The address, and of each replica its pod and the containers that hold devices, each named once."""
    replica = ReplicaStatus(0, CopyPhase.RUNNING, "n1", pod="seaway/sw-a-0", containers=("main", "main", ""))
    copy = Copy("01k9zj5q8e0ab", 1, "alpha", CopyPhase.RUNNING, (replica,), address="sw.seaway.svc:80")
    shown = SeenCopy.model_validate(copy_fields(copy))
    assert (shown.cluster, shown.phase, shown.address) == ("alpha", "running", "sw.seaway.svc:80")
    assert [(each.pod, each.containers) for each in shown.replicas] == [("seaway/sw-a-0", ["main"])]
