"""Scrollable list that fits its width, keeps its position during updates, and draws only visible lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from seaway.terminal.tables import GAP, LEAST, Column, fitting
from seaway.terminal.words import Body

if TYPE_CHECKING:
    from textual import events

HEAD = 1
"""Number of lines above the rows, for the headings."""

LOOKED_AT = 200
"""Number of first rows that determine the width of columns, in addition to the visible rows."""


class Listing(ScrollView, can_focus=True):
    """Rows in columns, with a cursor.

    The cursor stays on its row when rows are added or removed. Before its first move, it stays at the top. Columns only
    grow, so that changing values do not move them. Columns that were never filled are omitted.

    Parameters
    ----------
    columns
        All columns. Wide columns are hidden, and columns that do not fit are dropped by their priority.
    key
        Field that identifies rows.
    empty
        Text that is shown without rows.
    """

    DEFAULT_CSS = """
    Listing { scrollbar-size-vertical: 1; overflow-x: hidden; background: $background; }
    Listing > .listing--head { color: $text-muted; text-style: bold; background: $surface; }
    Listing > .listing--cursor { background: $surface-lighten-2; }
    Listing:focus > .listing--cursor { background: $primary 40%; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"listing--head", "listing--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False),
        Binding("home,g", "first", "First", show=False),
        Binding("end,G", "last", "Last", show=False),
        Binding("enter", "choose", "Open"),
    ]

    class Chosen(Message):
        """Request to open a row."""

        def __init__(self, listing: Listing, row: Body) -> None:
            self.listing = listing
            self.row = row
            super().__init__()

        @property
        def control(self) -> Listing:
            """List that contains the row."""
            return self.listing

    class Moved(Message):
        """Change of the row under the cursor, or of the visible rows."""

        def __init__(self, listing: Listing) -> None:
            self.listing = listing
            super().__init__()

        @property
        def control(self) -> Listing:
            """List that contains the cursor."""
            return self.listing

    def __init__(self, columns: Sequence[Column], *, key: str = "id", empty: str = "", id: str | None = None) -> None:  # noqa: A002  # from Textual
        super().__init__(id=id)
        self._columns = [each for each in columns if not each.wide]
        self._key = key
        self._empty = empty
        self._rows: Sequence[Body] = ()
        self._cursor = 0
        self._held = False
        self._widest = [0 for _ in self._columns]
        self._fit: tuple[int, list[tuple[int, int]]] = (-1, [])

    @property
    def rows(self) -> Sequence[Body]:
        """All rows."""
        return self._rows

    @property
    def current(self) -> Body | None:
        """Row under the cursor; None without rows."""
        return self._rows[self._cursor] if self._rows else None

    @property
    def seen(self) -> Sequence[Body]:
        """Visible rows."""
        first = self.scroll_offset.y
        return self._rows[first : first + self._room]

    @property
    def _room(self) -> int:
        return max(self.scrollable_content_region.height - HEAD, 1)

    def show(self, rows: Sequence[Body], *, empty: str | None = None, reset: bool = False) -> None:
        """Replace the rows.

        Parameters
        ----------
        empty
            Text that is shown without rows; None keeps the previous one.
        reset
            True if the rows are a new list, so that the cursor moves to the top.
        """
        before, at = self.current, self._cursor
        self._rows = rows
        self._empty = self._empty if empty is None else empty
        if reset or not self._held or before is None:
            self._held, self._cursor = False, 0
        else:
            self._cursor = self._found(before[self._key], at)
        self.virtual_size = Size(0, len(rows) + HEAD)
        if self._cursor != at:
            self.scroll_to(y=max(self.scroll_offset.y + self._cursor - at, 0) if self._cursor else 0, animate=False)
        self._widen([*rows[:LOOKED_AT], *self.seen])
        self.refresh()
        self.post_message(self.Moved(self))

    def go_to(self, key: str) -> None:
        """Move the cursor to a row."""
        self._move_to(self._found(key, self._cursor))

    def _found(self, key: object, at: int) -> int:
        """Return the current index of a row; for a removed row, return its previous index or the last one."""
        near = range(max(at - self._room, 0), min(at + self._room, len(self._rows)))
        for places in (near, range(len(self._rows))):
            for place in places:
                if self._rows[place][self._key] == key:
                    return place
        return max(min(at, len(self._rows) - 1), 0)

    def _widen(self, rows: Sequence[Body]) -> None:
        for at, column in enumerate(self._columns):
            widest = max((_text(column.cell(row)).cell_len for row in rows), default=0)
            if widest > self._widest[at]:
                self._widest[at] = max(widest, cell_len(column.title))
                self._fit = (-1, [])

    # Keys and mouse

    def _move_to(self, place: int) -> None:
        self._held = True
        before, self._cursor = self._cursor, max(min(place, len(self._rows) - 1), 0)
        self.scroll_to_region(Region(0, self._cursor, 1, 1 + HEAD), animate=False, force=True)
        for at in {before, self._cursor}:
            self.refresh(Region(0, at - self.scroll_offset.y + HEAD, self.size.width, 1))
        self.post_message(self.Moved(self))

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self._move_to(self._cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by one page."""
        self._move_to(self._cursor + by * self._room)

    def action_first(self) -> None:
        """Go to the first row."""
        self._move_to(0)

    def action_last(self) -> None:
        """Go to the last row."""
        self._move_to(len(self._rows) - 1)

    def action_choose(self) -> None:
        """Open the row under the cursor."""
        if self.current is not None:
            self.post_message(self.Chosen(self, self.current))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row. A double click opens the row."""
        place = self.scroll_offset.y + event.y - HEAD
        if event.y >= HEAD and place < len(self._rows):
            self._move_to(place)
            if event.chain > 1:
                self.action_choose()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Report a change of the visible rows."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._widen(self.seen)
            self.post_message(self.Moved(self))

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Draw a line of the screen."""
        width = self.scrollable_content_region.width
        if y < HEAD:
            return self._strip(self._head(width), width, self.get_component_rich_style("listing--head"))
        place = self.scroll_offset.y + y - HEAD
        if place >= len(self._rows):
            said = Text(f" {self._empty}", "italic dim") if not self._rows and y == HEAD else Text()
            return self._strip(said, width, Style())
        under = place == self._cursor
        style = self.get_component_rich_style("listing--cursor") if under else Style()
        return self._strip(self._line(self._rows[place], width), width, style)

    def _strip(self, line: Text, width: int, style: Style) -> Strip:
        line.truncate(width, pad=True)
        return Strip(line.render(self.app.console), width).apply_style(style).apply_style(self.rich_style)

    def _head(self, width: int) -> Text:
        return self._joined([(at, Text(self._columns[at].title), wide) for at, wide in self._widths(width)])

    def _line(self, row: Body, width: int) -> Text:
        return self._joined([(at, _text(self._columns[at].cell(row)), wide) for at, wide in self._widths(width)])

    def _joined(self, cells: Sequence[tuple[int, Text, int]]) -> Text:
        line = Text(" ", no_wrap=True)
        for at, cell, wide in cells:
            if self._columns[at].right:
                cell.align("right", wide)
            else:
                cell.truncate(wide, overflow="ellipsis", pad=True)
            line.append_text(cell).append(" " * GAP)
        return line

    def _widths(self, width: int) -> list[tuple[int, int]]:
        """Return the visible columns with their widths. Truncated columns get the extra width, from the first one."""
        if self._fit[0] == width:
            return self._fit[1]
        room = width - 1
        filled = [at for at, widest in enumerate(self._widest) if widest]
        fit = fitting([self._columns[at] for at in filled], [self._widest[at] for at in filled], room)
        shown = [filled[at] for at in fit]
        widths = {at: min(self._widest[at], LEAST) if self._columns[at].cut else self._widest[at] for at in shown}
        left = max(room - sum(widths.values()) - GAP * (len(shown) - 1), 0)
        for at in shown:
            more = min(self._widest[at] - widths[at], left)
            widths[at] += more
            left -= more
        self._fit = (width, list(widths.items()))
        return self._fit[1]


def _text(value: str | Text) -> Text:
    return Text(value) if isinstance(value, str) else value
