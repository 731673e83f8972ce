"""`seaway jobs`: one row per job."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli import arguments
from seaway.cli.errors import FAILED
from seaway.cli.output import Output, OutputOption, console, show
from seaway.cli.remote import Body, connect, currency_of
from seaway.domain.errors import RejectedError
from seaway.domain.job_state import JobState

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.client.call import Paged
    from seaway.terminal.tables import Column

FILTERS = "Which jobs"
ENDED = ("completed", "failed", "cancelled", "skipped")
"""States of finished jobs."""

TABLES = frozenset({Output.TABLE, Output.WIDE})
"""Forms of output that show expected starts."""

EVERY_S = 1.0
"""Interval of updates with --watch, in seconds."""


def jobs(
    context: typer.Context,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", "-s", help="Filter by state. Repeatable.", rich_help_panel=FILTERS),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue", "-q", help="Filter by queue.", autocompletion=arguments.queues, rich_help_panel=FILTERS
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Filter by cluster.", autocompletion=arguments.clusters, rich_help_panel=FILTERS)
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Filter by tenant.", rich_help_panel=FILTERS)] = None,
    name: Annotated[str | None, typer.Option(help="Filter by a part of the name.", rich_help_panel=FILTERS)] = None,
    label: Annotated[
        str | None, typer.Option("--label", "-l", metavar="KEY=VALUE", help="Filter by label.", rich_help_panel=FILTERS)
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--user", "--by", help="Filter by user: the name of their token.", rich_help_panel=FILTERS),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Earliest submission: 1h or 2d ago, a date like 2026-11-21, or 2026-11-21T10:00:00Z. "
            "Without a zone, in the time zone of this machine.",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    ended_since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Earliest end; as with --since.", rich_help_panel=FILTERS),
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Your own jobs.", rich_help_panel=FILTERS)] = False,
    finished: Annotated[
        bool,
        typer.Option(
            "--finished",
            help="Finished jobs with start, end, duration, GPU-hours and cost, by their end.",
            rich_help_panel=FILTERS,
        ),
    ] = False,
    waiting: Annotated[
        bool,
        typer.Option(
            "--waiting",
            help="Waiting jobs, next first, with their place, expected start and reason. Filters: --queue, --tenant.",
            rich_help_panel=FILTERS,
        ),
    ] = False,
    array: Annotated[
        str | None,
        typer.Option(metavar="JOB", help="Tasks of an array, by index. Filter: --state.", rich_help_panel=FILTERS),
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Groups of jobs with their GPUs, and GPU-hours and cost of the last 30 days: user, queue, tenant or "
            "label:KEY.",
        ),
    ] = None,
    unused: Annotated[
        bool,
        typer.Option(
            "--unused",
            help="Running jobs by the GPU time that they held and did not use in the last hour. Filters: --queue, "
            "--tenant, --user.",
        ),
    ] = False,
    tree: Annotated[
        bool, typer.Option("--tree", help="Jobs that come after others, below them; oldest first.")
    ] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Order: name, queue, tenant, submitted_by, state, submitted, started, ended, duration, gpu_hours or "
            "cost. With - before it, the largest first.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number, newest first.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="MARK", help="Continue after the previous page.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Update continuously. Ctrl-C ends.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List jobs, newest first, with their nodes and reasons. Exits with 1 if no job matches.

    [bold]Examples[/bold]

    Waiting jobs of a queue, with the reasons and expected starts:

      [cyan]seaway jobs --waiting --queue batch[/cyan]

    Running jobs of a tenant:

      [cyan]seaway jobs --tenant team-a -s running[/cyan]

    Jobs of the last hour that failed:

      [cyan]seaway jobs -s failed --since 1h[/cyan]

    Finished jobs of the last week that held most GPUs for longest:

      [cyan]seaway jobs --finished --ended-since 7d --sort -gpu_hours[/cyan]

    Running jobs by their cost so far; [bold]-o wide[/bold] shows it:

      [cyan]seaway jobs -s running --sort -cost -o wide[/cyan]

    Use and cost by user, and by a label:

      [cyan]seaway jobs --group-by user[/cyan]
      [cyan]seaway jobs --group-by label:project --queue batch[/cyan]

    Running jobs that hold GPUs without using them:

      [cyan]seaway jobs --unused[/cyan]

    Workflows, with each job below the one that it comes after:

      [cyan]seaway jobs --tree[/cyan]

    Failed tasks of an array:

      [cyan]seaway jobs --array sweep -s failed[/cyan]

    Cancel all jobs of a sweep:

      [cyan]seaway cancel $(seaway jobs -l sweep=7 -o name)[/cyan]
    """
    from seaway.cli.remote import whole
    from seaway.client.calls.jobs import jobs as listed
    from seaway.client.calls.jobs import tasks as listed_tasks
    from seaway.client.calls.queues import waiting as listed_waiting
    from seaway.client.calls.service import me
    from seaway.terminal.queues import ALL_WAITING
    from seaway.terminal.tables import FINISHED_COLUMNS, JOB_COLUMNS, TASK_COLUMNS, TREE_COLUMNS, as_tree

    given = {
        "state": state,
        "queue": queue,
        "cluster": cluster,
        "tenant": tenant,
        "name": name,
        "label": label,
        "submitted_by": by,
        "submitted_from": since and arguments.moment(since, "--since"),
        "ended_from": ended_since and arguments.moment(ended_since, "--ended-since"),
        "mine": mine,
        "finished": finished,
        "sort": sort,
    }
    given = {key: value for key, value in given.items() if value}
    states = [each.value for each in JobState]
    if unknown := [each for each in state or () if each not in states]:
        raise RejectedError(f"unknown state {unknown[0]!r}; available: {', '.join(states)}", where="--state")
    _require_compatible(given, waiting=waiting, array=bool(array), tree=tree)
    if _show_sums(context, given, output, group_by=group_by, unused=unused, other=array or waiting or tree or watch):
        return
    if given.pop("finished", False):
        given = {"state": list(ENDED), "sort": "-ended", "gpu_hours": True, **given}
    if not (array or waiting) and (finished or output is Output.WIDE or "cost" in (sort or "")):
        given["cost"] = True
    of_array = partial(listed_tasks, array) if array else None
    call: Callable[..., Paged[Any]] = of_array or (listed_waiting if waiting else listed)
    usual = TASK_COLUMNS if array else JOB_COLUMNS
    columns = ALL_WAITING if waiting else TREE_COLUMNS if tree else FINISHED_COLUMNS if finished else usual

    given |= {"starts": True} if columns is JOB_COLUMNS and output in TABLES else {}

    def read() -> Body:
        found = whole(client, paged)
        return {**found, "jobs": as_tree(found["jobs"])} if tree else found

    with connect(context) as client:
        if given.pop("mine", False):
            given["submitted_by"] = client.body(me())["name"]
        paged = call(limit=limit, after=after or "", **given)
        if watch:
            keep_showing(lambda: table(read(), columns, wide=output is Output.WIDE))
            return
        body = read()
        currency = currency_of(client, output) if given.get("cost") and body["jobs"] else ""
    names = (job["id"] for job in body["jobs"])
    show(output, body, lambda wide: table(body, columns, wide=wide), lambda: names, currency)
    if not body["jobs"]:
        raise typer.Exit(FAILED)


