"""`seaway submit`: submit jobs from files or options, with a dry run, and follow them."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.text import Text
from typer.core import TyperCommand

from seaway.cli import INTERRUPTED, arguments
from seaway.cli.errors import FAILED, naming, note
from seaway.cli.jobs.file import STDIN, is_script, pairs, written_jobs
from seaway.cli.jobs.workdir import with_archives, without_folders
from seaway.cli.output import Output, OutputOption, as_json, as_yaml, console, name_currency
from seaway.cli.remote import Body, connect, currency_of
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import ServiceType, StandbyMode
from seaway.domain.network import OnViolation
from seaway.domain.numbers import whole_number
from seaway.domain.reasons import time_text
from seaway.domain.runtime import RestartPolicy
from seaway.domain.units import ranges
from seaway.terminal.reasons import refusals, remedies, scores
from seaway.terminal.tables import Column, Rows
from seaway.terminal.words import NONE, rate, rtt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.cli.jobs.file import Written
    from seaway.cli.remote import Body
    from seaway.client.call import Call
    from seaway.client.sync import Client


MOST = 8
"""Maximum number of candidates, except in wide output. The chosen one is always included."""


def picture(name: str, trial: Body, *, wide: bool) -> RenderableType:
    """Return the result of a dry run for people."""
    verdict = Text.assemble((name, "bold"), ": ", trial["message"])
    choices = trial["candidates"]
    if trial.get("room_from"):
        places = list(dict.fromkeys(f"{each['cluster']}/{each['node']}" for each in trial["placements"]))
        more = f" and {len(places) - 1} more nodes" if len(places) > 1 else ""
        room = f"its place on {places[0]}{more} is free within {time_text(trial['room_within_s'])}"
        return Group(verdict, Text(room, "dim"), "")
    if not choices:
        return Group(verdict, *refusals(trial["explanation"]), *remedies(trial["explanation"]), "")
    shown = choices if wide else [each for at, each in enumerate(choices) if at < MOST or each["chosen"]]
    columns = (
        Column("", lambda each: "→" if each["chosen"] else " "),
        Column("NODE", lambda each: each["node"], cut=True),
        Column("CLUSTER", lambda each: each["cluster"]),
        Column("FITS", lambda each: f"{each['free_slices']:,}", right=True),
        Column("RTT", lambda each: rtt(each["link"]["latency_ns"]) if each["link"] else NONE, right=True),
        Column("BANDWIDTH", lambda each: _bandwidth(each["link"]), right=True, drop=1),
        Column("PRICE/H", lambda each: each["price_per_hour"] or "-", right=True),
        Column("SCORE", lambda each: f"{each['total']:,}", right=True, drop=2),
    )
    parts: list[RenderableType] = [verdict, Rows(columns, shown, wide=wide)]
    if len(shown) < len(choices):
        parts.append(f"[dim]and {len(choices) - len(shown)} more: -o wide[/dim]")
    if because := trial.get("placement_reason"):
        parts.append(Text(f"chosen because: {because['message']}"))
    if not trial["fits"]:
        parts += remedies(trial["explanation"])
    if len(trial["placements"]) > 1:
        parts += ["", *_replicas(trial)]
    if wide:
        parts += scores(trial["explanation"]["candidates"])
    return Group(*parts, "")


def _replicas(trial: Body) -> Iterator[RenderableType]:
    """Yield the replicas of each node, and their price."""
    by_node: dict[tuple[str, str], list[int]] = {}
    for each in trial["placements"]:
        by_node.setdefault((each["cluster"], each["node"]), []).append(each["replica"])
    columns = (
        Column("NODE", lambda each: each["node"], cut=True),
        Column("CLUSTER", lambda each: each["cluster"]),
        Column("REPLICAS", lambda each: ranges(each["replicas"]), cut=True),
    )
    yield Rows(columns, [{"cluster": place[0], "node": place[1], "replicas": on} for place, on in by_node.items()])
    price = trial["price_per_hour"]
    yield f"{len(trial['placements']):,} replicas{f', price {price} per hour in total' if price else ''}"


def _bandwidth(link: Body | None) -> str:
    return rate(max(link["bandwidth_mbps"] - link["used_mbps"], 0)) if link else NONE


MOST_TOGETHER, MOST_BYTES = 1000, 500_000
"""Maximum number of jobs in one request, and of characters of their JSON."""

IN_BATCH = re.compile(r"jobs\[(\d+)\](?:\.(.*))?")
"""Path of a job, or of its field, in a request of several jobs."""

NEEDS, RUNS, WHERE = "Resources", "Program", "Where and when"


def submit(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE... -- COMMAND",
            help="Job file, as with -f; and after two dashes, the command of each replica, or arguments of a script.",
        ),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            "-f",
            help="Job YAML, one job or several with --- between; or a job file of another scheduler, see "
            "`seaway convert --help`; - reads standard input.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name of the job.")] = None,
    gpus: Annotated[int | None, typer.Option(help="Devices of each replica.", rich_help_panel=NEEDS)] = None,
    gpu_memory: Annotated[
        str | None, typer.Option(help="Memory of each device: 24GB or 50%.", rich_help_panel=NEEDS)
    ] = None,
    gpu_cores: Annotated[str | None, typer.Option(help="Cores of each device: 30%.", rich_help_panel=NEEDS)] = None,
    mig: Annotated[
        str | None, typer.Option(help="MIG profile of each instance: 3g.40gb.", rich_help_panel=NEEDS)
    ] = None,
    gpu_model: Annotated[
        list[str] | None, typer.Option(help="Accepted GPU model, like A100. Repeatable.", rich_help_panel=NEEDS)
    ] = None,
    gpu_topology: Annotated[
        str | None,
        typer.Option(
            metavar="same-island|best-effort",
            help="Connection between the GPUs of a replica: one NVLink island, or as close as possible.",
            rich_help_panel=NEEDS,
        ),
    ] = None,
    cpu: Annotated[str | None, typer.Option(help="CPU cores: 2 or 500m.", rich_help_panel=NEEDS)] = None,
    memory: Annotated[str | None, typer.Option(help="Memory of the node: 16GB.", rich_help_panel=NEEDS)] = None,
    replicas: Annotated[
        str | None,
        typer.Option(
            help="Number of replicas that run at the same time: 4; or a range for an elastic job: 2-16.",
            metavar="N",
            rich_help_panel=NEEDS,
        ),
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(
            help="Trigger of an elastic job: requests=20, latency=200ms, utilization=70% or queue_depth=5. Repeatable.",
            metavar="METRIC=TARGET",
            rich_help_panel=NEEDS,
        ),
    ] = None,
    gang: Annotated[
        bool | None,
        typer.Option(
            "--gang/--no-gang",
            help="All replicas start together or none; or one by one, as room is found.",
            rich_help_panel=NEEDS,
        ),
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(
            metavar="clusters",
            help="Replicas may form a ring over several clusters; their ranks follow it.",
            rich_help_panel=NEEDS,
        ),
    ] = None,
    ring_bandwidth: Annotated[
        str | None,
        typer.Option(
            help="Reserved bandwidth between consecutive replicas in different clusters, like 1Gbps.",
            rich_help_panel=NEEDS,
        ),
    ] = None,
    image: Annotated[str | None, typer.Option(help="Container image.", rich_help_panel=RUNS)] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Environment variable or label. Repeatable.", rich_help_panel=RUNS),
    ] = None,
    env_from_secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SECRET/KEY",
            help="Environment variable with the value of a key of a Secret. Repeatable.",
            rich_help_panel=RUNS,
        ),
    ] = None,
    env_from_config_map: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MAP/KEY",
            help="Environment variable with the value of a key of a ConfigMap. Repeatable.",
            rich_help_panel=RUNS,
        ),
    ] = None,
    volume: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=NAME:PATH[:ro]",
            help=(
                "Volume: claim=NAME, secret=NAME or config_map=NAME of the tenant's namespace, or empty_dir=SIZE. "
                "Repeatable."
            ),
            rich_help_panel=RUNS,
        ),
    ] = None,
    shm_size: Annotated[
        str | None,
        typer.Option(help="Shared memory in /dev/shm, like 16GB; part of --memory.", rich_help_panel=RUNS),
    ] = None,
    port: Annotated[
        list[int] | None, typer.Option(help="TCP port of the program. Repeatable.", rich_help_panel=RUNS)
    ] = None,
    expose: Annotated[
        ServiceType | None,
        typer.Option(help="How clients outside the cluster reach the ports.", rich_help_panel=RUNS),
    ] = None,
    node_port: Annotated[
        list[int] | None,
        typer.Option(help="Port of nodes, in the order of --port, for --expose NodePort.", rich_help_panel=RUNS),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Host name for --expose Ingress or HTTPRoute.", rich_help_panel=RUNS),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            help=(
                "Kind of workload: job (runs to completion), deployment (a service), torchrun, pytorchjob, "
                "raycluster, rayjob, volcanojob, kueue, or a template of your own."
            ),
            rich_help_panel=RUNS,
        ),
    ] = None,
    expected_duration: Annotated[
        str | None, typer.Option(help="Expected duration, like 10m or 2h.", rich_help_panel=RUNS)
    ] = None,
    time_limit: Annotated[str | None, typer.Option(help="Time limit, like 1d.", rich_help_panel=RUNS)] = None,
    lease: Annotated[
        str | None, typer.Option(help="Time until the job is stopped unless it is renewed.", rich_help_panel=RUNS)
    ] = None,
    signal: Annotated[
        str | None,
        typer.Option(
            metavar="SIGNAL@TIME",
            help="Signal that the program gets before its time limit, like USR1@300 or TERM@5m.",
            rich_help_panel=RUNS,
        ),
    ] = None,
    workdir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder that is sent with the job and is its working directory; .seawayignore lists what is not sent.",
            rich_help_panel=RUNS,
        ),
    ] = None,
    setup: Annotated[
        list[str] | None,
        typer.Option(metavar="COMMAND", help="Shell command before the program. Repeatable.", rich_help_panel=RUNS),
    ] = None,
    restart_policy: Annotated[
        RestartPolicy | None,
        typer.Option(help="Whether a failed program is started again in its place.", rich_help_panel=RUNS),
    ] = None,
    max_restarts: Annotated[
        int | None, typer.Option(help="Maximum number of restarts of a replica in its place.", rich_help_panel=RUNS)
    ] = None,
    retries: Annotated[
        int | None, typer.Option(help="Maximum number of restarts after failures.", rich_help_panel=RUNS)
    ] = None,
    preemptible: Annotated[
        bool | None,
        typer.Option(
            "--preemptible/--not-preemptible", help="Other jobs may displace it while it runs.", rich_help_panel=RUNS
        ),
    ] = None,
    standby: Annotated[
        StandbyMode | None,
        typer.Option(help="Standby of a service in another cluster, running or only verified.", rich_help_panel=WHERE),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option("--queue", "-q", help="Queue of the job.", autocompletion=arguments.queues, rich_help_panel=WHERE),
    ] = None,
    priority: Annotated[int | None, typer.Option(help="Priority; higher goes first.", rich_help_panel=WHERE)] = None,
    tenant: Annotated[str | None, typer.Option(help="Tenant of the job.", rich_help_panel=WHERE)] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(help="Allowed cluster. Repeatable.", autocompletion=arguments.clusters, rich_help_panel=WHERE),
    ] = None,
    cluster_label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Label that its cluster must have. Repeatable.", rich_help_panel=WHERE),
    ] = None,
    max_price_per_gpu_hour: Annotated[
        str | None,
        typer.Option(
            metavar="PRICE",
            help="Maximum price of a GPU and hour, like 2.50. Nodes of unknown price are not allowed.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    gateway: Annotated[str | None, typer.Option(help="Gateway of the user's site.", rich_help_panel=WHERE)] = None,
    max_latency: Annotated[
        str | None, typer.Option(help="Maximum round-trip time from there, like 20ms.", rich_help_panel=WHERE)
    ] = None,
    min_bandwidth: Annotated[
        str | None, typer.Option(help="Reserved bandwidth, like 1Gbps.", rich_help_panel=WHERE)
    ] = None,
    on_violation: Annotated[
        OnViolation | None,
        typer.Option(help="Action if its links violate its bounds while it runs.", rich_help_panel=WHERE),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="LOCATION",
            help="Location of its data: a cluster, gateway or region. Seaway prefers nodes near it.",
            autocompletion=arguments.clusters,
            rich_help_panel=WHERE,
        ),
    ] = None,
    data_size: Annotated[str | None, typer.Option(help="Amount of data, like 200GB.", rich_help_panel=WHERE)] = None,
    array: Annotated[
        str | None,
        typer.Option(
            metavar="INDEXES",
            help="Tasks of an array, as in Slurm: 0-99, 1,3,5 or 0-90:10; %N for at most N at once, like 0-99%5.",
            rich_help_panel=RUNS,
        ),
    ] = None,
    matrix: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="Values of a parameter of an array; a task for each combination. Repeatable.",
            rich_help_panel=RUNS,
        ),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOB[:WHEN]",
            help="Job that must end before, by ID or name; WHEN is succeeded, finished, started or failed. Repeatable.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TO[=WHEN,...]",
            help="Notification or e-mail address for messages about the job, like ops=started,failed. Repeatable.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            "-l",
            metavar="KEY=VALUE",
            help="Environment variable or label. Repeatable.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Option or field of another scheduler to leave out, like constraint. Repeatable.",
            rich_help_panel=RUNS,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show the decision of the scheduler without a submit; exit with 1 if the job would wait."
        ),
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return after the submit.")] = False,
    key: Annotated[
        str, typer.Option(help="Idempotency key: repeated submits with it create one job.", show_default=False)
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Submit jobs: show the candidate nodes, submit, and follow the job until it ends.

    Options override the file. Ctrl-C detaches; the job continues. Several jobs, or output other than a table, detach
    immediately. Exits with 1 if the job does not complete.

    [bold]Examples[/bold]

      [cyan]seaway submit --name hello --gpus 1 --gpu-memory 8GB -- python train.py[/cyan]
      [cyan]seaway submit job.yaml --dry-run[/cyan]
      [cyan]seaway submit train.sbatch --image pytorch:2.9[/cyan]
      [cyan]id=$(seaway submit job.yaml -o name)[/cyan]

    A job file:

      [dim]name: train
      resources: {cpu: 4, memory: 32GB, gpus: 1, gpu_memory: 24GB}
      run: {image: "pytorch:2.9", command: \[python, train.py]}[/dim]
    """
    files, command = sorted_words(words or [], context.meta[AFTER_DASHES])
    given: dict[str, Any] = {
        "name": name,
        "resources.gpus": gpus,
        "resources.gpu_memory": gpu_memory,
        "resources.gpu_cores": gpu_cores,
        "resources.mig": mig,
        "resources.gpu_model": gpu_model,
        "resources.gpu_topology": gpu_topology,
        "resources.cpu": cpu,
        "resources.memory": memory,
        "replicas": replicas if (number := whole_number(replicas)) is None else number,
        "scale": [{"metric": metric, "target": target} for metric, target in (pairs(scale, "--scale") or {}).items()]
        or None,
        "gang": gang,
        "spread": spread,
        "between_replicas.min_bandwidth": ring_bandwidth,
        "run.image": image,
        "run.command": command or None,
        "run.env": pairs(env, "--env"),
        "run.env_from_secret": pairs(env_from_secret, "--env-from-secret"),
        "run.env_from_config_map": pairs(env_from_config_map, "--env-from-config-map"),
        "volumes": volume,
        "resources.shm_size": shm_size,
        "run.ports": port,
        "expose.type": expose.value if expose else None,
        "expose.node_ports": node_port,
        "expose.host": host,
        "standby.mode": standby.value if standby else None,
        "template": template,
        "expected_duration": expected_duration,
        "time_limit": time_limit,
        "lease": lease,
        "time_limit_warning": signal,
        "workdir": str(workdir) if workdir else None,
        "setup": setup,
        "restart_policy": restart_policy.value if restart_policy else None,
        "max_restarts": max_restarts,
        "retries": retries,
        "preemptible": preemptible,
        "queue": queue,
        "priority": priority,
        "tenant": tenant,
        "placement.clusters": cluster,
        "placement.cluster_labels": pairs(cluster_label, "--cluster-label"),
        "placement.max_price_per_gpu_hour": max_price_per_gpu_hour,
        "gateway": gateway,
        "network.max_latency": max_latency,
        "network.min_bandwidth": min_bandwidth,
        "network.on_violation": on_violation.value if on_violation else None,
        "data.location": data,
        "data.size": data_size,
        "array": array,
        "matrix": matrix and {name: listed.split(",") for name, listed in (pairs(matrix, "--matrix") or {}).items()},
        "after": after and [predecessor(each) for each in after],
        "notify": notify,
        "labels": pairs(label, "--label"),
    }
    jobs = written_jobs(
        [*map(str, file or []), *files],
        {path: value for path, value in given.items() if value is not None},
        ignore or (),
    )
    if any(each.converted for each in jobs):
        from seaway.cli.jobs.convert import summarize

        summarize(jobs)
    if key and len(batches(jobs)) > 1:
        raise RejectedError("an idempotency key is for one request, but these jobs need several", where="--key")
    plain = output in (Output.TABLE, Output.WIDE)
    with connect(context) as client:
        if dry_run or plain:
            trials = try_out(client, without_folders(jobs))
            priced = any(each["price_per_hour"] for trial in trials for each in trial["candidates"])
            currency = currency_of(client, output) if priced else ""
            with nullcontext() if dry_run else naming([]):  # who reads only the first lines expects the job
                show_trials(jobs, trials, output, currency)
            if dry_run:
                raise typer.Exit(0 if all(each["fits"] for each in trials) else FAILED)
        jobs = with_archives(client, jobs)
        stored = send(client, jobs, key)
        if not plain:
            show_stored(stored, output)
        elif detach or len(stored) > 1:
            print_stored(stored)
        else:
            from seaway.cli.jobs.events import attach

            print_stored(stored)
            raise typer.Exit(attach(client, stored[0]))


