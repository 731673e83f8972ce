"""Errors and warnings as the command line tells them: one line each, on standard error."""

from __future__ import annotations

import warnings

import typer

from seaway.domain.errors import RejectedError, SeawayError


def tell(error: SeawayError) -> None:
    """Print an error, and what else is wrong with the same input."""
    from seaway.cli.exits import hint_of

    typer.echo(f"error: {error}", err=True)
    for other in error.also if isinstance(error, RejectedError) else ():
        typer.echo(f"error: {other}", err=True)
    if hint := hint_of(error):
        typer.echo(f"hint: {hint}", err=True)


def note(text: str) -> None:
    """Print something beside the result, where it does not get into a pipe."""
    typer.echo(text, err=True)


def show_warnings_plainly() -> None:
    """Have warnings told without the line of code that gave them."""
    warnings.showwarning = _show


def _show(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"warning: {message}", err=True)