def _show_sums(
    context: typer.Context, given: Body, output: Output, *, group_by: str | None, unused: bool, other: object
) -> bool:
    """Show groups of jobs, or unused GPUs, if that is asked; return whether it is.

    Raises
    ------
    RejectedError
        If another option does not go with it.
    """
    if not (group_by or unused):
        return False
    option = "--group-by" if group_by else "--unused"
    if other or (unused and (group_by or given.keys() - {"queue", "tenant", "submitted_by", "mine"})):
        raise RejectedError("works with filters only", where=option)
    if group_by:
        _show_groups(context, group_by, given, output)
    else:
        _show_unused(context, given, output)
    return True


def _show_unused(context: typer.Context, given: Body, output: Output) -> None:
    """Show running jobs by the GPU time that they do not use."""
    from seaway.client.calls.jobs import unused_gpus
    from seaway.client.calls.service import me
    from seaway.terminal.tables import Column, Rows

    columns = (
        Column("JOB", lambda each: each["name"]),
        Column("ID", lambda each: each["id"], drop=3),
        Column("USER", lambda each: each["submitted_by"]),
        Column("QUEUE", lambda each: each["queue"], drop=1),
        Column("TENANT", lambda each: each["tenant"], drop=2),
        Column("GPU CORE-HOURS", lambda each: f"{each['gpu_core_hours']:,.2f}", right=True),
        Column("UNUSED", lambda each: f"{each['unused_gpu_core_hours']:,.2f}", right=True),
        Column("USE", lambda each: f"{each['used_percent']:.0f}%", right=True),
    )
    with connect(context) as client:
        if given.pop("mine", False):
            given["submitted_by"] = client.body(me())["name"]
        body = client.body(unused_gpus(**given))
    rows, empty = body["jobs"], "no measured use of running jobs in the last hour"
    names = (each["id"] for each in rows)
    show(output, body, lambda wide: Rows(columns, rows, wide=wide) if rows else empty, lambda: names)


