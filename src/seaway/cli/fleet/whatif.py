"""`seaway whatif`: queries on a copy of the live fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli import arguments
from seaway.cli.arguments import split_place
from seaway.cli.output import Output, OutputOption, console, show
from seaway.cli.remote import Body, body_when_compiled, connect
from seaway.domain.errors import RejectedError
from seaway.domain.tenancy import DEFAULT

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from seaway.client.sync import Client

MOST = 20
"""Maximum number of jobs, except in wide output."""

MOST_SHIFTS = 5
"""Maximum number of jobs that start earlier, and of those that start later, except in wide output."""

MOST_PLACES = 2
"""Maximum number of nodes of a job, except in wide output."""

SHARING = "Queues and quotas"

REPLAY_S = 3600.0
"""Timeout of a question with a replay, seconds."""


def whatif(
    context: typer.Context,
    drain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLACE", help="Drain a cluster or CLUSTER/NODE. Repeatable.", autocompletion=arguments.places
        ),
    ] = None,
    add_nodes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLUSTER/NODE",
            help="Add nodes like this one. Repeatable.",
            autocompletion=arguments.places,
        ),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Number of nodes for each --add-nodes.")] = 1,
    policy: Annotated[
        str | None, typer.Option(help="Place all jobs again with this policy.", autocompletion=arguments.policies)
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            "-f",
            help="Submit the jobs of this file, and apply its [bold]queues:[/bold] and [bold]tenants:[/bold]; "
            "- reads standard input.",
        ),
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Place all jobs again with the policies of their queues.")
    ] = False,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Change this queue as --set says, or add it for jobs that move to it. Repeatable.",
            autocompletion=arguments.queues,
            rich_help_panel=SHARING,
        ),
    ] = None,
    tenant: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Change this tenant as --set says. Repeatable.", rich_help_panel=SHARING),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Field of [bold]seaway queue set[/bold] or [bold]seaway tenant set[/bold], like weight=2, "
            "limit.gpus=16 or backfill=none. Repeatable.",
            rich_help_panel=SHARING,
        ),
    ] = None,
    pool: Annotated[str, typer.Option(help="Pool of the quota that --set changes.", rich_help_panel=SHARING)] = DEFAULT,
    remove_queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Remove this queue. Repeatable.",
            autocompletion=arguments.queues,
            rich_help_panel=SHARING,
        ),
    ] = None,
    move_jobs: Annotated[
        list[str] | None,
        typer.Option(
            "--move",
            metavar="QUEUE[/TENANT]=QUEUE",
            help="Count the jobs of a queue, or of a tenant in it, in another queue. Repeatable.",
            rich_help_panel=SHARING,
        ),
    ] = None,
    trace: arguments.TraceJobs = None,
    swf: arguments.TraceLog = None,
    last: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Replay the jobs that were submitted in this time, like 7d, as long as they really took.",
            rich_help_panel=arguments.TRACE,
        ),
    ] = "",
    window: Annotated[
        str, typer.Option(metavar="TIME", help="Time from now that GPU SHARE covers.", rich_help_panel=SHARING)
    ] = "1h",
    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="Then drain, and restart running jobs on the nodes of the answer. Queues keep their policies.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Apply without a question.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the effect of a change on a copy of the current fleet and its queues. Nothing changes without --apply.

    All options apply together. A trace is replayed on a copy of the empty fleet. Waits are those until the expected
    starts. Requires the operator role.

    [bold]Examples[/bold]

      [cyan]seaway whatif --drain berlin/node-7[/cyan]
      [cyan]seaway whatif --add-nodes berlin/node-1 --count 4 -f sweep.yaml[/cyan]
      [cyan]seaway whatif --policy fgd[/cyan]
      [cyan]seaway whatif --drain berlin/node-7 --apply[/cyan]
      [cyan]seaway whatif --tenant vision --set weight=2[/cyan]
      [cyan]seaway whatif --queue vision --set guarantee.gpus=16 --set limit.gpus=32[/cyan]
      [cyan]seaway whatif --queue urgent --set priority=10 --move default/vision=urgent[/cyan]
      [cyan]seaway whatif -f queues.yaml --window 1d[/cyan]
      [cyan]seaway whatif --last 7d --tenant vision --set weight=2[/cyan]
      [cyan]seaway whatif --swf log.swf --add-nodes berlin/node-1 --count 4[/cyan]
    """
    from seaway.cli.fleet import whatif_changes as changes
    from seaway.client.calls.service import whatif as call

    if settings and not (queue or tenant):
        raise RejectedError("needs --queue or --tenant", where="--set")
    if settings and queue and tenant:
        raise RejectedError("applies to queues or to tenants; change both with -f FILE", where="--set")
    if sum(map(bool, (trace, swf, last))) > 1:
        raise RejectedError("choose one of --trace, --swf and --last")
    if apply and any((add_nodes, file, queue, tenant, remove_queue, move_jobs, trace, swf, last)):
        said = "works with --drain, --policy and --replay only; change queues with seaway queue set"
        raise RejectedError(said, where="--apply")
    from_file = _documents(file) if file else {}
    question: Body = {
        "drain": drain or [],
        "add_nodes": [_addition(each, count) for each in add_nodes or []],
        "policy": policy or "",
        "replay": replay,
        "jobs": from_file.pop("jobs", []),
    }
    places = any(question.values())
    replays = bool(trace or swf or last)
    with (
        connect(context, REPLAY_S if replays else 30.0) as client,
        console(err=True).status("evaluating on a copy of the fleet"),
    ):
        moves, fields = list(map(changes.move, move_jobs or [])), settings or []
        queues = {each["to"] for each in moves} | {each.get("queue", "") for each in question["jobs"]}
        tenants = {each.get("tenant", "") for each in question["jobs"]}
        question |= {
            "queues": [changes.queue_change(client, each, fields, queues) for each in queue or []],
            "tenants": [changes.tenant_change(client, each, fields, pool, tenants) for each in tenant or []],
            "remove_queues": remove_queue or [],
            "move_jobs": moves,
        }
        for key, rows in from_file.items():
            question[key] = [*question.get(key, []), *rows]
        question |= {"last": last, "trace": _trace(client, trace, swf)}
        question = {name: value for name, value in question.items() if value}
        if not question:
            raise RejectedError(
                "choose at least one of --drain, --add-nodes, --policy, -f, --replay, --queue, --tenant, "
                "--remove-queue, --move, --trace, --swf and --last; see --help"
            )
        try:
            body = body_when_compiled(client, call({**question, "window": window}))
        except RejectedError as error:
            raise (changes.at_option(error) if settings else error) from None
    show(
        output,
        body,
        lambda wide: _picture(body, wide=wide, waiting=places),
        lambda: (each["id"] for each in body["moved"]),
    )
    if apply:
        _apply(context, question, body, confirm=not yes)


