"""Anything that is typed to find jobs."""

from __future__ import annotations

import pytest

from seaway.terminal.panes import LIVE, QUEUED, wanted


def test_without_a_word_live_jobs_are_asked_for() -> None:
    """A view of what goes on is not a history."""
    assert wanted("") == {"state": LIVE}
    assert wanted("  ", QUEUED) == {"state": ("pending", "queued", "preempted")}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("train", {"name": "train"}),
        ("queue:batch train", {"queue": "batch", "name": "train"}),
        ("cluster:east tenant:ml by:ci label:team=a", {"cluster": "east", "tenant": "ml", "submitted_by": "ci"}),
        ("a:b", {"name": "a:b"}),
        ("queue:", {"name": "queue:"}),
    ],
)
def test_words_narrow_down(text: str, asked: dict[str, str]) -> None:
    """Those that name a field go to it, any other is a part of the name."""
    assert asked.items() <= wanted(text).items()


def test_states_may_be_cut_short_and_several() -> None:
    """Anyone who names one sees jobs that are over too."""
    assert wanted("state:fail state:comp")["state"] == ("failed", "completed")
    assert wanted("state:s")["state"] == ("scheduled", "suspended", "skipped")
    assert wanted("state:nonsense")["state"] == ("nonsense",)
