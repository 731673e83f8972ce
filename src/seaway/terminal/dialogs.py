"""Dialogs: confirmations, and the list of keys."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = (
    ("1 2 3 4, tab", "fleet, queue, jobs, links; in a job: about, events, why, log"),
    ("↑ ↓ pgup pgdn home end", "move; j, k, g and G too"),
    ("enter", "show a node or a job; unfold a cluster"),
    ("→ ←", "unfold and fold clusters, nodes and devices"),
    ("/", "find; in jobs and queue also state:failed queue:batch cluster:east tenant:ml by:ci label:team=a"),
    ("esc", "back; show all again"),
    ("o", "sort jobs otherwise"),
    ("x", "cancel the chosen job"),
    ("s", "suspend the chosen job, or resume it"),
    ("c", "cordon the chosen cluster or node, or end that"),
    ("d", "drain it: move running jobs elsewhere"),
    ("n", "log: the next replica"),
    ("r", "refresh now"),
    ("t", "light or dark; ctrl+p has more themes"),
    ("q", "leave"),
)
"""Keys and their actions."""


class Dialog(ModalScreen[bool]):
    """Dialog above the current screen."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > .box {
        width: 76; max-width: 100%; height: auto; max-height: 90%; padding: 1 2;
        border: round $primary; background: $surface;
    }
    """


class Ask(Dialog):
    """Confirmation of a change. Only `y` confirms it.

    Parameters
    ----------
    question
        Question about the change.
    detail
        Consequences of the change.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str, detail: str) -> None:
        super().__init__()
        self._question, self._detail = question, detail

    def compose(self) -> ComposeResult:
        """Place the question in the dialog."""
        with Vertical(classes="box"):
            yield Static(f"{self._question}\n", markup=False)
            yield Static(f"{self._detail}\n", classes="detail", markup=False)
            yield Static("y  yes      n  no", markup=False)

    def action_answer(self, answer: bool) -> None:
        """Close the dialog with an answer."""
        self.dismiss(answer)


class Help(Dialog):
    """List of keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss", "Back")]

    def compose(self) -> ComposeResult:
        """Place the list in the dialog."""
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        for keys, what in KEYS:
            table.add_row(keys, what)
        with VerticalScroll(classes="box"):
            yield Static(table)
