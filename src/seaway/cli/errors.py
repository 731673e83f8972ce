"""Errors and warnings of commands, one line each on standard error."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import typer

from seaway.cli import INTERRUPTED
from seaway.domain.errors import RejectedError, SeawayError, UnavailableError, UnknownError

OK = 0
FAILED = 1
"""The job failed, or no object matched."""
BAD_INPUT = 2
"""The input is invalid, or conflicts with the current state."""
NOT_ALLOWED = 3
"""Not signed in, or not allowed."""
UNAVAILABLE = 4
"""The server is unreachable or unavailable."""


def code_of(error: SeawayError) -> int:
    """Return the exit code for an error."""
    from seaway.client.errors import AnswerError, ForbiddenError, UnauthenticatedError, WaitedTooLongError

    if isinstance(error, UnauthenticatedError | ForbiddenError):
        return NOT_ALLOWED
    if isinstance(error, UnavailableError | AnswerError):
        return UNAVAILABLE
    if isinstance(error, UnknownError | WaitedTooLongError):
        return FAILED
    return BAD_INPUT


def hint_of(error: SeawayError) -> str:
    """Return a hint for an error; empty if there is none."""
    from seaway.client.errors import UnauthenticatedError

    if isinstance(error, UnauthenticatedError):
        return "sign in with `seaway login`, or set SEAWAY_TOKEN; `seaway config show` prints the present settings"
    return ""


def print_error(error: SeawayError) -> None:
    """Print an error, and further errors of the same input."""
    typer.echo(f"error: {error}", err=True)
    for other in error.also if isinstance(error, RejectedError) else ():
        typer.echo(f"error: {other}", err=True)
    if hint := hint_of(error):
        typer.echo(f"hint: {hint}", err=True)


CHANGES: list[str] = []
"""Changes that the server has made for this command, such as ``PUT /queues/vision``."""

UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})
"""Errors of an output that takes no more, such as a file on a full disk."""


class UnwritableError(OSError):
    """An output that takes no more, after something was stored.

    Attributes
    ----------
    stored
        Names and IDs of what was stored.
    """

    def __init__(self, error: OSError, stored: Sequence[str]) -> None:
        super().__init__(error.errno, error.strerror)
        self.stored = stored


@contextmanager
def naming(stored: Sequence[str]) -> Iterator[None]:
    """Store something, or write the result. An error of the output and Ctrl-C name what was stored until then."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise UnwritableError(error, stored) from error
    except KeyboardInterrupt:
        note(f"\ninterrupted; stored: {', '.join(stored) or 'nothing so far'}")
        raise typer.Exit(INTERRUPTED) from None


def hides_changes(error: BaseException | None) -> bool:
    """Report whether an error is that of a closed pipe, and the lost output would have said what was done."""
    if not isinstance(error, OSError) or error.errno != errno.EPIPE:
        return False
    return bool(CHANGES or isinstance(error, UnwritableError))


def exit_unwritable(error: OSError) -> NoReturn:
    """Report that the output cannot be written, and end without another try to write it."""
    if isinstance(error, UnwritableError):
        stored = f"; stored: {', '.join(error.stored) or 'nothing'}"
    else:
        stored = f"; the server has done: {', '.join(CHANGES)}" if CHANGES else ""
    with suppress(OSError):
        sys.stderr.write(f"error: cannot write the output: {error.strerror}{stored}\n")
        sys.stderr.flush()
    os._exit(FAILED)  # the interpreter would write the rest of the output again, and fail again


def note(text: str) -> None:
    """Print a note to standard error, so that it does not mix with results in a pipe."""
    typer.echo(text, err=True)


def warn(text: str) -> None:
    """Print a warning to standard error; none for an empty text."""
    if text:
        typer.echo(f"warning: {text}", err=True)


def warn_of(stored: Mapping[str, Any]) -> None:
    """Print the warnings with which a server stored something."""
    for warning in stored.get("warnings", ()):
        warn(warning["message"])


def show_warnings_plainly() -> None:
    """Print warnings without their source line."""
    warnings.showwarning = _show


def open_closed_streams() -> None:
    """Discard what is written to a closed standard stream, as with ``>&-``. Other files must not get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # until the process ends


def write_encodable() -> None:
    """Replace characters that the terminal's encoding lacks with `?`, such as bars and dashes in ASCII.

    Output to files and pipes can be data, so it is strict UTF-8 in any locale. Invalid bytes in arguments are written
    unchanged.
    """
    for stream, strange in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors=strange)


def _show(message: Warning | str, *_: object, **__: object) -> None:
    warn(str(message))
