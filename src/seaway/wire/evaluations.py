"""Results of `seaway evaluate`: input and views."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Annotated, Any, cast

import orjson
from pydantic import Field, RootModel, StringConstraints, TypeAdapter, ValidationError

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason
from seaway.learning.evaluation.summary import COLUMNS, LABELS, Row, summarise
from seaway.wire.fields import moment
from seaway.wire.message import Incoming, Shown
from seaway.wire.reading import read_json, read_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seaway.application.records import EvaluationRecord
    from seaway.learning.evaluation.statistics import Estimate
    from seaway.learning.evaluation.summary import Summary

JSON, CSV = "application/json", "text/csv"
"""Media types of uploaded rows."""

MAX_FIGURE = 10**12

Called = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=0, le=MAX_FIGURE)]
Figure = Annotated[float, Field(ge=0, le=MAX_FIGURE)]
Percent = Annotated[float, Field(ge=0, le=100)]

INTERVALS = ("placed", "right", "ratio", "fragmentation", "gpu_load_variance", "gpu_memory_pct", "p99_us")
"""Figures shown in views."""

SUMS = "runs"
"""Field that only rows of `--summary` have."""


class RowIn(Incoming):
    """Result of one policy on one instance with one seed, as written by `seaway evaluate -o json`."""

    policy: Called
    level: Annotated[str, StringConstraints(max_length=20)]
    instance: Called
    seed: Annotated[int, Field(ge=0, le=MAX_FIGURE)]
    trained_on_instance: bool | None = None
    jobs: Count | None = None
    placed: Count | None = None
    refused: Count | None = None
    failed: Count | None = None
    right: Count | None = None
    fragmentation: Figure | None = None
    gpu_load_variance: Figure | None = None
    gpu_memory_pct: Percent | None = None
    gpu_memory_pct_std: Percent | None = None
    gpu_core_pct: Percent | None = None
    gpu_core_pct_std: Percent | None = None
    cpu_pct: Percent | None = None
    cpu_pct_std: Percent | None = None
    memory_pct: Percent | None = None
    memory_pct_std: Percent | None = None
    p50_us: Figure | None = None
    p99_us: Figure | None = None
    best_known: Count | None = None
    ratio: Figure | None = None
    note: Annotated[str, StringConstraints(max_length=1000)] = ""


class EvaluationIn(RootModel[Annotated[list[RowIn], Field(min_length=1, max_length=20_000)]]):
    """Rows of an evaluation, as written by `seaway evaluate -o json` or `-o csv`."""


class EstimateOut(Shown):
    """A mean with its confidence interval."""

    mean: float
    ci95: float | None
    """Half width of the 95 % confidence interval; null with a single sample."""
    samples: int


class PolicyResultOut(Shown):
    """Result of a policy over all instances."""

    policy: str
    level: str
    instances: int
    runs: int
    """Number of rows with figures."""
    runs_without_figures: int
    trained_on_instance: int | None
    """Number of rows of a policy that was trained on that instance; null for untrained policies."""
    figures: dict[str, EstimateOut]
    """Means by name: `placed`, `right`, `ratio`, `fragmentation`, `gpu_load_variance`, `gpu_memory_pct`, `p99_us`."""
    behind: EstimateOut | None
    """Jobs placed by the best policy minus jobs placed by this one, paired by instance; null for the best."""


class EvaluationOut(Shown):
    """A stored evaluation."""

    name: str
    actor: str
    at: str
    policies: list[str]
    """Names of the policies, best first."""
    instances: int


class EvaluationList(Shown):
    """Evaluations, by name."""

    evaluations: list[EvaluationOut]


class EvaluationDetail(EvaluationOut):
    """An evaluation with a summary of each policy, sorted by placed jobs."""

    lines: list[PolicyResultOut]


def read_rows(content: bytes, kind: str) -> str:
    """Read rows as written by `seaway evaluate`, and return them as stored.

    Raises
    ------
    RejectedError
        If there are no rows, or they belong to different evaluations.
    """
    rows = read_value(EvaluationIn, _of_csv(content)) if kind == CSV else read_json(EvaluationIn, content)
    known: set[tuple[str, str, str, int]] = set()
    for at, row in enumerate(rows.root):
        key = row.policy, row.level, row.instance, row.seed
        if key in known:
            raise RejectedError(Reason("evaluation_duplicated"), where=f"[{at}]")
        known.add(key)
        if None not in (row.jobs, row.placed) and (row.placed or 0) > (row.jobs or 0):
            raise RejectedError(Reason("more_placed_than_arrived"), where=f"[{at}].placed")
    return orjson.dumps([each.model_dump(exclude_none=True) for each in rows.root]).decode()


def _of_csv(content: bytes) -> list[dict[str, Any]]:
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""), strict=True)
        rows = list(reader)
    except UnicodeDecodeError:
        raise RejectedError(Reason("not_utf8")) from None
    except csv.Error as error:
        raise RejectedError(Reason("not_csv", why=str(error))) from None
    names = set(reader.fieldnames or ())
    if SUMS in names:
        raise RejectedError(Reason("evaluation_summary"))
    if names != set(COLUMNS):
        missing = ", ".join(sorted(set(COLUMNS) - names)[:3]) or ", ".join(sorted(map(str, names - set(COLUMNS)))[:3])
        raise RejectedError(Reason("not_evaluation_rows", why=missing[:200]))
    return [_typed(at, row) for at, row in enumerate(rows)]


def _typed(at: int, row: Mapping[str, str | None]) -> dict[str, Any]:
    if None in row or None in row.values():
        raise RejectedError(Reason("row_too_short"), where=f"[{at}]")
    typed: dict[str, Any] = {}
    for name, text in row.items():
        if not text and name not in ("policy", "instance", "level"):
            continue
        if name in LABELS and name not in ("seed", "trained_on_instance"):
            typed[name] = text
            continue
        try:
            typed[name] = _KINDS[name].validate_strings(text)
        except ValidationError:
            raise RejectedError(Reason("not_a_figure"), where=f"[{at}].{name}") from None
    return typed


_KINDS: dict[str, TypeAdapter[Any]] = {
    name: TypeAdapter(cast("Any", field.annotation)) for name, field in RowIn.model_fields.items()
}
"""Type of each column."""


def rows_of(record: EvaluationRecord) -> list[Row]:
    """Return the rows of a stored evaluation."""
    return [Row(**each) for each in orjson.loads(record.rows)]


def evaluation_fields(record: EvaluationRecord, *, lines: bool = False) -> dict[str, Any]:
    """Return the fields of `EvaluationOut` for an evaluation, or of `EvaluationDetail` with `lines`."""
    rows = rows_of(record)
    summed = summarise(rows)
    shown = {
        "name": record.name,
        "actor": record.actor,
        "at": moment(record.at_ns),
        "policies": list(dict.fromkeys(each.policy for each in summed)),
        "instances": len({row.instance for row in rows}),
    }
    return {**shown, "lines": [_line(each) for each in summed]} if lines else shown


def _line(summary: Summary) -> dict[str, Any]:
    return {
        "policy": summary.policy,
        "level": summary.level,
        "instances": summary.instances,
        "runs": summary.runs,
        "runs_without_figures": summary.runs_without_figures,
        "trained_on_instance": summary.trained,
        "figures": {name: _estimate(summary.figures[name]) for name in INTERVALS if name in summary.figures},
        "behind": _estimate(summary.behind) if summary.behind else None,
    }


def _estimate(figure: Estimate) -> dict[str, Any]:
    return {"mean": figure.mean, "ci95": figure.ci95, "samples": figure.samples}
