"""Requests and views of advance reservations."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from seaway.application.views import ReservationView
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.units import LARGEST
from seaway.wire.fields import Line, ReferenceOrNone, References, at_ns, moment, no_entries
from seaway.wire.message import Incoming, Shown
from seaway.wire.tenancy import versioned


class ReservationIn(Incoming):
    """Capacity for the jobs of a tenant or queue between two times; without both, maintenance."""

    starts: str = Field(max_length=64, examples=["2026-11-28T14:00:00Z"])
    """Begin, with a time zone."""
    ends: str = Field(max_length=64, examples=["2026-11-28T18:00:00Z"])
    """End, with a time zone."""
    tenant: ReferenceOrNone = ""
    """Tenant whose jobs may use the capacity; empty for any."""
    queue: ReferenceOrNone = ""
    """Queue whose jobs may use the capacity; empty for any."""
    gpus: int = Field(default=0, ge=0, le=LARGEST)
    """Number of whole GPUs; 0 for all of `clusters` or `nodes`."""
    gpu_model: Line = ""
    """Name of a GPU model, such as A100; empty for any."""
    clusters: References = no_entries()
    """Clusters; empty for all."""
    nodes: References = no_entries()
    """Nodes of the only cluster; empty for all."""
    drain: bool = False
    """True if maintenance moves running jobs elsewhere when it begins."""
    description: Line = ""

    def reservation(self, name: str) -> AdvanceReservation:
        """Return the record.

        Raises
        ------
        RejectedError
            If a time or a combination of fields is invalid.
        """
        return AdvanceReservation(
            name,
            _time(self.starts, "starts"),
            _time(self.ends, "ends"),
            self.tenant,
            self.queue,
            self.gpus,
            self.gpu_model,
            frozenset(self.clusters),
            frozenset(self.nodes),
            self.drain,
            self.description,
        )


class ReservationOut(Shown):
    """An advance reservation."""

    name: str
    starts: str
    ends: str
    state: str
    """`planned` or `active`."""
    maintenance: bool
    tenant: str
    queue: str
    gpus: int
    """Number of whole GPUs; 0 for all of `clusters` or `nodes`."""
    gpu_model: str
    clusters: list[str]
    nodes: list[str]
    drain: bool
    description: str
    gpus_reserved: int
    """Number of GPUs that are reserved; fewer than `gpus` if the fleet lacks them now."""
    gpus_ready: int
    """Number of these that no job of others holds at the begin, as far as known."""
    version: str
    """Version, used as ETag."""


class ReservationList(Shown):
    """Advance reservations, by name."""

    reservations: list[ReservationOut]


def written(reservation: AdvanceReservation) -> dict[str, Any]:
    """Return the fields of a reservation that do not change by themselves, with their version."""
    return versioned(
        {
            "name": reservation.name,
            "starts": moment(reservation.starts_ns),
            "ends": moment(reservation.ends_ns),
            "maintenance": reservation.maintenance,
            "tenant": reservation.tenant,
            "queue": reservation.queue,
            "gpus": reservation.gpus,
            "gpu_model": reservation.gpu_model,
            "clusters": sorted(reservation.clusters),
            "nodes": sorted(reservation.nodes),
            "drain": reservation.drain,
            "description": reservation.description,
        }
    )


def reservation_fields(view: ReservationView) -> dict[str, Any]:
    """Return the fields of `ReservationOut` for a reservation."""
    state = "active" if view.active else "planned"
    figures = {"state": state, "gpus_reserved": view.gpus_reserved, "gpus_ready": view.gpus_ready}
    return {**written(view.reservation), **figures}


def _time(text: str, field: str) -> int:
    """Parse a time, and name the field if it is invalid."""
    try:
        return at_ns(text)
    except (ValueError, OverflowError):
        raise RejectedError(Reason("use_time_with_zone", text=text), where=field) from None
