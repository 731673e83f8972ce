"""Whether pods are where it was decided: on their nodes and, where a vGPU layer says which they got, their cards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import httpx

from benchmarks.api.server import Served
from tests.fakes.kubernetes.controllers import hami

Seat = tuple[str, tuple[str, ...]]
"""A node, and the uuids of cards."""

Seats = dict[str, list[Seat]]
"""The seats of each job's replicas, in order."""

JOB = "seaway.io/job"


def decided(served: Served, jobs: Iterable[str]) -> Seats:
    """Return where the latest attempt of each job is to run."""
    seats: Seats = {}
    with httpx.Client(base_url=served.url, headers={"authorization": f"Bearer {served.token}"}, timeout=60) as client:
        for job in jobs:
            attempts = client.get(f"/api/v1/jobs/{job}/attempts").json()["attempts"]
            placed = max(attempts, key=lambda each: int(each["number"]))["placements"]
            seats[job] = sorted((each["node"], tuple(sorted(one["uuid"] for one in each["slices"]))) for each in placed)
    return seats


def seats_of(pods: Iterable[Mapping[str, Any]]) -> Seats:
    """Return where pods are, by their job, and on which cards HAMi has put them."""
    seats: defaultdict[str, list[Seat]] = defaultdict(list)
    for pod in pods:
        if job := pod["metadata"].get("labels", {}).get(JOB):
            held = hami.read_devices(pod["metadata"].get("annotations", {}).get(hami.ALLOCATED, ""))
            seats[job].append((pod["spec"].get("nodeName", ""), tuple(sorted(uuid for uuid, _, _ in held))))
    return {job: sorted(each) for job, each in seats.items()}


def on_nodes(seats: Mapping[str, list[Seat]]) -> Seats:
    """Return the same without cards, for clusters where no one says which a pod got."""
    return {job: sorted((node, ()) for node, _ in each) for job, each in seats.items()}


def astray(meant: Mapping[str, list[Seat]], found: Mapping[str, list[Seat]]) -> int:
    """Count the jobs that have other seats than were meant, fewer or more."""
    return sum(found.get(job, []) != seats for job, seats in meant.items())
