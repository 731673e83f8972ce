"""Selection of the best policy by placed jobs, then by load variance."""

from __future__ import annotations

from seaway.learning.runs.run import Selection, evaluated
from tests.unit.learning.runs import small


def test_the_order_of_evaluations() -> None:
    """More placed jobs are better, then lower load variance, then an earlier episode."""
    selection = Selection(patience=0)
    found = [(5, 0.1), (6, 0.9), (6, 0.2), (6, 0.2), (5, 0.0)]
    better = [selection.take(small.evaluated(*each), episode) for episode, each in enumerate(found, 1)]
    assert better == [True, True, True, False, False]
    assert (selection.best, selection.episode) == (small.evaluated(6, 0.2), 3)


def test_patience_counts_evaluations_without_improvement() -> None:
    """An improvement resets it, and a resumed run continues it."""
    selection = Selection(patience=2)
    tired = []
    for episode, placed in enumerate((5, 4, 6, 6, 3), 1):
        selection.take(small.evaluated(placed), episode)
        again = Selection(patience=2)
        again.restore(selection.state())
        assert again.tired == selection.tired
        tired.append(selection.tired)
    assert tired == [False, False, False, False, True]


def test_no_patience() -> None:
    """With 0, the run plays all episodes."""
    selection = Selection(patience=0)
    for episode in range(50):
        selection.take(small.evaluated(1), episode)
    assert not selection.tired


def test_evaluations_aggregate_instances() -> None:
    """Jobs are sums over instances, load and reward are means."""
    found = evaluated([small.play(), small.play()])
    assert (found.jobs, found.placed, found.refused) == (20, 14, 4)
    assert (found.gpu_load_variance, found.reward) == (0.25, -12.5)
