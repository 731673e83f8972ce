"""Where jobs are, and where those were that are nowhere now."""

from __future__ import annotations

import pytest
from rich.console import Console

from seaway.terminal.reasons import picture
from seaway.terminal.words import places
from tests.unit.terminal.bodies import job

WHY: dict[str, object] = {
    "message": "so it is",
    "position": 0,
    "ahead": 0,
    "placements": [],
    "placement_reason": "bestfit chose east/n0",
    "explanation": None,
}


@pytest.mark.parametrize(
    ("state", "where", "why"),
    [
        ("running", "east/n0", "chosen because: bestfit chose east/n0"),
        ("failed", "east/n0", "chosen because: bestfit chose east/n0"),
        ("queued", "last tried: east/n0", "last tried: bestfit chose east/n0"),
        ("suspended", "last tried: east/n0", "last tried: bestfit chose east/n0"),
    ],
)
def test_where_a_job_was_is_not_where_it_is(state: str, where: str, why: str) -> None:
    """A job that waits again is on no node, and the last one is called that; one that ended was there."""
    assert places(job("train", state=state)) == where
    console = Console(width=100)
    with console.capture() as said:
        console.print(picture({"name": "train", "state": state, **WHY}, 1))
    assert said.get().splitlines()[-1].strip() == why


def test_a_job_that_was_never_placed_is_nowhere() -> None:
    """There is no last place either."""
    assert places(job("train", state="queued", nodes=[], clusters=[])) == "–"
