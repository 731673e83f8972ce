"""Errors and warnings as the command line tells them: one line each, on standard error."""

from __future__ import annotations

import io
import sys
import warnings

import typer

from seaway.domain.errors import RejectedError, SeawayError, UnavailableError, UnknownError

OK = 0
FAILED = 1
"""The job failed, or nothing matched."""
BAD_INPUT = 2
"""The input is invalid, or conflicts with the present state."""
NOT_ALLOWED = 3
"""Not signed in, or not allowed."""
UNAVAILABLE = 4
"""The server cannot be reached, or not now."""


def code_of(error: SeawayError) -> int:
    """Return what to exit with after an error."""
    from seaway.client.errors import AnswerError, ForbiddenError, UnauthenticatedError, WaitedTooLongError

    if isinstance(error, UnauthenticatedError | ForbiddenError):
        return NOT_ALLOWED
    if isinstance(error, UnavailableError | AnswerError):
        return UNAVAILABLE
    if isinstance(error, UnknownError | WaitedTooLongError):
        return FAILED
    return BAD_INPUT


def hint_of(error: SeawayError) -> str:
    """Return what may help, where the error itself does not say; empty for nothing."""
    from seaway.client.errors import UnauthenticatedError

    if isinstance(error, UnauthenticatedError):
        return "sign in with `seaway login`, or set SEAWAY_TOKEN; `seaway config show` prints the present settings"
    return ""


def tell(error: SeawayError) -> None:
    """Print an error, and what else is wrong with the same input."""
    from seaway.cli.errors import hint_of

    typer.echo(f"error: {error}", err=True)
    for other in error.also if isinstance(error, RejectedError) else ():
        typer.echo(f"error: {other}", err=True)
    if hint := hint_of(error):
        typer.echo(f"hint: {hint}", err=True)


def note(text: str) -> None:
    """Print something beside the result, where it does not get into a pipe."""
    typer.echo(text, err=True)


def show_warnings_plainly() -> None:
    """Print warnings without their line of code."""
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