def _show_groups(context: typer.Context, by: str, given: Body, output: Output) -> None:
    """Show groups of jobs."""
    from seaway.client.calls.jobs import groups
    from seaway.client.calls.service import me
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import NONE, cores, cost_text

    columns = (
        Column(by.removeprefix("label:").upper(), lambda each: each["name"] or NONE),
        Column("JOBS", lambda each: f"{each['jobs']:,}", right=True),
        Column("WAITING", lambda each: f"{each['waiting']:,}", right=True),
        Column("RUNNING", lambda each: f"{each['running']:,}", right=True),
        Column("GPUS", lambda each: cores(1000 * each["gpus"]), right=True),
        Column("GPU-HOURS", lambda each: f"{each['cost']['gpu_hours']:,.1f}", right=True),
        Column("COST", lambda each: cost_text(each["cost"]), right=True),
    )
    if given.pop("finished", False):
        given["state"] = list(ENDED)
    with connect(context) as client:
        if given.pop("mine", False):
            given["submitted_by"] = client.body(me())["name"]
        body = client.body(groups(by, **given))
        currency = currency_of(client, output) if body["groups"] else ""
    rows = body["groups"]
    names = (each["name"] for each in rows)
    show(output, body, lambda wide: Rows(columns, rows, wide=wide) if rows else "no jobs", lambda: names, currency)
    if not rows:
        raise typer.Exit(FAILED)


def _require_compatible(given: Mapping[str, object], *, waiting: bool, array: bool, tree: bool) -> None:
    """Check that options can be used together.

    Raises
    ------
    RejectedError
        If they cannot; names one of them.
    """
    options = {"submitted_by": "--user", "submitted_from": "--since", "ended_from": "--ended-since"}
    pairs = [
        ("--waiting", waiting, {"queue", "tenant"}, "use --queue and --tenant"),
        ("--array", array, {"state"}, "use --state"),
        ("--tree", tree, given.keys() - {"sort", "finished"}, "leave it out"),
    ]
    for option, is_set, allowed, instead in pairs:
        if is_set and (others := given.keys() - allowed):
            other = min(options.get(name, f"--{name}") for name in others)
            raise RejectedError(f"{other} cannot be used with {option}; {instead}", where=option)
    if array and (tree or waiting):
        raise RejectedError(f"cannot be used with {'--tree' if tree else '--waiting'}", where="--array")
    if tree and waiting:
        raise RejectedError("cannot be used with --waiting", where="--tree")
    if "mine" in given and "submitted_by" in given:
        raise RejectedError("cannot be used with --user", where="--mine")


def table(body: Body, columns: Sequence[Column], *, wide: bool) -> RenderableType:
    """Return the table of jobs."""
    from rich.console import Group

    from seaway.terminal.tables import JOB_COLUMNS, STARTS, Rows

    if not body["jobs"]:
        return "no jobs"
    if columns is JOB_COLUMNS and any(job.get("estimated_start") for job in body["jobs"]):
        columns = (*columns[:-1], STARTS, columns[-1])
    rows = Rows(columns, body["jobs"], wide=wide)
    if body.get("next") is None:
        return rows
    return Group(rows, f"[dim]more: the same command with --after {body['next']}[/dim]")


def keep_showing(look: Callable[[], RenderableType], pause: Callable[[float], None] = time.sleep) -> None:
    """Update a view every second, until Ctrl-C."""
    from rich.live import Live

    try:
        with Live(look(), console=console(), auto_refresh=False) as live:
            while True:
                pause(EVERY_S)
                live.update(look(), refresh=True)
    except KeyboardInterrupt:
        return
