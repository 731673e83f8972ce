"""`seaway update`: changes to an unfinished job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli.arguments import Job
from seaway.cli.remote import Body, connect
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from rich.console import RenderableType

MISSING = "–"
PLACED = ("scheduled", "deploying", "running")
KEEPS_RUNNING = (
    "name",
    "labels",
    "priority",
    "queue",
    "expected_duration",
    "time_limit",
    "lease",
    "retries",
    "data",
    "network.on_violation",
    "preemptible",
    "notify",
)
"""Paths of fields that change without a restart."""


@dataclass(frozen=True, slots=True)
class Version:
    """Version of a job that the change is based on."""

    id: str
    version: int


def update(
    context: typer.Context,
    job: Job,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="YAML file with the changed fields; - reads standard input.")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Field by its path; null resets it to its default."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Validate the update, and print the changes without applying them."),
    ] = False,
) -> None:
    """Change the request of a job. A running job restarts if the change requires it.

    Fields are those of job files. Only the given fields change; lists are replaced. After a concurrent change of
    the job, the command fails and changes nothing.

    [bold]Examples[/bold]

      [cyan]seaway update train --set resources.gpus=2 --set time_limit=4h[/cyan]
      [cyan]seaway update train -f patch.yaml --dry-run[/cyan]
    """
    from seaway.cli.output import console
    from seaway.client.calls import jobs as calls

    patch = patch_of(file, given or [])
    with connect(context) as client:
        before = client.body(calls.job(job))
        changes = list(differences(before["spec"], patch))
        if not changes:
            typer.echo(f"{before['name']} ({before['id']}) has these values already")
            return
        console().print(picture(before, changes))
        seen = Version(before["id"], before["version"])
        if dry_run:
            client.body(calls.update(before["id"], patch, seen=seen, dry_run=True))
            typer.echo("the update is valid; nothing was changed")
            return
        after = client.body(calls.update(before["id"], patch, seen=seen))
    typer.echo(f"{after['name']} ({after['id']}) is changed and {after['state']}")


def patch_of(file: str | None, given: list[str]) -> dict[str, Any]:
    """Return a patch from a file and options. Options override the file.

    Raises
    ------
    RejectedError
        When the patch is empty, or an option is not a field with a value.
    """
    from seaway.cli.jobs.file import merged, read_jobs

    patch: dict[str, Any] = {}
    if file:
        first, *more = read_jobs(file)
        if more:
            raise RejectedError("has several documents; an update needs one", where=file)
        patch = first.fields
    for text in given:
        patch = merged(patch, _field(text))
    if not patch:
        raise RejectedError("no changes given; use -f patch.yaml or --set resources.gpus=2")
    return patch


def differences(spec: Mapping[str, Any], patch: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the changes of a patch: path, current value and new value of each field; None for no value."""
    for name, value in patch.items():
        there, where = spec.get(name), f"{path}{name}"
        if isinstance(value, Mapping):
            yield from differences(there if isinstance(there, Mapping) else {}, value, f"{where}.")
        elif value != there:
            yield where, there, value


def picture(before: Body, changes: list[tuple[str, Any, Any]]) -> RenderableType:
    """Return the changes for people, and the fields that cause a restart."""
    from rich.console import Group
    from rich.text import Text

    lines = [Text(f"{path}: {_written(now)} → {_written(then)}") for path, now, then in changes]
    keeps = {*KEEPS_RUNNING, *(["replicas"] if _resizable(before["spec"]) else [])}
    stops = [path for path, *_ in changes if not {path, path.partition(".")[0]} & keeps]
    if stops and before["state"] in PLACED:
        lines.append(Text(f"it is {before['state']}: for {', '.join(stops)} it is stopped and restarted", "yellow"))
    return Group(*lines)


def _resizable(spec: Mapping[str, Any]) -> bool:
    """Report whether a running job gets another number of replicas without a restart, as in the domain."""
    from seaway.domain.job_spec import INDEPENDENT, RESIZABLE

    template = spec.get("template", "job")
    elastic = isinstance(spec.get("replicas"), Mapping)
    alone = template in INDEPENDENT and not spec.get("gang")
    return template in RESIZABLE and (elastic or alone or template in ("deployment", "raycluster"))


def _field(text: str) -> dict[str, Any]:
    """Parse a text like ``resources.gpus=2``. The value is YAML."""
    import yaml

    path, sign, value = text.partition("=")
    names = path.split(".")
    if not sign or not all(names):
        raise RejectedError(f"{text!r} is not FIELD=VALUE, like resources.gpus=2", where="--set")
    try:
        read: Any = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError):
        raise RejectedError(f"{value!r} is not a valid value", where=f"--set {path}") from None
    from seaway.cli.jobs.file import TEXTS

    if isinstance(read, int | float | date) and TEXTS.fullmatch(path):
        read = value
    for name in reversed(names):
        read = {name: read}
    return dict(read)


def _written(value: object) -> str:
    from seaway.cli.output import as_json

    return MISSING if value is None else value if isinstance(value, str) else " ".join(as_json(value).split())
