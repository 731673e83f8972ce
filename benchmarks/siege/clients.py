"""Clients that submit jobs and follow them: ``python -m benchmarks.siege.clients URL COUNT SECONDS FOLDER``.

They submit as fast as the server answers, while at most `OUTSTANDING` jobs are unfinished, so that the rate is that of
the whole way of a job. An event stream reports the ends. The program writes ``accepted`` (a line with the ID of each
accepted job) and ``submits.npy`` (time and duration of each submit, seconds) into the folder. It prints a line of
JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import orjson
import uvloop

from benchmarks.siege.attacks import request
from seaway.domain.job_state import FINAL

OUTSTANDING = 1500
"""Maximum number of unfinished jobs."""

PATIENCE_S = 120
"""Time for the last jobs to end, seconds."""

JOB = {
    "name": "siege",
    "resources": {"cpu": "500m", "memory": "1GB", "gpus": 1, "gpu_memory": "4GB", "gpu_cores": "10%"},
    "expected_duration": "1s",
}
ENDS = frozenset(state.value for state in FINAL)
PAUSE_S = 0.2
"""Pause of a client after a response other than 201, or a broken connection, seconds."""


class Clients:
    """Clients of one token."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._token = parts.hostname, parts.port, token
        body = orjson.dumps(JOB | {"placement": {"clusters": os.environ["SIEGE_CLUSTERS"].split(",")}})
        self._submit = request("POST", "/api/v1/jobs", token, body, Content_Type="application/json")
        self._slots = asyncio.Semaphore(OUTSTANDING)
        self.accepted: dict[str, str] = {}
        """Final state by job; empty for unfinished jobs."""

        self._early: dict[str, str] = {}
        """Final states of jobs whose submit is not answered yet."""

        self.ended_twice = 0
        self.refused: Counter[str] = Counter()
        self.breaks = 0
        self.durations: list[tuple[float, float]] = []

    async def submit(self, until_s: float) -> None:
        """Submit jobs one by one."""
        while time.monotonic() < until_s:
            try:
                reader, writer = await asyncio.open_connection(self._host, self._port)
                await self._submit_on(reader, writer, until_s)
            except (OSError, asyncio.IncompleteReadError):
                self.breaks += 1
                await asyncio.sleep(PAUSE_S)

    async def _submit_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, until_s: float) -> None:
        try:
            while time.monotonic() < until_s:
                await self._slots.acquire()
                taken = False
                try:
                    taken = await self._submit_one(reader, writer)
                finally:
                    if not taken:
                        self._slots.release()
                if not taken:
                    await asyncio.sleep(PAUSE_S)
        finally:
            writer.transport.abort()

    async def _submit_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Submit a job, and report whether it is accepted."""
        began_s = time.monotonic()
        writer.write(self._submit)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        body = await reader.readexactly(int(length.split(b":")[1]))
        now_s = time.monotonic()
        if not head.startswith(b"HTTP/1.1 201"):
            self.refused[f"{head[9:12].decode()} {body[:200].decode()}"] += 1
            return False
        self.durations.append((now_s, now_s - began_s))
        job = orjson.loads(body)["id"]
        self.accepted[job] = self._early.pop(job, "")
        if self.accepted[job]:
            self._slots.release()
        return True

    async def follow(self) -> None:
        """Follow the events of all jobs."""
        last = ""
        while True:
            try:
                reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 22)
                path = f"/api/v1/events?after={last}" if last else "/api/v1/events"
                writer.write(request("GET", path, self._token))
                while line := await reader.readline():
                    if line.startswith(b"id: "):
                        last = line[4:].strip().decode()
                    elif line.startswith(b"data: "):
                        self._note(orjson.loads(line[6:]))
            except OSError:
                pass
            self.breaks += 1
            await asyncio.sleep(PAUSE_S)

    def _note(self, event: dict[str, str]) -> None:
        job, state = event["job_id"], event["state"]
        if not job or state not in ENDS:
            return
        if job not in self.accepted:
            self._early[job] = state
            return
        if self.accepted[job]:
            self.ended_twice += 1
        else:
            self._slots.release()
        self.accepted[job] = state


async def main() -> None:
    """Submit for some time, wait for the ends, and report."""
    url, count, seconds, folder = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4])
    clients = Clients(url, os.environ["SEAWAY_TOKEN"])
    following = asyncio.create_task(clients.follow())
    until_s = time.monotonic() + seconds
    await asyncio.gather(*(clients.submit(until_s) for _ in range(count)))
    patience_s = time.monotonic() + PATIENCE_S
    while not all(clients.accepted.values()) and time.monotonic() < patience_s:
        await asyncio.sleep(0.1)
    following.cancel()
    (folder / "accepted").write_text("".join(f"{job}\n" for job in clients.accepted), encoding="utf-8")
    np.save(folder / "submits.npy", np.array(clients.durations))
    found = {
        "accepted": len(clients.durations),
        "states": Counter(clients.accepted.values()),
        "ended_twice": clients.ended_twice,
        "refused": clients.refused,
        "breaks": clients.breaks,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    uvloop.run(main())
