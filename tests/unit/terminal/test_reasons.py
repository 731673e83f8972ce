"""Where jobs are, and where those were that are nowhere now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from seaway.terminal.queues import ALL_WAITING, WAITING
from seaway.terminal.reasons import picture
from seaway.terminal.tables import JOB_COLUMNS, WAITING_COLUMNS, facts
from seaway.terminal.words import Body, places
from tests.unit.terminal.bodies import job

PLACEMENT: Body = {"replica": 0, "cluster": "east", "node": "n0"}

WHY: dict[str, object] = {
    "message": "so it is",
    "position": 0,
    "ahead": 0,
    "placements": [],
    "placement_reason": {"message": "bestfit chose east/n0"},
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


def test_a_decision_of_the_past_is_not_shown_as_the_present() -> None:
    """The reason of a placement has its age; rules and scores are those of now, without the job's own use."""
    explanation: Body = {
        "nodes": 2,
        "filtered": [],
        "candidates": [{"cluster": "east", "node": "n0", "scores": {"BestFit": 7}, "total": 7}],
        "remedies": [],
    }
    decided_at = (datetime.now(UTC) - timedelta(hours=3, minutes=1)).isoformat()
    own = {"decided_at": decided_at, "explanation": explanation, "placements": [PLACEMENT]}
    body = {"name": "train", "state": "running", **WHY, **own}
    console = Console(width=100)
    with console.capture() as said:
        console.print(picture(body, 2))
    lines = said.get().splitlines()
    assert re.fullmatch(r"  chosen because \(decided 3h\dm ago\): bestfit chose east/n0", lines[1])
    assert "2 of 2 nodes could take a replica now, not counting what it holds itself" in lines
    assert "scores of the best nodes now" in lines


@pytest.mark.parametrize(
    ("fields", "spec", "expected"),
    [
        ({}, {}, "–"),
        ({}, {"time_limit": "1h"}, "1h"),
        ({}, {"time_limit": "1h", "expected_duration": "10m"}, "10m"),
        ({"learned_duration": None, "learned_runs": 0}, {}, "–"),
        ({"learned_duration": "5m", "learned_runs": 1}, {}, "5m, learned from 1 run"),
        ({"learned_duration": "5m", "learned_runs": 2}, {}, "5m, learned from 2 runs"),
    ],
)
def test_a_learned_duration_is_called_that(fields: Body, spec: Body, expected: str) -> None:
    """Waiting jobs have a column with their duration. A learned one says so, also in an explanation."""
    column = next(each for each in ALL_WAITING if each.title == "DURATION")
    assert column.cell({"spec": spec, **fields}) == expected
    console = Console(width=100)
    with console.capture() as said:
        console.print(picture({"name": "train", "state": "queued", **WHY, **fields}, 0))
    learned = ["  expected duration: " + expected] if fields.get("learned_runs") else []
    assert said.get().splitlines() == ["train: so it is", *learned]


def test_a_waiting_job_shows_the_gpus_of_all_replicas() -> None:
    """The list of waiting jobs counts GPUs as the list of all jobs does."""
    body = {"spec": {"resources": {"gpus": 2}}, "replicas": 3}
    for columns in (ALL_WAITING, JOB_COLUMNS):
        assert next(each for each in columns if each.title == "GPUS").cell(body) == "6"


def test_a_waiting_task_has_its_index_in_every_list() -> None:
    """Tasks of an array have one name, so that rows without the index look alike."""
    body = {"name": "sweep", "index": 7, "tasks": None}
    for columns in (WAITING, ALL_WAITING, WAITING_COLUMNS):
        assert next(each for each in columns if each.title in ("JOB", "NAME")).cell(body) == "sweep_7"


def test_a_job_that_was_never_placed_is_nowhere() -> None:
    """There is no last place either."""
    assert places(job("train", state="queued", nodes=[], clusters=[])) == "–"


def test_a_waiting_job_says_why_its_last_attempt_ended() -> None:
    """The reason for the end is shown beside the reason for the wait, and the last run does not count on."""
    body = job("train", state="queued", **WHY, end_reason={"message": "preempted by job b of queue 'q'"})
    console = Console(width=100)
    with console.capture() as shown:
        console.print(picture(body, 0))
        console.print(facts(body))
    text = shown.get()
    assert "last attempt ended: preempted by job b of queue 'q'" in text
    assert "ran for" not in text
    with console.capture() as shown:
        console.print(facts(job("train")))
    assert "ran for" in shown.get()
