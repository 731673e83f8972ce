"""Where a job could go: what people weigh, side by side, and what the scheduler takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seaway.terminal.columns import Column, Rows
from seaway.terminal.reasons import refusals, remedies, scores
from seaway.terminal.words import NONE, rate, rtt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.cli.remote import Body

MOST = 8
"""Candidates that are shown unless more are asked for; the chosen one always is."""


def picture(name: str, trial: Body, *, wide: bool) -> RenderableType:
    """Show what would happen to a job."""
    verdict = Text.assemble((name, "bold"), ": ", trial["sentence"])
    choices = trial["choices"]
    if not choices:
        return Group(verdict, *refusals(trial["explanation"]), *remedies(trial["explanation"]), "")
    shown = choices if wide else [each for at, each in enumerate(choices) if at < MOST or each["chosen"]]
    columns = (
        Column("", lambda each: "→" if each["chosen"] else " "),
        Column("NODE", lambda each: each["node"], cut=True),
        Column("CLUSTER", lambda each: each["cluster"]),
        Column("FREE SLICES", lambda each: f"{each['free_slices']:,}", right=True),
        Column("RTT", lambda each: rtt(each["link"]["latency_ns"]) if each["link"] else NONE, right=True),
        Column("BANDWIDTH", lambda each: _bandwidth(each["link"]), right=True, drop=1),
        Column("PRICE/H", lambda each: each["price_per_hour"], right=True),
        Column("SCORE", lambda each: f"{each['total']:,}", right=True, drop=2),
    )
    parts: list[RenderableType] = [verdict, Rows(columns, shown, wide=wide)]
    if len(shown) < len(choices):
        parts.append(f"[dim]and {len(choices) - len(shown)} more: -o wide[/dim]")
    if wide:
        parts += scores(trial["explanation"]["candidates"])
    return Group(*parts, "")


def _bandwidth(link: Body | None) -> str:
    return rate(max(link["bandwidth_mbps"] - link["used_mbps"], 0)) if link else NONE
