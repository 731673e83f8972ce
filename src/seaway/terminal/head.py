"""What is above and below every view: the fleet in three lines, and how it stands with the server."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from seaway.terminal.summary import Summary
from seaway.terminal.words import Body

GAP = 2
LEAST = 8
"""Columns between the fleet and the address, and that the address has at least."""


class Head(Static):
    """The fleet and its jobs, summed up.

    Parameters
    ----------
    server
        Its URL.
    who
        Who asks, as the server sees it.
    """

    DEFAULT_CSS = """
    Head { height: 3; padding: 0 1; background: $surface; }
    """

    def __init__(self, server: str, who: Body) -> None:
        super().__init__(markup=False)
        self._who = f"{who['name']}, {who['role']}" + (f" of {who['tenant']}" if who["tenant"] else "")
        self._own = f"only {who['tenant']}'s " if who["tenant"] else ""
        self._server = server.partition("://")[2]
        self._shown: tuple[Summary | None, int] | None = None

    def show(self, summary: Summary | None) -> None:
        """Show how things are; None where that is not known yet."""
        if self._shown == (summary, self.size.width):
            return
        self._shown = (summary, self.size.width)
        width, address = self.content_size.width, Text(f"{self._server} · {self._who}", "dim")
        if summary is None:
            self.update(beside(Text("asking …"), address, width))
            return
        lines = Table.grid(expand=True)
        lines.add_column(no_wrap=True)
        lines.add_row(beside(summary.fleet_line(), address, width))
        lines.add_row(summary.room_line(width))
        lines.add_row(Text.assemble((self._own, "yellow"), summary.jobs_line()))
        self.update(lines)


def beside(left: Text, right: Text, width: int) -> Text:
    """Put a text at the end of the line of another, which is cut short only when it is longer than the line itself.

    The right one is cut first, and left out where nothing of it could be read.
    """
    left.truncate(width, overflow="ellipsis")
    room = width - left.cell_len - GAP
    if room < LEAST:
        return left
    right.truncate(room, overflow="ellipsis")
    return Text.assemble(left, " " * (width - left.cell_len - right.cell_len), right)


class StatusLine(Static):
    """The latest event, or what is wrong."""

    DEFAULT_CSS = """
    StatusLine { height: 1; padding: 0 1; color: $text-muted; }
    StatusLine.trouble { height: auto; max-height: 3; background: $error; color: $text; text-style: bold; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._shown = ("", Text())

    def show(self, trouble: str, latest: Text) -> None:
        """Show what is wrong, or the latest event where nothing is."""
        if self._shown == (trouble, latest):
            return
        self._shown = (trouble, latest.copy())
        self.set_class(bool(trouble), "trouble")
        latest.no_wrap, latest.overflow = True, "ellipsis"
        self.update(Text(trouble) if trouble else latest)
