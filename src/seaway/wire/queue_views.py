"""What queues hold, and what waits in them, as it is shown."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from seaway.application.queue_views import Place, QueueUse
from seaway.application.views import Reason
from seaway.wire.explanations import RefusalOut, reason_fields
from seaway.wire.job_out import JobOut, job_fields
from seaway.wire.message import Shown


class QueueUseOut(Shown):
    """What the jobs of a tenant in a queue hold, and how many wait."""

    queue: str
    tenant: str
    waiting: int
    """Jobs that wait for a place."""
    running: int
    """Jobs that hold something."""
    longest_wait_s: int
    """Since the first of those that wait was submitted; 0 where none waits."""
    gpus: int
    """Shares of devices that they hold."""
    gpu_milli: int
    gpu_memory_mib: int
    cpu_milli: int
    memory_mib: int


class QueueUseList(Shown):
    """What is held and what waits, by queue and tenant; of those that have nothing, nothing."""

    uses: list[QueueUseOut]


class WaitingOut(JobOut):
    """A job that waits."""

    position: int
    """Its place in the line of its tenant in its queue, from 1."""
    sentence: str
    """Why it waits, on the fleet as it is now."""
    code: str = ""
    """What kind of reason that is, as in `GET /jobs/{job}/explain`."""
    parameters: dict[str, str | int] = Field(default_factory=dict)
    looked_at: int = 0
    """How many nodes were looked at."""
    refusals: list[RefusalOut] = Field(default_factory=list)


class WaitingPage(Shown):
    """Jobs that wait in a queue, first in line first."""

    jobs: list[WaitingOut]
    total: int
    """How many wait in all."""
    next: str | None
    """Give this as `after` to get the next page; null on the last one."""


def use_fields(use: QueueUse) -> dict[str, Any]:
    """Show what is held as the fields of `QueueUseOut`."""
    return {
        "queue": use.queue,
        "tenant": use.tenant,
        "waiting": use.waiting,
        "running": use.running,
        "longest_wait_s": int(use.longest_wait_s),
        "gpus": use.gpus,
        "gpu_milli": use.gpu_milli,
        "gpu_memory_mib": use.gpu_memory_mib,
        "cpu_milli": use.cpu_milli,
        "memory_mib": use.memory_mib,
    }


def waiting_fields(place: Place, reason: Reason) -> dict[str, Any]:
    """Show a job that waits as the fields of `WaitingOut`."""
    told = reason_fields(reason)
    explained = told["explanation"] or {"nodes": 0, "refusals": []}
    named = {name: told[name] for name in ("sentence", "code", "parameters")}
    return {
        **job_fields(place.job),
        "position": place.position,
        **named,
        "looked_at": explained["nodes"],
        "refusals": explained["refusals"],
    }
