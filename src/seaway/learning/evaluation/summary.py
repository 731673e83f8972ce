"""Summary of rows: one per policy, sorted by placed jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from statistics import fmean

from seaway.learning.evaluation.statistics import Estimate, estimate
from seaway.simulation.outcome import Outcome

Cell = str | int | float | bool | None

LABELS = ("policy", "level", "instance", "seed", "trained_on_instance", "note")
"""Fields of a row other than figures."""


@dataclass(frozen=True, slots=True)
class Row:
    """Result of one policy on one instance with one seed; missing figures are None.

    Attributes
    ----------
    policy, instance
        Names in tables.
    level
        Level of the policy: ``node`` or ``cluster``.
    seed
        Seed of its random choices, or of its training for a policy from a folder of runs.
    trained_on_instance
        Whether it was trained on this instance; None for an untrained policy.
    jobs, placed, refused, failed
        See `seaway.simulation.outcome.Counts`.
    right
        Placed or infeasible.
    fragmentation, gpu_load_variance, gpu_memory_pct, gpu_core_pct, cpu_pct, memory_pct
        See `seaway.simulation.outcome.Use`.
    p50_us, p99_us
        Median and 99th percentile of the time of a single decision, microseconds.
    best_known
        Best known number of jobs that fit together.
    ratio
        `placed` over `best_known`.
    note
        Reason for missing figures, or a note on them; usually empty.
    """

    policy: str
    level: str
    instance: str
    seed: int
    trained_on_instance: bool | None = None
    jobs: int | None = None
    placed: int | None = None
    refused: int | None = None
    failed: int | None = None
    right: int | None = None
    fragmentation: float | None = None
    gpu_load_variance: float | None = None
    gpu_memory_pct: float | None = None
    gpu_memory_pct_std: float | None = None
    gpu_core_pct: float | None = None
    gpu_core_pct_std: float | None = None
    cpu_pct: float | None = None
    cpu_pct_std: float | None = None
    memory_pct: float | None = None
    memory_pct_std: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    best_known: int | None = None
    ratio: float | None = None
    note: str = ""

    def with_outcome(self, outcome: Outcome) -> Row:
        """Return the row with the figures of an outcome."""
        counts = outcome.counts
        known = {field.name for field in fields(self)}
        use = {name: figure for name, figure in asdict(outcome.use).items() if name in known}
        return replace(
            self,
            **asdict(counts),
            **use,
            right=counts.placed + counts.refused,
            p50_us=outcome.speed.p50_us,
            p99_us=outcome.speed.p99_us,
            ratio=counts.placed / self.best_known if self.best_known else None,
        )

    def record(self) -> dict[str, Cell]:
        """Return all fields by name, in order."""
        return asdict(self)

    def cells(self) -> dict[str, str]:
        """Return all fields as text for a file; empty for None."""
        return {name: text_of(value) for name, value in self.record().items()}


COLUMNS = tuple(field.name for field in fields(Row))
"""Names of the fields, in the order of columns in files."""

FIGURES = tuple(name for name in COLUMNS if name not in LABELS)
"""Names of the figures."""


def text_of(value: Cell) -> str:
    """Format a value for a file; empty for None."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


METHOD = (
    "±: 95 % confidence interval of the mean, by Student's t. Seeds of one instance are averaged first, so that the "
    "sample is the instances; with a single instance it is the seeds."
)

AGAINST_BEST = ("best_known", "ratio")
"""Figures that are omitted unless all instances have them, because instances differ too much for a partial mean."""

