"""`seaway replay`: replay of a trace with policies."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from seaway.cli import arguments
from seaway.domain import queues as domain
from seaway.domain.amounts import parse_gpu_weights
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Backfill, Queue

if TYPE_CHECKING:
    from seaway.domain.cluster import Fleet
    from seaway.domain.job import Job
    from seaway.scheduling.policies.registry import PolicyOptions
    from seaway.simulation.outcome import Outcome
    from seaway.simulation.trace import Trace
    from seaway.simulation.waiting.discipline import Discipline

MAX_VALUES = 200_000
"""Maximum number of values in a document of queues."""

BOUND = "gpu_allocated_bound_pct_at_100"
"""Name of the bound in JSON."""

POLICIES, QUEUES, OUTPUT = "Policies", "Queue of jobs that end", "Output"


class Output(StrEnum):
    """Output format."""

    TABLE = "table"
    JSON = "json"


class Order(StrEnum):
    """Order of waiting jobs."""

    FIFO = "fifo"
    PRIORITY = "priority"
    FAIR = "fair"
    SHORTEST = "shortest"


class Level(StrEnum):
    """Level of a policy."""

    NODE = "node"
    CLUSTER = "cluster"


def replay(
    nodes: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Nodes, CSV: sn or node, cpu_milli, memory_mib, gpu; where known model, gpu_memory_mib, "
            "cluster, gateway. Default gateway of cluster k: gw-k.",
            rich_help_panel=arguments.TRACE,
        ),
    ] = None,
    jobs: arguments.TraceJobs = None,
    swf: arguments.TraceLog = None,
    processors: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of processors of the log. Default: its header, MaxProcs or MaxNodes.",
            rich_help_panel=arguments.TRACE,
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Policies (see [bold]seaway policy[/bold]), policy files (.policy), or profile files (.toml). "
            "Default: seaway, or bestfit with [bold]--swf[/bold].",
            rich_help_panel=POLICIES,
            show_default=False,
        ),
    ] = "",
    links: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Links between gateways, CSV: source, target, latency_us, jitter_us, loss, bandwidth_mbps; "
            "both ways, unless the way back has its own row.",
            rich_help_panel=arguments.TRACE,
        ),
    ] = None,
    job_order: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Order of arrivals, by name; a repeated name is another copy of that job.",
            rich_help_panel=arguments.TRACE,
        ),
    ] = None,
    node_order: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Order of nodes, by sn or node; ties go to the first.",
            rich_help_panel=arguments.TRACE,
        ),
    ] = None,
    arrived: Annotated[
        float | None,
        typer.Option(
            metavar="TIMES",
            help=(
                "Stop when the requested GPU cores exceed those of the fleet by this factor; 1.3 in "
                "published runs. Default: all jobs arrive."
            ),
            rich_help_panel=arguments.TRACE,
        ),
    ] = None,
    departures: Annotated[
        bool,
        typer.Option(
            "--departures",
            help=(
                "Jobs arrive at arrives_s (or creation_time), wait until they fit, and end after "
                "expected_duration_s (or at deletion_time). Utilization is then a mean over time."
            ),
            rich_help_panel=arguments.TRACE,
        ),
    ] = False,
    order: Annotated[
        Order | None,
        typer.Option(
            help="Order of waiting jobs: by arrival, by priority and arrival (default), the tenant with the least use "
            "first, or the shortest first.",
            rich_help_panel=QUEUES,
        ),
    ] = None,
    queues: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Tree of queues, YAML: `queues:` with the fields of the API, or a file that "
            "[bold]seaway queue import[/bold] reads. Jobs of other queues wait in `default`.",
            rich_help_panel=QUEUES,
        ),
    ] = None,
    gpu_weights: Annotated[
        str,
        typer.Option(
            metavar="MODEL=WEIGHT,...",
            help="Weights of GPU models in shares of queues, such as H100=3,L4=0.5. Other models count 1. Without it, "
            "memory and cores of GPUs count.",
            rich_help_panel=QUEUES,
            show_default=False,
        ),
    ] = "",
    backfill: Annotated[
        Backfill | None,
        typer.Option(
            help="Jobs that may start before an earlier one that does not fit: none; those that do not delay the "
            "first (easy) or any earlier one (conservative); all (greedy, default).",
            rich_help_panel=QUEUES,
        ),
    ] = None,
    offers: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="How often a deferred job is offered in total, without [bold]--departures[/bold]: on "
            "arrival, and again after the last arrival. With 1, as in published runs, no job waits.",
            rich_help_panel=arguments.TRACE,
        ),
    ] = 1,
    mix: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help=(
                "Past jobs from which fgd and seaway learn the job mix. Default: --jobs, as in the "
                "published runs of FGD."
            ),
            rich_help_panel=POLICIES,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of random choices.", rich_help_panel=POLICIES)] = 0,
    level: Annotated[
        Level,
        typer.Option(
            help="Select among all nodes, or first a cluster and then a node in it.",
            rich_help_panel=POLICIES,
        ),
    ] = Level.NODE,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain",
            help="Use plain Python instead of compiled policies: slow, with the same plans.",
            rich_help_panel=POLICIES,
        ),
    ] = False,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="Output format.", rich_help_panel=OUTPUT)
    ] = Output.TABLE,
    bound: Annotated[
        bool,
        typer.Option(
            "--bound",
            help="Also print an upper bound of the allocation when 100 % of the GPU cores are requested.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    curve: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Write the allocation after each arrival, CSV: policy, arrived_pct, allocated_pct "
            "(time_s too with --departures).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    starts: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Write the start of each job, CSV: job, submit_s, start_s, end_s. Requires jobs that end.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the same as a chart (.png, .svg or .pdf).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Replay a trace with one or more policies, and compare their use of the fleet.

    A log of [bold]--swf[/bold] replaces nodes and jobs: its nodes have one GPU each, and it implies
    [bold]--departures[/bold]. Otherwise, jobs arrive one after the other. A job that does not fit is lost, unless
    [bold]--departures[/bold] lets jobs wait.
    With [bold]--offers 2[/bold] a policy can defer a job once, until all have arrived. A job counts as
    [italic]refused[/italic] if no node could hold it at that moment, and as [italic]failed[/italic] if a node could but
    the policy did not place it.

    [bold]Examples[/bold]

    Two policies on a trace, until 130 % of the GPUs are requested, with a chart:

    [cyan]seaway replay --nodes nodes.csv --jobs jobs.csv --policy fgd,seaway
    --arrived 1.3 --plot curve.png[/cyan]

    Clusters with network links, as JSON:

    [cyan]seaway replay --nodes nodes.csv --jobs jobs.csv --links links.csv --policy bestfit -o json[/cyan]

    Waiting times, with jobs that end:

    [cyan]seaway replay --nodes nodes.csv --jobs jobs.csv --policy bestfit --departures[/cyan]

    The log of a batch system with EASY backfill, and the start of each job:

    [cyan]seaway replay --swf NASA-iPSC-1993.swf --order fifo --backfill easy --starts starts.csv[/cyan]

    The same with fair shares of its users, or with a tree of queues:

    [cyan]seaway replay --swf NASA-iPSC-1993.swf --order fair[/cyan]

    [cyan]seaway replay --nodes nodes.csv --jobs jobs.csv --departures --queues queues.yaml[/cyan]
    """
    from seaway.cli.learning.compare import compare
    from seaway.cli.tables import show_bound, show_comparison
    from seaway.scheduling.policies.registry import PolicyOptions
    from seaway.simulation.bound import bound_pct
    from seaway.simulation.replay import arrivals_until_requested

    names = policy_list(policy or ("bestfit" if swf else "seaway"))
    check_numbers(arrived, seed)
    departures = departures or swf is not None
    check_offers(offers, departures=departures)
    discipline = discipline_of(order, backfill, departures=departures)
    if queues and discipline is None:
        raise RejectedError("needs --departures or --swf: jobs that never end do not wait", where="--queues")
    if gpu_weights and not queues and order is not Order.FAIR:
        raise RejectedError("needs --queues or --order fair: shares do not matter otherwise", where="--gpu-weights")
    if gpu_weights and discipline:
        discipline = replace(discipline, gpu_weights=parse_gpu_weights(gpu_weights, where="--gpu-weights"))
    files = ResultFiles(curve, starts, plot)
    files.check(names, departures=departures)
    check_policies(names, PolicyOptions(level.value, seed, (), plain))
    if swf:
        check_alone(nodes=nodes, jobs=jobs, links=links, job_order=job_order, node_order=node_order, mix=mix)
        trace = read_log(swf, processors)
    else:
        trace = read_files(nodes, jobs, links, node_order, job_order, mix, processors)
    if departures and jobs:
        check_times(trace.jobs, jobs)
    if queues and discipline:
        tree = read_tree(queues, trace.fleet, order, backfill)
        trace = replace(trace, jobs=in_known_queues(trace.jobs, tree, queues))
        discipline = replace(discipline, queues=tree)
    options = PolicyOptions(level.value, seed, trace.mix, plain)
    coming = trace.jobs if arrived is None else arrivals_until_requested(trace.fleet, trace.jobs, arrived)
    outcomes = compare(trace.fleet, coming, names, options, departures=discipline, offers=offers)
    most = {BOUND: bound_pct(trace.fleet, trace.jobs)} if bound else {}
    if output is Output.JSON:
        typer.echo(json.dumps([outcome.record() | most for outcome in outcomes], indent=2))
    else:
        show_comparison(outcomes)
    if bound and output is Output.TABLE:
        show_bound(most[BOUND])
    files.write(coming, outcomes)


