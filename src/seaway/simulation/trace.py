"""Traces: a fleet, jobs in order of arrival, and jobs of the past, read from files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.simulation.fleet_file import read_fleet
from seaway.simulation.job_file import counts_memory, in_order, jobs_of, read_job_table


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """Files of a trace; see `read_fleet` and `jobs_of` for the columns.

    Attributes
    ----------
    nodes, jobs
        The fleet's nodes and the jobs.
    links
        Links between gateways; None without a network.
    node_order, job_order
        Rank of the nodes and arrival of the jobs; None for the order of `nodes` and `jobs`.
    mix
        Past jobs; None to use `jobs`, in their own order and number.
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
        The fleet, without allocations.
    jobs
        In order of arrival.
    mix
        Past jobs, from which policies may learn the job mix.
    """

    fleet: Fleet
    jobs: tuple[Job, ...]
    mix: tuple[Job, ...]


def read_trace(files: TraceFiles) -> Trace:
    """Read a trace.

    Raises
    ------
    RejectedError
        When a file is not as it should be; says where.
    """
    table = read_job_table(files.jobs)
    by_memory = counts_memory(table)
    fleet = read_fleet(files.nodes, files.links, files.node_order, by_memory=by_memory)
    gateways = [gateway.name for gateway in fleet.gateways]
    jobs = jobs_of(table, gateways, by_memory=by_memory)
    mix = jobs_of(read_job_table(files.mix), gateways, by_memory=by_memory) if files.mix else jobs
    return Trace(fleet, in_order(jobs, files.job_order) if files.job_order else jobs, mix)
