"""`seaway policies`: what there is to choose from."""

from __future__ import annotations


def policies() -> None:
    r"""List the policies by which jobs can be placed, and the plugins that a profile file may join.

    Those that other packages bring are listed too. Compare some with [bold]seaway replay --policy[/bold].

    A profile file is TOML: a name, and a [bold]\[\[plugin]][/bold] with name, weight and settings for each
    plugin. Name it wherever a policy is asked for:

      name = "near-and-tight"

      \[\[plugin]]
      name = "ClusterScore"
      weight = 3
      settings = { location = 4, price = 0 }

      \[\[plugin]]
      name = "BestFit"
    """
    from rich.console import Console
    from rich.table import Table

    from seaway.scheduling.policies import BUILT_IN, policy_names
    from seaway.scheduling.registry import plugin_names

    table = Table(box=None, pad_edge=False, show_header=False)
    for name in policy_names():
        says = BUILT_IN[name].says if name in BUILT_IN else "from another package"
        table.add_row(f"[bold]{name}[/bold]", says)
    console = Console()
    console.print(table)
    console.print(f"\nplugins for profile files: {', '.join(plugin_names())}", highlight=False)
