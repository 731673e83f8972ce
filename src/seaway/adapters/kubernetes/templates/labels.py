"""What objects and pods are marked with."""

from __future__ import annotations

from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec

JOB = "seaway.io/job"
"""Label: the job's id."""

ATTEMPT = "seaway.io/attempt"
"""Label: the attempt's number."""

PART = "seaway.io/part"
"""Label: which replicas of the attempt, by a digest of their place."""

TENANT = "seaway.io/tenant"
"""Label: whose it is."""

ROLE = "seaway.io/role"
"""Label: what a pod is among others, where they differ: head, worker, master."""

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "seaway"

INDEX = "batch.kubernetes.io/job-completion-index"
"""Label and annotation that Kubernetes sets: the index of a pod of an Indexed Job."""

REPLICAS = "seaway.io/replicas"
"""Annotation: numbers of the replicas, like ``0-3,7``. In Indexed Jobs they are in the order of the indices."""

DEVICES = "seaway.io/devices"
"""Annotation: ids of the devices that were booked, where the cluster gives devices out by number alone."""

CLUSTER = "seaway.io/cluster"
"""Annotation: for which cluster, as objects of one attempt for several meet in Karmada."""

RESERVED = (
    "seaway.io",
    "hami.io",
    "karmada.io",
    "volcano.sh",
    "ray.io",
    "kubeflow.org",
    "nvidia.com",
    "kubernetes.io",
    "k8s.io",
    "x-k8s.io",
    "azure.workload.identity",
)
"""Domains whose labels change how pods are placed, shared out or counted, or which identity they have: Seaway alone
sets them. Those of Kubernetes are its own, and so are those of Kueue and of pod groups (``x-k8s.io``)."""

FREE = "app.kubernetes.io"
"""The domain of Kubernetes by which people mark what is theirs."""

RESERVED_NAMES = frozenset(
    {"job-name", "controller-uid", "controller-revision-hash", "pod-template-hash", "aadpodidbinding"}
)
"""Labels without a domain that controllers set, of which clusters refuse others, or that give a pod an identity."""


def labels(deployment: Deployment, part: str, role: str = "") -> dict[str, str]:
    """Return the labels of an object or a pod: the job's own, and Seaway's.

    Raises
    ------
    RejectedError
        When the job's labels are in a domain that it may not use.
    """
    spec = deployment.spec
    require_free(spec)
    return {
        **spec.labels,
        MANAGED_BY: MANAGER,
        **selector(deployment),
        PART: part,
        TENANT: spec.tenant,
        **({ROLE: role} if role else {}),
    }


def selector(deployment: Deployment) -> dict[str, str]:
    """Return the labels by which all of an attempt is found."""
    return {JOB: deployment.job_id, ATTEMPT: str(deployment.attempt)}


def require_free(spec: JobSpec) -> None:
    """Check a job's own labels.

    Raises
    ------
    RejectedError
        When one is reserved: ``hami.io/webhook: ignore`` would get devices without limits.
    """
    for key in spec.labels:
        domain = key.rpartition("/")[0]
        if key in RESERVED_NAMES:
            raise RejectedError(f"the label {key!r} is not for jobs to set: leave it out", where="labels")
        if domain == FREE:
            continue
        taken = next((each for each in RESERVED if domain == each or domain.endswith(f".{each}")), None)
        if taken:
            raise RejectedError(f"labels of {taken!r} are not for jobs to set: leave {key!r} out", where="labels")