def predecessor(text: str) -> dict[str, str]:
    """Return the predecessor that an option names."""
    job, _, when = text.partition(":")
    return {"job": job, "when": when} if when else {"job": job}


AFTER_DASHES = "seaway.after_dashes"
"""Key of the number of words after two dashes."""


class SubmitCommand(TyperCommand):
    """Command that notes how many words follow two dashes, which parsing removes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # typer has no public class for it
        """Parse the arguments."""
        ctx.meta[AFTER_DASHES] = len(args) - args.index("--") - 1 if "--" in args else 0
        return super().parse_args(ctx, args)


def sorted_words(words: list[str], after: int) -> tuple[list[str], list[str]]:
    """Return the job files and the command among words, of which the last `after` follow two dashes.

    A file of this machine as the command is probably a mistake, since its content is not sent: ask first.

    Raises
    ------
    RejectedError
        When the command is such a file, was not marked by two dashes, and there is no terminal to ask.
    """
    before, command = words[: len(words) - after], words[len(words) - after :]
    if before and is_script(before[0]) and not all(map(_is_job_file, before)):
        return before[:1], [*before[1:], *command]
    if not command and before and not _is_job_file(before[0]):
        before, command = [], before
    if not command:
        return before, []
    path = command[0]
    if _is_job_file(path) or Path(path).is_file():
        hint = f"seaway submit {path}" if _is_job_file(path) else f"seaway submit [OPTIONS] -- {shlex.join(command)}"
        said = f"{path} is a file of this machine, and its content is not sent"
        if sys.stdin.isatty():
            typer.confirm(f"{said}. Run it as the command of each replica?", abort=True, err=True)
        elif _is_job_file(path) or not after:
            what = "to submit it" if _is_job_file(path) else "if the image has it"
            raise RejectedError(f"{said}; {what}: {hint}", where="COMMAND")
    return before, command


def _is_job_file(path: str) -> bool:
    return path == STDIN or path.endswith((".yaml", ".yml")) or is_script(path)


def try_out(client: Client, jobs: list[Written]) -> list[Body]:
    """Run the scheduler for each job without submitting any.

    Raises
    ------
    RejectedError
        When any job is invalid, with all errors of all jobs and their positions.
    """
    from seaway.client.calls.jobs import dry_run, dry_run_batch

    if len(jobs) == 1:
        return [_placed(client, jobs, partial(dry_run, jobs[0].fields))]
    trials: list[Body] = []
    for batch in batches(jobs):
        trials += _placed(client, batch, partial(dry_run_batch, [job.fields for job in batch]))["jobs"]
    return trials


def _placed(client: Client, jobs: list[Written], call: Callable[[], Call[Any]]) -> Body:
    """Make a call about jobs. Its errors name the positions in their files."""
    try:
        return client.body(call())
    except RejectedError as error:
        found = []
        for each in (error, *error.also):
            named = IN_BATCH.fullmatch(each.where)
            at, where = (int(named[1]), named[2] or "") if named else (0, each.where)
            found.append(jobs[at].placed(type(each)(each.message, where=where)))
        raise RejectedError.together(found) from None


def batches(jobs: list[Written]) -> list[list[Written]]:
    """Split jobs into requests. Jobs of one request are stored together, and may come after each other."""
    found: list[list[Written]] = [[]]
    size = 0
    for job in jobs:
        length = len(as_json(job.fields))
        if found[-1] and (len(found[-1]) >= MOST_TOGETHER or size + length > MOST_BYTES):
            found.append([])
            size = 0
        found[-1].append(job)
        size += length
    return found


def show_trials(jobs: list[Written], trials: list[Body], output: Output, currency: str = "") -> None:
    """Print the results of dry runs."""
    if output is Output.JSON:
        typer.echo(as_json(trials[0] if len(trials) == 1 else trials))
    elif output is Output.YAML:
        typer.echo(as_yaml(trials[0] if len(trials) == 1 else trials), nl=False)
    elif output is Output.NAME:
        for trial in trials:
            typer.echo(next((f"{each['cluster']}/{each['node']}" for each in trial["placements"]), ""))
    else:
        from seaway.cli.jobs.submit import picture

        for job, trial in zip(jobs, trials, strict=True):
            console().print(picture(str(job.fields.get("name", "")), trial, wide=output is Output.WIDE))
        name_currency(currency)


def send(client: Client, jobs: list[Written], key: str) -> list[Body]:
    """Submit jobs: all or none, if they fit in one request."""
    from seaway.client.calls.jobs import submit as submit_one
    from seaway.client.calls.jobs import submit_batch

    stored: list[Body] = []
    try:
        if len(jobs) == 1:
            return [_placed(client, jobs, partial(submit_one, jobs[0].fields, key=key))]
        for batch in batches(jobs):
            call = partial(submit_batch, [job.fields for job in batch], key=key)
            stored += _placed(client, batch, call)["jobs"]
    except RejectedError:
        print_stored(stored)
        raise
    except KeyboardInterrupt:
        names = ", ".join(names_of(stored)) or "nothing that was answered"
        note(f"\ninterrupted; stored: {names}. The request on its way may be stored, too: seaway jobs")
        raise typer.Exit(INTERRUPTED) from None
    return stored


def show_stored(stored: list[Body], output: Output) -> None:
    """Print the stored jobs for programs."""
    whole = stored[0] if len(stored) == 1 else stored
    with naming(names_of(stored)):
        if output is Output.JSON:
            typer.echo(as_json(whole))
        elif output is Output.YAML:
            typer.echo(as_yaml(whole), nl=False)
        else:
            for job in stored:
                typer.echo(job["id"])


MAX_NAMED = 10
"""Maximum number of jobs that an error names."""


def names_of(stored: list[Body]) -> list[str]:
    """Return the names and IDs of the first stored jobs, and the number of the others."""
    more = len(stored) - MAX_NAMED
    names = [f"{job['name']} ({job['id']})" for job in stored[:MAX_NAMED]]
    return [*names, f"and {more:,} more"] if more > 0 else names


def print_stored(stored: list[Body]) -> None:
    """Print the stored jobs for people, with a command that follows them."""
    out = console()
    with naming(names_of(stored)):
        for job in stored:
            out.print(f"submitted {job['name']} as [bold]{job['id']}[/bold]")
        if stored:
            what = f"seaway events -f {stored[0]['id']}" if len(stored) == 1 else "seaway jobs --watch"
            out.print(f"[dim]follow: {what}[/dim]")