def read_tree(file: Path, fleet: Fleet, order: Order | None, backfill: Backfill | None) -> tuple[Queue, ...]:
    """Read a tree of queues; `order` and `backfill` apply to all of them if they are given.

    Raises
    ------
    RejectedError
        If the file or the tree is invalid.
    """
    from seaway.cli.jobs.file import Kind, read_jobs
    from seaway.domain.queues import check_tree
    from seaway.domain.tenancy import DEFAULT
    from seaway.wire.queue_imports.files import read_queues
    from seaway.wire.queues import read_queue

    documents = [each.fields for each in read_jobs(str(file), Kind("queue", "queues: []", MAX_VALUES))]
    gpus = sum(each.totals.gpus for each in fleet.clusters)
    try:
        if any(is_native(each) for each in documents):
            found = [read_queue(each) for document in documents for each in document["queues"]]
        else:
            found = [read_queue({"name": each.name, **each.fields()}) for each in read_queues(documents, gpus).queues]
        own: dict[str, Any] = {"order": order and domain.Order(order.value), "backfill": backfill}
        given = {name: value for name, value in own.items() if value}
        found = [replace(each, pool=DEFAULT, **given) for each in found]
        for each in found:
            check_tree(each, found)
    except RejectedError as error:
        raise RejectedError(error.message, where=f"{file}: {error.where}" if error.where else str(file)) from None
    return tuple(found)


