"""`seaway fleet`: clusters, nodes, devices and slices with their allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli import arguments
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import Body, connect, currency_of, whole
from seaway.domain.errors import UnknownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from seaway.terminal.tables import Column


app = typer.Typer(rich_markup_mode="rich")

Cluster = Annotated[str, typer.Option("--cluster", "-c", help="Filter by cluster.", autocompletion=arguments.clusters)]
Node = Annotated[str, typer.Option(help="Filter by node.")]
Name = Annotated[str, typer.Option(help="Filter nodes by a part of their name.")]
Device = Annotated[str, typer.Option(help="Filter devices by a part of their UUID.")]
Model = Annotated[str, typer.Option(help="Filter devices by model, like A100.")]
FreeMemory = Annotated[str, typer.Option(help="Minimum free memory of a device, like 24Gi.")]
FreeCores = Annotated[str, typer.Option(help="Minimum free cores of a device, like 50%.")]
Ready = Annotated[bool | None, typer.Option("--ready/--not-ready", help="Filter by whether it accepts new jobs.")]
Healthy = Annotated[
    bool | None,
    typer.Option("--healthy/--unhealthy", help="Filter by whether the node is ready and all its devices are healthy."),
]


@app.callback(invoke_without_command=True)
def clusters(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Show clusters, nodes, devices and slices with their allocation. Default: all clusters.

    [bold]Examples[/bold]

      [cyan]seaway fleet[/cyan]
      [cyan]seaway fleet nodes --cluster berlin[/cyan]
      [cyan]seaway fleet models[/cyan]
      [cyan]seaway fleet devices --model A100 --free-memory 40Gi -o wide[/cyan]
    """
    if not context.invoked_subcommand:
        list_fleet(context, output)


def list_fleet(context: typer.Context, output: Output) -> None:
    """Print the clusters of the fleet."""
    from seaway.client.calls.fleet import clusters as call

    with connect(context) as client:
        body = client.body(call())
        currency = currency_of(client, output) if any(each["price_per_gpu_hour"] for each in body["clusters"]) else ""
    names = (each["name"] for each in body["clusters"])
    show(output, body, lambda wide: table(body, wide=wide), lambda: names, currency)


