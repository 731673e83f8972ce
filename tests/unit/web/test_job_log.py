"""The log of a job, while it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def __init__(self, **query: str) -> None:
        self.words, self.query = words_of("en"), query
        self.followed = 0
        self.ended = True
        self.calls: list[Mapping[str, Any]] = []

    async def ask(self, call: Call[Any]) -> object:
        """Answer that there are no containers, and no log any more."""
        if not call.path.endswith("/logs"):
            return SimpleNamespace(workloads=[])
        if self.ended:
            raise RejectedError("the cluster has no copy of it")
        return self.text(call)

    def text(self, call: Call[Any]) -> str:
        """Return the log that a call asks for."""
        self.calls.append(call.query)
        return "" if call.query["contains"] == "no" else "one\ntwo"

    def turn(self, **_: object) -> None:
        """Ignore the address."""

    async def follow(self, call: Call[Any], callback: Callable[[str], Any], __: float) -> Callable[[], None]:
        """Tell of a log, until it is followed no longer."""
        self.followed += 1
        await callback(self.text(call))

        def stop() -> None:
            self.followed -= 1

        return stop


def shown(client: Client) -> list[str]:
    """Return the texts on the page, in order."""
    return [each.text for each in client.elements.values() if isinstance(each, ui.label)]


def job(**fields: object) -> JobOut:
    """Return a running job."""
    made = {"id": "j", "name": "train", "replicas": 1, "attempt": 1, "version": 1, "state": "running"}
    return cast("JobOut", SimpleNamespace(**{**made, **fields}))


async def test_logs_of_all_replicas_are_shown_together_with_their_numbers(client: Client) -> None:
    """At most 16 are, and the page says so. Without follow, nothing is asked any more."""
    visit = Looks(replicas="all")
    log = Log(cast("Visit", visit), job(replicas=20))
    with client.content:
        log.make()
        await log.open()
        assert visit.followed == 16
        assert "Only the first 16 replicas are shown." in shown(client)
        assert [each for each in shown(client) if each.startswith("[15]")] == ["[15] one\n[15] two"]
        await log._turn(follows=False)  # noqa: SLF001  # the handler of a checkbox
        assert visit.followed == 0
        assert log.retained["replicas"] == "all"


async def test_a_search_shows_matching_lines_and_a_download_has_all(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server searches. A file has the whole log, whatever is searched."""
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(ui.download, "content", lambda text, name, _: sent.append((text, name)))
    visit = Looks(contains="no")
    visit.ended = False
    log = Log(cast("Visit", visit), job())
    with client.content:
        log.make()
        await log.open()
        assert shown(client) == ["No line contains this text."]
        await log._search("o")  # noqa: SLF001  # the handler of an input
        assert "one\ntwo" in shown(client)
        await log._download()  # noqa: SLF001  # the handler of a button
    assert sent == [("one\ntwo\n", "train.log")]
    assert [each["contains"] for each in visit.calls] == ["no", "o", None]


async def test_what_a_job_wrote_stays_when_it_runs_no_more(client: Client) -> None:
    """Nothing is asked of a cluster that has no copy of it, and no one is reported that something is not up to date."""
    visit = Looks()
    log = Log(cast("Visit", visit), job())
    with client.content:
        log.make()
        await log.open()
        assert visit.followed == 1
        await log.callback(job(version=2, state="cancelled"))
    assert visit.followed == 0
    assert shown(client)[-1] == "one\ntwo"
