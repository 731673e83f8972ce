"""Tables of replays and explanations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from seaway.domain.placement import Explanation
from seaway.simulation.outcome import Outcome

Record = dict[str, str | int | float | None]


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.2f}"


def _fine(value: float) -> str:
    return f"{value:.4f}"


def _seconds(value: float) -> str:
    return f"{value:,.1f}"


SECTIONS: dict[str, tuple[tuple[str, str, Callable[[float], str]], ...]] = {
    "Jobs": (
        ("arrived", "jobs", _count),
        ("placed", "placed", _count),
        ("refused: no node could hold it", "refused", _count),
        ("failed: something could", "failed", _count),
    ),
    "GPU cores, % of the fleet": (
        ("asked for", "arrived_pct", _percent),
        ("allocated", "gpu_allocated_pct", _percent),
        ("allocated at 100 % requested", "gpu_allocated_pct_at_100", _percent),
    ),
    "In use, % (± over clusters)": (
        ("GPU cores", "gpu_core_pct", _percent),
        ("GPU memory", "gpu_memory_pct", _percent),
        ("CPU", "cpu_pct", _percent),
        ("memory", "memory_pct", _percent),
    ),
    "Balance": (
        ("fragmentation", "fragmentation", _fine),
        ("variance of GPU load", "gpu_load_variance", _fine),
    ),
    "Waiting, seconds": (
        ("in the queue, mean", "queue_wait_mean_s", _seconds),
        ("in the queue, median", "queue_wait_p50_s", _seconds),
        ("in the queue, 90th percentile", "queue_wait_p90_s", _seconds),
        ("in the queue, 99th percentile", "queue_wait_p99_s", _seconds),
        ("makespan", "makespan_s", _count),
    ),
    "Bounded slowdown": (
        ("mean", "bounded_slowdown_mean", _percent),
        ("median", "bounded_slowdown_p50", _percent),
        ("99th percentile", "bounded_slowdown_p99", _percent),
        ("Jain's index over tenants", "jain_index", _fine),
    ),
    "Shares": (
        ("beyond fair shares", "share_error", _fine),
        ("preempted", "preempted", _count),
        ("preempted, GPU hours", "preempted_gpu_hours", _seconds),
    ),
    "Speed": (
        ("decisions a second", "decisions_per_s", _count),
        ("one decision, median µs", "p50_us", _count),
        ("one decision, 99th percentile µs", "p99_us", _count),
    ),
}
"""Rows by section. A row has a label, the name of the value, and its format."""

GAP = 2
UNKNOWN = "–"


def show_comparison(outcomes: Sequence[Outcome], console: Console | None = None) -> None:
    """Print the results, one per line, with a column per policy, in tables that fit the width."""
    console = console or Console()
    records = [outcome.record() for outcome in outcomes]
    columns = [column_of(record) for record in records]
    labels = [*SECTIONS, *(f"  {label}" for rows in SECTIONS.values() for label, _, _ in rows)]
    room = console.width - max(map(len, labels))
    first = 0
    while first < len(records):
        end, used = first, 0
        while end < len(records) and (end == first or used + _width(records[end], columns[end]) <= room):
            used += _width(records[end], columns[end])
            end += 1
        if first:
            console.print()
        console.print(_table(records[first:end], columns[first:end]))
        first = end


def show_bound(bound_pct: float | None) -> None:
    """Print the upper bound of the allocation."""
    said = "unknown: the fleet has no GPU" if bound_pct is None else f"{bound_pct:.2f} %"
    Console().print(f"\nallocated at 100 % requested, at most (linear programme): {said}", highlight=False)


def column_of(record: Record) -> dict[str, str]:
    """Format the values of a record, by name."""
    return {name: _cell(record, name, written) for rows in SECTIONS.values() for _, name, written in rows}


def _width(record: Record, column: dict[str, str]) -> int:
    return GAP + max(len(str(record["policy"])), *map(len, column.values()))


def _table(records: Sequence[Record], columns: Sequence[dict[str, str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    for record in records:
        table.add_column(escape(str(record["policy"])), justify="right", no_wrap=True)
    for title, rows in SECTIONS.items():
        known = [row for row in rows if any(row[1] in record for record in records)]
        if known:
            table.add_row(f"[bold]{title}[/bold]")
        for label, name, _ in known:
            table.add_row(f"  {label}", *(column[name] for column in columns))
    return table


def _cell(record: Record, name: str, written: Callable[[float], str]) -> str:
    value, spread = record.get(name), record.get(f"{name}_std")
    if not isinstance(value, int | float):
        return UNKNOWN
    return f"{written(value)} ± {written(spread)}" if isinstance(spread, float) and spread else written(value)


def show_explanation(explanation: Explanation, console: Console) -> None:
    """Print whether a job fits and why: a sentence, and the best candidates with their scores."""
    from seaway.scheduling.explain import summary

    verdict = "was placed" if explanation.fits else "was refused"
    console.print(f"[bold]{explanation.job}[/bold] {verdict}: {summary(explanation)}.", highlight=False)
    if not explanation.candidates:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("  candidate", "cluster"):
        table.add_column(column, no_wrap=True)
    plugins = list(explanation.candidates[0].scores)
    for column in [*plugins, "total"]:
        table.add_column(column, justify="right")
    for at, candidate in enumerate(explanation.candidates):
        scores = [f"{candidate.scores[plugin]:,}" for plugin in plugins]
        mark = "→" if at == 0 else " "
        table.add_row(f"{mark} {candidate.node}", candidate.cluster, *scores, f"{candidate.total:,}")
    console.print(table)
