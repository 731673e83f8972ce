"""What is typed behind `/` in the list of jobs, as what the server is asked for."""

from __future__ import annotations

from seaway.client.calls.jobs import JobFilter
from seaway.domain.lifecycle import FINAL, WAITING, JobState

LIVE = tuple(state.value for state in JobState if state not in FINAL)
"""States of jobs that are not over."""

QUEUED = tuple(state.value for state in JobState if state in WAITING)
"""States of jobs that wait for a place."""

WORDS = ("state", "queue", "cluster", "tenant", "by", "label")
HINT = "a part of the name; state:failed queue:batch cluster:east tenant:ml by:ci label:team=a"


def wanted(text: str, states: tuple[str, ...] = LIVE) -> JobFilter:
    """Read which jobs are asked for.

    Parameters
    ----------
    text
        Words between blanks. ``queue:batch`` and its like narrow down; any other is a part of the name, the last one
        counts.
    states
        In which states jobs are shown where none is named.
    """
    asked: JobFilter = {"state": states}
    named: list[str] = []
    for word in text.split():
        name, _, value = word.partition(":")
        if name not in WORDS or not value:
            asked["name"] = word
        elif name == "state":
            named += [state.value for state in JobState if state.value.startswith(value)] or [value]
        elif name == "by":
            asked["submitted_by"] = value
        elif name == "label":
            asked["label"] = value
        elif name == "queue":
            asked["queue"] = value
        elif name == "cluster":
            asked["cluster"] = value
        else:
            asked["tenant"] = value
    if named:
        asked["state"] = tuple(each for each in named if each != JobState.DELETED.value)
    return asked
