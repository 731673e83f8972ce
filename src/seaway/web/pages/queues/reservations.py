"""Panel of advance reservations and maintenance windows, on the schedule page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls import fleet, tenancy
from seaway.client.calls import queues as queue_calls
from seaway.domain.errors import RejectedError
from seaway.domain.numbers import whole_number
from seaway.web.fragment import Fragment
from seaway.web.pages.queues.forms import ask_named, ask_to_remove
from seaway.web.parts.cordon import on_act
from seaway.web.parts.form import Field
from seaway.web.parts.models import models_hint
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.client.call import Call
    from seaway.wire.reservations import ReservationList, ReservationOut

EVERY_S = 3.0
"""Interval of queries, in seconds."""

MINUTE = "%Y-%m-%d %H:%M"


async def build(visit: Visit) -> None:
    """Build the panel."""
    await visit.follow(tenancy.reservations(), _Reservations(visit).on_reservations, EVERY_S)


class _Reservations:
    """Panel of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._seen: Sequence[ReservationOut] = ()
        with ui.element("section").classes("panel"):
            self._drawn = Fragment("reservations", visit.words)
        on_act(self._drawn, self._act)

    def on_reservations(self, value: ReservationList) -> None:
        """Draw the list."""
        self._seen, may = value.reservations, self._visit.may("operator")
        self._drawn.show_of([self._seen], lambda: {"rows": self._seen, "may": may}, may)

    async def _act(self, act: str, name: str) -> None:
        words = self._visit.words
        there = next((each for each in self._seen if each.name == name), None)
        if act == "new" or (act == "change" and there):
            await ask_reservation(self._visit, there)
        elif act == "remove" and there:
            title = words("Remove reservation {name}?", name=name)
            text = words("Other jobs may use its capacity at once. Maintenance that has begun ends.")
            ask_to_remove(self._visit, title, text, tenancy.delete_reservation(name), name)


async def ask_reservation(visit: Visit, there: ReservationOut | None) -> None:
    """Open the dialog for a new or an existing reservation."""
    words = visit.words
    tenants, queues, clusters, models = await asyncio.gather(
        visit.ask(tenancy.tenants()),
        visit.ask(queue_calls.queues()),
        visit.ask(fleet.clusters()),
        visit.ask(fleet.models()),
    )
    zone = await visit.zone()
    soon = datetime.now(zone).replace(minute=0, second=0) + timedelta(hours=1)
    starts = datetime.fromisoformat(there.starts).astimezone(zone) if there else soon
    ends = datetime.fromisoformat(there.ends).astimezone(zone) if there else soon + timedelta(hours=4)
    zone_name = zone.key.removeprefix("Etc/")
    none = {"": words("any")}
    listed = sorted({*(each.name for each in clusters.clusters), *(there.clusters if there else ())})
    fields = [
        Field("starts", words("Begin ({zone})", zone=zone_name), starts.strftime(MINUTE)),
        Field("ends", words("End ({zone})", zone=zone_name), ends.strftime(MINUTE)),
        Field(
            "tenant",
            words("Tenant"),
            there.tenant if there else "",
            none | {each.name: each.name for each in tenants.tenants},
            words("Without a tenant and a queue, it is maintenance."),
        ),
        Field(
            "queue",
            words("Queue"),
            there.queue if there else "",
            none | {each.name: each.name for each in queues.queues},
        ),
        Field(
            "gpus",
            words("Whole GPUs"),
            str(there.gpus) if there and there.gpus else "",
            hint=words("Leave empty for all of the clusters or nodes."),
        ),
        Field(
            "gpu_model",
            words("GPU model"),
            there.gpu_model if there else "",
            hint=models_hint(words, models.models),
            completions=[each.model for each in models.models],
        ),
        Field("clusters", words("Clusters"), list(there.clusters) if there else [], {each: each for each in listed}),
        Field(
            "nodes",
            words("Nodes"),
            ", ".join(there.nodes) if there else "",
            hint=words("Names of nodes of the cluster, separated by commas. Leave empty for all."),
        ),
        Field("drain", words("Maintenance moves running jobs"), there.drain if there else False),
        Field("description", words("Description"), there.description if there else ""),
    ]

    def put(name: str, given: dict[str, Any]) -> Call[Any]:
        gpus = whole_number(given["gpus"] or 0)
        if gpus is None:
            raise RejectedError(words("Enter a whole number."), where="gpus")
        nodes = [each.strip() for each in given["nodes"].split(",") if each.strip()]
        times = {key: _moment(given[key], zone) for key in ("starts", "ends")}
        return tenancy.put_reservation(name, seen=there, **{**given, **times, "gpus": gpus, "nodes": nodes})

    title = words("Change reservation {name}", name=there.name) if there else words("New reservation")
    ask_named(visit, title, fields, put, there.name if there else "")


def _moment(text: str, zone: tzinfo) -> str:
    """Return a time as the API needs it. Without a zone it is local; an invalid one is left to the API."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return (at if at.tzinfo else at.replace(tzinfo=zone)).isoformat()
