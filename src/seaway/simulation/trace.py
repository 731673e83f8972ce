"""Traces from files: a fleet, jobs in order of arrival, and past jobs."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from seaway.domain.cluster import Fleet
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, DeviceRules, Job, ResourceRequest
from seaway.domain.network import PPM, NetworkNeed
from seaway.domain.node import Node
from seaway.domain.tenancy import DEFAULT
from seaway.simulation.fleet_file import MAX_GPUS, NS_PER_US, read_fleet
from seaway.simulation.table import CsvRow, Table, read_table, require_unique

MAX_REPLICAS = 10_000
"""Maximum number of replicas of a job in a file."""

BEST_EFFORT = "BE"
"""Quality of service with the lowest priority."""

JOB_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


def read_job_table(path: Path) -> Table:
    """Read a jobs file as a table."""
    return read_table(path, JOB_COLUMNS)


def counts_memory(jobs: Table) -> bool:
    """Report whether jobs request device memory in MiB; otherwise the requested cores apply to memory too."""
    return "gpu_memory_mib" in jobs.columns


def jobs_of(table: Table, gateways: Collection[str], *, by_memory: bool) -> tuple[Job, ...]:
    """Return the jobs of a table, in its order.

    Columns are ``name``, ``cpu_milli``, ``memory_mib``, ``num_gpu``, ``gpu_milli`` (cores of each device) and, if
    known:

    - ``gpu_memory_mib``, of each device; without it, a slice has the same share of a device's memory as of its cores;
    - ``gpu_spec``: the allowed models, separated by ``|``; empty for any;
    - ``replicas``, ``gang`` (true: all replicas or none), ``priority``, ``tenant`` and ``queue``. Without a priority,
      that is 1 for a quality of service ``qos`` other than ``BE``, and 0 otherwise;
    - ``max_replicas`` of an elastic job, which starts with ``replicas`` and shares its work among those that it gets;
    - ``arrives_s`` and ``expected_duration_s``, or ``creation_time`` and ``deletion_time``, in seconds. In the second
      form, a job runs from ``scheduled_time`` (by default ``creation_time``) to ``deletion_time``, or without end;
    - ``user_gateway``, ``max_latency_us``, ``max_jitter_us``, ``max_loss`` (0-1) and
      ``min_bandwidth_mbps``; 0 for no bound.

    Parameters
    ----------
    gateways
        Names of the fleet's gateways.
    by_memory
        Whether the fleet has device memory in MiB.

    Raises
    ------
    RejectedError
        If a cell is invalid, or a name appears twice.
    """
    if counts_memory(table) != by_memory:
        raise table.require_columns("gpu_memory_mib", "must be in both files of jobs or in neither")
    jobs: dict[str, Job] = {}
    demands: dict[Demand, Demand] = {}
    for line in table:
        name = line.name("name")
        require_unique(line, "name", name, jobs)
        demand = _demand(line, gateways, by_memory=by_memory)
        jobs[name] = _job(name, demands.setdefault(demand, demand), line)
    return tuple(jobs.values())


def in_order(jobs: Sequence[Job], path: Path) -> tuple[Job, ...]:
    """Return jobs in the order of arrival of a file with a column ``name``.

    Jobs that the file does not name are left out. A repeated name adds a copy of the job, named like ``job#2``.

    Raises
    ------
    RejectedError
        If the file names an unknown job.
    """
    by_name = {job.name: job for job in jobs}
    times: Counter[str] = Counter()
    ordered = []
    for line in read_table(path, ["name"]):
        name = line.name("name")
        if name not in by_name:
            raise line.wrong("name", f"unknown job {name!r}; the file of jobs does not have it")
        times[name] += 1
        job = by_name[name]
        ordered.append(job if times[name] == 1 else replace(job, name=f"{name}#{times[name]}"))
    return tuple(ordered)


def _demand(line: CsvRow, gateways: Collection[str], *, by_memory: bool) -> Demand:
    models = frozenset(filter(None, (model.strip() for model in line.text("gpu_spec").split("|"))))
    need = NetworkNeed(
        max_latency_ns=line.scaled("max_latency_us", NS_PER_US),
        max_jitter_ns=line.scaled("max_jitter_us", NS_PER_US),
        max_loss_ppm=line.scaled("max_loss", PPM),
        min_bandwidth_mbps=line.whole("min_bandwidth_mbps", 0),
    )
    return Demand(
        _request(line, by_memory=by_memory),
        DeviceRules(models=models),
        gateway=_user_gateway(line, need, gateways),
        network=need,
    )


def _user_gateway(line: CsvRow, need: NetworkNeed, gateways: Collection[str]) -> str:
    """Return the user's gateway; empty if the fleet has no gateways."""
    name = line.text("user_gateway")
    if need.any and not name:
        raise line.wrong("user_gateway", "is empty, but bounds on the network are measured from it")
    if name and name not in gateways and (need.any or gateways):
        known = ", ".join(gateways) or "none; give the file of links too"
        raise line.wrong("user_gateway", f"unknown gateway {name!r}; available: {known}")
    return name if gateways else ""


