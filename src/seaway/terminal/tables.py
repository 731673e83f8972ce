"""Columns, and tables of jobs, attempts, containers and links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from seaway.domain.job_state import FINAL
from seaway.domain.units import loss_bound_percent
from seaway.terminal.words import (
    NONE,
    NOWHERE,
    Body,
    ago,
    all_gpus,
    bar,
    clock,
    cores,
    cost_text,
    day,
    lasted,
    loss,
    moment,
    money,
    need,
    places,
    rate,
    replicas,
    rtt,
    seconds,
    state,
    until,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


ENDED = frozenset(state.value for state in FINAL)

GAP = 2
LEAST = 16
"""Minimum width of a column that may be truncated, in characters."""


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table.

    Attributes
    ----------
    title
        Heading.
    cell
        Returns the text of a row's cell.
    right
        True to align right.
    wide
        True to show it only in wide output.
    cut
        True if its text may be truncated.
    drop
        Order in which columns are dropped from a narrow terminal, the highest first; 0 is never dropped.
    """

    title: str
    cell: Callable[[Body], str | Text]
    right: bool = False
    wide: bool = False
    cut: bool = False
    drop: int = 0


class Rows:
    """Table that adapts to the width of the terminal when it is printed.

    Parameters
    ----------
    columns
        All columns.
    rows
        Rows, one per line.
    wide
        True to show wide columns.
    """

    def __init__(self, columns: Sequence[Column], rows: Iterable[Body], *, wide: bool = False) -> None:
        self._columns = [each for each in columns if wide or not each.wide]
        self._cells = [[_text(column.cell(row)) for column in self._columns] for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = fitting(self._columns, list(map(self._width, range(len(self._columns)))), options.max_width)
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        for at in shown:
            column = self._columns[at]
            table.add_column(column.title, justify="right" if column.right else "left", no_wrap=not column.cut)
        for row in self._cells:
            table.add_row(*(_cut(row[at]) if self._columns[at].cut else row[at] for at in shown))
        yield table

    def _width(self, at: int) -> int:
        return max([cell_len(self._columns[at].title), *(row[at].cell_len for row in self._cells)])


def fitting(columns: Sequence[Column], widest: Sequence[int], room: int) -> list[int]:
    """Return the indexes of the columns that fit a width.

    Parameters
    ----------
    widest
        Width of each column's widest text, in characters.
    room
        Available width in characters.
    """
    least = [GAP + (min(wide, LEAST) if column.cut else wide) for column, wide in zip(columns, widest, strict=True)]
    shown = list(range(len(columns)))
    while sum(least[at] for at in shown) > room and any(columns[at].drop for at in shown):
        shown.remove(max(shown, key=lambda at: columns[at].drop))
    return shown


def details(pairs: Iterable[tuple[str, str | Text]]) -> Table:
    """Return a table of names and values; omit empty values."""
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            table.add_row(name, _text(value))
    return table


def _text(value: str | Text) -> Text:
    return Text(value) if isinstance(value, str) else value


def _cut(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def job_name(job: Body) -> str:
    """Return the name of a job, with the indexes of an array or of a task as Slurm shows them."""
    if job.get("index") is not None:
        return f"{job['name']}_{job['index']}"
    return f"{job['name']}_[{job['spec']['array']}]" if job.get("tasks") else str(job["name"])


def job_reason(job: Body) -> str:
    """Return the reason of a job, or the numbers of an array's tasks while they run."""
    tasks = job.get("tasks")
    if not tasks or job["state"] in ENDED or job["state"] == "held":
        return str(job["message"])
    return ", ".join(f"{count:,} {state}" for state, count in tasks["states"].items())


JOB_COLUMNS = (
    Column("NAME", job_name),
    Column("ID", lambda job: job["id"], drop=3),
    Column("TENANT", lambda job: job["tenant"], wide=True, drop=6),
    Column("QUEUE", lambda job: job["queue"], drop=5),
    Column("STATE", lambda job: state(job["state"])),
    Column("PRIORITY", lambda job: str(job["priority"]), right=True, wide=True, drop=9),
    Column("REPLICAS", replicas, right=True, wide=True, drop=9),
    Column("GPUS", all_gpus, drop=4),
    Column(
        "HELD",
        lambda job: cores(1000 * job["held_gpus"]) if job.get("held_gpus") else NONE,
        right=True,
        wide=True,
        drop=9,
    ),
    Column("WHERE", places, cut=True, drop=1),
    Column("AGE", lambda job: ago(job["submitted_at"]), right=True, drop=2),
    Column("ATTEMPT", lambda job: str(job["attempt"] or NONE), right=True, wide=True, drop=9),
    Column("COST", lambda job: cost_text(job.get("cost")), right=True, wide=True, drop=7),
    Column("BY", lambda job: job["submitted_by"], wide=True, drop=8),
    Column("REASON", job_reason, cut=True),
)
"""Columns of jobs."""


STARTS = Column("STARTS", lambda job: until(job["estimated_start"]) if job["estimated_start"] else NONE, right=True)
"""Column of expected starts, in lists that have one."""


def parameters(job: Body) -> str:
    """Return the parameters of a task with their values; empty for other jobs."""
    return " ".join(f"{name}={value}" for name, value in job.get("parameters", {}).items())


TASK_COLUMNS = (*JOB_COLUMNS[:-1], Column("PARAMETERS", lambda job: parameters(job) or NONE, cut=True), JOB_COLUMNS[-1])
"""Columns of the tasks of an array."""


FINISHED_COLUMNS = (
    *JOB_COLUMNS[:5],
    Column("SUBMITTED", lambda job: day(job["submitted_at"]), wide=True, drop=9),
    Column("STARTED", lambda job: day(job["started_at"]), drop=2),
    Column("ENDED", lambda job: day(job["ended_at"])),
    Column("DURATION", lambda job: lasted(job["started_at"], job["ended_at"]), right=True),
    Column("GPU-HOURS", lambda job: f"{job['gpu_hours']:,.2f}", right=True),
    Column("COST", lambda job: cost_text(job.get("cost")), right=True, drop=3),
    Column("BY", lambda job: job["submitted_by"], drop=4),
    Column("REASON", job_reason, cut=True, drop=1),
)
"""Columns of finished jobs."""


SUCCEEDED = "succeeded"


def _in_tree(job: Body) -> Text:
    return Text(job["branch"], "dim").append(job_name(job), "default")


def _comes_after(job: Body) -> str:
    """Return the predecessors of a job, with conditions other than success."""
    named = (each["name"] if each["when"] == SUCCEEDED else " ".join(each.values()) for each in job["predecessors"])
    return ", ".join(named) or NONE


TREE_COLUMNS = (
    Column("NAME", _in_tree),
    *JOB_COLUMNS[1:5],
    Column("AFTER", _comes_after, cut=True, drop=6),
    *JOB_COLUMNS[5:],
)
"""Columns of jobs in a tree."""


def as_tree(jobs: Sequence[Body]) -> list[Body]:
    """Order jobs as trees, oldest first, each below the last of its predecessors, with the marks of its branch."""
    known = {job["id"]: job for job in sorted(jobs, key=lambda job: job["id"])}
    below: dict[str, list[Body]] = {"": []}
    for job in known.values():
        after = job["spec"].get("after", [])
        there = [each["job"] for each in after if each["job"] in known]
        below.setdefault(there[-1] if there else "", []).append(job)
    found: list[Body] = []
    rest = [(job, "", "") for job in reversed(below[""])]
    while rest:
        job, mark, indent = rest.pop()
        names = [
            {
                "name": known[each["job"]]["name"] if each["job"] in known else each["job"],
                "when": each.get("when", SUCCEEDED),
            }
            for each in job["spec"].get("after", [])
        ]
        found.append({**job, "branch": mark, "predecessors": names})
        children = below.get(job["id"], [])
        rest += [
            (child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  "))
            for last, child in ((child is children[-1], child) for child in reversed(children))
        ]
    return found


WAITING_COLUMNS = (
    Column("NAME", job_name),
    Column("TENANT", lambda job: job["tenant"], drop=4),
    Column("QUEUE", lambda job: job["queue"], drop=3),
    Column("STATE", lambda job: state(job["state"]), drop=2),
    Column("PRIORITY", lambda job: str(job["priority"]), right=True, drop=1),
    Column("REPLICAS", lambda job: str(job["replicas"]), right=True, drop=5),
    Column("GPUS", all_gpus),
    Column("WAITS", lambda job: ago(job["submitted_at"]), right=True),
    Column("BECAUSE", lambda job: job["message"], cut=True),
)
"""Columns of waiting jobs."""

ATTEMPT_COLUMNS = (
    Column("ATTEMPT", lambda each: str(each["number"]), right=True),
    Column("STATE", lambda each: each["state"]),
    Column("POLICY", lambda each: each["policy"], drop=2),
    Column("WHERE", lambda each: ", ".join(placement_text(each["placements"])), cut=True),
    Column("TOOK", lambda each: lasted(each["running_at"], each["ended_at"]), right=True, drop=1),
    Column("COST", lambda each: cost_text(each.get("cost")), right=True, drop=3),
    Column("REASON", lambda each: each["message"] or (each["placement_reason"] or {}).get("message", ""), cut=True),
)
"""Columns of a job's attempts."""


def facts(body: Body) -> Table:
    """Return a table with a job's description, resources and times."""
    return details(
        [
            ("name", job_name(body)),
            ("id", body["id"]),
            ("state", state(body["state"])),
            ("tasks", _tasks(body)),
            ("parameters", parameters(body)),
            ("reason", body["message"]),
            ("tenant", body["tenant"]),
            ("queue", f"{body['queue']}, priority {body['priority']}"),
            ("replicas", _replicas(body)),
            ("scaled by", ", ".join(map(_trigger, body["spec"].get("scale", [])))),
            ("each needs", need(body)),
            ("submitted", f"{day(body['submitted_at'])} by {body['submitted_by']}"),
            ("started", day(body["started_at"]) if body["started_at"] else ""),
            ("ended", day(body["ended_at"]) if body["ended_at"] else ""),
            ("expected end", day(body["expected_end"]) if body.get("expected_end") else ""),
            ("ran for", lasted(body["started_at"], body["ended_at"]) if _ran(body) else ""),
            ("cost", _cost(body.get("cost"))),
            ("GPU cores used", _used(body.get("gpu_use"), "core_milli")),
            ("GPU memory used", _used(body.get("gpu_use"), "memory_mib")),
            ("lease until", day(body["expires_at"]) if body.get("expires_at") else ""),
            ("not before", day(body["not_before"]) if body["not_before"] else ""),
            ("standby", _standby(body.get("standby"))),
            ("last switch", _switch(body.get("standby"))),
        ]
    )


def _cost(cost: Body | None) -> str:
    """Return the cost and the GPU-hours of a job, and its cost per hour while it holds GPUs; empty before that."""
    if (so_far := cost_text(cost)) == NONE or cost is None:
        return ""
    unpriced = cost["unpriced_gpu_hours"]
    rest = f", {unpriced:,.2f} of them without a known price" if unpriced and cost["cost"] is not None else ""
    per_hour = money(cost["cost_per_hour"], cost["unpriced_gpus"], cost.get("currency", ""))
    now = f" so far, {per_hour} per hour" if cost["cost_per_hour"] != "0.00" or cost["unpriced_gpus"] else ""
    return f"{so_far}{now}; {cost['gpu_hours']:,.2f} GPU-hours{rest}"


def _used(use: Body | None, name: str) -> str:
    """Return the measured use as a sparkline and in percent of what is reserved; empty without samples."""
    samples = [each for each in (use or {"samples": []})["samples"] if each[name] is not None]
    shares = [100 * each[name] // (each[f"{name}_reserved"] or 1) for each in samples]
    if not shares:
        return ""
    mean, begin = sum(shares) // len(shares), day(samples[0]["at"])
    return f"{sparkline(shares, USE_WIDTH)} {shares[-1]} % of what it has, mean {mean} % since {begin}"


def _standby(standby: Body | None) -> str:
    """Return a text on the standby of a service; empty without one."""
    if not standby:
        return ""
    if standby["role"] == "standby":
        return f"this is the standby of job {standby['other']}"
    where = f" in {', '.join(standby['clusters'])}" if standby["clusters"] else ""
    job = f", job {standby['other']}" if standby["other"] else ""
    reason = f": {standby['message']}" if standby["message"] and not where else ""
    return f"{standby['mode']}{', ' if standby['state'] else ''}{standby['state']}{where}{job}{reason}"


def _switch(standby: Body | None) -> str:
    """Return a text on the latest switch to the standby; empty before the first."""
    if not standby or not standby["switched_at"]:
        return ""
    after = ""
    if standby["lost_at"]:
        seconds = (moment(standby["switched_at"]) - moment(standby["lost_at"])).total_seconds()
        after = f", {seconds:.1f} s after its last report"
    return f"{day(standby['switched_at'])}, from {standby['left']}{after}"


def addresses(body: Body) -> list[Body]:
    """Return the endpoints of the active copy of a service, then those of its standby."""
    standby = body["standby"]["endpoints"]
    return [*body["endpoints"], *({**each, "cluster": f"{each['cluster']} (standby)"} for each in standby)]


def _tasks(body: Body) -> str:
    if not (tasks := body.get("tasks")):
        return ""
    states = ", ".join(f"{count:,} {state}" for state, count in tasks["states"].items())
    most = f", at most {tasks['limit']:,} at once" if tasks["limit"] else ""
    return f"{tasks['total']:,}: {states}{most}; list them with seaway jobs --array {body['id']}"


def _ran(body: Body) -> bool:
    """Report whether the time since the start is one run: it runs or has ended, and does not wait again."""
    return bool(body["started_at"] and (body["ended_at"] or body["state"] not in NOWHERE))


def _trigger(trigger: Body) -> str:
    """Return a text on a trigger of an elastic job."""
    if "metric" in trigger:
        return f"{trigger['metric']} {trigger['target']}"
    window = f"{trigger['start']} to {trigger['end']} {trigger.get('timezone', 'UTC')}"
    return f"{trigger['replicas']} replicas from {window}"


def _replicas(body: Body) -> str:
    done, bounds = body.get("completed_replicas", 0), body["spec"].get("replicas")
    if isinstance(bounds, dict):
        return f"{replicas(body)}, elastic from {bounds['min']} to {bounds['max']}"
    return f"{replicas(body)}, of which {done} have completed" if done else replicas(body)


REACH = {
    "outside": "anywhere",
    "nodes": "networks of the nodes",
    "cluster": "pods of the cluster",
    "clusters": "replicas in other clusters",
    "none": "nowhere yet",
}
"""Clients that can use an endpoint, by its reach."""

ENDPOINT_COLUMNS = (
    Column("PORT", lambda each: str(each["port"]) + ("/udp" if each.get("protocol") == "UDP" else ""), right=True),
    Column("CONTAINER", lambda each: "/".join(filter(None, (each.get("container", ""), each.get("name", ""))))),
    Column("ADDRESS", lambda each: each["address"] or NONE),
    Column("FROM", lambda each: REACH[each["reach"]]),
    Column("CLUSTER", lambda each: each["cluster"], drop=1),
    Column("NOTE", lambda each: each["message"], cut=True, drop=2),
)
"""Columns of the addresses of a job's ports."""


def containers(workloads: Sequence[Body]) -> RenderableType:
    """Return a list of the containers of a job's replicas with their pods."""
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


def placement_text(placements: Sequence[Body]) -> list[str]:
    """Return the nodes of an attempt, each once."""
    return list(dict.fromkeys(f"{each['cluster']}/{each['node']}" for each in placements))


STATES = {"measured": "green", "stale": "yellow", "unknown": "dim", "reported": ""}
"""Colours of the states of links. The text of a state is always visible, too."""

MUCH_LOSS_PPM = 10_000
SPARK_BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 60
"""Width of a sparkline, in characters."""

USE_WIDTH = 24
"""Width of a sparkline beside text, in characters."""


class Figure(StrEnum):
    """Quantity in a matrix of links."""

    RTT = "rtt"
    JITTER = "jitter"
    LOSS = "loss"
    BANDWIDTH = "bandwidth"


def _lost(link: Body) -> Text:
    """Format a loss, in red above 1 %, and in yellow above 0; a loss of 0 as its upper bound, if that is known."""
    ppm, bound_ppm = link["loss_ppm"], link.get("loss_bound_ppm")
    if ppm is None:
        return Text(NONE, "dim")
    if bound_ppm:
        return Text(f"< {loss_bound_percent(bound_ppm)} %")
    return Text(loss(ppm), "red" if ppm > MUCH_LOSS_PPM else "yellow" if ppm else "")


def _time(ns: int | None, link: Body) -> Text:
    """Format a time, in red without an answer, and dim if it is unknown."""
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


def _change(link: Body) -> str:
    """Format the figure that is furthest above the usual one, in percent of it."""
    percent = link.get("change_percent")
    return NONE if percent is None else f"{percent} % {link['changed'] or ''}".rstrip()


def _shown(link: Body, *, raw: bool) -> Body:
    """Return a link with the figures for decisions or, with `raw`, with those of the latest round."""
    if not raw or link["raw"] is None:
        return link
    names = "latency_ns", "jitter_ns", "loss_ppm"
    return {**link, **{name: link["raw"][name] for name in names}, "loss_bound_ppm": None}


LINK_COLUMNS = (
    Column("FROM", lambda each: each["source"]),
    Column("TO", lambda each: each["target"]),
    Column("RTT", lambda each: _time(each["latency_ns"], each), right=True),
    Column("JITTER", lambda each: _time(each["jitter_ns"], each), right=True, drop=3),
    Column("LOSS", _lost, right=True, drop=2),
    Column("BANDWIDTH", lambda each: _rate(each["bandwidth_mbps"]), right=True),
    Column("TAKEN", _taken, drop=4),
    Column("CARRIED", lambda each: _known_rate(each["traffic_mbps"]), right=True, wide=True),
    Column(
        "RESERVED",
        lambda each: _known_rate(each["bandwidth_mbps"] and each["reserved_mbps"]),
        right=True,
        wide=True,
    ),
    Column("FREE", lambda each: _known_rate(each["free_mbps"]), right=True, drop=4),
    Column("AGAINST USUAL", _change, right=True, wide=True),
    Column("PATH", lambda each: each["path"] or NONE, wide=True),
    Column("STATE", lambda each: Text(each["state"], STATES[each["state"]]), drop=1),
    Column("AGE", lambda each: NONE if each["age_s"] is None else seconds(each["age_s"]), right=True, drop=5),
)
"""Columns of links."""


def ring(parts: Sequence[Body], *, wide: bool) -> RenderableType:
    """Return the table of the clusters of a ring, with the link from each to the next one."""
    columns = (
        Column("RING", lambda each: each["cluster"]),
        Column("REPLICAS", lambda each: str(each["replicas"]), right=True),
        Column("NEXT", lambda each: each["next"]),
        *(replace(each, cell=_of_link(each.cell)) for each in LINK_COLUMNS if each.title not in ("FROM", "TO")),
    )
    return Rows(columns, parts, wide=wide)


def _of_link(write: Callable[[Body], str | Text]) -> Callable[[Body], str | Text]:
    return lambda part: write(part["link"]) if part["link"] else NONE


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
        Figure.LOSS: _lost,
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
    """Return a sparkline for each figure of a link, oldest first; in wide output, return a table of all samples."""
    from rich.table import Table

    if not samples:
        return "no measurements"
    if wide:
        columns = (
            Column("TIME", lambda each: clock(each["at"])),
            Column("RTT", lambda each: _time(each["latency_ns"], {**each, "state": "measured"}), right=True),
            Column("JITTER", lambda each: _time(each["jitter_ns"], {**each, "state": "measured"}), right=True),
            Column("LOSS", _lost, right=True),
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
        lines.add_row(title, Text(sparkline(values)), *ends, latest)
    return lines


def sparkline(values: Sequence[int | None], width: int = WIDTH) -> str:
    """Return a sparkline. Each mark is the maximum of its part of the values; a blank means no answer.

    The lowest mark stands for 0, so that small variations look flat.
    """
    marks = min(width, len(values))
    cuts = [round(at * len(values) / marks) for at in range(marks + 1)]
    parts = [[value for value in values[first:end] if value is not None] for first, end in pairwise(cuts)]
    most = max((max(part) for part in parts if part), default=0) or 1
    return "".join(SPARK_BLOCKS[max(part) * (len(SPARK_BLOCKS) - 1) // most] if part else " " for part in parts)
