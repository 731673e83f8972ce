"""Labels and annotations by which Seaway knows its own objects."""

from __future__ import annotations

from seaway.adapters.kubernetes.objects import Meta
from seaway.domain import ids

JOB = "seaway.io/job"
ATTEMPT = "seaway.io/attempt"
PART = "seaway.io/part"
"""Which part of an attempt: the replicas that share a pod template."""
TENANT = "seaway.io/tenant"
REPLICAS = "seaway.io/replicas"
"""Annotation: the numbers of a part's replicas, like ``0-3,7``."""
MANAGED_BY = "app.kubernetes.io/managed-by"
SEAWAY = "seaway"

SELECTOR = f"{MANAGED_BY}={SEAWAY},{JOB}"
"""Selects Seaway's own objects."""

MOST_ATTEMPT = 10


def attempt_of(meta: Meta) -> tuple[str, int] | None:
    """Return the job and attempt that an object belongs to; None for one that is not Seaway's."""
    job_id, attempt = meta.labels.get(JOB, ""), meta.labels.get(ATTEMPT, "")
    ours = meta.labels.get(MANAGED_BY) == SEAWAY and ids.decode(job_id) is not None
    if not ours or not (attempt.isascii() and attempt.isdigit() and len(attempt) < MOST_ATTEMPT):
        return None
    return job_id, int(attempt)
