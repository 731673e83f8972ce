"""Comparison of pods with decisions: their nodes and, if a vGPU layer reports them, their devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import httpx

from benchmarks.api.server import Served
from tests.fakes.kubernetes.controllers import hami

Seat = tuple[str, tuple[str, ...]]
"""A node, and UUIDs of devices."""

Seats = dict[str, list[Seat]]
"""Seats of each job's replicas, in order."""

JOB = "seaway.io/job"


def decided(served: Served, jobs: Iterable[str]) -> Seats:
    """Return the decided seats of the latest attempt of each job."""
    seats: Seats = {}
    with httpx.Client(base_url=served.url, headers={"authorization": f"Bearer {served.token}"}, timeout=60) as client:
        for job in jobs:
            attempts = client.get(f"/api/v1/jobs/{job}/attempts").json()["attempts"]
            placed = max(attempts, key=lambda each: int(each["number"]))["placements"]
            seats[job] = sorted((each["node"], tuple(sorted(one["uuid"] for one in each["slices"]))) for each in placed)
    return seats


def seats_of(pods: Iterable[Mapping[str, Any]]) -> Seats:
    """Return the actual seats of pods by job, with the devices that HAMi allocated."""
    seats: defaultdict[str, list[Seat]] = defaultdict(list)
    for pod in pods:
        if job := pod["metadata"].get("labels", {}).get(JOB):
            held = hami.read_devices(pod["metadata"].get("annotations", {}).get(hami.ALLOCATED, ""))
            seats[job].append((pod["spec"].get("nodeName", ""), tuple(sorted(uuid for uuid, _, _ in held))))
    return {job: sorted(each) for job, each in seats.items()}


def on_nodes(seats: Mapping[str, list[Seat]]) -> Seats:
    """Return the seats without devices, for clusters that do not report them."""
    return {job: sorted((node, ()) for node, _ in each) for job, each in seats.items()}


def astray(meant: Mapping[str, list[Seat]], found: Mapping[str, list[Seat]]) -> int:
    """Count the jobs whose seats differ from the decision."""
    return sum(found.get(job, []) != seats for job, seats in meant.items())
