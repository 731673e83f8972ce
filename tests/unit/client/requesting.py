"""Both clients before a stub of the server, on a clock that only pauses move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from seaway import AsyncClient, Client
from seaway.client.connection import Pace

SERVER = "http://127.0.0.1:1"
TOKEN = "sw_1_secret"

Handler = Callable[[httpx.Request], httpx.Response]

JOB: dict[str, Any] = {
    "id": "6gzx9takdjhgz",
    "name": "train",
    "tenant": "default",
    "queue": "default",
    "priority": 0,
    "replicas": 1,
    "state": "running",
    "message": "runs on a/n",
    "reason": {"code": "runs", "params": {"where": "a/n"}},
    "version": 3,
    "attempt": 1,
    "failures": 0,
    "clusters": ["a"],
    "nodes": ["n"],
    "submitted_at": "2026-11-21T10:00:00.000000Z",
    "submitted_by": "ada",
    "updated_at": "2026-11-21T10:00:01.000000Z",
    "started_at": "2026-11-21T10:00:01.000000Z",
    "ended_at": None,
    "not_before": None,
    "spec": {"name": "train", "tenant": "default", "resources": {"gpus": 1, "gpu_memory": "8GB"}},
    "request": {
        "cpu_milli": 0,
        "memory_mib": 0,
        "gpus": 1,
        "gpu_memory_mib": 7630,
        "gpu_memory_percent": 0,
        "gpu_milli": 0,
    },
}


def event(number: int, state: str, job: str = JOB["id"]) -> dict[str, Any]:
    """Make an event as the API shows it."""
    return {
        "id": number,
        "at": "2026-11-21T10:00:00.000000Z",
        "kind": "state",
        "message": f"because of {number}",
        "reason": {"code": "", "params": {}},
        "actor": "scheduler",
        "tenant": "default",
        "job_id": job,
        "state": state,
        "attempt": 1,
    }


def problem(status: int, detail: str, **more: Any) -> httpx.Response:  # noqa: ANN401  # more of its fields
    """Make an answer of problem details."""
    body = {"type": "about:blank", "title": "Problem", "status": status, "detail": detail, "instance": "/", **more}
    return httpx.Response(status, json=body, headers={"content-type": "application/problem+json"})


@dataclass
class Stub:
    """Answers requests in turn, and remembers them, all pauses, and why it was waited.

    Attributes
    ----------
    answers
        Each an answer, an error to raise, or what makes one of a request; the last is given again and again.
    """

    answers: list[httpx.Response | Exception | Handler]
    requests: list[httpx.Request] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    now_s: float = 0.0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        self.pauses.append(seconds)
        self.now_s += seconds

    @property
    def pace(self) -> Pace:
        """Return a pace on this clock."""
        return Pace(clock=lambda: self.now_s, random=Random(1), on_wait=self.waits.append)


class Waiting:
    """Asks by `Client`."""

    def __call__(self, stub: Stub, method: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # any method
        """Call a method; an iterator is gone through to completion."""
        with Client(SERVER, TOKEN, transport=httpx.MockTransport(stub), pace=stub.pace, pause=stub.pause) as client:
            result = getattr(client, method)(*args, **kwargs)
            return list(result) if isinstance(result, Iterator) else result


class Awaiting:
    """Asks by `AsyncClient`."""

    def __call__(self, stub: Stub, method: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # any method
        """Call a method; an iterator is gone through to completion."""

        async def pause(seconds: float) -> None:
            stub.pause(seconds)

        async def ask() -> object:
            transport = httpx.MockTransport(stub)
            async with AsyncClient(SERVER, TOKEN, transport=transport, pace=stub.pace, pause=pause) as client:
                result = getattr(client, method)(*args, **kwargs)
                if isinstance(result, AsyncIterator):
                    return [item async for item in result]
                assert isinstance(result, Awaitable)
                return await result

        return asyncio.run(ask())
