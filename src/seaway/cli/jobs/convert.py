"""`seaway convert`: job files of other schedulers as jobs of Seaway."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli.errors import note
from seaway.cli.jobs.file import Written, pairs, written_jobs
from seaway.cli.output import console
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from seaway.wire.job_imports.converted import Note


def convert(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Job files; - reads standard input.")],
    image: Annotated[str | None, typer.Option(help="Container image, which a batch script does not name.")] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Variable without a value in the file. Repeatable."),
    ] = None,
    env_from_secret: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SECRET/KEY", help="Variable with the value of a key of a Secret. Repeatable."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Option or field to leave out, like constraint. Repeatable."),
    ] = None,
) -> None:
    """Convert job files of other schedulers, and report each option and field.

    Takes batch scripts of Slurm, tasks of SkyPilot, configurations of dstack, and manifests of Kubernetes: Job, Pod,
    Deployment, StatefulSet, PyTorchJob, RayJob, RayCluster, JobSet, LeaderWorkerSet and Volcano Job. Prints jobs for
    `seaway submit` to standard output, and the report to standard error: each field is kept, changed or not kept. A
    field without which the job would be another one is an error: change it, or leave it out with --ignore.

    `seaway submit FILE` converts in the same way.

    [bold]Examples[/bold]

      [cyan]seaway convert train.sbatch --image pytorch:2.9[/cyan]
      [cyan]seaway convert task.yaml > job.yaml[/cyan]
      [cyan]kubectl get job train -o yaml | seaway convert - --ignore serviceAccountName[/cyan]
    """
    given = {
        "run.image": image,
        "run.env": pairs(env, "--env"),
        "run.env_from_secret": pairs(env_from_secret, "--env-from-secret"),
    }
    jobs = written_jobs(files, {path: value for path, value in given.items() if value}, ignore or ())
    errors: list[RejectedError] = []
    for job in jobs:
        try:
            _check(job)
        except RejectedError as error:
            errors += [job.placed(each) for each in (error, *error.also)]
    if errors:
        raise RejectedError.together(errors)
    for job in jobs:
        if job.converted:
            note(_summary(job))
            console(err=True).print(_table(_notes(job)))
    typer.echo("---\n".join(_yaml(job.fields) for job in jobs), nl=False)


def _check(job: Written) -> None:
    """Check a job as the server does, without its folder, which `seaway submit` sends."""
    from seaway.wire.job_in import JobIn
    from seaway.wire.reading import read_value

    fields = {name: value for name, value in job.fields.items() if name != "workdir"}
    read_value(JobIn, fields).spec()


def summarize(jobs: list[Written]) -> None:
    """Print to standard error where converted jobs differ from their files."""
    from seaway.wire.job_imports.converted import Result

    for job in jobs:
        if job.converted:
            note(f"{_summary(job)}; all fields: seaway convert {job.source}")
            if differing := [each for each in _notes(job) if each.result is not Result.SAME]:
                console(err=True).print(_table(differing))


def _notes(job: Written) -> list[Note]:
    """Return the report on a converted job, without that of a missing image if an option gives it."""
    from seaway.wire.job_imports.converted import IMAGE

    notes = job.converted.notes if job.converted else []
    return [each for each in notes if each.field != IMAGE or "run.image" not in job.options]


def _summary(job: Written) -> str:
    from seaway.wire.job_imports.converted import Result

    counts = Counter(each.result for each in _notes(job))
    kind = job.converted.kind if job.converted else "job"
    return f"{job.source} ({kind}): " + ", ".join(f"{counts[each]} {each.value}" for each in Result)


def _table(notes: list[Note]) -> Any:  # noqa: ANN401  # a library that draws
    from seaway.terminal.tables import Column, Rows

    columns = (
        Column("LINE", lambda each: each["line"], right=True),
        Column("FIELD", lambda each: each["field"]),
        Column("RESULT", lambda each: each["result"]),
        Column("IN THE JOB, OR REASON", lambda each: each["text"], cut=True),
    )
    rows = [
        {
            "line": str(each.line) if each.field else "-",
            "field": each.field or "(default)",
            "result": each.result.value,
            "text": each.text,
        }
        for each in sorted(notes, key=lambda each: each.line)
    ]
    return Rows(columns, rows)


def _yaml(fields: dict[str, Any]) -> str:
    """Format a job as YAML, with scripts as blocks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Dumper with texts of several lines as blocks."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return str(yaml.dump(fields, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100))
