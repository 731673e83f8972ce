"""Labels, annotations and names of objects and pods."""

from __future__ import annotations

import json
import re
from base64 import b32encode
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import islice

from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason

JOB = "seaway.io/job"
"""Label: ID of the job."""

ATTEMPT = "seaway.io/attempt"
"""Label: number of the attempt."""

PART = "seaway.io/part"
"""Label: digest of the placement of the replicas in the part."""

TENANT = "seaway.io/tenant"
"""Label: tenant of the job."""

ROLE = "seaway.io/role"
"""Label: role of a pod in a workload with several roles: head, worker, master."""

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "seaway"

INDEX = "batch.kubernetes.io/job-completion-index"
"""Label and annotation that Kubernetes sets on pods of an Indexed Job: index of the pod."""

REPLICA_INDEX = "training.kubeflow.org/replica-index"
"""Label that Kubeflow's training operator sets on pods: index of the pod among those of its role."""

TASK_INDEX = "volcano.sh/task-index"
"""Label and annotation that Volcano sets on pods: index of the pod in its task."""

REPLICAS = "seaway.io/replicas"
"""Annotation: indexes of the replicas, such as ``0-3,7``. In Indexed Jobs they are in the order of the pods'
indexes."""

DEVICES = "seaway.io/devices"
"""Annotation: IDs of the reserved devices, if the device plugin allocates only by number."""

MAX_RESTARTS = "seaway.io/max-restarts"
"""Annotation of pods: maximum number of restarts of their containers in place."""

RANK_0_OF_RING = "seaway.io/rank-0"
"""Annotation of a service: other clusters reach rank 0 of a ring by it."""

COMPLETED = "seaway.io/completed"
"""Annotation of a Job in Karmada: its replicas have completed, and their devices are released."""

HOSTFILE = "seaway.io/hostfile"
"""Annotation of pods: hosts of the replicas of a gang, which the containers read as a file."""

CLUSTER = "seaway.io/cluster"
"""Annotation: cluster of the object. In Karmada, one attempt may have objects for several clusters."""

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
"""Domains of labels that only Seaway sets.

These labels change the placement, sharing, quota or identity of pods. They include the domains of Kubernetes, and
those of Kueue and pod groups (``x-k8s.io``). Labels like ``app.kubernetes.io/name`` select pods for Services,
disruption budgets, network policies and exporters.
"""

RESERVED_NAMES = frozenset(
    {"job-name", "controller-uid", "controller-revision-hash", "pod-template-hash", "aadpodidbinding"}
)
"""Reserved labels without a domain: controllers set them, clusters reject other values, or they give a pod an
identity."""


def labels(deployment: Deployment, part: str, role: str = "") -> dict[str, str]:
    """Return the labels of an object or a pod: those of the job and those of Seaway.

    Raises
    ------
    RejectedError
        When a label of the job is reserved.
    """
    spec = deployment.spec
    require_free(spec.labels)
    return {
        **spec.labels,
        MANAGED_BY: MANAGER,
        **selector(deployment),
        PART: part,
        TENANT: spec.tenant,
        **({ROLE: role} if role else {}),
    }


def selector(deployment: Deployment) -> dict[str, str]:
    """Return the label selector of an attempt."""
    return {JOB: deployment.job_id, ATTEMPT: str(deployment.attempt)}


def _domain(key: str) -> str:
    return key.rpartition("/")[0]


def require_free(labels: Iterable[str]) -> None:
    """Check that the labels of a job, by their keys, are not reserved.

    Raises
    ------
    RejectedError
        When a label is reserved. For example, ``hami.io/webhook: ignore`` would give devices without limits.
    """
    for key in labels:
        domain = _domain(key)
        if key in RESERVED_NAMES:
            raise RejectedError(Reason("label_forbidden", key=key), where="labels")
        taken = next((each for each in RESERVED if domain == each or domain.endswith(f".{each}")), None)
        if taken:
            raise RejectedError(Reason("labels_of_domain_forbidden", domain=taken, key=key), where="labels")


def port_name(index: int) -> str:
    """Return the name of a job's port, by its position. The NetworkPolicy of the namespace refers to it."""
    return f"port-{index}"


RANK_0 = "rank-0"
"""Role of the service by which other clusters reach rank 0 of a ring, and name of its port in pods. The NetworkPolicy
of the namespace refers to it."""

MAX_LABEL_LENGTH = 63
"""Maximum length of a DNS label."""

MAX_OBJECT_NAME_LENGTH = 46
"""Maximum length of an object's name. It leaves room for suffixes of controllers: an index, ``-worker-3``, a role."""

DIGEST_BYTES = 5
"""Length of a digest: 40 bits. Among 10,000 parts, a collision occurs once in 20,000 attempts."""

DIGEST_LENGTH = 8

MAX_NUMBERS = 100_000
"""Maximum number of replicas of a job."""

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NOT_ALLOWED = re.compile(r"[^a-z0-9]+")


def digest(what: object) -> str:
    """Return a digest of plain values: 8 letters and digits for use in names."""
    text = json.dumps(what, separators=(",", ":"), sort_keys=True)
    return b32encode(blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()).decode().lower()


def object_name(deployment: Deployment, what: str) -> str:
    """Return the name of an attempt's object.

    Parameters
    ----------
    what
        Digest of the object's role in the attempt.

    Returns
    -------
    name
        DNS label of at most 46 characters, from the name of the attempt and `what`.
    """
    return f"{_fitting(deployment.name, MAX_OBJECT_NAME_LENGTH - len(what) - 1)}-{what}"


def cluster_digest(deployment: Deployment) -> str:
    """Return a digest of the cluster, because Karmada may have objects of one attempt for several clusters."""
    return digest([deployment.cluster])


def numbers_text(numbers: Sequence[int]) -> str:
    """Return ascending numbers as a short text: ``0-3,7``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def numbers_of(text: str) -> tuple[int, ...]:
    """Parse the output of `numbers_text`. The size of the result is limited.

    Raises
    ------
    ValueError
        When the text has another form.
    """
    numbers: list[int] = []
    for run in text.split(",") if text else ():
        first, _, last = run.partition("-")
        numbers.extend(islice(range(int(first), int(last or first) + 1), MAX_NUMBERS))
        if len(numbers) > MAX_NUMBERS:
            break
    if numbers_text(numbers) != text or numbers != sorted(set(numbers)):
        raise ValueError(f"{text[:60]!r} is not a list of numbers")
    return tuple(numbers)


def _fitting(name: str, most: int) -> str:
    """Return a DNS label. Shorten names that do not fit, and add a digest."""
    if len(name) <= most and _LABEL.fullmatch(name):
        return name
    plain = _NOT_ALLOWED.sub("-", name.lower()).strip("-")[: most - DIGEST_LENGTH - 1].strip("-")
    return f"{plain}-{digest(name)}"
