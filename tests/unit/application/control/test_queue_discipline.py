"""Queue disciplines of other packages, through the control loop."""

from __future__ import annotations

import pytest

from seaway.application.changes import Change
from seaway.domain.job import Job
from seaway.domain.tenancy import Tenant
from seaway.scheduling.queueing.registry import BUILT_IN, Priority
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import scene, spec


class ShortestFirst(Priority):
    """Tries short jobs first; the tenant with the last name goes before all others."""

    name = "shortest-first"

    def key(self, job: Job, submitted_ns: int) -> tuple[int | float | str, ...]:
        """Order by expected duration."""
        return job.expected_duration_s or 2**40, job.name

    def next_tenant(self, tenants: object) -> str:
        """Return the last name."""
        assert isinstance(tenants, list)
        return str(tenants[-1])


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer the discipline as a package would."""
    monkeypatch.setitem(BUILT_IN, "shortest-first", ShortestFirst)


def test_the_discipline_decides_which_job_is_placed() -> None:
    """With room for one job, the one that the discipline puts first gets it, not the one with the highest priority."""
    made = scene(fleet(cluster(node(gpu()), name="alpha")), queue_discipline="shortest-first")
    urgent, short = made.plane.submit(spec(priority=9, expected_duration_s=600), spec(expected_duration_s=60))
    made.plane.settle()
    assert (made.state(urgent), made.state(short)) == ("queued", "deploying")


def test_the_discipline_decides_between_tenants() -> None:
    """With room for one job, the tenant that the discipline chooses gets it."""
    made = scene(fleet(cluster(node(gpu()), name="alpha")), queue_discipline="shortest-first")
    made.plane.writer.commit([Change(put=[Tenant("a"), Tenant("b")])])
    first, last = made.plane.submit(spec(tenant="a"), spec(tenant="b"))
    made.plane.settle()
    assert (made.state(first), made.state(last)) == ("queued", "deploying")
