"""Which objects are Seaway's own: those that it marked, in the namespace that is its."""

from __future__ import annotations

from seaway.adapters.kubernetes.objects.meta import Meta
from seaway.adapters.kubernetes.templates.labels import ATTEMPT, JOB, MANAGED_BY, MANAGER
from seaway.domain import ids

SELECTOR = f"{MANAGED_BY}={MANAGER},{JOB}"
"""Selects them."""

MOST_DIGITS = 9


def attempt_of(meta: Meta, namespace: str) -> tuple[str, int] | None:
    """Return the job and attempt that an object belongs to; None for one that is not of this Seaway.

    Another one may use the same cluster, with a namespace of its own.
    """
    job_id, attempt = meta.labels.get(JOB, ""), meta.labels.get(ATTEMPT, "")
    ours = meta.namespace == namespace and meta.labels.get(MANAGED_BY) == MANAGER and ids.decode(job_id) is not None
    if not ours or not (attempt.isascii() and attempt.isdigit() and len(attempt) <= MOST_DIGITS):
        return None
    return job_id, int(attempt)
