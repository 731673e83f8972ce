"""What `script/bench web` measures is what it says."""

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
    """A page that is added is looked at, too, and what viewers look at is among them."""
    assert PAGES.keys() == {page.path for page in mount.PAGES}
    assert set(LIVELY) < set(LOOKED_AT) < PAGES.keys()


def test_each_viewer_counts() -> None:
    """Who was cut off saw nothing, nor did who got no message of a page on which something happens."""
    seen = Looked([("/", 3), ("/", 0), ("/jobs", None), ("/network", 0), ("/network", None)])
    assert seen.in_vain(LIVELY) == 3


def test_neither_side_of_a_pair_comes_first_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is alone, watched, watched, and alone once nothing is left of who looked; pairs are neighbours."""
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


def test_a_spread_is_the_median_and_what_half_of_all_lie_between() -> None:
    """One figure that is far off moves neither."""
    assert spread([1.0, 1.1, 1.2, 1.3, 90.0]) == {"median": 1.2, "quarter": 1.1, "three quarters": 1.3}
