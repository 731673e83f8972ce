"""Arguments that several commands share, and their shell completion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli.remote import Body, connect
from seaway.domain.errors import RejectedError, SeawayError

if TYPE_CHECKING:
    from seaway.client.sync import Client


TRACE = "Trace"
"""Section of the options of a trace."""

TraceJobs = Annotated[
    Path | None,
    typer.Option(
        metavar="CSV",
        help="Jobs, CSV: name, cpu_milli, memory_mib, num_gpu, gpu_milli; where known gpu_memory_mib, "
        "gpu_spec, replicas, gang, priority, times, user_gateway and bounds on the network. "
        "Without gpu_memory_mib, cores stand for memory too.",
        rich_help_panel=TRACE,
    ),
]

TraceLog = Annotated[
    Path | None,
    typer.Option(
        metavar="LOG",
        help="Log in the Standard Workload Format: a job of size s is a gang of s replicas with one GPU each.",
        rich_help_panel=TRACE,
    ),
]


def split_place(place: str) -> tuple[str, str]:
    """Split ``CLUSTER`` or ``CLUSTER/NODE``; the node is empty for a whole cluster."""
    cluster, _, node = place.partition("/")
    return cluster, node


def moment(text: str, option: str) -> str:
    """Parse a time in the past, an age like ``1h``, a date or a timestamp; return a timestamp with a time zone.

    Raises
    ------
    RejectedError
        When it is none of these.
    """
    from datetime import datetime, timedelta

    from seaway.domain.units import seconds_ns

    now = datetime.now().astimezone()
    try:
        if text[4:5] != "-":
            return (now - timedelta(microseconds=seconds_ns(text) // 1000)).isoformat()
        return datetime.fromisoformat(text).astimezone().isoformat()
    except (RejectedError, ValueError, OverflowError):
        said = f"{text!r} is not a time; use an age like 1h, a date like 2026-11-21, or 2026-11-21T10:00:00Z"
        raise RejectedError(said, where=option) from None


MOST = 100
"""Maximum number of latest jobs in completions."""


def jobs(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete IDs and names of the latest jobs."""
    return _matching(context, incomplete, _jobs)


def clusters(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete names of clusters."""
    return _matching(context, incomplete, _clusters)


def places(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete names of clusters, and names of nodes after a slash."""
    if "/" not in incomplete:
        return _matching(context, incomplete, _clusters)
    return _matching(context, incomplete, lambda client: _nodes(client, incomplete.partition("/")[0]))


def queues(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete names of queues."""
    return _matching(context, incomplete, _queues)


def policies(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete names of the server's policies."""
    return _matching(context, incomplete, _policies)


def _matching(
    context: typer.Context, incomplete: str, found: Callable[[Client], Iterator[tuple[str, str]]]
) -> list[tuple[str, str]]:
    try:
        with connect(context) as client:
            return [each for each in dict(found(client)).items() if each[0].startswith(incomplete)]
    except (SeawayError, KeyError):
        return []


def _jobs(client: Client) -> Iterator[tuple[str, str]]:
    from seaway.client.calls.jobs import jobs as listed

    for job in _body(client, listed(limit=MOST).first)["jobs"]:
        yield job["name"], f"{job['state']}, {job['id']}"
        yield job["id"], f"{job['name']}, {job['state']}"


def _clusters(client: Client) -> Iterator[tuple[str, str]]:
    from seaway.client.calls.fleet import clusters as listed

    for cluster in _body(client, listed())["clusters"]:
        yield cluster["name"], f"{cluster['state']}, {cluster['gpus']} GPUs"


def _nodes(client: Client, cluster: str) -> Iterator[tuple[str, str]]:
    from seaway.client.calls.fleet import nodes as listed

    for node in _body(client, listed(cluster=cluster).first)["nodes"]:
        yield f"{cluster}/{node['name']}", "ready" if node["ready"] else "not ready"


def _queues(client: Client) -> Iterator[tuple[str, str]]:
    from seaway.client.calls.queues import queues as listed

    for queue in _body(client, listed())["queues"]:
        yield queue["name"], f"policy {queue['policy']}"


def _policies(client: Client) -> Iterator[tuple[str, str]]:
    from seaway.client.calls.policies import policies as listed

    for policy in _body(client, listed())["policies"]:
        yield policy["name"], policy["description"]


def _body(client: Client, call: Any) -> Body:  # noqa: ANN401  # any call
    return client.body(call)


JOB = typer.Argument(help="ID or name of a job; an unfinished one takes precedence.", autocompletion=jobs)

Job = Annotated[str, JOB]
Jobs = Annotated[list[str], typer.Argument(help="IDs or names of jobs.", autocompletion=jobs, metavar="JOB...")]
Place = Annotated[str, typer.Argument(help="A cluster, or CLUSTER/NODE.", autocompletion=places, metavar="PLACE")]
Reason = Annotated[str, typer.Option(help="Reason, shown in the events.")]
