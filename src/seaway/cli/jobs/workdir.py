"""Folders of this machine that are sent with jobs, and `seaway workdir`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.jobs.file import Written
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import connect
from seaway.domain.errors import RejectedError
from seaway.domain.runtime import ARCHIVE
from seaway.domain.units import size_text

if TYPE_CHECKING:
    from seaway.client.sync import Client
    from seaway.client.workdirs import Progress

app = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)

TenantOption = Annotated[str, typer.Option(help="Tenant of the archives. Default: your own tenant.")]


@app.callback()
def workdir() -> None:
    """List and delete the archives that `seaway submit --workdir` stored.

    The server removes an archive itself some time after the last job that needs it.

    [bold]Examples[/bold]

      [cyan]seaway workdir list[/cyan]
      [cyan]seaway workdir delete sha256:2d9c...[/cyan]
    """


@app.command("list")
def list_workdirs(context: typer.Context, tenant: TenantOption = "", output: OutputOption = Output.TABLE) -> None:
    """List the stored archives of a tenant, the last used first."""
    from seaway.cli.errors import note
    from seaway.client.calls.workdirs import workdirs as call
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import day

    with connect(context) as client:
        body = client.body(call(tenant=tenant))
    rows = body["workdirs"]
    columns = (
        Column("ARCHIVE", lambda each: each["digest"]),
        Column("SIZE", lambda each: size_text(each["size_bytes"])),
        Column("NEEDED", lambda each: "yes" if each["needed"] else "no"),
        Column("USED", lambda each: day(each["used_at"])),
        Column("BY", lambda each: each["created_by"], drop=1),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["digest"] for each in rows))
    if output in (Output.TABLE, Output.WIDE):
        note(f"{size_text(body['used_bytes'])} of {size_text(body['quota_bytes'])} are used")


@app.command("delete")
def delete_workdirs(
    context: typer.Context,
    archives: Annotated[list[str], typer.Argument(help="Digests, from `seaway workdir list`.", metavar="ARCHIVE...")],
    tenant: TenantOption = "",
) -> None:
    """Remove archives that no unfinished job needs. Jobs that ended cannot be retried without theirs."""
    from seaway.client.calls.workdirs import delete_workdir

    with connect(context) as client:
        for archive in archives:
            client.send(delete_workdir(archive, tenant=tenant))
            typer.echo(f"archive {archive} is removed")


def without_folders(jobs: list[Written]) -> list[Written]:
    """Return jobs without their folders, for checks before these are sent.

    Raises
    ------
    RejectedError
        If a folder cannot be sent.
    """
    from seaway.client.workdirs import entries

    for job, folder in _folders(jobs):
        try:
            entries(folder)
        except RejectedError as error:
            raise job.placed(error) from None
    return [_with(job, "") if _is_folder(job) else job for job in jobs]


def with_archives(client: Client, jobs: list[Written]) -> list[Written]:
    """Send the folders of jobs, each once; return the jobs with the digests of the archives.

    Raises
    ------
    RejectedError
        If a folder cannot be sent.
    """
    from seaway.client.workdirs import send_folder

    sent: dict[tuple[Path, str], str] = {}
    found = {}
    for job, folder in _folders(jobs):
        tenant = str(job.fields.get("tenant") or "")
        try:
            with _bar(folder) as progress:
                key = (folder.resolve(), tenant)
                sent[key] = sent.get(key) or send_folder(client, folder, tenant=tenant, progress=progress)
        except RejectedError as error:
            raise job.placed(error) from None
        found[id(job)] = sent[key]
    return [_with(job, found[id(job)]) if id(job) in found else job for job in jobs]


def _is_folder(job: Written) -> bool:
    text = job.fields.get("workdir")
    return isinstance(text, str) and bool(text) and not ARCHIVE.fullmatch(text)


def _folders(jobs: list[Written]) -> Iterator[tuple[Written, Path]]:
    """Yield the jobs with folders. Paths in a job file are relative to it, others to the present folder."""
    for job in jobs:
        if _is_folder(job):
            of_file = job.source and job.source != "stdin" and not job.converted and "workdir" not in job.options
            base = Path(job.source).parent if of_file else Path()
            yield job, base / Path(job.fields["workdir"]).expanduser()


def _with(job: Written, workdir: str) -> Written:
    return replace(job, fields={**job.fields, "workdir": workdir})


@contextmanager
def _bar(folder: Path) -> Iterator[Progress]:
    """Show the progress of a folder on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"Packing {folder}", total=None)

        def show(verb: str, done: int, total: int) -> None:
            bar.update(task, description=f"{verb} {folder}", completed=done, total=total)

        yield show
