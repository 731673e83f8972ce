"""`seaway policies`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer

from seaway.cli.output import Output, OutputOption, console, show


def policies(
    context: typer.Context,
    remote: Annotated[
        bool, typer.Option("--remote", "-r", help="Ask the server which its queues may have, instead of this machine.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""List the policies by which jobs can be placed, and the plugins that a profile file may join.

    Those that other packages bring are listed too. Compare some with [bold]seaway replay --policy[/bold], choose
    one for a queue with [bold]seaway queues set --policy[/bold].

      [cyan]seaway policies --remote -o wide[/cyan]

    A profile file is TOML: a name, and a [bold]\[\[plugin]][/bold] with name, weight and settings for each
    plugin. Name it wherever [bold]seaway replay[/bold] asks for a policy:

      name = "near-and-tight"

      \[\[plugin]]
      name = "ClusterScore"
      weight = 3
      settings = { location = 4, price = 0 }

      \[\[plugin]]
      name = "BestFit"
    """
    from seaway.cli.columns import Column, Rows

    plugins: list[str] = []
    if remote:
        from seaway.cli.remote import connect
        from seaway.client.calls.tenancy import policies as call

        with connect(context) as client:
            body = client.body(call())
    else:
        from seaway.scheduling.policies import BUILT_IN, policy_names
        from seaway.scheduling.registry import plugin_names

        plugins = list(plugin_names())
        says = {name: BUILT_IN[name].says if name in BUILT_IN else "from another package" for name in policy_names()}
        body = {"policies": [{"name": name, "description": text} for name, text in says.items()]}
    rows = body["policies"]
    columns = (
        Column("POLICY", lambda each: each["name"]),
        Column("HOW IT PLACES", lambda each: each["description"], cut=True),
        Column("QUEUES", lambda each: ", ".join(each.get("queues", [])), wide=True, drop=1),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["name"] for each in rows))
    if plugins and output in (Output.TABLE, Output.WIDE):
        console().print(f"\nplugins for profile files: {', '.join(plugins)}", markup=False)
