"""Bars of evaluations."""

from __future__ import annotations

import pytest

from seaway.web.pages.policies.evaluations import line_rows
from seaway.wire.evaluations import EstimateOut, PolicyResultOut


def line(policy: str, mean: float | None, ci95: float | None) -> PolicyResultOut:
    """Make a line of a policy that placed so many jobs; None for one without figures."""
    figures = {} if mean is None else {"placed": EstimateOut(mean=mean, ci95=ci95, samples=5)}
    counts = {"instances": 5, "runs": 5, "runs_without_figures": 0, "trained_on_instance": None}
    return PolicyResultOut.model_validate(
        {"policy": policy, "level": "node", **counts, "figures": figures, "behind": None}
    )


def test_bars_and_their_intervals_stay_within_the_longest() -> None:
    """The longest interval ends at the end of its bar, and none begins before nothing."""
    wide, narrow, single, none = line_rows(
        [line("a", 80, 20), line("b", 10, 30), line("c", 50, None), line("d", None, None)]
    )
    assert wide["bar"] == pytest.approx({"share": 80, "low": 60, "width": 40})
    assert narrow["bar"] == pytest.approx({"share": 10, "low": 0, "width": 40})
    assert single["bar"] == pytest.approx({"share": 50, "low": 50, "width": 0})
    assert (none["bar"], none["at"]) == (None, 4)


def test_nothing_placed_is_no_bar_and_no_failure() -> None:
    """Where no policy placed a job, all bars are empty."""
    (only,) = line_rows([line("a", 0, 0.0)])
    assert only["bar"] == {"share": 0, "low": 0, "width": 0}
