"""A row: how one policy did on one instance with one seed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace

from seaway.simulation.outcome import Outcome

Cell = str | int | float | bool | None

SAID = ("policy", "level", "instance", "seed", "trained_on_instance", "note")
"""Fields of a row that are not measured."""


@dataclass(frozen=True, slots=True)
class Row:
    """Result of one policy on one instance with one seed; missing figures are None.

    Attributes
    ----------
    policy, instance
        Names, as tables show them.
    level
        Level of the policy: ``node`` or ``cluster``.
    seed
        The seed of its random choices; of a policy out of a folder of runs, the seed it was trained with.
    trained_on_instance
        Whether it was trained on the instance it is measured on; None for what was not trained.
    jobs, placed, refused, failed
        See `seaway.simulation.outcome.Counts`.
    right
        Placed or infeasible.
    fragmentation, gpu_load_variance, gpu_memory_pct and so on
        See `seaway.simulation.measures.Use`.
    p50_us, p99_us
        Median and 99th percentile of the time of a single decision, microseconds.
    best_known
        Best known number of jobs that fit together.
    ratio
        `placed` over `best_known`.
    note
        Why there are no figures, or a note on them; usually empty.
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
        """Return the row with the figures of what came out."""
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
        """Return every field by its name, in order."""
        return asdict(self)

    def cells(self) -> dict[str, str]:
        """Return every field as text for a file; empty for None."""
        return {name: text_of(value) for name, value in self.record().items()}


COLUMNS = tuple(field.name for field in fields(Row))
"""Names of the fields, in the order in which files have them."""

FIGURES = tuple(name for name in COLUMNS if name not in SAID)
"""Names of the fields that are measured."""


def text_of(value: Cell) -> str:
    """Write a value for a file; empty for None."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
