"""Output formats of results: a table for people, or the API response for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Output(StrEnum):
    """Output format of a result."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        help="[bold]wide[/bold] shows more columns; [bold]json[/bold] and [bold]yaml[/bold] print the API response.",
    ),
]

PIPE_WIDTH = 10_000
"""Width of a table or a sentence in a pipe or file, where nothing is truncated or broken."""


def console(*, err: bool = False) -> Console:
    """Return the console. Output to a pipe is not truncated unless COLUMNS is set."""
    import io
    import os

    from rich.console import Console

    made = Console(stderr=err, highlight=False, emoji=False)  # ``:a:`` can be part of an address
    made.on_broken_pipe = _raise_again  # type: ignore[method-assign]  # it would exit without a word
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPE_WIDTH
    if not made.is_terminal:  # its end would be an empty line in a pipe
        made.status = Console(file=io.StringIO()).status  # type: ignore[method-assign]
    return made


def _raise_again() -> None:
    """Raise the error that is being handled."""
    raise  # noqa: PLE0704


def show(
    output: Output,
    body: object,
    table: Callable[[bool], RenderableType],
    names: Callable[[], Iterable[str]],
    currency: str = "",
) -> None:
    """Print a result.

    Parameters
    ----------
    body
        JSON of the API.
    table
        Returns the table; the argument is True for a wide one.
    names
        Returns IDs or names for scripts.
    currency
        Currency of costs and prices in the table, which a line below names; empty without them, or if it is unknown.
    """
    if output is Output.JSON:
        typer.echo(as_json(body))
    elif output is Output.YAML:
        typer.echo(as_yaml(body), nl=False)
    elif output is Output.NAME:
        for name in names():
            typer.echo(name)
    else:
        console().print(table(output is Output.WIDE))
        name_currency(currency)


def name_currency(currency: str) -> None:
    """Print the currency of the costs and prices above; nothing if it is empty."""
    if currency:
        console().print(f"[dim]costs and prices in {currency}[/dim]")


def as_json(body: object) -> str:
    """Format JSON with indentation."""
    import orjson

    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def as_yaml(body: object) -> str:
    """Format YAML."""
    import orjson
    import yaml

    plain = orjson.loads(orjson.dumps(body))
    return str(
        yaml.dump(plain, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, allow_unicode=True)
    )
