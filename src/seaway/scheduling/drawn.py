"""Jobs that are drawn to their data: the policy decides among the clusters nearest to it that have room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seaway.scheduling.columns import JOB_GANG, JOB_SPANS, PLAN_NODE
from seaway.scheduling.data import pull_ms, rings
from seaway.scheduling.gang import place_spanning
from seaway.scheduling.statement import Statement

if TYPE_CHECKING:
    from seaway.scheduling.engine import Placer


def place_drawn(placer: Placer, statement: Statement, first: int) -> None:
    """Decide the queue's job number `first`, which says where its data is, and append to the statement.

    It goes into the nearest ring of clusters (see `rings`) that has room, replica by replica, or as a whole
    if it is a gang. A job that does not get all its replicas so is decided as if it named no data: it is never refused
    for it.
    """
    pulls = statement.pulls[first] = pull_ms(statement.snapshot, statement.queue.jobs[first].data)
    spans = bool(statement.queue.lines[first, JOB_SPANS])
    around, before = rings(pulls), statement.checkpoint()
    if len(around) > 1:
        place_spanning(placer, statement, first, around)
        whole = (statement.lines[before[0] : statement.length, PLAN_NODE] >= 0).all()
        if whole or (spans and statement.queue.lines[first, JOB_GANG]):  # a gang was tried in all rings together
            return
        statement.rollback(before)
    if spans:
        place_spanning(placer, statement, first)
    else:
        placer.place(statement, first, first + 1)
