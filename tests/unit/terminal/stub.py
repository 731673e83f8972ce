"""A server that says what it is asked to, and tells events when it is asked to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import httpx

from seaway import AsyncClient
from seaway.client.connection import Pace
from seaway.terminal.words import Body
from tests.unit.terminal.bodies import cluster, job, node, piece

WHO: Body = {"name": "ada", "role": "operator", "tenant": ""}


class Stream(httpx.AsyncByteStream):
    """Events as they come, until the server goes away."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give what comes."""
        while (piece := await self.pieces.get()) is not None:
            yield piece
        raise httpx.ReadError("the server went away")


@dataclass
class Server:
    """A server.

    Attributes
    ----------
    jobs, nodes, clusters
        What there is.
    away
        Whether it cannot be reached.
    refuses
        Whether it takes no token.
    asked
        Every request, as its method, path and query.
    """

    jobs: list[Body] = field(
        default_factory=lambda: [job("train"), job("later", state="queued", nodes=[], clusters=[])]
    )
    clusters: list[Body] = field(default_factory=lambda: [cluster("east", 120), cluster("west")])
    nodes: list[Body] = field(
        default_factory=lambda: [
            *(node("east", f"e{at}", *([piece("east", "e0", job("train"))] if at == 0 else [])) for at in range(120)),
            *(node("west", f"w{at}") for at in range(2)),
        ]
    )
    away: bool = False
    refuses: bool = False
    asked: list[str] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    events: int = 0

    def client(self) -> AsyncClient:
        """Make a client as the command line has it."""
        transport = httpx.MockTransport(self.answer)
        return AsyncClient("http://127.0.0.1:1", "sw_1_x", transport=transport, pace=Pace(0.0))

    def tell(self, kind: str, job_id: str = "", state: str = "", reason: str = "so it is") -> None:
        """Tell an event to anyone who listens."""
        self.events += 1
        body = {
            "id": self.events,
            "at": "2026-11-21T10:00:00Z",
            "kind": kind,
            "message": reason,
            "actor": "seaway",
            "tenant": "",
            "job_id": job_id,
            "state": state,
            "attempt": 1,
        }
        for each in self.streams:
            each.pieces.put_nowait(f"data: {json.dumps(body)}\n\n".encode())

    def leave(self) -> None:
        """Go away, with every stream."""
        self.away = True
        for each in self.streams:
            each.pieces.put_nowait(None)
        self.streams.clear()

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        path = request.url.path.removeprefix("/api/v1")
        self.asked.append(f"{request.method} {path}?{request.url.query.decode()}")
        if self.away:
            raise httpx.ConnectError("refused")
        if self.refuses:
            return httpx.Response(401, json={"status": 401, "title": "no", "detail": "this token was revoked"})
        if path == "/events":
            self.streams.append(Stream())
            return httpx.Response(200, stream=self.streams[-1])
        return self._change(path) if request.method != "GET" else httpx.Response(200, json=self._shown(path, request))

    def _change(self, path: str) -> httpx.Response:
        if path.endswith("/cancel"):
            self.jobs = [{**each, "state": "cancelled"} if each["id"] in path else each for each in self.jobs]
        return httpx.Response(200, json=self.jobs[0])

    def _shown(self, path: str, request: httpx.Request) -> Body:
        query = request.url.params
        if path == "/fleet/nodes":
            return self._nodes(query)
        if path == "/jobs":
            states = query.get_list("state")
            named = [each for each in self.jobs if each["state"] in states and query.get("name", "") in each["name"]]
            return {"jobs": named[: (most := int(query["limit"]))], "next": "more" if len(named) >= most else None}
        made: dict[str, Callable[[], Body]] = {
            "/fleet/clusters": lambda: {"clusters": self.clusters},
            "/fleet/links": lambda: {"links": []},
            "/job-counts": lambda: self._counted(query.get_list("state")),
        }
        return made[path]() if path in made else self._of_job(path)

    def _counted(self, wanted: list[str]) -> Body:
        states = [each["state"] for each in self.jobs if not wanted or each["state"] in wanted]
        waiting = sum(each in {"pending", "queued", "preempted"} for each in states)
        counts = {state: states.count(state) for state in states}
        return {"total": len(states), "states": counts, "waiting": waiting, "running": counts.get("running", 0)}

    def _nodes(self, query: httpx.QueryParams) -> Body:
        named = [
            each
            for each in self.nodes
            if query.get("cluster", "") in {"", each["cluster"]}
            and query.get("node", "") in {"", each["name"]}
            and query.get("name", "") in each["name"]
        ]
        first, size = int(query.get("after", "0")), int(query["limit"])
        following = first + size if first + size < len(named) else None
        page = {"nodes": named[first : first + size], "next": None if following is None else str(following)}
        return {**page, "found": {"nodes": len(named)}}

    def _of_job(self, path: str) -> Body:
        _, _, job_id, *what = path.split("/")
        found = next(each for each in self.jobs if each["id"] == job_id)
        if what == ["explain"]:
            said = "waits: nothing fits" if found["state"] == "queued" else "runs on east/n0"
            empty = {"position": 1, "ahead": 0, "placements": [], "placement_reason": None, "explanation": None}
            return {**empty, "id": job_id, "name": found["name"], "state": found["state"], "message": said}
        if what == ["events"]:
            return {"events": [], "next": None}
        return {"attempts": [], "workloads": [], "next": None} if what else found
