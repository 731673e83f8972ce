"""`seaway cluster`: join, list, leave, describe and remove real clusters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli import arguments
from seaway.cli.fleet.fleet import list_fleet
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import Body, connect, currency_of
from seaway.client.config import data_folder

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.bootstrap.cluster_join import Joined


app = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)

MAX_PROBLEMS = 5

NOTES = {
    "simulated": (
        "`seaway up` runs with simulated clusters here. Restart it to use {name}. Unfinished jobs "
        "then move there after the grace period; cancel test jobs first"
    ),
    "set": "`seaway up` runs on the clusters that its settings name, and does not look at those that are joined",
}
"""Hints about a running server, by the kind of its clusters."""

Data = Annotated[Path | None, typer.Option("--data", help="Data folder.", show_default="~/.local/share/seaway")]


@app.callback()
def cluster() -> None:
    """Join real clusters, list them, set their facts, leave them, and delete lost ones.

    Kubeconfigs are stored in the data folder. `seaway up` with that folder uses these clusters instead of simulated
    ones, and picks up changes while it runs. Members of a Karmada control plane need not be joined: set
    [cyan]clusters.karmada.kubeconfig[/cyan].

    [bold]Examples[/bold]

      [cyan]seaway cluster join --kubeconfig ~/.kube/config --context gpu-east[/cyan]
      [cyan]seaway cluster list[/cyan]
      [cyan]seaway cluster set gpu-east --price-per-gpu-hour A100=2.5[/cyan]
      [cyan]seaway cluster leave gpu-east[/cyan]
    """


@app.command()
def join(
    kubeconfig: Annotated[Path, typer.Option(help="Kubeconfig of the cluster.", envvar="KUBECONFIG")],
    context: Annotated[str, typer.Option(help="Context in the kubeconfig.", show_default="the current one")] = "",
    name: Annotated[str, typer.Option(help="Name of the cluster.", show_default="the context's name")] = "",
    look: Annotated[bool, typer.Option("--look/--no-look", help="Check the connection before joining.")] = True,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace the kubeconfig of a joined cluster, for example with a new token."),
    ] = False,
    data: Data = None,
) -> None:
    """Join a cluster: check its connection and GPUs, and store its kubeconfig.

    The stored kubeconfig embeds certificates. Token files and exec plugins remain at their paths.

    [bold]Examples[/bold]

      [cyan]seaway cluster join --kubeconfig alpha.kubeconfig[/cyan]

    Replace an expired token:

      [cyan]seaway cluster join --kubeconfig alpha.kubeconfig --replace[/cyan]
    """
    from rich.console import Console

    from seaway.bootstrap.cluster_join import join as do

    with Console(stderr=True).status("reading the inventory of the cluster ..."):
        found = do(kubeconfig, context, name, data or data_folder(), look=look, replace=replace)
    _tell(found)


@app.command("list")
def list_clusters(
    context: typer.Context,
    only_joined: Annotated[
        bool, typer.Option("--joined", help="List the clusters with a kubeconfig on this machine; needs no server.")
    ] = False,
    data: Data = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the clusters of the fleet with their state, as `seaway fleet` does."""
    if not only_joined and data is None:
        list_fleet(context, output)
        return
    from seaway.bootstrap.cluster_join import joined
    from seaway.terminal.tables import Column, Rows

    names = joined(data or data_folder())
    if not names:
        typer.echo("no cluster was joined yet: seaway cluster join --kubeconfig FILE", err=True)
    rows = [{"name": name} for name in names]
    columns = (Column("CLUSTER", lambda each: each["name"]),)
    show(output, {"clusters": rows}, lambda wide: Rows(columns, rows, wide=wide), lambda: names)


@app.command()
def leave(name: Annotated[str, typer.Argument(help="Name of the cluster.")], data: Data = None) -> None:
    """Leave a cluster: remove its kubeconfig. Running jobs continue there. To move them, drain the cluster first."""
    from seaway.bootstrap.cluster_join import joined
    from seaway.bootstrap.cluster_join import leave as do

    file = do(name, data or data_folder())
    if joined(data or data_folder()):
        typer.echo(f"{name} is not used any more; its jobs are placed elsewhere after the grace period")
        return
    typer.echo(f"{name} was the last cluster: its jobs count as running there until another cluster is joined")
    typer.echo(f"`seaway up` continues without clusters; to get simulated ones again, remove {file.parent}")


def _tell(found: Joined) -> None:
    _tell_cluster(found)
    if note := NOTES.get(found.driven):
        typer.echo(note.format(name=found.name))


def _tell_cluster(found: Joined) -> None:
    if found.cluster is None:
        typer.echo(f"{found.name} is joined without a check: {found.file}")
        return
    from seaway.bootstrap.cluster_checks import inventory_text

    typer.echo(f"{found.name} is joined: {inventory_text(found.cluster)}")
    for each in found.problems[:MAX_PROBLEMS]:
        typer.echo(f"  note: {each}")
    if len(found.problems) > MAX_PROBLEMS:
        typer.echo(f"  and {len(found.problems) - MAX_PROBLEMS} more like these")


