"""Errors and warnings as the command line tells them: one line each, on standard error."""

from __future__ import annotations

import io
import sys
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


def write_what_can_be_written() -> None:
    """Have marks that a terminal's encoding has not replaced by `?`, as bars and dashes are where it is ASCII.

    What goes into a file or a pipe may be data: it is UTF-8 and whole, or breaks off, whatever the terminal's encoding.
    Bytes of arguments that are no text leave as they came in.
    """
    for stream, strange in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors=strange)


def _show(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"warning: {message}", err=True)
