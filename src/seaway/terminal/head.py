"""What is above and below every view: the fleet in three lines, and how it stands with the server."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from seaway.terminal.summary import Summary
from seaway.terminal.words import Body


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
        top = Table.grid(expand=True)
        top.add_column(no_wrap=True)
        top.add_column(no_wrap=True, justify="right", overflow="ellipsis")
        if summary is None:
            top.add_row("asking …", Text(f"{self._server} · {self._who}", "dim"))
            self.update(top)
            return
        lines = Table.grid(expand=True)
        lines.add_column(no_wrap=True)
        top.add_row(summary.fleet_line(), Text(f"{self._server} · {self._who}", "dim"))
        lines.add_row(top)
        lines.add_row(summary.room_line(self.content_size.width))
        lines.add_row(Text.assemble((self._own, "yellow"), summary.jobs_line()))
        self.update(lines)


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
