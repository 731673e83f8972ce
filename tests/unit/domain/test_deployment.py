from __future__ import annotations

from seaway.domain.deployment import Deployment, Workload, WorkloadPhase, deployment_name
from tests.fakes.records import spec


def test_names_are_derived_from_job_and_attempt() -> None:
    """Deployments and workloads have the same name in every cluster, so that commands can be repeated."""
    assert deployment_name("0abc", 3) == "sw-0abc-3"
    for cluster in ("alpha", "beta"):
        reported, seen = Deployment("0abc", 3, cluster, spec(), ()), Workload("0abc", 3, cluster, WorkloadPhase.RUNNING)
        assert reported.name == seen.name == "sw-0abc-3"
    assert deployment_name("0abc", 4) != deployment_name("0abc", 3)