@app.command()
def nodes(
    context: typer.Context,
    node: Annotated[
        str, typer.Argument(metavar="[NODE]", help="Name of a node, or CLUSTER/NODE.", autocompletion=arguments.places)
    ] = "",
    cluster: Cluster = "",
    name: Name = "",
    device: Device = "",
    model: Model = "",
    free_memory: FreeMemory = "",
    free_cores: FreeCores = "",
    ready: Ready = None,
    healthy: Healthy = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show nodes with a bar for each device. Filters of devices select nodes that have such a device."""
    from seaway.client.calls.fleet import nodes as call

    if node:
        place, _, name = node.rpartition("/")
        cluster = place or cluster
    wanted = call(
        cluster=cluster,
        name=name,
        **_wanted(device, model, free_memory, free_cores, ready=ready, healthy=healthy),
    )
    with connect(context) as client:
        body = whole(client, wanted)
    if node:
        body["nodes"] = [each for each in body["nodes"] if each["name"] == name]
        if not body["nodes"]:
            raise UnknownError(f"node {node!r} not found")
    names = (f"{each['cluster']}/{each['name']}" for each in body["nodes"])
    show(output, body, lambda wide: _nodes(body, wide=wide), lambda: names)


@app.command(name="map")
def map_(
    context: typer.Context,
    cluster: Cluster = "",
    name: Name = "",
    device: Device = "",
    model: Model = "",
    free_memory: FreeMemory = "",
    free_cores: FreeCores = "",
    ready: Ready = None,
    healthy: Healthy = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show all nodes at a glance, a block for each: the higher, the more of its GPUs are allocated.

    Marks: ! has an unhealthy GPU, x does not answer, / accepts no jobs, . has no GPUs.
    """
    from seaway.client.calls.fleet import fleet_map as call

    wanted = call(
        cluster=cluster,
        name=name,
        **_wanted(device, model, free_memory, free_cores, ready=ready, healthy=healthy),
    )
    with connect(context) as client:
        body = client.body(wanted)
    names = (f"{each['cluster']}/{each['name']}" for each in body["nodes"])
    show(output, body, lambda wide: _map(body, wide=wide), lambda: names)


@app.command()
def devices(
    context: typer.Context,
    cluster: Cluster = "",
    node: Node = "",
    device: Device = "",
    model: Model = "",
    free_memory: FreeMemory = "",
    free_cores: FreeCores = "",
    ready: Ready = None,
    healthy: Healthy = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show devices with their allocated memory, cores and slices."""
    from seaway.client.calls.fleet import devices as call

    wanted = call(
        cluster=cluster,
        node=node,
        **_wanted(device, model, free_memory, free_cores, ready=ready, healthy=healthy),
    )
    with connect(context) as client:
        body = whole(client, wanted)
    show(output, body, lambda wide: _devices(body, wide=wide), lambda: (each["uuid"] for each in body["devices"]))


@app.command()
def slices(
    context: typer.Context,
    cluster: Cluster = "",
    node: Node = "",
    device: Device = "",
    model: Model = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the slices of devices and their jobs."""
    from seaway.client.calls.fleet import slices as call

    with connect(context) as client:
        body = whole(client, call(cluster=cluster, node=node, device=device, model=model))
    show(output, body, lambda wide: _slices(body, wide=wide), lambda: (each["uuid"] for each in body["slices"]))


@app.command()
def models(context: typer.Context, cluster: Cluster = "", output: OutputOption = Output.TABLE) -> None:
    """Show the GPU models with the number of their devices.

    A name of a model in jobs, quotas and filters covers all models that have its words, so A100 means both
    NVIDIA A100-SXM4-80GB and NVIDIA A100 80GB PCIe.
    """
    from seaway.client.calls.fleet import models as call

    with connect(context) as client:
        body = client.body(call(cluster))
    show(output, body, lambda wide: _models(body, wide=wide), lambda: (each["model"] for each in body["models"]))


def _wanted(
    device: str, model: str, memory: str, cores: str, *, ready: bool | None, healthy: bool | None
) -> dict[str, Any]:
    """Return the filters of nodes and devices as parameters of a call; raise `RejectedError` for an invalid amount."""
    from seaway.domain.units import memory_mib, percent_milli

    mib = memory_mib(memory, where="--free-memory") if memory else 0
    milli = percent_milli(cores, where="--free-cores") if cores else 0
    filters = {"device": device, "model": model, "ready": ready, "healthy": healthy}
    return {**filters, "free_memory_mib": mib, "free_core_milli": milli}


def table(body: Body, *, wide: bool) -> RenderableType:
    """Return the table of clusters."""
    from rich.console import Group
    from rich.text import Text

    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import cordoned, cores, gib, level, state

    silent = [each for each in body["clusters"] if each["message"]]
    columns = (
        Column("CLUSTER", lambda each: each["name"]),
        Column("STATE", lambda each: state(each["state"])),
        Column("NODES", lambda each: str(each["nodes"]), right=True, drop=2),
        Column("GPU CORES", lambda each: level(each["gpu_milli"], cores)),
        Column("GPU MEMORY", lambda each: level(each["gpu_memory_mib"], gib), drop=5),
        Column("CPU", lambda each: level(each["cpu_milli"], cores), wide=True, drop=7),
        Column("MEMORY", lambda each: level(each["memory_mib"], gib), wide=True, drop=8),
        Column("TASKS", lambda each: str(each["jobs"]), right=True, drop=1),
        Column("PRICE/GPU H", _price, right=True, drop=4),
        Column("GATEWAY", lambda each: each["gateway"], drop=6),
        Column("REGION", lambda each: each["region"] or UNKNOWN, wide=True, drop=6),
        Column("ZONES", lambda each: ", ".join(each.get("zones", ())) or UNKNOWN, wide=True, cut=True, drop=9),
        Column("HARDWARE", _hardware, wide=True, cut=True, drop=9),
        Column("LAST SEEN", _last_seen, right=True, wide=True, drop=9),
        Column("ORPHANS", lambda each: str(len(each["orphans"])), right=True, wide=True, drop=9),
        Column("CORDON", cordoned, cut=True, drop=3),
        *([Column("SILENCE", lambda each: each["message"], cut=True)] if silent and not wide else ()),
    )
    rows = Rows(columns, body["clusters"], wide=wide)
    return (
        Group(rows, "", *(Text(f"{each['name']}: {each['message']}") for each in silent)) if silent and wide else rows
    )


def _last_seen(cluster: Body) -> str:
    from seaway.terminal.words import seconds

    return seconds(cluster["last_seen_s"]) if cluster["reported_at"] else "never"


def _map(body: Body, *, wide: bool) -> RenderableType:
    from itertools import groupby

    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import block

    def mark(node: Body) -> str:
        if not node["answers"] or node["unhealthy"]:
            return "!" if node["answers"] else "x"
        if not node["gpus"]:
            return "."
        return block(node["gpu_milli_used"] / node["gpus"] / 1000) if node["ready"] else "/"

    clusters = {name: list(nodes) for name, nodes in groupby(body["nodes"], key=lambda each: each["cluster"])}
    rows = [
        {
            "cluster": name,
            "nodes": len(nodes),
            "used": sum(each["gpu_milli_used"] for each in nodes) / 1000,
            "gpus": sum(each["gpus"] for each in nodes),
            "map": "".join(map(mark, nodes)),
        }
        for name, nodes in clusters.items()
    ]
    columns = (
        Column("CLUSTER", lambda each: each["cluster"]),
        Column("NODES", lambda each: str(each["nodes"]), right=True),
        Column("GPUS", lambda each: f"{each['used']:g}/{each['gpus']}", right=True),
        Column("MAP", lambda each: each["map"]),
    )
    return Rows(columns, rows, wide=wide)


def _models(body: Body, *, wide: bool) -> RenderableType:
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import cores, gib, level

    columns = (
        Column("MODEL", lambda each: each["model"]),
        Column("GPUS", lambda each: str(each["devices"]), right=True),
        Column("FREE", lambda each: str(each["free"]), right=True),
        Column("GPU CORES", lambda each: level(each["core_milli"], cores), drop=2),
        Column("GPU MEMORY", lambda each: level(each["memory_mib"], gib), drop=1),
    )
    return Rows(columns, body["models"], wide=wide)


UNKNOWN = "-"
"""Mark of a fact that is unknown."""


def _price(cluster: Body) -> str:
    """Return the lowest and the highest known price of a cluster's GPUs."""
    lowest: str | None = cluster["price_per_gpu_hour"]
    prices = [price for each in cluster.get("prices", ()) if (price := each["price_per_gpu_hour"])]
    highest = max(prices, key=float, default=lowest)
    return UNKNOWN if lowest is None else lowest if highest == lowest else f"{lowest}-{highest}"


def _hardware(cluster: Body) -> str:
    """Return the special hardware of a cluster."""
    return UNKNOWN if cluster["hardware"] is None else ", ".join(cluster["hardware"]) or "none"


def _nodes(body: Body, *, wide: bool) -> RenderableType:
    from rich.text import Text

    from seaway.terminal.tables import Column
    from seaway.terminal.words import cordoned, cores, gib, level, models, small_bars

    columns = (
        Column("CLUSTER", lambda each: each["cluster"]),
        Column("NODE", lambda each: each["name"]),
        Column("READY", lambda each: Text("yes", "green") if each["ready"] else Text("no", "red")),
        Column("GPUS", lambda each: models(each["devices"]), drop=4),
        Column("TAKEN", lambda each: small_bars(each["devices"])),
        Column("CPU", lambda each: level(each["cpu_milli"], cores), drop=5),
        Column("MEMORY", lambda each: level(each["memory_mib"], gib), drop=6, wide=True),
        Column("PODS", _pods, right=True, drop=6, wide=True),
        Column("SLICES", lambda each: str(sum(len(one["slices"]) for one in each["devices"])), right=True, drop=2),
        Column("CORDON", cordoned, cut=True, drop=3),
    )
    return _with_reasons(columns, body["nodes"], lambda each: f"{each['cluster']}/{each['name']}", wide=wide)


def _with_reasons(
    columns: tuple[Column, ...], things: list[Body], name: Callable[[Body], str], *, wide: bool
) -> RenderableType:
    """Return a table with reasons why entries accept no new workloads.

    The reasons are in a column or, for a wide table, in full below the table, each once. Old servers send no reasons.
    """
    from rich.console import Group
    from rich.text import Text

    from seaway.terminal.tables import Column, Rows

    named: dict[str, list[str]] = {}
    for each in things:
        if reason := each.get("message", ""):
            named.setdefault(reason, []).append(name(each))
    if not named:
        return Rows(columns, things, wide=wide)
    if not wide:
        return Rows((*columns, Column("REASON", lambda each: each.get("message", ""), cut=True)), things)
    said = (
        f"{first}{f' and {len(others)} more' if others else ''}: {reason}" for reason, (first, *others) in named.items()
    )
    return Group(Rows(columns, things, wide=True), "", *map(Text, said))


def _pods(node: Body) -> str:
    """Describe the number of pods of a node and its limit. Old servers and nodes without a limit do not report them."""
    from seaway.terminal.words import NONE

    pods = node.get("pods")
    return f"{pods['used']}/{pods['total']}" if pods else NONE


def _devices(body: Body, *, wide: bool) -> RenderableType:
    from rich.text import Text

    from seaway.terminal.tables import Column
    from seaway.terminal.words import cores, gib, level

    columns = (
        Column("NODE", lambda each: f"{each['cluster']}/{each['node']}", cut=True),
        Column("#", lambda each: str(each["index"]), right=True),
        Column("MODEL", lambda each: each["model"], drop=4),
        Column("MEMORY", lambda each: level(each["memory_mib"], gib)),
        Column("CORES", lambda each: level(each["core_milli"], cores)),
        *(_used_columns() if any(each.get("used") for each in body["devices"]) else ()),
        Column("SLICES", lambda each: f"{len(each['slices'])}/{each['share_limit']}", right=True, drop=1),
        Column("MODE", lambda each: each["mode"], drop=4),
        Column("HEALTHY", lambda each: Text("yes", "green") if each["healthy"] else Text("no", "red"), drop=2),
        Column("NVLINK", lambda each: _group(each.get("island")), wide=True, right=True, drop=3),
        Column("PCIE", lambda each: _group(each.get("pcie_switch")), wide=True, right=True, drop=3),
        Column("NUMA", lambda each: _group(each.get("numa")), wide=True, right=True, drop=3),
        Column("UUID", lambda each: each["uuid"], wide=True, drop=6),
        Column(
            "JOBS", lambda each: ", ".join(one["job"] or "?" for one in each["slices"]), wide=True, cut=True, drop=5
        ),
    )
    return _with_reasons(
        columns, body["devices"], lambda each: f"{each['cluster']}/{each['node']} #{each['index']}", wide=wide
    )


def _group(number: int | None) -> str:
    """Return the number of a group of devices. Old servers do not report it."""
    from seaway.terminal.words import NONE

    return NONE if number is None else str(number)


def _used_columns() -> tuple[Column, ...]:
    from seaway.terminal.tables import Column
    from seaway.terminal.words import NONE, cores, gib

    def figure(device: Body, name: str, write: Callable[[int], str]) -> str:
        value = (device.get("used") or {}).get(name)
        return NONE if value is None else write(value)

    return (
        Column("USED", lambda each: figure(each, "memory_bytes", lambda value: gib(value >> 20)), right=True, drop=1),
        Column("BUSY", lambda each: figure(each, "core_milli", cores), right=True, drop=1),
    )


def _slices(body: Body, *, wide: bool) -> RenderableType:
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import cores, gib

    columns = (
        Column("NODE", lambda each: f"{each['cluster']}/{each['node']}", cut=True),
        Column("DEVICE", lambda each: each["uuid"], cut=True),
        Column("JOB", lambda each: each["job"] or "another tenant's"),
        Column("ID", lambda each: each["job_id"], drop=2),
        Column("REPLICA", lambda each: str(each["replica"]), right=True, drop=1),
        Column("MEMORY", lambda each: gib(each["memory_mib"]), right=True),
        Column("CORES", lambda each: cores(each["core_milli"]), right=True),
        Column("TENANT", lambda each: each["tenant"], wide=True),
        Column("MIG", lambda each: each["mig_profile"], wide=True),
    )
    return Rows(columns, body["slices"], wide=wide)


def metrics(
    context: typer.Context,
    metric: Annotated[
        str, typer.Argument(help="Metric, like [bold]GPUDeviceMemoryAllocated[/bold]. Default: all.")
    ] = "",
    cluster: Annotated[
        str, typer.Option("--cluster", "-c", help="Filter by cluster.", autocompletion=arguments.clusters)
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the metrics of clusters, devices and vGPUs in Prometheus format.

    [bold]Examples[/bold]

      [cyan]seaway metrics ClusterGPUMemoryPercentage[/cyan]
      [cyan]seaway metrics vGPUMemoryAllocated --cluster berlin -o json[/cyan]
    """
    from seaway.client.calls.fleet import metrics as call

    with connect(context) as client:
        body = client.body(call(metric, cluster=cluster))
    show(output, body, lambda wide: _table(body, wide=wide), lambda: body["data"])


def _table(body: Body, *, wide: bool) -> RenderableType:
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import place

    columns = (
        Column("METRIC", lambda each: each["metric"]),
        Column("PLACE", lambda each: place(each["cluster"], each.get("nodeid", ""))),
        Column("#", lambda each: each.get("deviceidx", ""), right=True),
        Column("VALUE", lambda each: str(each["value"]), right=True),
        Column("POD", _pod, cut=True, drop=1),
        Column("UUID", lambda each: each.get("deviceuuid", ""), wide=True, drop=2),
    )
    rows = [{"metric": name, **each} for name, series in body["data"].items() for each in series]
    return Rows(columns, rows, wide=wide)


def _pod(series: Body) -> str:
    return "/".join(part for name in ("namespace", "pod", "container") if (part := series.get(name)))
