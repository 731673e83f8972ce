from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from seaway.domain.arrays import TaskArray
from seaway.domain.dependencies import After
from seaway.domain.errors import RejectedError
from seaway.domain.job import DataSource
from seaway.domain.job_spec import NO_CLUSTER, RESIZABLE, Checkpoint, Expose, JobSpec, ServiceType, Standby
from seaway.domain.network import NetworkNeed, OnViolation
from seaway.domain.notifications import Notify
from seaway.domain.runtime import Run, Runtime
from seaway.domain.scaling import Metric, Trigger
from tests.fakes.records import full_spec, spec


@pytest.mark.parametrize(
    ("field", "value"),
    [("replicas", 0), ("expected_duration_s", -1), ("time_limit_s", 0), ("retries", -1), ("name", "Not A Name")],
)
def test_figures_and_names_are_checked(field: str, value: Any) -> None:  # noqa: ANN401  # fields of a spec
    """A job says what is wrong with it, and where."""
    with pytest.raises(RejectedError) as error:
        spec(**{field: value})
    assert error.value.where == field


@pytest.mark.parametrize(
    ("kind", "host", "where"),
    [
        (ServiceType.INGRESS, "chat.example.com", None),
        (ServiceType.NODE_PORT, "chat.example.com", "expose.host"),
        (None, "chat.example.com", "expose.host"),
        (ServiceType.INGRESS, "chat", "expose.host"),
        (ServiceType.HTTP_ROUTE, "*.example.com", "expose.host"),
    ],
)
def test_host_names_are_for_http_and_are_checked(kind: ServiceType | None, host: str, where: str | None) -> None:
    """A host name must be one, and needs a type that serves by host name."""
    if where is None:
        assert Expose(kind, host).host == host
        return
    with pytest.raises(RejectedError) as error:
        Expose(kind, host)
    assert error.value.where == where


def test_the_scheduler_sees_what_it_needs() -> None:
    """Its job has the id for a name, and everything that decides where it goes."""
    full = full_spec()
    job = full.job("id-1")
    assert (job.name, job.demand, job.replicas, job.gang) == ("id-1", full.demand, full.replicas, full.gang)
    assert (job.priority, job.tenant, job.queue, job.expected_duration_s) == (
        full.priority,
        full.tenant,
        full.queue,
        full.expected_duration_s,
    )


@pytest.mark.parametrize(
    ("own", "pool", "allowed"),
    [
        (frozenset(), frozenset(), frozenset()),
        (frozenset(), frozenset({"a"}), frozenset({"a"})),
        (frozenset({"a", "b"}), frozenset({"b", "c"}), frozenset({"b"})),
        (frozenset({"a"}), frozenset({"c"}), NO_CLUSTER),
    ],
)
def test_a_pool_bounds_the_clusters(own: frozenset[str], pool: frozenset[str], allowed: frozenset[str]) -> None:
    """A job goes where both it and the pool of its queue allow; nowhere when that is nowhere."""
    base = spec()
    asked = replace(base, demand=replace(base.demand, nodes=replace(base.demand.nodes, clusters=own)))
    assert asked.job("x", pool).demand.nodes.clusters == allowed


IN_PLACE = {
    "name",
    "priority",
    "queue",
    "tenant",
    "expected_duration_s",
    "time_limit_s",
    "retries",
    "labels",
    "single_cluster",
    "restarts",
    "ends_in_parts",
    "on_violation",
    "data",
    "preemptible",
    "one_by_one",
    "after",
    "output_mib",
    "standby",
    "copy_of",
    "array",
    "replicas",
    "lease_s",
    "scale",
    "notify",
}
"""Anything that changes without starting a job again."""

OTHERS: dict[str, Any] = {
    "name": "other",
    "demand": full_spec().demand,
    "replicas": 2,
    "gang": True,
    "between_replicas": NetworkNeed(1),
    "priority": 5,
    "tenant": "t",
    "queue": "q",
    "template": "service",
    "run": Run("image"),
    "expected_duration_s": 9,
    "time_limit_s": 9,
    "retries": 9,
    "labels": {"a": "b"},
    "single_cluster": True,
    "restarts": True,
    "ends_in_parts": True,
    "on_violation": OnViolation.MOVE,
    "data": DataSource("north", 1),
    "preemptible": False,
    "checkpoint": Checkpoint("SIGUSR1", 60),
    "expose": Expose(ServiceType.NODE_PORT),
    "one_by_one": True,
    "after": (After("6hhgq2g019edv"),),
    "output_mib": 9,
    "standby": Standby(),
    "copy_of": "6hhgq2g019edv",
    "ring": True,
    "array": TaskArray("0-9"),
    "min_replicas": 1,
    "max_replicas": 4,
    "lease_s": 7200,
    "scale": (Trigger(Metric.UTILIZATION, 700),),
    "runtime": Runtime(shm_mib=64),
    "notify": (Notify("ops"),),
}


@pytest.mark.parametrize("field", [each.name for each in fields(JobSpec)])
def test_what_copies_hang_on_starts_a_job_again(field: str) -> None:
    """Every field either changes in place or starts the job again; none is forgotten."""
    before = replace(spec(), replicas=2) if field == "ring" else spec()
    before = replace(spec(), min_replicas=1, max_replicas=4) if field == "scale" else before
    values = {field: OTHERS[field]} if not field.endswith("_replicas") else {"min_replicas": 1, "max_replicas": 4}
    assert before.requires_restart(replace(before, **values)) == (field not in IN_PLACE)


def test_bounds_of_an_elastic_job_change_in_place_except_where_its_pods_know_them() -> None:
    """Pods of a PyTorchJob get the bounds when they start."""
    for template in RESIZABLE:
        made = replace(spec(), template=template, replicas=4, min_replicas=1, max_replicas=4)
        assert not made.requires_restart(replace(made, replicas=2))
        assert made.requires_restart(replace(made, max_replicas=8)) == (template == "pytorchjob")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"min_replicas": 4, "max_replicas": 2, "replicas": 4}, "use 1 <= min <= max"),
        ({"min_replicas": 2, "max_replicas": 4, "replicas": 5}, "is 5, but the job has between 2 and 4"),
        ({"min_replicas": 1, "max_replicas": 4, "template": "torchrun"}, "cannot be resized while it runs"),
    ],
)
def test_bounds_that_contradict_are_rejected(fields: dict[str, Any], says: str) -> None:
    """The error names the field, and the templates that can be elastic."""
    with pytest.raises(RejectedError, match=says) as caught:
        replace(spec(), **fields)
    assert caught.value.where == "replicas"


def test_a_job_ends_by_cause_is_known_of_it() -> None:
    """The sooner of what is expected and what is allowed; unknown without either."""
    assert spec().max_duration_s is None
    assert spec(expected_duration_s=5).max_duration_s == 5
    assert spec(time_limit_s=7).max_duration_s == 7
    assert spec(expected_duration_s=9, time_limit_s=7).max_duration_s == 7
