"""Readiness, and the reasons against it."""

from __future__ import annotations

import gc
import weakref

import pytest

from seaway.api.http import server
from seaway.api.http.server import tuned_gc
from seaway.domain.errors import UnavailableError
from tests.fakes.memory_store import MemoryStore
from tests.unit.api.rig import JOB, Rig

pytestmark = pytest.mark.anyio


async def test_a_process_that_was_replaced_is_not_ready(rig: Rig) -> None:
    """After another process took over the database, requests for changes get an error that names the reason."""
    async with rig.client("user") as client:
        assert (await client.get("/readyz")).status_code == 200
        MemoryStore(rig.store.database).lead("another")
        for _ in range(2):
            refused = await client.post("/api/v1/jobs", json=JOB)
            assert refused.status_code == 503
            assert "another process writes now" in refused.json()["detail"]
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["detail"] == "another process writes now"
        assert int(answer.headers["retry-after"]) > 0
        assert (await client.get("/healthz")).status_code == 200


async def test_what_is_stored_comes_first(rig: Rig) -> None:
    """While the state in memory does not match the database, it is not ready, with that reason."""
    _, change = rig.plane.operations.cordoned("a", "", "ada", "repair", drain=False)
    rig.store.fail_next()
    with pytest.raises(UnavailableError, match="set to fail"):
        rig.plane.writer.require(change)
    async with rig.client("user") as client:
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        assert "set to fail" in answer.json()["detail"]  # the cause, while the loop reads again
        rig.step()
        assert (await client.get("/readyz")).status_code == 200


def test_the_garbage_collector_excludes_survivors_once_they_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of a server do not grow with the jobs in memory."""
    monkeypatch.setattr(server, "MAX_RUN_S", 0)
    with tuned_gc():
        jobs = [[number] for number in range(1000)]
        assert id(jobs) in map(id, gc.get_objects())
        gc.collect()
        assert id(jobs) not in map(id, gc.get_objects())
    assert id(jobs) in map(id, gc.get_objects())


def test_garbage_among_few_survivors_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cycles of requests that were in progress during a collection are freed at a later one."""
    monkeypatch.setattr(server, "MAX_RUN_S", 60)

    class Request:
        """Part of a cycle."""

        def __init__(self) -> None:
            self.itself = self

    with tuned_gc():
        request = Request()
        gc.collect()
        held = weakref.ref(request)
        del request
        gc.collect()
        assert held() is None
