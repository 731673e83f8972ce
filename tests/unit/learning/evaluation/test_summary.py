import pytest

from seaway.learning.evaluation.summary import COLUMNS, Row, by_instance, summarise


def row(policy: str, instance: str, placed: int | None, **figures: object) -> Row:
    """Return a row with a number of placed jobs."""
    return Row(policy, "node", instance, **{"seed": 0, "placed": placed, **figures})  # type: ignore[arg-type]


def test_policies_are_sorted_by_placed_jobs() -> None:
    """Ties are broken by the variance of GPU load."""
    rows = [
        row("few", "a", 5),
        row("uneven", "a", 9, gpu_load_variance=0.2),
        row("even", "a", 9, gpu_load_variance=0.1),
    ]
    assert [line.policy for line in summarise(rows)] == ["even", "uneven", "few"]


def test_seeds_of_an_instance_are_one_sample() -> None:
    """The interval is over instances, so more seeds of the same instances do not narrow it."""
    rows = [row("drawn", name, placed, seed=seed) for name in "ab" for seed, placed in enumerate((10, 20))]
    (line,) = summarise(rows)
    assert (line.instances, line.runs) == (2, 4)
    assert (line.figures["placed"].samples, line.figures["placed"].mean, line.figures["placed"].std) == (2, 15, 0)


def test_seeds_are_the_samples_of_a_single_instance() -> None:
    """With one instance, the interval is over its seeds."""
    (line,) = summarise([row("drawn", "a", placed, seed=seed) for seed, placed in enumerate((10, 20, 30))])
    assert (line.figures["placed"].samples, line.figures["placed"].std) == (3, 10)


def test_differences_are_paired_by_instance() -> None:
    """Two jobs fewer on each instance is a difference of two jobs with a narrow interval."""
    rows = [row("first", "a", 10), row("first", "b", 100), row("second", "a", 8), row("second", "b", 98)]
    first, second = summarise(rows)
    assert first.behind is None
    assert second.behind is not None
    assert (second.behind.mean, second.behind.ci95) == (2, 0)


def test_policies_with_fewer_instances_are_last() -> None:
    """Means over different instances are not comparable, and rows without figures do not count."""
    rows = [row("all", "a", 5), row("all", "b", 5), row("some", "a", 9), row("some", "b", None, note="other size")]
    assert [(line.policy, line.instances, line.runs_without_figures) for line in summarise(rows)] == [
        ("all", 2, 0),
        ("some", 1, 1),
    ]


def test_the_ratio_needs_the_best_packing_of_all_instances() -> None:
    """With a single instance, it is the mean over seeds."""
    rows = [row("one", "a", 4, best_known=8, ratio=0.5), row("one", "b", 5)]
    (line,) = summarise(rows)
    assert (line.figures["placed"].mean, line.figures.keys() & {"ratio", "best_known"}) == (4.5, set())
    assert summarise(rows[:1])[0].figures["ratio"].mean == 0.5


def test_levels_are_distinguished() -> None:
    """A policy at two levels has two lines."""
    rows = [Row("bestfit", level, "a", 0, placed=placed) for level, placed in (("node", 3), ("cluster", 4))]
    assert [(line.policy, line.level) for line in summarise(rows)] == [("bestfit", "cluster"), ("bestfit", "node")]
    assert by_instance(rows, "bestfit", "node") == {"a": 3}


def test_rows_of_training_instances_are_counted() -> None:
    """A run on its own instance and another counts one of two, and a heuristic has no such number."""
    rows = [
        row("run", "a", 5, trained_on_instance=True),
        row("run", "b", 5, trained_on_instance=False),
        row("heuristic", "a", 4),
        row("heuristic", "b", 4),
    ]
    assert [line.trained for line in summarise(rows)] == [1, None]


def test_records_have_unique_names() -> None:
    """The deviation over clusters differs from the deviation of the mean over instances."""
    record = summarise([row("a", "x", 1, gpu_memory_pct_std=7.0), row("a", "y", 3, gpu_memory_pct_std=9.0)])[0].record()
    assert record["placed"] == 2
    assert record["placed.std"] == pytest.approx(2**0.5)
    assert record["gpu_memory_pct_std"] == 8
    assert record["gpu_memory_pct_std.std"] == pytest.approx(2**0.5)
    assert set(COLUMNS) - {"instance", "seed", "note"} <= set(record)


def test_an_empty_summary() -> None:
    """Without rows there are no lines."""
    assert summarise([]) == []
