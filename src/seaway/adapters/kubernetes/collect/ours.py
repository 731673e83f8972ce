"""Which objects are Seaway's own."""

from __future__ import annotations

from seaway.adapters.kubernetes.objects import Meta
from seaway.adapters.kubernetes.templates.labels import ATTEMPT, JOB, MANAGED_BY, MANAGER
from seaway.domain import ids

SELECTOR = f"{MANAGED_BY}={MANAGER},{JOB}"
"""Selects them."""

MOST_DIGITS = 9


def attempt_of(meta: Meta) -> tuple[str, int] | None:
    """Return the job and attempt that an object belongs to; None for one that is not Seaway's."""
    job_id, attempt = meta.labels.get(JOB, ""), meta.labels.get(ATTEMPT, "")
    ours = meta.labels.get(MANAGED_BY) == MANAGER and ids.decode(job_id) is not None
    if not ours or not (attempt.isascii() and attempt.isdigit() and len(attempt) <= MOST_DIGITS):
        return None
    return job_id, int(attempt)
