"""Capacity that a job may not use now: what is reserved for others, and GPU models without room under a limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seaway.application.control.loop import Controller
from seaway.domain.amounts import MODEL_PREFIX, requested_amounts
from seaway.domain.job import Job
from seaway.domain.job_spec import JobSpec
from seaway.domain.reasons import Params, Reason, also, time_param
from seaway.domain.reservations import AdvanceReservation
from seaway.scheduling.cycle.reserve import Reservation
from seaway.scheduling.explain import Keeper, Limitation
from seaway.scheduling.queueing.model_shares import without_models
from seaway.scheduling.queueing.tree import LimitHit, Owner
from seaway.scheduling.refusals import LIMITS, RESERVATIONS
from seaway.scheduling.snapshot.snapshot import Snapshot

RESERVED = Reason("but", what=Reason("free_is_reserved"))

MAX_NAMED = 3
"""Maximum number of reservations that a reason names."""

NS_PER_S = 1_000_000_000

MINUTE_S = 60


def reserved_text(closed: Iterable[AdvanceReservation]) -> str:
    """Return a reason on the advance reservations that keep capacity from a job; empty for none."""
    said = [Reason("capacity_is", what=Reason(code, **params)) for code, params in map(_advance_reason, closed)]
    return also(*(Reason("but", what=each) for each in said[:MAX_NAMED])) if said else ""


@dataclass(frozen=True, slots=True)
class Usable:
    """Part of the fleet that a job may use now.

    Attributes
    ----------
    snapshot
        Copy of the fleet, without capacity that is reserved for other waiting jobs.
    job
        The job, which avoids what is reserved in advance and GPU models beyond limits.
    limitations
        What is excluded, and for whom.
    within_s
        Longest run time with which the job could use what is reserved for others, in whole minutes; None if there is
        none.
    """

    snapshot: Snapshot
    job: Job
    limitations: tuple[Limitation, ...] = ()
    within_s: int | None = None

    @property
    def texts(self) -> Iterator[str]:
        """Reasons of the limitations."""
        for limitation in self.limitations:
            for code, params, places in limitation.keepers:
                if places is not None or limitation.plugin == LIMITS:
                    yield Reason(code, **params)


def usable(  # two copies, a job in two forms, its user, and a limit
    controller: Controller,
    free: Snapshot,
    reserved: Snapshot,
    job: Job,
    spec: JobSpec,
    user: str,
    raised: LimitHit | None = None,
) -> Usable:
    """Return the part of the fleet that a job may use. The caller holds the lock.

    Parameters
    ----------
    free, reserved
        Current copies of the fleet without and with reservations for waiting jobs.
    job
        The job in the scheduler's form; its name is the ID of a waiting job, or another text.
    raised
        Limit that counts as raised; None for none.
    """
    live, reservations = controller.live, controller.scheduler.reservations
    past, snapshot, limitations, starts_ns = live.history.runs(spec, user), free, list[Limitation](), list[int | None]()
    now_ns, wall_ns = live.clock.monotonic_ns(), live.clock.now_ns()
    others = [each for each in reservations.made() if each.entry.id != job.name]
    if others and not reservations.lets_pass(past.expected_s if past else spec.max_duration_s, job.name):
        snapshot = _without_own(controller, reserved, job.name)
        keepers = [_keeper(each, spec.tenant, wall_ns - now_ns) for each in others]
        keepers.append(keepers[0]._replace(places=None))
        limitations.append(Limitation(RESERVATIONS, free, job, keepers))
        starts_ns += [each.starts_ns for each in others]
    allowed = job
    if closed := list(live.advance.closed_to(spec)):
        allowed = live.advance.narrow(job, spec)
        keepers = [_advance_keeper(each, snapshot, live.advance.devices(each)) for each in closed]
        limitations.append(Limitation(RESERVATIONS, snapshot, job, keepers))
        starts_ns += [each.starts_ns - wall_ns + now_ns for each in closed]
    owner = Owner(spec.queue, spec.tenant, user)
    requested = requested_amounts(job.demand, 1 if job.partial else job.replicas)
    exhausted = live.tree.model_hits(owner, requested, job=job.name)
    if entry := live.waiting.get(job.name):
        exhausted = live.waiting.model_hits(entry)
    if raised:
        at = raised.holder, raised.resource
        exhausted = {model: hit for model, hit in exhausted.items() if (hit.holder, hit.resource) != at}
    if exhausted:
        limitations.append(Limitation(LIMITS, snapshot, allowed, [_limit_keeper(exhausted)]))
        allowed = without_models(allowed, exhausted, snapshot)
    return Usable(snapshot, allowed, tuple(limitations), _within_s(starts_ns, now_ns))


def _without_own(controller: Controller, reserved: Snapshot, job_id: str) -> Snapshot:
    """Return a copy of the fleet without the reservation of a job itself."""
    entry, reservations = controller.live.waiting.get(job_id), controller.scheduler.reservations
    if entry is None or not reservations.own(entry):
        return reserved
    copy = reserved.copy()
    reservations.release_own(entry, copy)
    return copy


def _within_s(starts_ns: Sequence[int | None], now_ns: int) -> int | None:
    """Return the longest run time that ends before the first of some starts, in whole minutes; None for none."""
    known = [each for each in starts_ns if each is not None]
    if not known or len(known) < len(starts_ns):
        return None
    within_s = (min(known) - now_ns) // NS_PER_S // MINUTE_S * MINUTE_S
    return within_s if within_s > 0 else None


def _keeper(reservation: Reservation, tenant: str, wall_of_monotonic_ns: int) -> Keeper:
    """Return the job that has a reservation, by name only if it is of the same tenant."""
    spec = reservation.entry.spec
    params: dict[str, str | int] = {}
    code = "reserved_for_other_tenant"
    if spec.tenant == tenant:
        code, params = "reserved_for_job", {"job": reservation.entry.display_name, "job_id": reservation.entry.id}
    if reservation.starts_ns is None:
        code += "_until"
        params["until"] = time_param(reservation.until_ns + wall_of_monotonic_ns)
    else:
        params["starts_at"] = time_param(reservation.starts_ns + wall_of_monotonic_ns)
    return Keeper(code, params, reservation.nodes)


def _advance_keeper(reservation: AdvanceReservation, snapshot: Snapshot, uuids: frozenset[str]) -> Keeper:
    code, params = _advance_reason(reservation)
    places = {
        at
        for at, n in snapshot.node_index.items()
        if (at[0], "") in reservation.places
        or at in reservation.places
        or (reservation.gpus and any(each.uuid in uuids for each in snapshot.nodes[n].devices))
    }
    return Keeper(code, params, places)


def _advance_reason(reservation: AdvanceReservation) -> tuple[str, Params]:
    """Return the code and parameters. Users may see the name of maintenance, but not whom others are for."""
    times: Params = {"begin": time_param(reservation.starts_ns), "end": time_param(reservation.ends_ns)}
    if reservation.maintenance:
        return "reserved_for_maintenance", {"name": reservation.name, **times}
    return "reserved_in_advance", times


def _limit_keeper(exhausted: Mapping[str, LimitHit]) -> Keeper:
    models = ", ".join(sorted({each.resource.removeprefix(MODEL_PREFIX) for each in exhausted.values()}))
    holders = tuple(dict.fromkeys(each.holder.label for each in exhausted.values()))
    return Keeper("model_limit", {"models": models, "holders": holders})
