"""Folders of this machine that are sent with jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seaway.cli.jobs.file import Written
from seaway.domain.errors import RejectedError
from seaway.domain.runtime import ARCHIVE

if TYPE_CHECKING:
    from seaway.client.sync import Client
    from seaway.client.workdirs import Progress


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
