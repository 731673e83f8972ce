"""`seaway policies`: what there is to choose from."""

from __future__ import annotations

import typer


def policies() -> None:
    """List the policies by which jobs can be placed, one name a line.

    Those that other packages bring are listed last. Compare some with [bold]seaway replay --policy[/bold].
    """
    from seaway.scheduling.policies import policy_names

    for name in policy_names():
        typer.echo(name)
