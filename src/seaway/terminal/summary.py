"""Summary of the fleet and its jobs in three lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from seaway.domain.job_state import PLACED, JobState
from seaway.terminal.words import STYLES, Body, bar, cores, tasks_text

LONG_BAR = 20
SHORT_BAR = 3
"""Maximum and minimum width of a bar, in blocks."""

LARGE_MIB = 10 << 20
"""Amount of memory in MiB from which the unit is Ti."""

STATES = ("up", "stale", "lost", "gone")
ENDED = (JobState.FAILED, JobState.COMPLETED, JobState.CANCELLED)

MAX_NAMED = 2
"""Maximum number of unreachable clusters that are listed by name. More clusters are only counted."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Allocated part of a total."""

    used: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """Sums of the fleet and its jobs.

    Attributes
    ----------
    clusters
        Number of clusters in each state.
    unreachable
        Names of clusters that are not up. All sums omit them, because their current state is unknown.
    gpus_used_milli
        GPUs in use, in thousandths. A slice counts as the larger share of cores and memory.
    milli, memory_mib
        GPU cores, in thousandths, and GPU memory.
    free_milli, free_memory_mib
        Free GPU cores and memory on nodes that accept new jobs.
    jobs
        Number of jobs in each state. An array is one job.
    waiting, running
        Number of waiting and of running jobs, also of those that start, and of their tasks; None if they are unknown.
    unreachable_gpus
        GPUs of clusters that are not up, as last reported.
    """

    clusters: dict[str, int] = field(default_factory=dict)
    unreachable: tuple[str, ...] = ()
    nodes: int = 0
    gpus: int = 0
    gpus_used_milli: int = 0
    milli: Amount = Amount()
    memory_mib: Amount = Amount()
    free_milli: int = 0
    free_memory_mib: int = 0
    jobs: dict[str, int] = field(default_factory=dict)
    waiting: tuple[int, int | None] = (0, None)
    running: tuple[int, int | None] = (0, None)
    unreachable_gpus: int = 0

    @classmethod
    def of(cls, clusters: Sequence[Body], counted: Body) -> Summary:
        """Return the sums over clusters, with the answer of `GET /job-counts`."""
        states = [each["state"] for each in clusters]
        up = [each for each in clusters if each["state"] == "up"]
        taking = [each for each in up if not each["cordon"]]
        return cls(
            {state: states.count(state) for state in STATES if state in states},
            tuple(each["name"] for each in clusters if each["state"] != "up"),
            sum(each["nodes"] for each in up),
            sum(each["gpus"] for each in up),
            sum(each.get("gpus_used_milli", 0) for each in up),
            _sum(up, "gpu_milli"),
            _sum(up, "gpu_memory_mib"),
            sum(max(each["gpu_milli"]["free"], 0) for each in taking),
            sum(max(each["gpu_memory_mib"]["free"], 0) for each in taking),
            counted["states"],
            (counted.get("waiting", 0), counted.get("waiting_tasks")),
            (counted.get("running", 0), counted.get("running_tasks")),
            sum(each["gpus"] for each in clusters if each["state"] != "up"),
        )

    @property
    def live(self) -> int:
        """Number of unfinished jobs."""
        return sum(self.jobs.values()) - sum(self.jobs.get(state.value, 0) for state in ENDED)

    def fleet_line(self) -> Text:
        """Return a line with the number of clusters by state, of nodes and of GPUs, and the excluded clusters."""
        line = Text.assemble(("clusters ", "bold"))
        for state, count in self.clusters.items():
            line.append(f"{count:,} {state} ", STYLES.get(state, "red"))
        line.append(f"  {self.nodes:,} nodes  {cores(self.gpus_used_milli)}/{self.gpus:,} GPUs")
        if not self.unreachable:
            return line
        hidden = f" ({self.unreachable_gpus:,} GPUs)" if self.unreachable_gpus else ""
        return line.append(f"  {_without(self.unreachable)}{hidden}", "yellow")

    def capacity_line(self, width: int) -> Text:
        """Draw the allocated GPU cores and memory, with bars that fit the width."""
        line = self._room(LONG_BAR)
        over = max(line.cell_len - width, 0)
        return self._room(max(LONG_BAR - (over + 1) // 2, SHORT_BAR)) if over else line

    def _room(self, blocks: int) -> Text:
        in_cores = _level("GPU cores", self.milli, self.free_milli, (1000, ""), blocks)
        unit = _unit(self.memory_mib.total)
        return Text("  ").join((in_cores, _level("memory", self.memory_mib, self.free_memory_mib, unit, blocks)))

    def jobs_line(self) -> Text:
        """Count jobs by state: waiting ones first, then running ones, then finished ones; and their tasks."""
        starting = sum(self.jobs.get(state.value, 0) for state in PLACED - {JobState.RUNNING})
        line = Text.assemble(("jobs ", "bold"))
        for name, (count, tasks), style in (("waiting", self.waiting, "yellow"), ("running", self.running, "green")):
            parts = [] if tasks in {None, count} else [tasks_text(tasks)]
            parts += [f"{starting:,} starting"] if name == "running" and starting else []
            more = f" ({', '.join(parts)})" if parts else ""
            line.append(f"{count:,} {name}{more}  ", style if count else "dim")
        for state in (JobState.SUSPENDED, *ENDED):
            if count := self.jobs.get(state.value, 0):
                line.append(f"{count:,} {state.value}  ", STYLES[state.value])
        return line


def _without(names: Sequence[str]) -> str:
    """Describe the clusters that the sums omit."""
    if len(names) > MAX_NAMED:
        return f"without {len(names):,} that do not answer"
    return f"without {' and '.join(names)}, which {'does' if len(names) == 1 else 'do'} not answer"


def _sum(clusters: Sequence[Body], name: str) -> Amount:
    return Amount(sum(each[name]["used"] for each in clusters), sum(each[name]["total"] for each in clusters))


def _level(name: str, amount: Amount, there: int, unit_of: tuple[int, str], blocks: int) -> Text:
    """Draw an amount with its free part. The unit is a pair of its size and its name."""
    one, unit = unit_of
    used, total, free = (_short(each / one) for each in (amount.used, amount.total, there))
    return Text.assemble(
        (f"{name} ", "bold"),
        bar(amount.used, amount.total, blocks),
        f" {used}/{total}{unit} ",
        (f"{free}{unit} free", "dim"),
    )


def _unit(total_mib: int) -> tuple[int, str]:
    """Return the unit for an amount of memory: its size in MiB, and its name."""
    return (1 << 20, "Ti") if total_mib >= LARGE_MIB else (1 << 10, "Gi")


def _short(number: float) -> str:
    """Format a number, with one decimal below 100."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.1f}".removesuffix(".0")


GAP = 2
LEAST = 8
"""Gap between the fleet and the address, and minimum width of the address, in characters."""


class Head(Static):
    """Summary of the fleet and its jobs.

    Parameters
    ----------
    server
        URL of the server.
    who
        The caller, from `GET /me`.
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
        """Show a summary; None before the first answer."""
        if self._shown == (summary, self.size.width):
            return
        self._shown = (summary, self.size.width)
        width, address = self.content_size.width, Text(f"{self._server} · {self._who}", "dim")
        if summary is None:
            self.update(right_aligned(Text("asking …"), address, width))
            return
        lines = Table.grid(expand=True)
        lines.add_column(no_wrap=True)
        lines.add_row(right_aligned(summary.fleet_line(), address, width))
        lines.add_row(summary.capacity_line(width))
        lines.add_row(Text.assemble((self._own, "yellow"), summary.jobs_line()))
        self.update(lines)


def right_aligned(left: Text, right: Text, width: int) -> Text:
    """Place the right text at the end of a line that begins with the left text.

    Truncate the right text first, and omit it below a width of `LEAST`. Truncate the left text only if it is wider than
    the line.
    """
    left.truncate(width, overflow="ellipsis")
    room = width - left.cell_len - GAP
    if room < LEAST:
        return left
    right.truncate(room, overflow="ellipsis")
    return Text.assemble(left, " " * (width - left.cell_len - right.cell_len), right)


class StatusLine(Static):
    """Line with the latest event, or with a problem."""

    DEFAULT_CSS = """
    StatusLine { height: 1; padding: 0 1; color: $text-muted; }
    StatusLine.trouble { height: auto; max-height: 3; background: $error; color: $text; text-style: bold; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._shown = ("", Text())

    def show(self, trouble: str, latest: Text) -> None:
        """Show a problem, or the latest event if there is none."""
        if self._shown == (trouble, latest):
            return
        self._shown = (trouble, latest.copy())
        self.set_class(bool(trouble), "trouble")
        latest.no_wrap, latest.overflow = True, "ellipsis"
        self.update(Text(trouble) if trouble else latest)
