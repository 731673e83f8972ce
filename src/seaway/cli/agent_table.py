"""What `seaway agent` shows on a terminal."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from seaway.application.network.rounds import Reported
from seaway.cli.output import console
from seaway.domain.network import PPM
from seaway.terminal.columns import Column, Rows
from seaway.terminal.words import NONE, loss, rtt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.application.agent.delivery import Delivery

EVERY_S = 1.0


def results_table(results: Sequence[Reported]) -> Rows:
    """Make a table of what a round said."""
    columns = (
        Column("TARGET", lambda each: each["target"]),
        Column("PATH", lambda each: each["path"] or NONE, drop=1),
        Column("LATENCY", _latency, right=True),
        Column("JITTER", lambda each: rtt(each["jitter_ns"]) if each["received"] else NONE, right=True),
        Column("LOSS", _loss, right=True),
        Column("ANSWERS", lambda each: f"{each['received']}/{each['sent']}", right=True, drop=2),
        Column("DISCARDED", lambda each: str(each["discarded"] or NONE), right=True, drop=3),
    )
    return Rows(columns, [asdict(each) for each in results])


def status_line(delivery: Delivery | None, seen_s: float | None) -> Text:
    """Say how reporting goes, and how old what is shown is.

    Parameters
    ----------
    seen_s
        Seconds since the last round ended; None before the first.
    """
    age = "no round yet" if seen_s is None else f"round of {seen_s:.0f} s ago"
    if delivery is None:
        return Text(f"{age}; no server", "dim")
    told = f"{age}; {delivery.delivered.rounds:,} results reported, {delivery.waiting:,} wait"
    if lost := delivery.delivered.dropped + delivery.delivered.refused:
        told += f", {lost:,} lost"
    return Text(f"{told}: {delivery.trouble}", "yellow") if delivery.trouble else Text(told, "dim")


class LiveTable:
    """A table on the terminal that is always that of the last round; the log goes by above it."""

    def __init__(self) -> None:
        self._live = Live(console=console(), auto_refresh=False)
        self._delivery: Delivery | None = None
        self._results: Sequence[Reported] = ()
        self._seen_s: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_showing, name="table", daemon=True)

    def __enter__(self) -> Self:
        self._live.start()
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(_Above(self._live))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._live.stop()

    def follow(self, delivery: Delivery | None) -> None:
        """Show below the table how reporting goes."""
        self._delivery = delivery

    def see(self, results: Sequence[Reported]) -> None:
        """Show another round."""
        self._results, self._seen_s = results, time.monotonic()

    def _keep_showing(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._live.update(self._picture(), refresh=True)

    def _picture(self) -> RenderableType:
        age_s = None if self._seen_s is None else time.monotonic() - self._seen_s
        return Group(results_table(self._results), status_line(self._delivery, age_s))


class _Above:
    """Writes what is logged above a live table."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def write(self, text: str) -> None:
        """Print a line."""
        if text.strip():
            self._live.console.print(Text(text.rstrip("\n"), "dim"), soft_wrap=True)

    def flush(self) -> None:
        """Have nothing to flush."""


def _latency(each: dict[str, Any]) -> Text:
    return Text(rtt(each["latency_ns"])) if each["received"] else Text("no answer", "red")


def _loss(each: dict[str, Any]) -> Text:
    lost = each["sent"] - each["received"]
    return Text(loss(lost * PPM // each["sent"]) if each["sent"] else NONE, "red" if lost else "")