def is_native(document: Mapping[str, Any]) -> bool:
    """Report whether a document has queues with fields of the API, and not of a scheduler-queues file."""
    rows = document.get("queues")
    foreign = {"maxCapacity", "guaranteedCapacity", "preemptionPolicy"}
    if "kind" in document or "fairShare" in document or not isinstance(rows, list) or not rows:
        return False
    return all(isinstance(each, dict) and not foreign & each.keys() for each in rows)


def in_known_queues(jobs: Sequence[Job], tree: Sequence[Queue], file: Path) -> tuple[Job, ...]:
    """Return jobs in queues of a tree. Jobs of other queues are in the default queue, which must exist for them."""
    from seaway.domain.tenancy import DEFAULT

    parents = {each.parent for each in tree}
    leaves = {each.name for each in tree} - parents
    moved = [job if job.queue in leaves else replace(job, queue=DEFAULT) for job in jobs]
    if DEFAULT not in leaves and (lost := [job for job in jobs if job.queue not in leaves]):
        raise RejectedError(
            f"has no queue {lost[0].queue!r} without children, in which job {lost[0].name} waits, and no queue "
            f"{DEFAULT!r}; it has {', '.join(sorted(leaves))}",
            where=str(file),
        )
    return tuple(moved)


class ResultFiles(NamedTuple):
    """Files to write after a replay; None for none."""

    curve: Path | None
    starts: Path | None
    plot: Path | None

    def check(self, policies: list[str], *, departures: bool) -> None:
        """Check before the replay that the files can be written."""
        from seaway.cli.learning.curves import picture_file

        if self.starts and not departures:
            raise RejectedError("needs --departures or --swf", where="--starts")
        if self.starts and len(policies) > 1:
            raise RejectedError("needs a single policy", where="--starts")
        for option, file in self._asdict().items():
            if file:
                check_writable(file, f"--{option}")
        if self.plot:
            picture_file(self.plot)

    def write(self, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
        """Write the files."""
        from seaway.cli.learning.curves import draw, write_curves, write_starts

        if self.curve:
            write_curves(outcomes, self.curve)
        if self.starts:
            write_starts(jobs, outcomes[0], self.starts)
        if self.plot:
            draw(outcomes, self.plot)


def read_log(swf: Path, processors: int | None) -> Trace:
    """Read a log as a trace. A note about entries that are left out goes to standard error."""
    from seaway.simulation.swf import read_swf
    from seaway.simulation.trace import Trace

    log = read_swf(swf, processors)
    if log.skipped:
        typer.echo(f"{log.skipped} entries of {swf} are left out: they never ran, or have no size", err=True)
    return Trace(log.fleet, log.jobs, log.jobs)


def read_files(
    nodes: Path | None,
    jobs: Path | None,
    links: Path | None,
    node_order: Path | None,
    job_order: Path | None,
    mix: Path | None,
    processors: int | None,
) -> Trace:
    """Read the CSV files of a trace."""
    from seaway.simulation.trace import TraceFiles, read_trace

    if processors:
        raise RejectedError("needs --swf", where="--processors")
    if nodes is None or jobs is None:
        missing = "--nodes" if nodes is None else "--jobs"
        raise RejectedError("is missing; give --nodes and --jobs, or a log with --swf", where=missing)
    return read_trace(TraceFiles(nodes, jobs, links, node_order, job_order, mix))


def discipline_of(order: Order | None, backfill: Backfill | None, *, departures: bool) -> Discipline | None:
    """Return how jobs wait; None if they never end."""
    from seaway.simulation.waiting.discipline import Discipline

    if departures:
        return Discipline(domain.Order(order or Order.PRIORITY), backfill or Backfill.GREEDY)
    for option, given in (("--order", order), ("--backfill", backfill)):
        if given:
            raise RejectedError("needs --departures or --swf: jobs that never end do not wait", where=option)
    return None


def check_alone(**files: Path | None) -> None:
    """Reject files of a trace beside a log, which has nodes and jobs."""
    for name, given in files.items():
        if given:
            raise RejectedError("cannot be combined with --swf", where=f"--{name.replace('_', '-')}")


def policy_list(text: str) -> list[str]:
    """Split names at commas.

    Raises
    ------
    RejectedError
        When a name is missing or duplicated.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise RejectedError("a name is missing; separate names with a comma", where="--policy")
    for name in names:
        if names.count(name) > 1:
            raise RejectedError(f"{name!r} appears more than once", where="--policy")
    return names


def check_policies(names: list[str], options: PolicyOptions) -> None:
    """Create each policy once, so that an unknown name is reported before any file is read."""
    from seaway.bootstrap.policies import policy_of

    for name in names:
        try:
            policy_of(name, options)
        except RejectedError as error:
            raise RejectedError(error.message, where=error.where or "--policy") from None


def check_numbers(arrived: float | None, seed: int) -> None:
    """Check that numbers are in their range."""
    if arrived is not None and not arrived > 0:
        raise RejectedError(f"{arrived} is not more than 0", where="--arrived")
    if not 0 <= seed < 2**63:
        raise RejectedError(f"{seed} is not between 0 and 2**63 - 1", where="--seed")


def check_offers(offers: int, *, departures: bool) -> None:
    """Check the number of offers. With departures, waiting jobs are offered after each end of a job."""
    if offers < 1:
        raise RejectedError(f"{offers} is not at least 1", where="--offers")
    if departures and offers > 1:
        raise RejectedError(
            "cannot be used with --departures, which retries jobs after each job that ends", where="--offers"
        )


def check_times(jobs: Sequence[Job], path: Path) -> None:
    """Reject jobs without times, which departures require."""
    if all(not job.arrives_s and job.expected_duration_s is None for job in jobs):
        raise RejectedError(
            "no job has a time: arrives_s and expected_duration_s (or creation_time, deletion_time)", where=str(path)
        )


def check_writable(path: Path, option: str) -> None:
    """Check before the replay that a file can be written."""
    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise RejectedError(f"{str(path)!r} cannot be written", where=option)
