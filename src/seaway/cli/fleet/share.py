"""`seaway share`: shares of queues and tenants."""

from __future__ import annotations

import typer

from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import connect


def share(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Show the shares of queues and of the tenants in them, in the order of the tree.

    NORMALIZED is the weight as a share of the weights of its siblings. GUARANTEE, USED and PAST are shares of the pool:
    the largest over GPUs, GPU memory, GPU cores, CPU and memory. BEYOND is the share beyond the guarantee, divided by
    the weight. Among siblings, the smallest goes first. PAST needs the setting [control] usage_half_life_s.

    [bold]Examples[/bold]

      [cyan]seaway share[/cyan]
      [cyan]seaway share -o json[/cyan]
    """
    from seaway.client.calls.queues import shares
    from seaway.terminal.queues import SHARES
    from seaway.terminal.tables import Rows

    with connect(context) as client:
        body = client.body(shares())
    rows = body["shares"]
    show(output, body, lambda wide: Rows(SHARES, rows, wide=wide), lambda: (each["queue"] for each in rows))
