"""The log of a job, while it is looked at."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from nicegui import Client, ui

from seaway.client.call import Call
from seaway.domain.errors import RejectedError
from seaway.web.pages.jobs.log import Log
from seaway.web.visit import Visit
from seaway.web.words import words_of
from seaway.wire.job_out import JobOut

pytestmark = pytest.mark.anyio


class Looks:
    """A visitor of a job whose cluster has a log of it as long as it runs."""

    def __init__(self) -> None:
        self.words, self.query = words_of("en"), dict[str, str]()
        self.followed = 0

    async def ask(self, call: Call[Any]) -> object:
        """Answer that there are no containers, and no log any more."""
        if call.path.endswith("/logs"):
            raise RejectedError("the cluster has no copy of it")
        return SimpleNamespace(workloads=[])

    async def follow(self, _: Call[Any], callback: Callable[[str], Any], __: float) -> Callable[[], None]:
        """Tell of a log, until it is followed no longer."""
        self.followed += 1
        await callback("one\ntwo")

        def stop() -> None:
            self.followed -= 1

        return stop


async def test_what_a_job_wrote_stays_when_it_runs_no_more(client: Client) -> None:
    """Nothing is asked of a cluster that has no copy of it, and no one is reported that something is not up to date."""
    job = SimpleNamespace(id="j", replicas=1, attempt=1, version=1, state="running")
    visit = Looks()
    log = Log(cast("Visit", visit), cast("JobOut", job))
    with client.content:
        log.make()
        await log.open()
        assert visit.followed == 1
        await log.callback(cast("JobOut", SimpleNamespace(**{**vars(job), "version": 2, "state": "cancelled"})))
    assert visit.followed == 0
    assert [each.text for each in client.elements.values() if isinstance(each, ui.label)][-1] == "one\ntwo"