Name = tuple[str, str]
"""Policy and level."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Result of a policy over all instances.

    Attributes
    ----------
    policy, level
        Name and level.
    instances, runs
        Number of instances with figures, and of rows.
    runs_without_figures
        Number of rows without figures.
    trained
        Number of rows with figures of a policy trained on that instance; None for untrained policies.
    figures
        Estimates by the names of a row's figures. A figure without values is absent, and so is one of `AGAINST_BEST` if
        an instance lacks it.
    behind
        Jobs placed by the first policy minus those by this one, paired by instance; None for the first. Its interval is
        narrower than those of the two, because both had the same instances.
    """

    policy: str
    level: str
    instances: int
    runs: int
    runs_without_figures: int
    trained: int | None
    figures: Mapping[str, Estimate]
    behind: Estimate | None = None

    def record(self) -> dict[str, Cell]:
        """Return all values under flat names: ``placed``, ``placed.std``, ``placed.ci95`` and so on."""
        cells: dict[str, Cell] = {
            "policy": self.policy,
            "level": self.level,
            "instances": self.instances,
            "runs": self.runs,
            "runs_without_figures": self.runs_without_figures,
            "trained_on_instance": self.trained,
        }
        for name in FIGURES:
            cells |= _flat(name, self.figures.get(name))
        return cells | _flat("behind", self.behind)


def summarise(rows: Sequence[Row]) -> list[Summary]:
    """Summarise rows by policy and level.

    Policies are sorted by placed jobs, then by variance of GPU load. Policies with figures of fewer instances come
    last, because means over different instances are not comparable.
    """
    by_name: dict[Name, list[Row]] = {}
    for row in rows:
        by_name.setdefault((row.policy, row.level), []).append(row)
    samples = {name: _by_instance(each) for name, each in by_name.items()}
    lines = sorted((_summary(name, by_name[name], samples[name]) for name in by_name), key=_order)
    if not lines:
        return []
    first = samples[lines[0].policy, lines[0].level]
    behind = [_behind(first, samples[line.policy, line.level]) for line in lines[1:]]
    return [lines[0], *(replace(line, behind=each) for line, each in zip(lines[1:], behind, strict=True))]


def by_instance(rows: Sequence[Row], policy: str, level: str) -> dict[str, float]:
    """Return the mean number of placed jobs of a policy by instance."""
    own = _by_instance([row for row in rows if (row.policy, row.level) == (policy, level)])
    return {name: _placed(each) for name, each in own.items()}


def _by_instance(rows: Sequence[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        if row.placed is not None:
            grouped.setdefault(row.instance, []).append(row)
    return grouped


def _summary(name: Name, rows: Sequence[Row], samples: Mapping[str, Sequence[Row]]) -> Summary:
    having = [row for each in samples.values() for row in each]
    estimates = {figure: estimate(_samples(figure, samples)) for figure in FIGURES}
    return Summary(
        policy=name[0],
        level=name[1],
        instances=len(samples),
        runs=len(having),
        runs_without_figures=len(rows) - len(having),
        trained=sum(known)
        if (known := [row.trained_on_instance for row in having if row.trained_on_instance is not None])
        else None,
        figures={figure: each for figure, each in estimates.items() if each is not None},
    )


def _samples(figure: str, samples: Mapping[str, Sequence[Row]]) -> list[float]:
    """Return the means of a figure by instance; with one instance, its values."""
    values = [[value for row in rows if (value := getattr(row, figure)) is not None] for rows in samples.values()]
    known = [each for each in values if each]
    if figure in AGAINST_BEST and len(known) < len(values):
        return []
    return known[0] if len(known) == 1 else [fmean(each) for each in known]


def _order(line: Summary) -> tuple[int, float, float]:
    placed, variance = line.figures.get("placed"), line.figures.get("gpu_load_variance")
    return -line.instances, -placed.mean if placed else 0.0, variance.mean if variance else 0.0


def _behind(first: Mapping[str, Sequence[Row]], own: Mapping[str, Sequence[Row]]) -> Estimate | None:
    return estimate([_placed(first[each]) - _placed(own[each]) for each in first if each in own])


def _placed(rows: Sequence[Row]) -> float:
    return fmean(row.placed or 0 for row in rows)


def _flat(name: str, figure: Estimate | None) -> dict[str, Cell]:
    if figure is None:
        return {name: None, f"{name}.std": None, f"{name}.ci95": None}
    return {name: figure.mean, f"{name}.std": figure.std, f"{name}.ci95": figure.ci95}