def _apply(context: typer.Context, question: Body, body: Body, *, confirm: bool) -> None:
    """Drain, and move the running jobs of an answer."""
    from seaway.client.calls.service import move_jobs

    moves, drain = body["moves"], question.get("drain", [])
    if moves is None:
        raise RejectedError("the answer moves more than 200 running jobs; drain fewer nodes at once", where="--apply")
    if not (moves or drain):
        typer.echo("no running job moves", err=True)
        return
    names = {each["id"]: each["name"] for each in (*body["moved"], *body["stopped"])}
    restart, stop = (
        ", ".join(names.get(each["job"], each["job"]) for each in moves if bool(each["to"]) is placed)
        for placed in (True, False)
    )
    steps = [
        *(f"{place} gets no new jobs" for place in drain),
        *([f"these jobs restart on the nodes above: {restart}"] if restart else []),
        *([f"these jobs stop and wait: {stop}"] if stop else []),
        *(["jobs without checkpoints start from the beginning"] if moves else []),
    ]
    if confirm:
        typer.confirm("; ".join(steps) + ". Apply?", abort=True, err=True)
    with connect(context) as client:
        done = client.body(move_jobs(moves, drain, reason="after a what-if question"))
    typer.echo(f"jobs moved: {done['moved']}, stopped: {done['stopped']}", err=True)


def _trace(client: Client, table: Path | None, log: Path | None) -> Body | None:
    """Return the trace of a file; None without one."""
    from seaway.client.calls.fleet import gateways
    from seaway.wire.whatif_trace import read_log, read_table

    if log:
        return read_log(log)
    if table:
        return read_table(table, [each["name"] for each in client.body(gateways())["gateways"]])
    return None


