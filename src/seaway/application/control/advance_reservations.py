"""Enforcement of advance reservations: what each waiting job must leave free.

A job may use reserved capacity if it is one of the holder's, or if its time limit ends it before the reservation
begins. Other jobs avoid it, from the moment that the reservation is stored. Jobs that run already are not stopped,
except by maintenance with `drain`. Devices of a number of GPUs are chosen among those that are free when the
reservation begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from seaway.application.changes import Change
from seaway.application.control.fleet import Key, LiveFleet
from seaway.application.control.rejections import Refusals
from seaway.application.control.tenancy import Names
from seaway.application.ports.clock import Clock
from seaway.application.records import Cordon, Event
from seaway.application.views import ClusterState, ReservationView
from seaway.domain.attempt import Attempt
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.gpu_models import covered, covers, unknown_model
from seaway.domain.job import Job
from seaway.domain.job_spec import JobSpec
from seaway.domain.reasons import Params, Reason, time_param
from seaway.domain.reservations import AdvanceReservation
from seaway.scheduling.explain import Keeper

NS_PER_S = 1_000_000_000

CHECK_NS = 10_000_000_000
"""Interval at which the devices of a reservation are chosen again, since other devices may be free then."""


ACTOR = "scheduler"

ACTOR_PREFIX = "reservation/"
"""Prefix of the actor of a cordon that belongs to maintenance."""


def released(reservation: AdvanceReservation, cordons: Iterable[Cordon]) -> Change:
    """Return the change that removes a reservation and the cordons of its maintenance."""
    return Change(delete=[reservation, *(each for each in cordons if each.actor == _actor(reservation))])


def _actor(reservation: AdvanceReservation) -> str:
    return ACTOR_PREFIX + reservation.name


def cordon_ends_ns(fleet: LiveFleet, reservations: Mapping[str, AdvanceReservation]) -> dict[tuple[str, str], int]:
    """Return the ends of maintenance by the cluster and node that it closes, nanoseconds since 1970."""
    ends_ns = {}
    for cordon in fleet.cordons():
        reservation = reservations.get(cordon.actor.removeprefix(ACTOR_PREFIX))
        if cordon.actor.startswith(ACTOR_PREFIX) and reservation:
            ends_ns[cordon.cluster, cordon.node] = reservation.ends_ns
    return ends_ns


def closed_places(fleet: LiveFleet, reservations: Mapping[str, AdvanceReservation]) -> list[Keeper]:
    """Return the decisions that close clusters and nodes: cordons, maintenance, lost clusters.

    Parameters
    ----------
    reservations
        Advance reservations by name.
    """
    decided: dict[tuple[str, str], Keeper] = {}
    for cordon in fleet.cordons():
        reservation = reservations.get(cordon.actor.removeprefix(ACTOR_PREFIX))
        if cordon.actor.startswith(ACTOR_PREFIX) and reservation:
            params: Params = {"name": reservation.name, "until": time_param(reservation.ends_ns)}
            decided[cordon.cluster, cordon.node] = Keeper("under_maintenance", params)
        else:
            decided[cordon.cluster, cordon.node] = Keeper(
                "is_cordoned", {"why": cordon.reason} if cordon.reason else {}
            )
    for name, live in fleet.clusters.items():
        if live.state is not ClusterState.UP:
            decided[name, ""] = Keeper("cluster_lost", {})
    known = fleet.snapshot.node_index
    return [
        keeper._replace(places={at for at in known if at[0] == cluster and node in {"", at[1]}})
        for (cluster, node), keeper in sorted(decided.items())
    ]


@dataclass(frozen=True, slots=True)
class Closed:
    """Advance reservations with their devices, at a time.

    Attributes
    ----------
    devices
        Returns the UUIDs of the GPUs of a reservation.
    now_ns
        The time, nanoseconds since 1970.
    """

    reservations: Collection[AdvanceReservation]
    devices: Callable[[AdvanceReservation], frozenset[str]]
    now_ns: int

    def narrow(self, job: Job, spec: JobSpec) -> Job:
        """Return a job that avoids the capacity that is reserved for others."""
        closed = list(self.closed_to(spec))
        if not closed:
            return job
        devices = frozenset().union(*(self.devices(each) for each in closed if each.gpus))
        places = frozenset().union(*(each.places for each in closed))
        return replace(job, demand=Refusals(0, devices, places).retained(job.demand))

    def closed_to(self, spec: JobSpec) -> Iterator[AdvanceReservation]:
        """Yield the reservations whose capacity a job that starts now must not use."""
        for each in self.reservations:
            in_time = spec.time_limit_s is not None and self.now_ns + spec.time_limit_s * NS_PER_S <= each.starts_ns
            if not (in_time or self.now_ns >= each.ends_ns or each.is_held_by(spec.tenant, spec.queue)):
                yield each

    @property
    def times_ns(self) -> Sequence[int]:
        """Times at which the rules change, nanoseconds since 1970."""
        return [at_ns for each in self.reservations for at_ns in (each.starts_ns, each.ends_ns)]

    def at(self, now_ns: int) -> Closed:
        """Return the same reservations at another time."""
        return replace(self, now_ns=now_ns)


class AdvanceReservations:
    """Devices and places of advance reservations.

    Parameters
    ----------
    attempts
        Attempts with an allocation.
    """

    def __init__(
        self, names: Names, fleet: LiveFleet, attempts: Callable[[], Mapping[Key, Attempt]], clock: Clock
    ) -> None:
        self._names = names
        self._fleet = fleet
        self._attempts = attempts
        self._clock = clock
        self._chosen: dict[AdvanceReservation, frozenset[str]] = {}
        self._checked_ns = -CHECK_NS

    def fork(self) -> Closed:
        """Return what is reserved now, whatever changes later."""
        known = [*self._names.reservations.values()]
        return Closed(
            known, {each: self.devices(each) for each in known if each.gpus}.__getitem__, self._clock.now_ns()
        )

    def narrow(self, job: Job, spec: JobSpec) -> Job:
        """Return a job that avoids the capacity that is reserved for others."""
        return self._now().narrow(job, spec) if self._names.reservations else job

    def closed_to(self, spec: JobSpec) -> Iterator[AdvanceReservation]:
        """Yield the reservations whose capacity a job that starts now must not use."""
        return self._now().closed_to(spec)

    def _now(self) -> Closed:
        return Closed(self._names.reservations.values(), self.devices, self._clock.now_ns())

    def devices(self, reservation: AdvanceReservation) -> frozenset[str]:
        """Return the UUIDs of the GPUs of a reservation."""
        known = self._names.reservations.values()
        now_ns = self._clock.monotonic_ns()
        if self._chosen.keys() != set(known) or now_ns - self._checked_ns >= CHECK_NS:
            self._checked_ns = now_ns
            self._chosen = self._choose(known)
        if reservation not in self._chosen:  # it is stored, but not applied yet
            others = [each for each in known if each.name != reservation.name]
            return self._choose([*others, reservation])[reservation]
        return self._chosen[reservation]

    def view(self, reservation: AdvanceReservation) -> ReservationView:
        """Return a reservation with its present state."""
        now_ns, devices = self._clock.now_ns(), self.devices(reservation)
        unready = self.held_by_others(reservation, max(now_ns, reservation.starts_ns)) | self._unusable(reservation)
        active = reservation.starts_ns <= now_ns < reservation.ends_ns
        return ReservationView(reservation, active, len(devices), len(devices - unready))

    def require_room(self, reservation: AdvanceReservation) -> None:
        """Check that the fleet has the capacity of a reservation beside other ones. Maintenance may overlap with any.

        Raises
        ------
        RejectedError
            With the figures.
        """
        taken = frozenset().union(
            *(
                self.devices(each)
                for each in self._names.reservations.values()
                if each.name != reservation.name and each.overlaps(reservation)
            )
        )
        found = {device.uuid for *_, device in self._suitable(reservation)}
        self._require_model(reservation)
        if not (reservation.gpus or reservation.maintenance) and found & taken:
            said = Reason("reserved_by_others", found=len(found), taken=len(found & taken))
            raise RejectedError(said, where="nodes" if reservation.nodes else "clusters")
        if reservation.gpus > len(found - taken):
            model, count = reservation.gpu_model, len(found)
            have = Reason("healthy_of", count=count, model=model) if model else Reason("healthy", count=count)
            code = "gpus_taken" if found & taken else "gpus_too_few"
            params = {"taken": len(found & taken)} if found & taken else {}
            raise RejectedError(Reason(code, wanted=reservation.gpus, gpus=have, **params), where="gpus")

    def _require_model(self, reservation: AdvanceReservation) -> None:
        model, known = reservation.gpu_model, self._fleet.gpu_models()
        if model and known is not None and not covered([model], known):
            raise RejectedError(unknown_model(model, known), where="gpu_model")

    def due(self) -> Iterator[Change]:
        """Yield the changes that remove reservations whose end has come, and that begin and end maintenance."""
        now_ns, cordons = self._clock.now_ns(), list(self._fleet.cordons())
        wanted: dict[tuple[str, str], Cordon] = {}
        for each in list(self._names.reservations.values()):
            if now_ns >= each.ends_ns:
                change = released(each, cordons)
                ended = Reason("reservation_ended", name=each.name)
                change.insert.append(Event(now_ns, "reservation", ended, ACTOR, each.tenant))
                yield change
            elif each.maintenance and now_ns >= each.starts_ns:
                reason = each.description or f"maintenance {each.name}"
                wanted |= {at: Cordon(*at, each.drain, reason, _actor(each), now_ns) for at in each.places}
        for cordon in cordons:
            there = wanted.get((cordon.cluster, cordon.node))
            if there and (not cordon.actor.startswith(ACTOR_PREFIX) or replace(there, at_ns=cordon.at_ns) == cordon):
                del wanted[cordon.cluster, cordon.node]  # an operator's cordon stays, also afterwards
            elif cordon.actor.startswith(ACTOR_PREFIX) and there is None and self._is_known(cordon):
                yield Change(delete=[cordon])  # its reservation has other times or places now
        for actor in dict.fromkeys(each.actor for each in wanted.values()):
            name = actor.removeprefix(ACTOR_PREFIX)
            text = Reason("reservation_begun", name=name, why=self._names.reservations[name].summary)
            made = [each for each in wanted.values() if each.actor == actor]
            yield Change(put=[*made], insert=[Event(now_ns, "reservation", text, ACTOR)])

    def _is_known(self, cordon: Cordon) -> bool:
        """Report whether the reservation of a cordon exists. The change that removes it removes the cordon, too."""
        return cordon.actor.removeprefix(ACTOR_PREFIX) in self._names.reservations

    def drained(self) -> frozenset[tuple[str, str]]:
        """Return the places whose running jobs move elsewhere because of maintenance, also under other cordons."""
        now_ns = self._clock.now_ns()
        active = (each for each in self._names.reservations.values() if each.starts_ns <= now_ns < each.ends_ns)
        return frozenset().union(*(each.places for each in active if each.drain))

    def held_by_others(self, reservation: AdvanceReservation, at_ns: int) -> frozenset[str]:
        """Return the UUIDs of devices that jobs of others hold at some time, as far as known."""
        now_ns, held = self._clock.now_ns(), set[str]()
        for attempt in self._attempts().values():
            if reservation.is_held_by(attempt.spec.tenant, attempt.spec.queue):
                continue
            rest_ns = attempt.expected_rest_ns(now_ns) if attempt.state.live else 0
            if rest_ns is None or now_ns + rest_ns > at_ns:
                held.update(each.uuid for placement in attempt.holding for each in placement.slices)
        return frozenset(held)

    def _choose(self, known: Iterable[AdvanceReservation]) -> dict[AdvanceReservation, frozenset[str]]:
        """Choose devices: those of whole places first, then for the earliest; the present ones where possible."""
        chosen: dict[AdvanceReservation, frozenset[str]] = {}
        for each in sorted(known, key=lambda each: (each.gpus > 0, each.starts_ns, each.name)):
            if not each.gpus:
                chosen[each] = frozenset(device.uuid for *_, device in self._suitable(each))
                continue
            taken = {uuid for other, uuids in chosen.items() if other.overlaps(each) for uuid in uuids}
            chosen[each] = self._best(each, taken, self._chosen.get(each, frozenset()))
        return chosen

    def _best(self, reservation: AdvanceReservation, taken: set[str], before: frozenset[str]) -> frozenset[str]:
        """Return the devices of a reservation: free ones first, on few nodes."""
        busy = self.held_by_others(reservation, max(reservation.starts_ns, self._clock.now_ns()))
        busy |= self._unusable(reservation)
        found = [each for each in self._suitable(reservation) if each[2].uuid not in taken]
        free = Counter((cluster, node) for cluster, node, device in found if device.uuid not in busy)

        def rank(each: tuple[str, str, Device]) -> tuple[bool, bool, int, str, str, int]:
            cluster, node, device = each
            return (
                device.uuid in busy,
                device.uuid not in before,
                -free[cluster, node],
                cluster,
                node,
                device.index,
            )

        return frozenset(device.uuid for *_, device in sorted(found, key=rank)[: reservation.gpus])

    def _suitable(self, reservation: AdvanceReservation) -> Iterator[tuple[str, str, Device]]:
        """Yield the healthy devices that a reservation may use, with cluster and node."""
        model, places = reservation.gpu_model, reservation.places
        for live in self._fleet.clusters.values():
            if live.cluster is None or (reservation.clusters and live.name not in reservation.clusters):
                continue
            for node in live.cluster.nodes:
                if places and not {(live.name, ""), (live.name, node.name)} & places:
                    continue
                for device in node.devices:
                    if device.healthy and (not model or covers(model, device.model)):
                        yield live.name, node.name, device

    def _unusable(self, reservation: AdvanceReservation) -> frozenset[str]:
        """Return the UUIDs of devices whose cluster or node accepts no work now. Its own maintenance does not count."""
        found = set[str]()
        for live in self._fleet.clusters.values():
            closed = live.state is not ClusterState.UP or self._is_cordoned(reservation, live.name, "")
            for node in live.cluster.nodes if live.cluster else ():
                if closed or not node.ready or self._is_cordoned(reservation, live.name, node.name):
                    found.update(device.uuid for device in node.devices)
        return frozenset(found)

    def _is_cordoned(self, reservation: AdvanceReservation, cluster: str, node: str) -> bool:
        cordon = self._fleet.cordon_of(cluster, node)
        return cordon is not None and cordon.actor != _actor(reservation)
