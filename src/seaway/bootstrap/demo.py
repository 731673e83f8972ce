"""Demo workload on a complete control plane with a simulated clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.adapters.sqlalchemy.store import open_store
from seaway.application.changes import Outcome
from seaway.application.control.dispatch import InPlace
from seaway.application.transitions import ACCEPTED, accepted
from seaway.application.views import Reason
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import Settings
from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobIds, JobSpec
from seaway.domain.job_state import PLACED, WAITING, JobState
from seaway.domain.network import NO_NEED
from seaway.simulation.demo import USERS_GATEWAY, demo_jobs
from seaway.testing.clocks import VirtualClock

STEP_S = 5
"""Step of the simulated clock, seconds."""

LONGEST_S = 3600
SHORTEST_S = 60
GIVE_UP_S = 7 * 86_400
"""Time limit for the end of all jobs, seconds."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Result of a demo.

    Attributes
    ----------
    jobs
        All accepted jobs in their final state.
    refused
        Reasons of rejected jobs by name: the fleet could never run them.
    lasted_s
        Time from the first submit to the last end, on the simulated clock.
    busiest
        Largest share of the fleet's GPU cores in use at one time, 0-1.
    waited, placed
        Reason why one of the jobs waited first, and reason of one placement.
    events
        Number of stored events.
    """

    jobs: Sequence[JobRecord]
    refused: Mapping[str, str]
    lasted_s: float
    busiest: float
    waited: Reason | None
    placed: Reason | None
    events: int


def run_demo(fleet: Fleet, count: int, progress: Callable[[int, int], None], seed: int = 0) -> DemoResult:
    """Submit all jobs together, and follow the accepted ones until all have ended.

    Parameters
    ----------
    progress
        Called with the number of ended jobs and of all jobs.
    """
    with _demo_plane(fleet, seed) as (plane, clock):
        specs, refused = _admitted(plane, _specs(fleet, count, seed))
        start_ns, records = clock.now_ns(), _submit(plane, specs, seed)
        plane.controller.step()
        plane.controller.step()
        waited, placed = _tell(plane, records, WAITING), _tell(plane, records, PLACED)
        busiest = 0.0
        while plane.controller.live.jobs and clock.now_ns() - start_ns < GIVE_UP_S * 10**9:
            while plane.controller.step():
                pass
            busiest = max(busiest, _used(plane))
            progress(count - len(plane.controller.live.jobs), count)
            clock.advance_s(STEP_S)
        jobs = [plane.jobs.find(record.id) for record in records]
        lasted_s = (max((job.ended_ns for job in jobs if job.ended_ns), default=start_ns) - start_ns) / 1e9
        return DemoResult(jobs, refused, lasted_s, busiest, waited, placed, plane.store.last_event())


@contextmanager
def _demo_plane(fleet: Fleet, seed: int) -> Iterator[tuple[ControlPlane, VirtualClock]]:
    """Yield a control plane in a temporary folder."""
    clock = VirtualClock()
    with TemporaryDirectory(prefix="seaway-demo-") as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'seaway.db'}")
        backends = SimulatedBackends(fleet, clock, Options(waits=False))
        plane = make_plane(Settings(), store, backends, clock, dispatcher=InPlace(clock), random=Random(seed))
        try:
            plane.controller.step()
            yield plane, clock
        finally:
            plane.stop()


def _specs(fleet: Fleet, count: int, seed: int) -> Iterator[JobSpec]:
    """Generate jobs of users behind a gateway of the fleet."""
    random = Random(seed)  # not a secret
    gateway = _users_gateway(fleet)
    for job in demo_jobs(count, seed):
        yield JobSpec(
            name=job.name,
            demand=_from(gateway, job.demand),
            replicas=job.replicas,
            gang=job.gang,
            between_replicas=job.between_replicas,
            expected_duration_s=random.randint(SHORTEST_S, LONGEST_S),
        )


def _users_gateway(fleet: Fleet) -> str:
    """Return the demo's own gateway, or else the last gateway of the fleet; empty if it has none."""
    names = [gateway.name for gateway in fleet.gateways]
    return USERS_GATEWAY if USERS_GATEWAY in names else "".join(names[-1:])


def _from(gateway: str, demand: Demand) -> Demand:
    """Set the gateway of a demand with network bounds; without a gateway, drop the bounds."""
    if not demand.gateway:
        return demand
    return replace(demand, gateway=gateway, network=demand.network if gateway else NO_NEED)


def _admitted(plane: ControlPlane, specs: Iterator[JobSpec]) -> tuple[list[JobSpec], dict[str, str]]:
    """Return accepted jobs, and the errors of rejected jobs."""
    let_in, refused = [], {}
    for spec in specs:
        try:
            plane.admission.admit(spec)
        except RejectedError as error:
            refused[spec.name] = error.message
        else:
            let_in.append(spec)
    return let_in, refused


def _submit(plane: ControlPlane, specs: Sequence[JobSpec], seed: int) -> list[JobRecord]:
    ids = JobIds(Random(seed))  # not a secret
    now_ns = plane.clock.now_ns()
    records = [
        JobRecord(ids.generate(now_ns), spec, JobState.PENDING, now_ns, now_ns, "demo", ACCEPTED) for spec in specs
    ]
    outcomes = plane.writer.commit([accepted(record) for record in records]) if records else []
    return [record for record, outcome in zip(records, outcomes, strict=True) if outcome is Outcome.STORED]


def _tell(plane: ControlPlane, records: Sequence[JobRecord], states: frozenset[JobState]) -> Reason | None:
    """Return the reason of the first job whose state is in `states`; None if there is none."""
    for record in records:
        job = plane.jobs.find(record.id)
        if job.state in states:
            return plane.overview.reason(job)
    return None


def _used(plane: ControlPlane) -> float:
    clusters = plane.overview.clusters()
    total = sum(cluster.gpu_milli.total for cluster in clusters)
    return sum(cluster.gpu_milli.used for cluster in clusters) / max(total, 1)
