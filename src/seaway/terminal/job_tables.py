"""Tables of jobs, attempts and containers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table

from seaway.terminal.columns import Column, Rows, details
from seaway.terminal.words import NONE, Body, ago, day, gpus, lasted, need, places, state

JOB_COLUMNS = (
    Column("NAME", lambda job: job["name"]),
    Column("ID", lambda job: job["id"], drop=3),
    Column("TENANT", lambda job: job["tenant"], wide=True, drop=6),
    Column("QUEUE", lambda job: job["queue"], drop=5),
    Column("STATE", lambda job: state(job["state"])),
    Column("PRIORITY", lambda job: str(job["priority"]), right=True, wide=True, drop=9),
    Column("REPLICAS", lambda job: str(job["replicas"]), right=True, wide=True, drop=9),
    Column("GPUS", gpus, drop=4),
    Column("WHERE", places, cut=True, drop=1),
    Column("AGE", lambda job: ago(job["submitted_at"]), right=True, drop=2),
    Column("ATTEMPT", lambda job: str(job["attempt"] or NONE), right=True, wide=True, drop=9),
    Column("BY", lambda job: job["submitted_by"], wide=True, drop=8),
    Column("REASON", lambda job: job["reason"], cut=True),
)
"""Columns of jobs."""

WAITING_COLUMNS = (
    Column("NAME", lambda job: job["name"]),
    Column("TENANT", lambda job: job["tenant"], drop=4),
    Column("QUEUE", lambda job: job["queue"], drop=3),
    Column("STATE", lambda job: state(job["state"]), drop=2),
    Column("PRIORITY", lambda job: str(job["priority"]), right=True, drop=1),
    Column("REPLICAS", lambda job: str(job["replicas"]), right=True, drop=5),
    Column("GPUS", gpus),
    Column("WAITS", lambda job: ago(job["submitted_at"]), right=True),
    Column("BECAUSE", lambda job: job["reason"], cut=True),
)
"""Columns of waiting jobs."""

ATTEMPT_COLUMNS = (
    Column("ATTEMPT", lambda each: str(each["number"]), right=True),
    Column("STATE", lambda each: each["state"]),
    Column("POLICY", lambda each: each["policy"], drop=2),
    Column("WHERE", lambda each: ", ".join(where_placed(each["placements"])), cut=True),
    Column("TOOK", lambda each: lasted(each["running_at"], each["ended_at"]), right=True, drop=1),
    Column("WHY", lambda each: each["reason"] or each["why"], cut=True),
)
"""Columns of a job's attempts."""


def facts(body: Body, workloads: Sequence[Body]) -> Table:
    """Return a table with a job's description, resources, times and addresses."""
    return details(
        [
            ("name", body["name"]),
            ("id", body["id"]),
            ("state", state(body["state"])),
            ("reason", body["reason"]),
            ("tenant", body["tenant"]),
            ("queue", f"{body['queue']}, priority {body['priority']}"),
            ("replicas", str(body["replicas"])),
            ("each needs", need(body)),
            ("submitted", f"{day(body['submitted_at'])} by {body['submitted_by']}"),
            ("started", day(body["started_at"]) if body["started_at"] else ""),
            ("ended", day(body["ended_at"]) if body["ended_at"] else ""),
            ("ran for", lasted(body["started_at"], body["ended_at"]) if body["started_at"] else ""),
            ("not before", day(body["not_before"]) if body["not_before"] else ""),
            (
                "answers at",
                "; ".join(f"{each['address']} in {each['cluster']}" for each in workloads if each["address"]),
            ),
        ]
    )


def containers(workloads: Sequence[Body]) -> RenderableType:
    """List the containers of a job's replicas with their pods."""
    columns = (
        Column("REPLICA", lambda each: str(each["replica"]), right=True),
        Column("PHASE", lambda each: each["phase"]),
        Column("CLUSTER", lambda each: each["cluster"]),
        Column("NODE", lambda each: each["node"], drop=2),
        Column("POD", lambda each: each["pod"], cut=True, drop=1),
        Column("CONTAINER", lambda each: each["name"] or NONE),
        Column("PORTS", lambda each: ",".join(map(str, each["ports"])) or NONE),
        Column("DEVICES", lambda each: ", ".join(each["devices"]) or NONE, cut=True, drop=3),
    )
    unknown = {"name": "", "ports": [], "devices": []}
    rows = [
        {**replica, **container, "cluster": copy["cluster"]}
        for copy in workloads
        for replica in copy["replicas"]
        if replica["pod"]
        for container in replica["containers"] or [unknown]
    ]
    return Rows(columns, rows) if rows else ""


def where_placed(placements: Sequence[Body]) -> list[str]:
    """List the nodes of an attempt, each once."""
    return list(dict.fromkeys(f"{each['cluster']}/{each['node']}" for each in placements))