@app.command("set")
def set_cluster(  # one option for each fact
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(help="Name of the cluster.", autocompletion=arguments.clusters, metavar="NAME")
    ],
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price-per-gpu-hour",
            metavar="[MODEL=]PRICE",
            help="Price of a GPU for an hour, by a name of its model, like A100=2.5; without a model, of all "
            "other models. Repeatable.",
        ),
    ] = None,
    spot_price: Annotated[
        list[str] | None,
        typer.Option(
            "--spot-price-per-gpu-hour",
            metavar="[MODEL=]PRICE",
            help="The same for spot nodes. Repeatable. Without it, they have the normal price.",
        ),
    ] = None,
    region: Annotated[str, typer.Option(help="Region of the cluster.")] = "",
    zone: Annotated[list[str] | None, typer.Option(help="Zone of the cluster. Repeatable.")] = None,
    provider: Annotated[str, typer.Option(help="Provider of its machines, like aws.")] = "",
    location: Annotated[
        str, typer.Option(metavar="LAT,LON", help="Geographic location in degrees, like 52.52,13.40.")
    ] = "",
    hardware: Annotated[
        list[str] | None,
        typer.Option(help="Special hardware, like nvlink, or none if it has none. Repeatable."),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Label of the cluster. Repeatable.")
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FACT[=KEY]",
            help="Return to what the cluster reports: an option's name, such as region, or price-per-gpu-hour=A100 or "
            "label=team for one entry. Repeatable.",
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Set facts of a cluster: prices, region, zones, location, special hardware, labels. Requires the operator role.

    They precede those of the settings, and those that the cluster reports. Without options, show all facts and their
    sources.

    [bold]Examples[/bold]

      [cyan]seaway cluster set gpu-east --price-per-gpu-hour A100=2.5 --spot-price-per-gpu-hour A100=1[/cyan]
      [cyan]seaway cluster set gpu-east --region eu --zone eu-1a --location 52.52,13.40 --hardware nvlink[/cyan]
      [cyan]seaway cluster set gpu-east --unset price-per-gpu-hour=A100 --unset region[/cyan]
    """
    from seaway.client.calls.fleet import cluster as read
    from seaway.client.calls.fleet import set_cluster as call
    from seaway.wire.facts import patch_of

    given = {
        "price-per-gpu-hour": price or (),
        "spot-price-per-gpu-hour": spot_price or (),
        "region": (region,) if region else (),
        "zone": zone or (),
        "provider": (provider,) if provider else (),
        "location": (location,) if location else (),
        "hardware": hardware or (),
        "label": label or (),
    }
    patch = patch_of(given, unset or ())
    with connect(context) as client:
        body = client.body(call(name, patch) if patch else read(name))
        currency = currency_of(client, output) if body["prices"] else ""
    show(output, body, lambda _: _facts_table(body), lambda: [body["name"]], currency)


@app.command("show")
def show_cluster(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(help="Name of the cluster.", autocompletion=arguments.clusters, metavar="NAME")
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a cluster: state, use, and facts with their sources.

    [bold]Example[/bold]

      [cyan]seaway cluster show gpu-east[/cyan]
    """
    from seaway.client.calls.fleet import cluster as read

    with connect(context) as client:
        body = client.body(read(name))
        currency = currency_of(client, output) if body["prices"] else ""

    def picture(wide: bool) -> RenderableType:
        from rich.console import Group

        from seaway.cli.fleet.fleet import table

        return Group(table({"clusters": [body]}, wide=wide), "", _facts_table(body))

    show(output, body, picture, lambda: [body["name"]], currency)


def _facts_table(cluster: Body) -> RenderableType:
    """Return a table of a cluster's facts with their sources."""
    from seaway.domain.facts import names_model
    from seaway.terminal.tables import Column, Rows

    own: Body = cluster["own_facts"] or {}
    sources: Body = cluster.get("sources", {})
    where, hardware = cluster["location"], cluster["hardware"]
    values = {
        "region": cluster["region"],
        "zones": ", ".join(cluster["zones"]),
        "provider": cluster["provider"],
        "location": where and f"{where['latitude']},{where['longitude']}",
        "hardware": None if hardware is None else ", ".join(hardware) or "none",
    }

    def row(fact: str, value: str | None, source: str | None) -> Body:
        return {"fact": fact, "value": value or "-", "source": source or ""}

    rows = [row(name, value, sources.get(name)) for name, value in values.items()]
    for spot, what in ((False, "price"), (True, "spot price")):
        names: Body = own.get(f"{what.replace(' ', '_')}_per_gpu_hour", {})
        priced = [each for each in cluster["prices"] if each["spot"] is spot]
        for each in priced:
            source = each.get("source")
            if source and spot and not each["spot_price"]:
                source += ", the normal price"
            rows.append(row(f"{what} per GPU hour of {each['model']}", each["price_per_gpu_hour"], source))
        rows += [
            row(f"{what} per GPU hour of {name}", price, "set, but no GPU has it")
            for name, price in names.items()
            if not any(names_model(name, each["model"]) for each in priced)
        ]
    rows += [row(f"label {key}", value, sources.get(f"labels.{key}")) for key, value in cluster["labels"].items()]
    columns = (
        Column("FACT", lambda each: each["fact"]),
        Column("VALUE", lambda each: each["value"]),
        Column("SOURCE", lambda each: each["source"]),
    )
    return Rows(columns, rows, wide=True)


@app.command("delete")
def remove_cluster(
    context: typer.Context,
    cluster: Annotated[
        str,
        typer.Argument(
            help="Name of a cluster with the state gone in `seaway fleet`.",
            autocompletion=arguments.clusters,
            metavar="CLUSTER",
        ),
    ],
) -> None:
    """Remove a cluster that left the fleet, and release the resources of its jobs.

    Its jobs are placed elsewhere immediately. Seaway no longer manages the workloads in it: make sure that the
    cluster is switched off or empty.

    [bold]Example[/bold]

      [cyan]seaway cluster delete berlin[/cyan]
    """
    from seaway.client.calls.fleet import remove_cluster as call

    with connect(context) as client:
        client.send(call(cluster))
    typer.echo(f"removed cluster {cluster!r}; its resources are released")
