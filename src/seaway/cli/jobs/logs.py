"""`seaway logs` and `seaway manifest`: logs and Kubernetes objects of a job."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from seaway.cli import arguments
from seaway.cli.arguments import Job
from seaway.cli.errors import FAILED, OK, code_of, note, print_error
from seaway.cli.output import Output, OutputOption, console
from seaway.cli.remote import Body
from seaway.client.aio import AsyncClient
from seaway.client.sync import Client
from seaway.domain.errors import RejectedError, SeawayError

PAGE = 1_000
"""Number of objects in a page of manifests."""

MAX_LINES = 10_000
"""Maximum number of log lines in an answer of the server."""


def logs(
    context: typer.Context,
    job: Job,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new lines until the job ends.")] = False,
    replica: Annotated[list[int] | None, typer.Option(min=0, help="Number of a replica, from 0. Repeatable.")] = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="All replicas.")] = False,
    container: Annotated[
        str, typer.Option("--container", "-c", help="Name of the container; default: the first.")
    ] = "",
    every_container: Annotated[bool, typer.Option("--all-containers", help="All containers.")] = False,
    tail: Annotated[
        int | None,
        typer.Option(
            min=1, max=MAX_LINES, help="Number of last lines of each log. Default: 100, or all with --since and --save."
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only lines from then on: an age like 10m, a date, a time.")
    ] = None,
    attempt: Annotated[int, typer.Option(min=0, help="Number of an earlier attempt. Default: the latest.")] = 0,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Begin each line with its time.")] = False,
    grep: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only lines in which this regular expression is found.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write each log to a file in this folder instead.")
    ] = None,
    prefix: Annotated[
        bool | None,
        typer.Option("--prefix/--no-prefix", help="Prefix each line with its source. Default: only for several logs."),
    ] = None,
) -> None:
    """Show the logs of a job: those of its first replica by default, of other replicas, or of all.

    [bold]Examples[/bold]

      [cyan]seaway logs train --tail 20[/cyan]
      [cyan]seaway logs -f train --replica 3 --container main[/cyan]
      [cyan]seaway logs -f train --all[/cyan]
      [cyan]seaway logs train --all --since 1h --grep 'error|warn'[/cyan]
      [cyan]seaway logs train --attempt 1 --timestamps[/cyan]
      [cyan]seaway logs train --all --save logs/[/cyan]
    """
    from seaway.cli.remote import connect, connect_to_follow, retry_longer

    wanted = Wanted.of(replica or (), every=every, container=container, every_container=every_container)
    for option, given in (("--save", save), ("--attempt", attempt), ("--timestamps", timestamps)):
        if follow and given:
            raise RejectedError("cannot be used with --follow", where=option)
    search = Search(
        tail or (MAX_LINES if since or save else 100),
        arguments.moment(since, "--since") if since else "",
        pattern_of(grep),
        attempt,
        timestamps,
    )
    leaves = suppress(KeyboardInterrupt) if follow else nullcontext()
    with connect(context) as client, leaves:
        if follow:
            retry_longer(client)
        name, (job, sources) = job, choose(client, job, wanted, follow=follow)
        printer = Files(save, name, sources) if save else Printer(sources, labelled=prefix)
        if follow:
            asyncio.run(follow_all(connect_to_follow(context), job, sources, search, printer))
        else:
            read_all(client, job, sources, search, printer)
        if printer.code:
            raise typer.Exit(printer.code)
        if grep and not printer.lines:
            note("no line matches")
            raise typer.Exit(FAILED)


def manifest(context: typer.Context, job: Job, output: OutputOption = Output.TABLE) -> None:
    """Print the Kubernetes objects of a job as YAML, or as JSON with -o json.

    [bold]Example[/bold]

      [cyan]seaway manifest train | kubectl diff -f -[/cyan]
    """
    import orjson

    from seaway.cli.output import as_json, as_yaml
    from seaway.cli.remote import connect
    from seaway.client.calls.jobs import manifest as call

    objects: list[object] = []
    with connect(context) as client:
        while True:
            page = orjson.loads(client.send(call(job, kind="json", after=len(objects))))
            objects += page
            if len(page) < PAGE:
                break
    if output is Output.JSON:
        typer.echo(as_json(objects))
    else:
        typer.echo("---\n".join(as_yaml(each) for each in objects), nl=False)


MAX_FOLLOWED = 16
"""Maximum number of followed logs. A server follows at most 24 logs of a cluster for all users."""


COLOURS = ("cyan", "green", "yellow", "blue", "magenta")


@dataclass(frozen=True, slots=True)
class Source:
    """Log of a replica's container. An empty name means the first container."""

    replica: int
    container: str = ""

    @property
    def label(self) -> str:
        """Prefix of its lines: ``[3]``, or ``[3/main]`` with a container."""
        return f"[{self.replica}/{self.container}]" if self.container else f"[{self.replica}]"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Requested logs.

    Attributes
    ----------
    replicas
        Indexes of the replicas; empty for all.
    containers
        Names of the containers, where an empty name is the first container; empty for all.
    """

    replicas: tuple[int, ...]
    containers: tuple[str, ...]

    @classmethod
    def of(cls, replicas: Sequence[int], *, every: bool, container: str, every_container: bool) -> Wanted:
        """Parse options.

        Raises
        ------
        RejectedError
            When options exclude each other.
        """
        if every and replicas:
            raise RejectedError("cannot be used with --replica", where="--all")
        if every_container and container:
            raise RejectedError("cannot be used with --container", where="--all-containers")
        chosen = () if every else tuple(dict.fromkeys(replicas)) or (0,)
        return cls(chosen, () if every_container else (container,))

    def sources(self, replicas: int, containers: dict[int, list[str]]) -> list[Source]:
        """Return the logs of a job with `replicas` replicas, for the known containers of each."""
        return [
            Source(replica, container)
            for replica in self.replicas or range(replicas)
            for container in self.containers or containers.get(replica) or [""]
        ]


def choose(client: Client, job: str, wanted: Wanted, *, follow: bool) -> tuple[str, list[Source]]:
    """Return a job's ID, or the given name if it is sufficient, and the requested logs.

    Raises
    ------
    RejectedError
        When there are too many logs to follow.
    """
    from seaway.client.calls import jobs as calls

    if wanted.replicas and wanted.containers:
        found = wanted.sources(0, {})
    else:
        body = client.body(calls.job(job))
        job = str(body["id"])
        found = wanted.sources(body["replicas"], {} if wanted.containers else _containers(client, body, wait=follow))
    if follow and len(found) > MAX_FOLLOWED:
        why = f"these are {len(found)} logs, and {MAX_FOLLOWED} are followed at a time: name some by --replica"
        raise RejectedError(f"{why} and --container")
    return job, found


def _containers(client: Client, job: Body, *, wait: bool) -> dict[int, list[str]]:
    """Return the containers of each replica. They are known when the job runs; later, those of its request are."""
    from seaway.client.calls.jobs import attempts

    if wait and job["state"] != "running":
        note("waiting for the job to run, to see its containers")
        job = {**job, "attempt": client.wait(job["id"], "running").attempt}
    workloads = client.body(attempts(job["id"], after=max(0, job["attempt"] - 1)))["workloads"]
    found = {
        replica["replica"]: [container["name"] for container in replica["containers"]]
        for copy in workloads
        for replica in copy["replicas"]
    }
    asked = [each["name"] for field in ("init_containers", "containers") for each in job["spec"].get(field) or ()]
    return found or {replica: ["", *asked] for replica in range(job["replicas"])}


@dataclass(frozen=True, slots=True)
class Search:
    """Requested lines of each log.

    Attributes
    ----------
    tail
        Number of last lines.
    since
        Time of the first line; empty for any.
    pattern
        Expression that lines must contain; None for all lines.
    attempt
        Number of an attempt; 0 for the latest.
    timestamps
        True to begin each line with its time.
    """

    tail: int
    since: str = ""
    pattern: re.Pattern[str] | None = None
    attempt: int = 0
    timestamps: bool = False

    def matches(self, line: str) -> bool:
        """Report whether a line is requested."""
        return self.pattern is None or bool(self.pattern.search(line))


def pattern_of(text: str | None) -> re.Pattern[str] | None:
    """Compile a regular expression.

    Raises
    ------
    RejectedError
        When it is invalid.
    """
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise RejectedError(f"{text!r} is not a regular expression: {error}", where="--grep") from None


class Printer:
    """Printer of lines from several logs, with labels, and of errors.

    Parameters
    ----------
    labelled
        True to label lines; None to label them only if there are several logs.

    Attributes
    ----------
    lines
        Number of printed lines.
    """

    def __init__(self, sources: Sequence[Source], *, labelled: bool | None) -> None:
        labelled = len(sources) > 1 if labelled is None else labelled
        out = console()
        coloured = out.is_terminal and not out.no_color
        self._color = True if coloured else None
        self._labels = {
            source: f"{typer.style(source.label, fg=COLOURS[at % len(COLOURS)]) if coloured else source.label} "
            for at, source in enumerate(sources)
            if labelled
        }
        self.lines = 0
        self.code = OK
        """Exit code: the highest of all errors."""

    def print_all(self, source: Source, lines: Sequence[str]) -> None:
        """Print a whole log."""
        for line in lines:
            self.print(source, line)

    def print(self, source: Source, line: str) -> None:
        """Print a line."""
        self.lines += 1
        typer.echo(f"{self._labels.get(source, '')}{line}", color=self._color)

    def fail(self, source: Source, error: SeawayError) -> None:
        """Print the error of one log."""
        if source in self._labels:
            typer.echo(f"{source.label} ", nl=False, err=True)
        print_error(error)
        self.code = max(self.code, code_of(error))


class Files(Printer):
    """Writer of each log to a file of its own."""

    def __init__(self, folder: Path, job: str, sources: Sequence[Source]) -> None:
        super().__init__(sources, labelled=True)
        self._folder, self._job = folder, job

    def print_all(self, source: Source, lines: Sequence[str]) -> None:
        """Write a whole log."""
        self.lines += len(lines)
        path = self._folder / f"{'-'.join(filter(None, (self._job, str(source.replica), source.container)))}.log"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        except OSError as error:
            raise RejectedError(f"{path} cannot be written: {error.strerror}", where="--save") from None
        note(f"{path}: {len(lines):,} lines{', the maximum' if len(lines) == MAX_LINES else ''}")


def read_all(client: Client, job: str, sources: Sequence[Source], search: Search, printer: Printer) -> None:
    """Print the last lines of logs, one log after the other."""
    from seaway.client.calls.jobs import logs

    tail = MAX_LINES if search.pattern else search.tail
    for source in sources:
        call = logs(
            job,
            replica=source.replica,
            container=source.container,
            tail=tail,
            since=search.since,
            attempt=search.attempt,
            timestamps=search.timestamps,
        )
        try:
            text = client.send(call)
        except SeawayError as error:
            printer.fail(source, error)
            continue
        lines = text.removesuffix("\n").split("\n") if text else []
        printer.print_all(source, [line for line in lines if search.matches(line)][-search.tail :])


async def follow_all(
    client: AsyncClient, job: str, sources: Sequence[Source], search: Search, printer: Printer
) -> None:
    """Print new lines as they arrive. The end or an error of one log does not affect the others."""

    async def follow(source: Source) -> None:
        lines = client.follow_log(
            job, replica=source.replica, container=source.container, tail=search.tail, since=search.since
        )
        try:
            async with aclosing(lines):
                async for line in lines:
                    if search.matches(line):
                        printer.print(source, line)
        except SeawayError as error:
            printer.fail(source, error)

    async with client:
        following = [asyncio.create_task(follow(source)) for source in sources]
        try:
            await asyncio.gather(*following)
        finally:
            for each in following:
                each.cancel()
            await asyncio.gather(*following, return_exceptions=True)