def _request(line: CsvRow, *, by_memory: bool) -> ResourceRequest:
    gpus, milli = line.whole("num_gpu"), line.whole("gpu_milli", 0)
    if gpus > MAX_GPUS:
        raise line.wrong("num_gpu", f"{gpus} devices for one replica; at most {MAX_GPUS} can be right")
    memory = line.whole("gpu_memory_mib", 0) if by_memory else milli
    if milli > WHOLE_DEVICE_MILLI:
        raise line.wrong("gpu_milli", f"{milli} is more than one device has; request more devices with num_gpu")
    if not gpus:
        for column, amount in (("gpu_milli", milli), ("gpu_memory_mib", memory)):
            if amount:
                raise line.wrong(column, f"requests {amount} of each device, but num_gpu is 0")
    elif not memory:
        raise line.wrong("gpu_memory_mib" if by_memory else "gpu_milli", "is 0, but num_gpu requests a device")
    return ResourceRequest(line.whole("cpu_milli"), line.whole("memory_mib"), gpus, memory, 0, milli)


def _job(name: str, demand: Demand, line: CsvRow) -> Job:
    replicas = line.whole("replicas", 1)
    if not replicas:
        raise line.wrong("replicas", "is 0, but at least 1 is needed")
    if replicas > MAX_REPLICAS:
        raise line.wrong("replicas", f"{replicas} is more than {MAX_REPLICAS}, the most that one job may have")
    most = line.whole("max_replicas", 0)
    if most and not replicas <= most <= MAX_REPLICAS:
        raise line.wrong("max_replicas", f"{most} is not between replicas, {replicas}, and {MAX_REPLICAS}")
    return Job(
        name,
        demand,
        replicas=replicas,
        gang=line.flag("gang"),
        priority=line.whole("priority", int(line.text("qos").upper() not in {"", BEST_EFFORT})),
        tenant=line.text("tenant") or DEFAULT,
        queue=line.text("queue") or DEFAULT,
        arrives_s=line.whole("arrives_s", line.whole("creation_time", 0)),
        expected_duration_s=_runs_s(line),
        max_replicas=most,
    )


def _runs_s(line: CsvRow) -> int | None:
    """Return the duration of a job, seconds; None for a job without an end."""
    if line.has("expected_duration_s"):
        return line.whole("expected_duration_s")
    if not line.has("deletion_time"):
        return None
    start_column = "scheduled_time" if line.has("scheduled_time") else "creation_time"
    start, end = line.whole(start_column), line.whole("deletion_time")
    if end < start:
        raise line.wrong("deletion_time", f"{end} is before {start_column} {start}")
    return end - start


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """Files of a trace; see `read_fleet` and `jobs_of` for the columns.

    Attributes
    ----------
    nodes, jobs
        Files of the nodes and of the jobs.
    links
        File of the links between gateways; None without a network.
    node_order, job_order
        Files with the order of the nodes and of the jobs; None for the order in `nodes` and `jobs`.
    mix
        File of past jobs; None to use `jobs`.
    """

    nodes: Path
    jobs: Path
    links: Path | None = None
    node_order: Path | None = None
    job_order: Path | None = None
    mix: Path | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """Input of a replay.

    Attributes
    ----------
    fleet
        Fleet without allocations.
    jobs
        Jobs in order of arrival.
    mix
        Past jobs, from which policies can learn the job mix.
    """

    fleet: Fleet
    jobs: tuple[Job, ...]
    mix: tuple[Job, ...]


