"""`seaway compile`: compile policies ahead of time, after an installation or in an image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from seaway.cli.output import console
from seaway.domain.errors import RejectedError


def compile_policies(
    policies: Annotated[
        list[str] | None,
        typer.Argument(metavar="[POLICY]...", help="Built-in policies.", show_default="those that a new server needs"),
    ] = None,
    all_policies: Annotated[bool, typer.Option("--all", help="Compile all built-in policies: some minutes.")] = False,
) -> None:
    """Compile the engine ahead of time, so that the first start of a server is fast.

    Compiled code is stored in SEAWAY_CACHE (default: ~/.cache/seaway), for this installation, user and processor. A
    server that finds none compiles it first, and responds with 503 in the meantime. script/bootstrap runs this command.

      [cyan]seaway compile --all[/cyan]
    """
    from seaway.bootstrap.policies import POLICIES, compilable, uncompiled, warm

    known = compilable()
    for name in policies or ():
        if name not in known:
            raise RejectedError(f"{name!r} is not a built-in policy; available: {', '.join(known)}", where="POLICY")
    missing = uncompiled(known if all_policies else policies or POLICIES)
    if not missing:
        return
    screen, began_s = console(err=True), monotonic()
    with _progress(screen, missing) as advance:
        for name in missing:
            warm(name)
            advance()
    screen.print(f"Compiled {', '.join(missing)} in {monotonic() - began_s:.0f} s.", style="dim")


@contextmanager
def _progress(screen: Console, missing: list[str]) -> Iterator[Callable[[], object]]:
    """Show policies and functions as they are compiled; on anything but a terminal, print one line."""
    if not screen.is_terminal:
        screen.print("Compiling the engine: about a minute, once on this machine ...", style="dim")
        yield lambda: None
        return
    from numba.core import event  # slow to import, and needed on terminals only

    columns = (TextColumn("Compiling the engine, once on this machine"), BarColumn(pulse_style="dim"))
    functions = TextColumn("{task.fields[functions]} functions")
    with Progress(*columns, functions, TimeElapsedColumn(), console=screen, transient=True) as bar:
        task, count = bar.add_task("", total=len(missing), functions=0), 0

        class Counted(event.Listener):
            def on_start(self, _: Any) -> None:  # noqa: ANN401  # numba's
                pass

            def on_end(self, _: Any) -> None:  # noqa: ANN401  # numba's
                nonlocal count
                count += 1
                bar.update(task, functions=count)

        with event.install_listener("numba:compile", Counted()):
            yield lambda: bar.advance(task)
