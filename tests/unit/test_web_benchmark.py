"""Measurements of `script/bench web`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from benchmarks.api.server import Served
from benchmarks.web import rounds
from benchmarks.web.cases import LIVELY, LOOKED_AT, PAGES
from benchmarks.web.rounds import Burst, Looked, spread
from seaway.web import mount


def test_every_page_is_timed() -> None:
    """The benchmark opens every page, and its viewers watch some of them."""
    assert PAGES.keys() == {page.path for page in mount.PAGES}
    assert set(LIVELY) < set(LOOKED_AT) < PAGES.keys()


def test_every_viewer_needs_messages() -> None:
    """A viewer that was disconnected, or that got no message of a page with events, is a failure."""
    seen = Looked([("/", 3), ("/", 0), ("/jobs", None), ("/network", 0), ("/network", None)])
    assert seen.in_vain(LIVELY) == 3


def test_pairs_are_balanced_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is alone, watched, watched and alone, with no viewer left; neighbours are pairs."""
    done: list[str] = []

    def burst(_: Served, count: int) -> Burst:
        done.append("burst")
        return Burst(len(done), count, 0)

    @contextmanager
    def looking(*_: object) -> Iterator[None]:
        done.append("come")
        yield
        done.append("leave")

    monkeypatch.setattr(rounds, "burst", burst)
    monkeypatch.setattr(rounds, "_looking", looking)
    monkeypatch.setattr(rounds, "sleep", lambda seconds: done.append(f"after {seconds:g} s"))
    found, _ = rounds.pairs(cast("Served", None), 1, 300, 100, [], [])
    assert done == ["burst", "come", "burst", "burst", "leave", f"after {rounds.GONE_S:g} s", "burst"]
    assert [(alone.took, watched.took) for alone, watched in found] == [(1, 3), (7, 4)]


def test_spread_is_median_and_quartiles() -> None:
    """A single outlier changes neither."""
    assert spread([1.0, 1.1, 1.2, 1.3, 90.0]) == {"median": 1.2, "quarter": 1.1, "three quarters": 1.3}