def _documents(file: str) -> Body:
    """Return the parts of a question in a file."""
    from seaway.cli.fleet.whatif_changes import KEYS, split_documents
    from seaway.cli.jobs.file import read_jobs

    found = split_documents(each.fields for each in read_jobs(file))
    for key in found.keys() - {*KEYS, "jobs"}:
        raise RejectedError(f"unknown part {key!r}; use {', '.join(KEYS)}, or the fields of a job", where=file)
    return found


def _addition(place: str, count: int) -> Body:
    cluster, node = split_place(place)
    if not node:
        raise RejectedError("name the node to copy: CLUSTER/NODE", where="--add-nodes")
    return {"cluster": cluster, "like": node, "count": count}


def _picture(body: Body, *, wide: bool, waiting: bool) -> RenderableType:
    """Return the answer.

    Parameters
    ----------
    waiting
        Whether to list jobs that would still wait.
    """
    from rich.console import Group
    from rich.text import Text

    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import until

    figures = [
        {"name": SUMS.get(name, name.replace("_", " ")), "before": body["before"].get(name), "after": after}
        for name, after in body["after"].items()
    ]
    columns = (
        Column("", lambda each: each["name"]),
        Column("BEFORE", lambda each: _figure(each["before"]), right=True),
        Column("AFTER", lambda each: _figure(each["after"]), right=True),
    )
    parts: list[RenderableType] = [Text(body["message"], "bold"), Rows(columns, figures)]
    if lost := body.get("lost_gpu_hours"):
        parts.append(Text(f"Work lost: {lost:,.1f} GPU-hours of jobs without checkpoints."))
    if waits := body.get("waits"):
        parts += _waits(waits, wide=wide)
    if trace := body.get("trace"):
        parts += _replays(trace, wide=wide)
    kinds = ("stopped", "moved", "shrunk", "grown", "started", *(["waiting"] if waiting else []))
    moves = [{"what": what, **job} for what in kinds for job in body.get(what, [])]
    if moves:
        shown = moves if wide else moves[:MOST]
        move_columns = (
            Column("JOB", lambda each: each["name"]),
            Column("ID", lambda each: each["id"], wide=True),
            Column("EFFECT", lambda each: each["what"]),
            Column("FROM", lambda each: _places(each["before"], wide=wide), cut=True),
            Column("TO", lambda each: _places(each["after"], wide=wide), cut=True),
            Column("STARTS", lambda each: until(each.get("estimated_start")), wide=True),
            Column("REASON", lambda each: each["message"], wide=True),
        )
        parts += ["", Rows(move_columns, shown, wide=wide)]
        if len(shown) < len(moves):
            parts.append(f"[dim]and {len(moves) - len(shown)} more: -o wide[/dim]")
    return Group(*parts)


def _waits(waits: Body, *, wide: bool) -> list[RenderableType]:
    """Return tables of the waits of queues and tenants, and of the jobs whose start changes most."""
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import until

    shift_columns = (
        Column("JOB", lambda job: job["name"]),
        Column("ID", lambda job: job["id"], wide=True),
        Column("QUEUE", lambda job: job["queue"]),
        Column("TENANT", lambda job: job["tenant"], drop=1),
        Column("STARTS", lambda job: _from_to(until(job["before"]), until(job["after"]))),
    )
    most = None if wide else MOST_SHIFTS
    shifts = [*waits["earlier_jobs"][:most], *waits["later_jobs"][:most]]
    found = _groups(waits, "WAITING TASKS", "START UNKNOWN", wide=wide)
    return [*found, "", Rows(shift_columns, shifts, wide=wide)] if shifts else found


