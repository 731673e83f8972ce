"""Slow answers, and their effect on others."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import anyio
import httpx
import pytest
import yaml
from pydantic import BaseModel

from seaway.api import hub as hub_module
from seaway.api.http import bodies
from seaway.api.http.pipeline import HEAVY, IN_LINE, WAITING_FOR_PARSER, Threads
from seaway.api.hub import Hub, Listener, Subscription
from seaway.application.access import Caller
from seaway.application.records import Role
from seaway.domain.errors import RejectedError, SeawayError, UnavailableError
from seaway.wire import reading
from tests.unit.api.rig import JOB, Rig

pytestmark = pytest.mark.anyio
JOBS = "/api/v1/jobs"


async def test_what_takes_long_holds_up_nothing_else(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many clients request manifests, reads are answered; beyond a limit for each caller and for all, not."""
    job = await rig.submit()
    rig.step(3)
    go_on, half = threading.Event(), (HEAVY + IN_LINE) // 2

    def slow(_: object) -> list[dict[str, Any]]:
        go_on.wait(10)
        return []

    monkeypatch.setattr(rig.plane.overview, "manifests", slow)
    answers: list[int] = []
    async with rig.client("viewer") as client, anyio.create_task_group() as group:

        async def ask(caller: httpx.AsyncClient) -> None:
            answers.append((await caller.get(f"{JOBS}/{job['id']}/manifest")).status_code)

        async with rig.client("user") as user:
            for number, each in enumerate((client, user), 1):
                for _ in range(half):
                    group.start_soon(ask, each)
                while rig.app.state.pipeline.threads.heavy_ahead < number * half:
                    await anyio.sleep(0)
                refused = await each.get(f"{JOBS}/{job['id']}/manifest")
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        async with rig.client("operator") as operator:
            assert (await operator.post(f"{JOBS}?dry_run=true", json=JOB)).status_code == 503
        assert (await client.get(JOBS)).status_code == 200
        assert answers == []
        go_on.set()
    assert answers == [200] * (HEAVY + IN_LINE)


async def test_yaml_of_one_token_waits_in_a_line_of_its_own(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow bodies in YAML use one thread of their token. Others, and its bodies in JSON, do not wait for them."""
    go_on, read = threading.Event(), reading.read_yaml_message

    def slow(model: type[BaseModel], body: bytes, most: int) -> BaseModel:
        if b"slow" in body:
            go_on.wait(10)
        return read(model, body, most)

    monkeypatch.setattr(bodies, "read_yaml_message", slow)
    kind, answers = {"content-type": "application/yaml"}, list[int]()
    async with rig.client("user") as user, rig.client("operator") as other, anyio.create_task_group() as group:

        async def ask() -> None:
            answers.append((await user.post(JOBS, content=b"name: slow\n", headers=kind)).status_code)

        for _ in range(WAITING_FOR_PARSER):
            group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        refused = await user.post(JOBS, content=b"name: slow\n", headers=kind)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert (await user.post(JOBS, json=JOB)).status_code == 201
        assert (await other.post(JOBS, content=yaml.safe_dump(JOB), headers=kind)).status_code == 201
        assert answers == []
        go_on.set()
    assert len(answers) == WAITING_FOR_PARSER
    assert 503 not in answers


async def test_an_answer_holds_so_many_objects_and_leads_to_the_next(rig: Rig) -> None:
    """A manifest comes in parts, in order, and the last one has no link to a next."""
    job = await rig.submit(replicas=3)
    rig.step(3)
    path: str | None = f"{JOBS}/{job['id']}/manifest?limit=2"
    names: list[str] = []
    async with rig.client("viewer") as client:
        whole = (await client.get(f"{JOBS}/{job['id']}/manifest", headers={"accept": "application/json"})).json()
        while path:
            answer = await client.get(path)
            names += [each["metadata"]["name"] for each in yaml.safe_load_all(answer.text)]
            path = answer.links["next"]["url"] if "link" in answer.headers else None
        assert (await client.get(f"{JOBS}/{job['id']}/manifest?limit=1001")).status_code == 422
    assert names == [each["metadata"]["name"] for each in whole]
    assert len(names) == 3


async def test_one_token_gets_some_of_the_streams(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its limit, a token gets no more streams, and others do, also after one of its streams ended."""
    monkeypatch.setattr(hub_module, "MAX_PER_CALLER", 2)
    hub: Hub = rig.app.state.hub
    everything = Subscription("", "", confined=False)
    hungry, other = Caller("ci", Role.USER, token_id="a"), Caller("ada", Role.USER, issuer="https://id.example")
    listeners = [Listener(hungry, everything) for _ in range(3)]
    for each in listeners[:2]:
        await hub.join(each)
    with pytest.raises(UnavailableError, match="your token has 2 open streams"):
        await hub.join(listeners[2])
    await hub.join(Listener(other, everything))
    hub.leave(listeners[0])
    await hub.join(listeners[2])
    assert len(hub) == 3
    hub.close()


@pytest.mark.parametrize("error", [RejectedError("wrong"), UnavailableError("late")])
async def test_errors_of_slow_requests_keep_nothing_alive(error: SeawayError) -> None:
    """Objects of a request that failed in a thread are freed without garbage collection."""

    class Body:
        pass

    def fail(_: Body) -> None:
        raise type(error)(str(error)) from ValueError("cause")

    gc.disable()
    try:
        body = Body()
        held = weakref.ref(body)
        try:
            await Threads().read(fail, body)
        except type(error):
            del body
        with anyio.move_on_after(5):
            while held():
                await anyio.sleep(0.001)  # the event loop and the thread end what they did
        assert held() is None
    finally:
        gc.enable()
