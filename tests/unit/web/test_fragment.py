"""Anything that is drawn once for all who look, and how long it is kept."""

from __future__ import annotations

import weakref
from collections import OrderedDict

import pytest

from seaway.web import fragment
from seaway.web.fragment import STORED_S, once


class Answer:
    """Anything that a user observed."""


class Drawing:
    """Anything that is shown."""


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list whose number is the time, seconds; nothing is known yet."""
    monkeypatch.setattr(fragment, "_known", OrderedDict())
    moment = [100.0]
    monkeypatch.setattr("seaway.web.fragment.time.monotonic", lambda: moment[0])
    return moment


@pytest.mark.usefixtures("moment")
def test_who_observed_and_chose_the_same_is_shown_the_same() -> None:
    """It is made once; another answer, though it says the same, and another choice are re-created."""
    answer = Answer()
    first = once(("nodes", "en"), [answer], Drawing)
    assert once(("nodes", "en"), [answer], Drawing) is first
    assert once(("nodes", "zh"), [answer], Drawing) is not first
    assert once(("nodes", "en"), [Answer()], Drawing) is not first


def test_what_no_one_is_shown_any_more_is_not_stored(moment: list[float]) -> None:
    """A view whose answer is another at each look keeps those of a few seconds, however long it is looked at."""
    alive: weakref.WeakSet[Drawing] = weakref.WeakSet()
    for _ in range(1000):
        alive.add(once(("nodes",), [Answer()], Drawing))
        moment[0] += 0.5
    assert len(alive) <= STORED_S / 0.5 + 1


def test_what_is_shown_again_and_again_stays(moment: list[float]) -> None:
    """An answer that does not change is drawn once, beside one that always does."""
    answer = Answer()
    first = once(("overview",), [answer], Drawing)
    for _ in range(100):
        moment[0] += STORED_S / 2
        once(("nodes",), [Answer()], Drawing)
        assert once(("overview",), [answer], Drawing) is first