def _groups(waits: Body, jobs: str, unknown: str, *, wide: bool) -> list[RenderableType]:
    """Return tables of the waits of queues and tenants, with the titles of two columns."""
    from seaway.terminal.tables import Column, Rows

    def both(key: str, text: Callable[[Any], str]) -> Callable[[Body], str]:
        return lambda row: _from_to(text(row["before"][key]), text(row["after"][key]))

    columns = (
        Column(jobs, both("waiting", str), right=True),
        Column("MEAN WAIT", lambda row: _from_to(*(_mean(row[side]) for side in ("before", "after"))), right=True),
        Column("KNOWN IN BOTH", lambda row: _compared(row["before"], row["after"]), right=True, drop=3),
        Column(unknown, both("unknown", str), right=True),
        Column("P50", both("p50_s", _wait), right=True, drop=2),
        Column("P95", both("p95_s", _wait), right=True, drop=1),
        Column("GPU SHARE", both("gpu_share", lambda share: f"{100 * share:.1f}%"), right=True),
    )
    queue = Column("QUEUE", lambda row: f"{'  ' * row['depth']}{row['name']}")
    tenant = Column("TENANT", lambda row: row["name"])
    every = Column("", lambda _: "all tasks")
    tables = [(waits["queues"], (queue, *columns)), (waits["tenants"], (tenant, *columns))]
    if whole := waits.get("fleet"):
        tables.insert(0, ([whole], (every, *columns)))
    found: list[RenderableType] = []
    for rows, shown in tables:
        if rows:
            found += ["", Rows(shown, rows, wide=wide)]
    return found


def _replays(trace: Body, *, wide: bool) -> list[RenderableType]:
    """Return the title of a replay, and tables of its measures and of the waits of queues and tenants."""
    from rich.text import Text

    from seaway.terminal.tables import Column, Rows

    rows = [
        {"name": name, "before": text(trace["before"][key]), "after": text(trace["after"][key])}
        for name, key, text in MEASURES
    ]
    columns = (
        Column("", lambda each: each["name"]),
        Column("BEFORE", lambda each: each["before"], right=True),
        Column("AFTER", lambda each: each["after"], right=True),
    )
    parts = [f"{trace['jobs']:,} jobs over {trace['span']} on the empty fleet, placed by {trace['policy']}"]
    parts += [f"{trace['defaulted']:,} in the default queue"] if trace["defaulted"] else []
    parts += [f"{trace['skipped']:,} without a duration left out"] if trace["skipped"] else []
    title = Text(f"replay: {', '.join(parts)}", "bold")
    return ["", title, Rows(columns, rows), *_groups(trace, "TASKS", "NOT STARTED", wide=wide)]


def _wait(value: float | None) -> str:
    from seaway.terminal.words import NONE, seconds

    return NONE if value is None else seconds(value)


def _mean(side: Body) -> str:
    """Format the mean wait of all jobs; a lower bound if some have no known start."""
    value = side.get("mean_all_s")
    return f"≥{_wait(value)}" if value is not None and side["unknown"] else _wait(value)


def _compared(before: Body, after: Body) -> str:
    """Format the mean wait of the jobs with a known start on both sides, and their number."""
    count = after.get("compared", 0)
    return f"{_from_to(_wait(before['mean_s']), _wait(after['mean_s']))} of {count}" if count else _wait(None)


def _from_to(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def _places(places: list[str], *, wide: bool) -> str:
    found = [f"{place} × {count}" if count > 1 else place for place, count in Counter(places).items()]
    more = 0 if wide else len(found) - MOST_PLACES
    return f"{', '.join(found[:MOST_PLACES])} +{more}" if more > 0 else ", ".join(found) or "–"


SUMS = {
    "placed": "running tasks",
    "waiting": "waiting tasks",
    "allocation_percent": "GPUs allocated, %",
    "fragmentation": "fragmentation, 0 to 4, lower is better",
}
"""Names of the totals."""

MEASURES: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("started", "placed", _figure),
    ("rejected", "rejected", _figure),
    ("mean wait", "queue_wait_mean_s", _wait),
    ("p50 wait", "queue_wait_p50_s", _wait),
    ("p90 wait", "queue_wait_p90_s", _wait),
    ("p99 wait", "queue_wait_p99_s", _wait),
    ("mean slowdown", "bounded_slowdown_mean", _figure),
    ("GPU cores allocated, %", "gpu_allocated_pct", _figure),
    ("makespan", "makespan_s", _wait),
    ("preempted", "preempted", _figure),
    ("preempted GPU-hours", "preempted_gpu_hours", _figure),
)
"""Measures of a replay: name, field, and format."""