def read_trace(files: TraceFiles) -> Trace:
    """Read a trace.

    Raises
    ------
    RejectedError
        If a file is invalid, with the position.
    """
    table = read_job_table(files.jobs)
    by_memory = counts_memory(table)
    fleet = read_fleet(files.nodes, files.links, files.node_order, by_memory=by_memory)
    gateways = [gateway.name for gateway in fleet.gateways]
    jobs = jobs_of(table, gateways, by_memory=by_memory)
    mix = jobs_of(read_job_table(files.mix), gateways, by_memory=by_memory) if files.mix else jobs
    return Trace(fleet, in_order(jobs, files.job_order) if files.job_order else jobs, mix)


def requested_milli(job: Job) -> int:
    """Return the GPU cores that all replicas of a job request, thousandths of a device."""
    request = job.demand.request.filled()
    return request.gpus * request.gpu_milli * job.replicas


PUBLISHED_LOAD = 1.3
"""Multiple of the fleet's GPU cores that jobs request in published runs of openb."""


def shuffled(trace: Trace, seed: int, load: float = PUBLISHED_LOAD) -> Trace:
    """Return a trace with nodes and jobs in a random order.

    Jobs repeat until they request `load` times the fleet's GPU cores, as copies that are named like ``job#2``. The past
    jobs are those of `trace`, each once.

    Raises
    ------
    RejectedError
        If no job requests a GPU, or the fleet has none.
    """
    total = load * sum(device.core_milli for device in trace.fleet.devices)
    if not total or not any(requested_milli(job) for job in trace.jobs):
        raise RejectedError("has no GPU that jobs could request, so its jobs cannot be repeated up to a load")
    random, jobs, requested, round_ = Random(seed), list[Job](), 0, 0
    clusters = tuple(
        replace(each, nodes=tuple(random.sample(each.nodes, len(each.nodes)))) for each in trace.fleet.clusters
    )
    while requested < total:
        round_ += 1
        for job in random.sample(trace.jobs, len(trace.jobs)):
            jobs.append(job if round_ == 1 else replace(job, name=f"{job.name}#{round_}"))
            requested += requested_milli(job)
            if requested >= total:
                break
    return Trace(replace(trace.fleet, clusters=clusters), tuple(jobs), trace.mix)


def write_trace(trace: Trace, folder: Path) -> tuple[Path, Path]:
    """Write the nodes and the jobs of a trace without device memory and network, and return the files.

    Raises
    ------
    RejectedError
        If the folder has such files already, or they cannot be written.
    """
    nodes, jobs = folder / "nodes.csv", folder / "jobs.csv"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with nodes.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["cluster", "node", "cpu_milli", "memory_mib", "gpu", "model"])
            writer.writerows(
                [cluster.name, node.name, node.cpu_milli, node.memory_mib, len(node.devices), _model(node)]
                for cluster in trace.fleet.clusters
                for node in cluster.nodes
            )
        with jobs.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(WRITTEN)
            writer.writerows(map(_cells, trace.jobs))
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror}", where=str(error.filename or folder)) from None
    return nodes, jobs


WRITTEN = (
    *JOB_COLUMNS,
    "gpu_spec",
    "replicas",
    "gang",
    "priority",
    "tenant",
    "queue",
    "arrives_s",
    "expected_duration_s",
    "max_replicas",
)
"""Columns of a written file of jobs."""


def _model(node: Node) -> str:
    return node.devices[0].model if node.devices else ""


def _cells(job: Job) -> tuple[object, ...]:
    request, lasts_s = job.demand.request.filled(), job.expected_duration_s
    amounts = request.cpu_milli, request.memory_mib, request.gpus, request.gpu_milli
    models = "|".join(sorted(job.demand.devices.models))
    gang = "true" if job.gang else "false"
    times = job.arrives_s, "" if lasts_s is None else lasts_s
    return (
        job.name,
        *amounts,
        models,
        job.replicas,
        gang,
        job.priority,
        job.tenant,
        job.queue,
        *times,
        job.max_replicas or "",
    )
