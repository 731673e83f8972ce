"""A bar for long work, on standard error, and only where somebody watches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

LEAST = 5
"""Less than this is done before anybody reads a bar."""


def progress(things: Sequence[T], doing: str) -> Iterator[T]:
    """Go through things, and show how far it is."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    if len(things) < LEAST or not console.is_terminal:
        yield from things
        return
    with Progress(TextColumn(doing), BarColumn(), MofNCompleteColumn(), console=console, transient=True) as bar:
        yield from bar.track(things)
