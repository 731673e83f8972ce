"""Rules of `script/bench soak`."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from benchmarks.soak.cases import TOLERANCES
from benchmarks.soak.levels import sen_slope, trend
from benchmarks.soak.picture import draw

TIMES_S = [5.0 * at for at in range(60)]


def noisy(values: list[float], spread: float) -> list[float]:
    """Add noise to a curve."""
    random = Random(0)
    return [value + random.gauss(0, spread) for value in values]


def test_slope_is_that_of_most_samples() -> None:
    """A few outliers do not change the slope, and the interval has it above its lower end."""
    values = noisy([100 + 0.5 * at for at in TIMES_S], 1.0)
    values[20] = values[40] = 10_000
    slope, least = sen_slope(TIMES_S, values)
    assert slope == pytest.approx(0.5, rel=0.02)
    assert 0.45 < least < slope


def test_slope_of_equal_values_is_zero() -> None:
    """A constant has no slope, and no lower end below it."""
    assert sen_slope(TIMES_S, [7.0] * len(TIMES_S)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("curve", "level"),
    [
        ([200.0] * 60, True),
        ([200 - 0.5 * at for at in range(60)], True),
        ([300 * (1 - 0.8**at) for at in range(60)], True),
        ([200 + 20 * (at % 6) for at in range(60)], True),
        ([200 + 0.02 * at for at in range(60)], True),
        ([200 + 1.0 * at for at in range(60)], False),
        ([200 + (0 if at < 30 else 3.0 * (at - 30)) for at in range(60)], False),
        ([200 + 20 * (at % 6) + 1.5 * at for at in range(60)], False),
    ],
    ids=["constant", "falls", "levels off", "sawtooth", "slow", "grows", "grows late", "growing sawtooth"],
)
def test_figures_that_grow_after_the_warm_up_do_not_level_off(curve: list[float], level: bool) -> None:
    """Growth counts after the warm-up, if it is certain and more than the tolerance."""
    assert trend(TIMES_S, noisy(curve, 0.5), *TOLERANCES["RSS, MiB"]).level is level


def test_uncertain_growth_is_no_growth() -> None:
    """A slope whose interval includes zero is noise."""
    found = trend(TIMES_S, noisy([200.0] * 60, 60.0), 0.0, 0.0)
    assert found.least_growth < 0
    assert found.level


def test_short_runs_are_not_judged() -> None:
    """With fewer than eight samples after the warm-up, there is no decision."""
    with pytest.raises(ValueError, match="too few samples"):
        trend(TIMES_S[:11], [1.0] * 11, 0.1, 1.0)


def test_picture_has_a_panel_for_each_figure(tmp_path: Path) -> None:
    """The picture names each figure and the decision."""
    curves = {"RSS, MiB": [200.0] * 60, "threads": [10.0 + at for at in range(60)]}
    trends = {name: trend(TIMES_S, values, 0.05, 1.0) for name, values in curves.items()}
    files = draw(TIMES_S, curves, trends, tmp_path / "soak")
    text = next(each for each in files if each.suffix == ".svg").read_text(encoding="utf-8")
    assert "RSS, MiB: level" in text
    assert "threads: grows" in text
