"""Tables of jobs, attempts and containers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from seaway.terminal.columns import Column, Rows, details
from seaway.terminal.words import (
    NONE,
    Body,
    ago,
    bar,
    clock,
    day,
    gpus,
    lasted,
    loss,
    need,
    places,
    rate,
    rtt,
    seconds,
    state,
)

if TYPE_CHECKING:
    from rich.console import RenderableType


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


STATES = {"measured": "green", "stale": "yellow", "unknown": "dim", "reported": ""}
"""Colours of the states of links; the text is always visible too."""

MUCH_LOSS_PPM = 10_000
SPARKS = "▁▂▃▄▅▆▇█"
WIDTH = 60
"""Characters of a sparkline."""


class Figure(StrEnum):
    """Quantity in a matrix of links."""

    RTT = "rtt"
    JITTER = "jitter"
    LOSS = "loss"
    BANDWIDTH = "bandwidth"


def _lost(ppm: int | None) -> Text:
    """Format a loss: red above 1 %, yellow above 0."""
    if ppm is None:
        return Text(NONE, "dim")
    return Text(loss(ppm), "red" if ppm > MUCH_LOSS_PPM else "yellow" if ppm else "")


def _time(ns: int | None, link: Body) -> Text:
    """Format a time: red without an answer, dim if unknown."""
    if ns is not None and link["loss_ppm"] is not None and link["latency_ns"] is not None:
        return Text(rtt(ns), "dim" if link["state"] == "stale" else "")
    return Text("dead", "red") if link["loss_ppm"] is not None else Text(NONE, "dim")


def _rate(mbps: int | None) -> str:
    return rate(mbps) if mbps else NONE


def _known_rate(mbps: int | None) -> str:
    return NONE if mbps is None else rate(mbps)


def _taken(link: Body) -> str | Text:
    total, free = link["bandwidth_mbps"], link["free_mbps"]
    return bar(total - min(free, total), total) if total and free is not None else NONE


def _shown(link: Body, *, raw: bool) -> Body:
    """Return a link with the figures for decisions, or with those of the latest round."""
    if not raw or link["raw"] is None:
        return link
    return {**link, **{name: link["raw"][name] for name in ("latency_ns", "jitter_ns", "loss_ppm")}}


LINK_COLUMNS = (
    Column("FROM", lambda each: each["source"]),
    Column("TO", lambda each: each["target"]),
    Column("RTT", lambda each: _time(each["latency_ns"], each), right=True),
    Column("JITTER", lambda each: _time(each["jitter_ns"], each), right=True, drop=3),
    Column("LOSS", lambda each: _lost(each["loss_ppm"]), right=True, drop=2),
    Column("BANDWIDTH", lambda each: _rate(each["bandwidth_mbps"]), right=True),
    Column("TAKEN", _taken, drop=4),
    Column("CARRIED", lambda each: _known_rate(each["traffic_mbps"]), right=True, wide=True),
    Column(
        "PROMISED",
        lambda each: _known_rate(each["bandwidth_mbps"] and each["reserved_mbps"]),
        right=True,
        wide=True,
    ),
    Column("FREE", lambda each: _known_rate(each["free_mbps"]), right=True, drop=4),
    Column("PATH", lambda each: each["path"] or NONE, wide=True),
    Column("STATE", lambda each: Text(each["state"], STATES[each["state"]]), drop=1),
    Column("AGE", lambda each: NONE if each["age_s"] is None else seconds(each["age_s"]), right=True, drop=5),
)
"""Columns of links."""


def table(body: Body, *, raw: bool, wide: bool) -> RenderableType:
    """Return the table of links."""
    if not body["links"]:
        return "no links"
    return Rows(LINK_COLUMNS, [_shown(each, raw=raw) for each in body["links"]], wide=wide)


def matrix(body: Body, figure: Figure, *, raw: bool) -> RenderableType:
    """Return a table of all pairs of gateways."""
    write: dict[Figure, Callable[[Body], str | Text]] = {
        Figure.RTT: lambda each: _time(each["latency_ns"], each),
        Figure.JITTER: lambda each: _time(each["jitter_ns"], each),
        Figure.LOSS: lambda each: _lost(each["loss_ppm"]),
        Figure.BANDWIDTH: lambda each: _rate(each["bandwidth_mbps"]),
    }
    known = {(each["source"], each["target"]): write[figure](_shown(each, raw=raw)) for each in body["links"]}
    ends = sorted({end for pair in known for end in pair})

    def cell(target: str, row: Body) -> str | Text:
        return "·" if row["source"] == target else known.get((row["source"], target), NONE)

    columns = (
        Column("from \\ to", lambda row: row["source"]),
        *(Column(target, partial(cell, target), right=True) for target in ends),
    )
    return Rows(columns, [{"source": end} for end in ends])


def history(samples: Sequence[Body], *, wide: bool) -> RenderableType:
    """Return a sparkline for each figure of a link, oldest first; or a table of all samples."""
    from rich.table import Table

    if not samples:
        return "nothing was measured"
    if wide:
        columns = (
            Column("TIME", lambda each: clock(each["at"])),
            Column("RTT", lambda each: _time(each["latency_ns"], {**each, "state": "measured"}), right=True),
            Column("JITTER", lambda each: _time(each["jitter_ns"], {**each, "state": "measured"}), right=True),
            Column("LOSS", lambda each: _lost(each["loss_ppm"]), right=True),
            Column("BANDWIDTH", lambda each: _rate(each["bandwidth_mbps"]), right=True),
            Column("USED", lambda each: rate(each["used_mbps"]), right=True),
            Column("PATH", lambda each: each["path"] or NONE),
        )
        return Rows(columns, samples)
    lines = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("", f"{clock(samples[0]['at'])} to {clock(samples[-1]['at'])}", "LEAST", "MOST", "LATEST"):
        lines.add_column(title, no_wrap=True)
    for title, name, written in (("RTT", "latency_ns", rtt), ("JITTER", "jitter_ns", rtt), ("LOSS", "loss_ppm", loss)):
        answered = [each["latency_ns"] is not None or name == "loss_ppm" for each in samples]
        values = [each[name] if shown else None for each, shown in zip(samples, answered, strict=True)]
        known = [value for value in values if value is not None]
        ends = (written(min(known)), written(max(known))) if known else (NONE, NONE)
        latest = Text("dead", "red") if values[-1] is None else Text(written(values[-1]))
        lines.add_row(title, Text(sparks(values)), *ends, latest)
    return lines


def sparks(values: Sequence[int | None], width: int = WIDTH) -> str:
    """Return a sparkline: each mark is the maximum of its part of the values, a blank means no answer.

    The lowest mark stands for 0, so that small variations look flat.
    """
    marks = min(width, len(values))
    cuts = [round(at * len(values) / marks) for at in range(marks + 1)]
    parts = [[value for value in values[first:end] if value is not None] for first, end in pairwise(cuts)]
    most = max((max(part) for part in parts if part), default=0) or 1
    return "".join(SPARKS[max(part) * (len(SPARKS) - 1) // most] if part else " " for part in parts)
