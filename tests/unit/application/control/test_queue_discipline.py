"""Queue disciplines of other packages, through the control loop."""

from __future__ import annotations

import pytest

from seaway.application.changes import Change
from seaway.domain.amounts import Amounts
from seaway.domain.job import Job
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Tenant
from seaway.scheduling.queueing.discipline import SortKey
from seaway.scheduling.queueing.registry import BUILT_IN
from seaway.scheduling.queueing.tree import QueueNode, TenantNode
from seaway.testing.plugins import check_queue_discipline, cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec


class LastNameFirst:
    """Short jobs first. Tenants and queues with the last name go before all others."""

    name = "last-name-first"

    def job_key(self, job: Job, submitted_ns: int, queue: Queue) -> SortKey:
        """Order by expected duration."""
        return job.expected_duration_s or 2**40, job.name

    def tenant_key(self, queue: QueueNode, tenant: TenantNode, first: SortKey, requested: Amounts) -> SortKey:
        """Order by name, backwards."""
        return tuple(-ord(each) for each in tenant.name)

    def queue_key(self, queue: QueueNode, requested: Amounts) -> SortKey:
        """Order by name, backwards."""
        return tuple(-ord(each) for each in queue.queue.name)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Offer the discipline as a package would, and select it, with room for one job."""
    monkeypatch.setitem(BUILT_IN, "last-name-first", LastNameFirst)
    made = scene(fleet(cluster(node(gpu()), name="alpha")), queue_discipline="last-name-first")
    made.plane.writer.commit([Change(put=[Tenant("a"), Tenant("b"), Queue("x"), Queue("y")])])
    return made


def test_it_passes_the_suite() -> None:
    """The discipline of these tests keeps the rules."""
    check_queue_discipline(LastNameFirst)


@pytest.mark.parametrize(
    ("other", "first"),
    [
        ({"priority": 9, "expected_duration_s": 600}, {"expected_duration_s": 60}),
        ({"tenant": "a"}, {"tenant": "b"}),
        ({"queue": "x"}, {"queue": "y"}),
    ],
)
def test_the_discipline_decides_which_job_is_placed(
    made: Scene, other: dict[str, object], first: dict[str, object]
) -> None:
    """The job, tenant and queue that the discipline puts first gets the only place."""
    waits, runs = made.plane.submit(spec(**other), spec(**first))
    made.plane.settle()
    assert (made.state(waits), made.state(runs)) == ("queued", "deploying")
