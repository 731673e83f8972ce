"""`seaway simulate`: simulated clusters in a separate process, and faults in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from seaway.adapters.simulated.client import RemoteSimulatedBackends
    from seaway.adapters.simulated.faults import Faults

PORT = 7070
URL = f"http://127.0.0.1:{PORT}"
FOUND = 1
"""Exit code of `audit` after a violation."""

app = typer.Typer(
    name="simulate",
    help="Serve simulated clusters, and inject faults.",
    rich_markup_mode="rich",
    no_args_is_help=True,
)

FleetOption = Annotated[
    str,
    typer.Option(metavar="demo|FILE", help="Built-in fleet, or a YAML file like examples/fleets/three-clusters.yaml."),
]
ServerOption = Annotated[str, typer.Option(metavar="URL", help="URL of the server that [bold]serve[/bold] started.")]


@app.command()
def serve(
    fleet: FleetOption = "demo",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port on loopback; 0 for any free one.")] = PORT,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the state, which the next start continues. Default: none."),
    ] = None,
    start_delay: Annotated[str, typer.Option(metavar="TIME", help="Start-up time of workloads.")] = "1s",
    fault_seed: Annotated[int, typer.Option(min=0, help="Seed of random faults of all kinds; 0 for none.")] = 0,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FIGURE", help="Rate of one kind of random faults. Repeatable."),
    ] = None,
) -> None:
    """Serve simulated clusters until Ctrl-C, in a process separate from the control plane.

    The clusters account for their own resources, and reject deployments that exceed a device or node. With --data, they
    write a journal, and continue from it after a restart.

    Probabilities for --fault, from 0 to 1: [bold]refused slow start_fails run_fails vanishes request_lost
    answer_lost hangs[/bold]. Rates are per hour: [bold]node_failures_per_h device_failures_per_h
    outages_per_h[/bold]. Times are seconds: [bold]slow_s within_s repair_s outage_s[/bold].

    For example:

      seaway simulate serve

      seaway simulate serve --fleet examples/fleets/three-clusters.yaml --data /tmp/clusters

      seaway simulate serve --fault-seed 7

      seaway simulate serve --fault run_fails=0.05 --fault outages_per_h=2
    """
    from seaway.adapters.simulated.backends import SimulatedBackends
    from seaway.adapters.simulated.faults import Options
    from seaway.adapters.simulated.journal import locked
    from seaway.adapters.simulated.server import Server
    from seaway.application.ports.clock import SystemClock
    from seaway.bootstrap.clusters import read_fleet
    from seaway.domain.units import duration_ns

    faults = read_faults(fault_seed, fault or [])
    options = Options(faults, duration_ns(start_delay, where="--start-delay") / 1e9)
    read = read_fleet(fleet)
    with locked(data):
        backends = SimulatedBackends(read, SystemClock(), options, data)
        server = Server(backends, port)
        names = ", ".join(each.name for each in read.clusters)
        typer.echo(f"{len(read.clusters)} clusters with {read.device_count} devices at {server.url}: {names}")
        server.run()


@app.command()
def fault(
    kind: Annotated[str, typer.Argument(help="Kind of fault.", show_default=False)],
    cluster: Annotated[str, typer.Argument(help="Name of the cluster.", show_default=False)],
    target: Annotated[
        str, typer.Argument(help="Node, device or workload, or a parameter; see above.", show_default=False)
    ] = "",
    lasts: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="Duration of the fault, for node, device, cut, hang."),
    ] = None,
    server: ServerOption = URL,
) -> None:
    """Inject a fault into a cluster.

    Faults:
      node NODE        a node fails, with everything on it
      device DEVICE    a device becomes unhealthy, and its workloads fail
      cut              the cluster cannot be reached; running jobs continue
      hang             calls hang until they time out
      slow SECONDS     new workloads take this long to start
      refuse [REASON]  new deployments are rejected
      start [REASON]   new workloads fail at their start
      copy WORKLOAD    a running workload fails, like sw-06f8n2k4qw3rt-1
      vanish WORKLOAD  a workload is removed by another program

    For example:

      seaway simulate fault node cluster-1 cluster-1-n0 --for 5m

      seaway simulate fault device cluster-2 cluster-2-n3/0

      seaway simulate fault cut cluster-3 --for 30s

      seaway simulate fault start cluster-1 "image pull error"
    """
    from seaway.adapters.simulated.messages import FaultRequest
    from seaway.domain.units import duration_ns

    for_s = None if lasts is None else duration_ns(lasts, where="--for") / 1e9
    with remote(server) as backends:
        backends.cluster(cluster).cause(FaultRequest(kind, target, for_s))
    typer.echo(f"{cluster}: {kind}{f' {target}' if target else ''}{f' for {lasts}' if lasts else ''}")


@app.command()
def heal(
    kind: Annotated[
        str, typer.Argument(help="The fault to end, as in [bold]fault[/bold]; or all.", show_default=False)
    ],
    cluster: Annotated[str, typer.Argument(help="Name of the cluster.", show_default=False)],
    target: Annotated[str, typer.Argument(help="Node or device.", show_default=False)] = "",
    server: ServerOption = URL,
) -> None:
    """End a fault in a cluster. Failed workloads stay failed.

    For example:

      seaway simulate heal node cluster-1 cluster-1-n0

      seaway simulate heal cut cluster-3

      seaway simulate heal all cluster-1
    """
    with remote(server) as backends:
        backends.cluster(cluster).heal(kind, target)
    typer.echo(f"{cluster}: {kind}{f' {target}' if target else ''} is over")


@app.command()
def audit(
    data: Annotated[Path, typer.Option(metavar="DIR", help="State folder of the clusters.")],
    fleet: FleetOption = "demo",
) -> None:
    """Check the journals of the clusters: no job ran twice and no resource was overcommitted; exit with 1 otherwise.

    For example:

      seaway simulate audit --data /tmp/clusters
    """
    from seaway.adapters.simulated.ledger import read_journals, violations
    from seaway.bootstrap.clusters import read_fleet

    read = read_fleet(fleet)
    journals = read_journals(read, data)
    found = violations(read, journals)
    for each in found:
        typer.echo(each)
    entries = sum(map(len, journals.values()))
    typer.echo(f"{entries} entries of {len(journals)} clusters: {len(found)} rules broken")
    if found:
        raise typer.Exit(FOUND)


@contextmanager
def remote(url: str) -> Iterator[RemoteSimulatedBackends]:
    """Open a client of a server of simulated clusters."""
    from seaway.adapters.simulated.client import RemoteSimulatedBackends

    backends = RemoteSimulatedBackends(url)
    try:
        yield backends
    finally:
        backends.close()


def read_faults(seed: int, figures: list[str]) -> Faults:
    """Return rates of random faults. A seed sets the defaults of all kinds, and `figures` override them.

    Raises
    ------
    RejectedError
        When a rate is invalid or its name is unknown.
    """
    from seaway.adapters.simulated.faults import NO_FAULTS
    from seaway.bootstrap.clusters import make_faults
    from seaway.domain.errors import RejectedError

    faults = make_faults(seed) if seed else NO_FAULTS
    known = [each.name for each in fields(faults) if each.name != "seed"]
    for each in figures:
        name, _, figure = each.partition("=")
        if name not in known:
            raise RejectedError(f"{name!r} not found; available: {', '.join(known)}", where="--fault")
        try:
            faults = replace(faults, **{name: float(figure)})  # type: ignore[arg-type]  # `known` has no seed
        except ValueError:
            raise RejectedError(f"{each!r} gives no figure, like {name}=0.1", where="--fault") from None
    return faults
