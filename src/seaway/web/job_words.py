"""Jobs in few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seaway.wire.job_out import JobOut

ORDER = ("running", "deploying", "scheduled", "queued", "pending", "preempted", "suspended", "failed", "completed",
         "cancelled")  # fmt: skip
"""States as they are listed."""


def gpus(job: JobOut) -> str:
    """Say what devices each replica of a job asks for, in the words of who asked; empty for none."""
    asked = job.spec.get("resources", {})
    if not asked.get("gpus"):
        return ""
    parts = [str(asked[name]) for name in ("gpu_memory", "gpu_cores") if asked.get(name)]
    return " · ".join([f"{asked['gpus']} × GPU", *parts])
