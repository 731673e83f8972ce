"""Which objects are Seaway's own: those that it marked, in the namespace that is its."""

from __future__ import annotations

from seaway.adapters.kubernetes.dialects.views import Trouble, TroubleKind
from seaway.adapters.kubernetes.objects.meta import Meta
from seaway.adapters.kubernetes.templates.labels import ATTEMPT, DEVICES, JOB, MANAGED_BY, MANAGER, REPLICAS
from seaway.adapters.kubernetes.templates.names import numbers_of
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


def booked_for(meta: Meta, namespace: str) -> tuple[str, ...]:
    """Return the devices that Seaway says on a pod of its own that it booked; none on others, whatever they say."""
    told = meta.annotations.get(DEVICES, "")
    return tuple(told.split(",")) if told and attempt_of(meta, namespace) else ()


def marks_broken(meta: Meta, namespace: str) -> tuple[Trouble, ...]:
    """Say what of Seaway's marks on an object of its own cannot be read; without them nobody knows what it is of."""
    if JOB not in meta.labels or meta.namespace != namespace or meta.labels.get(MANAGED_BY) != MANAGER:
        return ()
    if attempt_of(meta, namespace) is None:
        said = f"{meta.labels[JOB]!r} and {meta.labels.get(ATTEMPT, '')!r} are no job and attempt; it is nobody's"
        return (Trouble(TroubleKind.BROKEN, f"{JOB}, {ATTEMPT}", said),)
    told = meta.annotations.get(REPLICAS, "")
    try:
        numbers_of(told)
    except ValueError:
        said = f"{told[:60]!r} is no list of numbers; it stands for no replica"
        return (Trouble(TroubleKind.BROKEN, REPLICAS, said),)
    return ()
