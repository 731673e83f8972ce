"""Users that submit, cancel, suspend, resume and change jobs, retry until there is a response, and record it."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from random import Random

import httpx

from seaway.domain.job_state import JobState
from seaway.domain.queues import Order, Preemption, Queue, Reclaim
from seaway.domain.tenancy import DEFAULT

PAUSE_S = 0.01
TIMEOUT_S = 10
GONE = (404, 409, 412)

_SHARED = Queue(
    "shared",
    limit={"gpus": 3000},
    order=Order.PRIORITY,
    preemption=Preemption.PREEMPT_LOWER_PRIORITY,
    grow_cooldown_s=0,
)
_CHILD = replace(_SHARED, parent="shared", limit={})
QUEUES = (
    _SHARED,
    replace(_CHILD, name="owner", guarantee={"gpus": 1500}, reclaim=Reclaim.GUARANTEE),
    replace(_CHILD, name="borrower", reclaim=Reclaim.FAIR_SHARE),
    Queue(DEFAULT, grow_cooldown_s=0),
)
"""Queues of the jobs. Their limit is so low that jobs displace others, by priority and to reclaim a guarantee."""

LEAVES = (DEFAULT, "owner", "borrower")

LOW, HIGH = 0, 5
"""Priorities of jobs."""

MOST_SHARED = 4
"""Maximum number of unfinished jobs of a user and a priority in the queues with the limit."""

MOST_QUEUED = 500
"""Maximum number of unfinished jobs of a user in the other queue. Otherwise more and more jobs wait, which each control
plane reads when it starts."""

DURATIONS_S = {LOW: (2, 3, 4), HIGH: (0, 1, 1)}
"""Durations by priority. Jobs of low priority still run when the next control plane starts."""


COMES_AFTER, IS_ARRAY = 0.2, 0.1
"""Shares of jobs that come after the user's previous one, and of arrays, in the default queue."""

ELASTIC = ({"min": 1, "max": 2}, {"min": 1, "max": 4}, {"min": 2, "max": 3})
"""Bounds of elastic jobs, half of all."""

CONDITIONS = ("succeeded", "finished", "started", "failed")
ARRAY = "0-5%2"


@dataclass(slots=True)
class Memory:
    """Confirmed responses to users.

    Attributes
    ----------
    accepted
        IDs of accepted jobs.
    cancelled
        IDs of jobs with a confirmed cancellation.
    refused
        Responses that no user should get.
    """

    accepted: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    tries: int = 0


class User(threading.Thread):
    """Thread of one user.

    Parameters
    ----------
    url
        URL of the control plane, which may be down at any time.
    seed
        Seed of the user's actions.
    pause_s
        Pause between two jobs.
    """

    def __init__(self, url: str, seed: int, memory: Memory, pause_s: float) -> None:
        super().__init__(name=f"user {seed}", daemon=True)
        self._url = f"{url}/api/v1/jobs"
        self._seed = seed
        self._random = Random(seed)
        self._memory = memory
        self._pause_s = pause_s
        self._stopping = threading.Event()
        self._own: list[str] = []
        self._bounds: dict[str, dict[str, int]] = {}  # of elastic jobs
        self._shared = {LOW: deque[str](), HIGH: deque[str]()}
        self._queued = deque[str]()

    def run(self) -> None:
        """Act until stopped; the current request is completed."""
        with httpx.Client(timeout=TIMEOUT_S) as client:
            number = 0
            while not self._stopping.is_set():
                number += 1
                self._submit(client, f"{self._seed}-{number}")
                if self._own and self._random.random() < 0.3:
                    self._meddle(client, self._random.choice(self._own[-20:]))
                time.sleep(self._pause_s)

    def stop(self) -> None:
        """Stop submitting."""
        self._stopping.set()

    def _submit(self, client: httpx.Client, key: str) -> None:
        priority = self._random.choice([LOW, LOW, HIGH])
        shared, queued = self._shared[priority], self._queued
        while shared and self._is_over(client, shared[0]):
            shared.popleft()
        if len(queued) == MOST_QUEUED:
            queued.rotate(-1)
            if self._is_over(client, queued[-1]):
                queued.pop()
        room = {DEFAULT: len(queued) < MOST_QUEUED}
        leaves = [each for each in LEAVES if room.get(each, len(shared) < MOST_SHARED)]
        if not leaves:
            return
        queue = self._random.choice(leaves)
        body = {
            "name": "kill",
            "expected_duration": f"{self._random.choice(DURATIONS_S[priority])}s",
            "replicas": self._random.choice([1, 1, 1, 2, 3, *ELASTIC]),
            "priority": priority,
            "queue": queue,
            "resources": {
                "gpus": 1,
                "gpu_memory": f"{self._random.choice([2, 4, 8])}GB",
                "gpu_cores": f"{self._random.choice([10, 30, 60])}%",
            },
            "retries": 1,
        }
        if queue == DEFAULT and self._own and self._random.random() < COMES_AFTER:
            body["after"] = [{"job": self._own[-1], "when": self._random.choice(CONDITIONS)}]
        if queue == DEFAULT and self._random.random() < IS_ARRAY:
            body["array"] = ARRAY
        answer = self._insist(client, "POST", "", json=body, headers={"Idempotency-Key": key})
        if answer.status_code in {200, 201}:
            self._memory.accepted.add(answer.json()["id"])
            self._own.append(answer.json()["id"])
            if isinstance(body["replicas"], dict):
                self._bounds[self._own[-1]] = body["replicas"]
            (queued if queue == DEFAULT else shared).append(self._own[-1])
        else:
            self._memory.refused.append(f"submit: {answer.status_code} {answer.text}")

    def _is_over(self, client: httpx.Client, job: str) -> bool:
        return JobState(self._insist(client, "GET", f"/{job}").json()["state"]).final

    def _meddle(self, client: httpx.Client, job: str) -> None:
        verb = self._random.choice(["cancel", "suspend", "change", "scale"])
        if verb == "change":
            answer = self._insist(client, "PATCH", f"/{job}", json={"resources": {"gpus": 1, "gpu_memory": "3GB"}})
        elif verb == "scale":
            bounds = self._bounds.get(job)
            number = self._random.randint(*bounds.values()) if bounds else self._random.randint(1, 3)
            answer = self._insist(
                client, "PATCH", f"/{job}", json={"replicas": {"wanted": number} if bounds else number}
            )
        else:
            answer = self._insist(client, "POST", f"/{job}/{verb}", json={})
        if verb == "cancel" and answer.is_success:
            self._memory.cancelled.add(job)
        if verb == "suspend" and answer.is_success:
            answer = self._insist(client, "POST", f"/{job}/resume", json={})
        if not answer.is_success and answer.status_code not in GONE:
            self._memory.refused.append(f"{verb}: {answer.status_code} {answer.text}")

    def _insist(self, client: httpx.Client, method: str, path: str, **what: object) -> httpx.Response:
        """Retry a request until there is a response."""
        while True:
            self._memory.tries += 1
            try:
                answer = client.request(method, self._url + path, **what)  # type: ignore[arg-type]
            except httpx.HTTPError:
                time.sleep(0.02)
                continue
            if answer.status_code != 503:
                return answer
            time.sleep(0.1)
