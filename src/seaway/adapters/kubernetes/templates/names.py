"""What objects and pods are marked with."""

from __future__ import annotations

import json
import re
from base64 import b32encode
from collections.abc import Sequence
from hashlib import blake2b
from itertools import islice

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


MAX_LABEL_LENGTH = 63
"""Characters of a DNS label."""

MAX_OBJECT_NAME_LENGTH = 46
"""Characters of an object's name; leaves room for what controllers hang on: an index, ``-worker-3``, a role."""

DIGEST_BYTES = 5
"""Of a digest: 40 bits, so that among 10,000 parts two are alike once in 20,000 attempts."""

DIGEST_LENGTH = 8

MAX_NUMBERS = 100_000
"""More replicas no job has."""

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_STRANGE = re.compile(r"[^a-z0-9]+")


def digest(what: object) -> str:
    """Condense plain values to 8 letters and digits that may stand in a name."""
    text = json.dumps(what, separators=(",", ":"), sort_keys=True)
    return b32encode(blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()).decode().lower()


def object_name(deployment: Deployment, what: str) -> str:
    """Name an object of an attempt.

    Parameters
    ----------
    what
        A digest of what the object stands for within the attempt.

    Returns
    -------
    name
        The attempt's own name and `what`: a DNS label of at most 46 characters.
    """
    return f"{_fitting(deployment.name, MAX_OBJECT_NAME_LENGTH - len(what) - 1)}-{what}"


def cluster_digest(deployment: Deployment) -> str:
    """Stand for all that goes to one cluster: objects of one attempt for two clusters meet in Karmada."""
    return digest([deployment.cluster])


def numbers_text(numbers: Sequence[int]) -> str:
    """Write ascending numbers in short: ``0-3,7``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def numbers_of(text: str) -> tuple[int, ...]:
    """Read what `numbers_text` wrote; whatever stands in a cluster, it costs no more than that.

    Raises
    ------
    ValueError
        When it did not write that.
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
    """Return a DNS label; other names than Seaway's own are cut, and told apart by a digest."""
    if len(name) <= most and _LABEL.fullmatch(name):
        return name
    plain = _STRANGE.sub("-", name.lower()).strip("-")[: most - DIGEST_LENGTH - 1].strip("-")
    return f"{plain}-{digest(name)}"
