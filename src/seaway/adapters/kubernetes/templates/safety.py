"""Validation of custom templates.

The operator writes a template, but any user can provide its values. Fields that give access to nodes, other namespaces
or the cluster's API are therefore rejected in all manifests, and may not contain a placeholder.

References
----------
Kubernetes' Pod Security Standards, "baseline" and "restricted".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from seaway.adapters.kubernetes.templates.manifest import Path, Pin
from seaway.adapters.kubernetes.templates.placeholders import used
from seaway.domain.errors import RejectedError
from seaway.domain.pod_rules import field_problem, fields_of
from seaway.wire.yaml import yaml_documents

KINDS = frozenset(
    {
        "ConfigMap",
        "PersistentVolumeClaim",
        "Service",
        "Deployment.apps",
        "ReplicaSet.apps",
        "StatefulSet.apps",
        "Job.batch",
        "Ingress.networking.k8s.io",
        "HTTPRoute.gateway.networking.k8s.io",
        "NetworkPolicy.networking.k8s.io",
        "PodDisruptionBudget.policy",
        "Job.batch.volcano.sh",
        "JobSet.jobset.x-k8s.io",
        "LeaderWorkerSet.leaderworkerset.x-k8s.io",
        "MPIJob.kubeflow.org",
        "PyTorchJob.kubeflow.org",
        "TFJob.kubeflow.org",
        "RayCluster.ray.io",
        "RayJob.ray.io",
        "RayService.ray.io",
    }
)
"""Allowed kinds, as ``kind.group``; operators may allow more."""

_RIGHTS = frozenset(
    {"rbac.authorization.k8s.io", "authorization.k8s.io", "authentication.k8s.io", "certificates.k8s.io"}
)
_RIGHTS_KINDS = frozenset({"ServiceAccount", "Secret"})

_OWN_DOMAINS = (
    "seaway.io",
    "hami.io",
    "karmada.io",
    "nvidia.com",
    "cdi.k8s.io",
    "apparmor.security.beta.kubernetes.io",
)
_CHOOSES = re.compile(r"(no)?use-.*(uuid|gputype)|vgpu-.*")
"""Pattern of vendors' annotations that select devices, in any domain."""

_OF_CLUSTERS = frozenset({"ownerReferences", "finalizers", "generateName"})
"""Metadata fields that change the lifetime or name of objects, also of pods."""

DATA = "data", "binaryData"
"""Fields of a ConfigMap whose content has no rules."""

_SECRET = re.compile(r"secret|.*SecretRef|secretRef|secretKeyRef")
_CHOSEN = frozenset({"job_name", "image", "command", "args", "env"})
"""Placeholders with values that the job's user can choose freely."""

POINTER = "seaway.io/pod-template"
RESTARTS = "seaway.io/restarts"
SINGLE_CLUSTER = "seaway.io/single-cluster"
EXPOSE = "seaway.io/expose"
ANNOTATIONS = frozenset({POINTER, RESTARTS, SINGLE_CLUSTER, EXPOSE})
"""Annotations of a template for Seaway: the JSON pointer to its pod template, and its traits."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of an operator for templates.

    Attributes
    ----------
    namespaces
        Namespaces that templates may name. Seaway replaces them by that of the job's tenant.
    privileges
        Granted privileges of `seaway.domain.pod_rules.PRIVILEGES`.
    kinds
        Allowed kinds besides `KINDS`.
    """

    namespaces: frozenset[str] = frozenset({"seaway"})
    privileges: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


def violations(manifest: dict[str, Any], rules: Rules) -> Iterator[RejectedError]:
    """Yield all violations in a manifest, with their positions as JSON pointers."""
    yield from _identity(manifest, rules)
    for path, key, value in fields_of({key: None if key in DATA else value for key, value in manifest.items()}):
        why = field_problem(path, key, value, rules.privileges)
        if why := why or _owned(path, key) or _others(path, key, value):
            yield _error(why, (*path, key))


def kind_of(manifest: dict[str, Any]) -> str:
    """Return a manifest's kind and group, as in ``Job.batch``."""
    group, slash, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    return f"{manifest.get('kind', '')}.{group}" if slash else str(manifest.get("kind", ""))


def _identity(manifest: dict[str, Any], rules: Rules) -> Iterator[RejectedError]:
    kind, metadata = kind_of(manifest), manifest.get("metadata")
    group = kind.partition(".")[2]
    if group in _RIGHTS or kind in _RIGHTS_KINDS:
        yield _error(f"a {kind} gives rights or secrets away, and may not be in a template", ("kind",))
    elif kind not in KINDS | rules.kinds:
        yield _error(f"{kind!r} may not be in a template unless the operator allows that kind", ("kind",))
    if isinstance(metadata, dict):
        namespace = metadata.get("namespace", "${namespace}")
        if namespace not in rules.namespaces | {"${namespace}"}:
            yield _error(
                f"is {str(namespace)[:60]!r}: leave it out, or use ${{namespace}}, the namespace of the job's tenant",
                ("metadata", "namespace"),
            )


def _owned(path: Path, key: str) -> str:
    """Return an error if only Seaway may set the field: its labels, and metadata of objects."""
    under = path[-1] if path else ""
    if under in ("labels", "annotations") and not (under == "annotations" and key in ANNOTATIONS):
        domain = key.rpartition("/")[0]
        owned = any(domain == each or domain.endswith(f".{each}") for each in _OWN_DOMAINS)
        return "is for Seaway to set" if owned or _CHOOSES.fullmatch(key.rpartition("/")[2]) else ""
    if under == "metadata" and key in _OF_CLUSTERS:
        return "may not be set by a template"
    return ""


def _others(path: Path, key: str, value: object) -> str:
    """Return an error if a job could choose an object of another owner: a secret, a volume, a priority class."""
    names = key in ("secretName", "claimName", "priorityClassName") or (key == "name" and _of_secret(path))
    if names and (chosen := next((word for word, _, _ in used(value) if word in _CHOSEN), "")):
        return f"may not come from ${{{chosen}}}, which jobs are free to choose"
    if key == "priorityClassName" and str(value).startswith("system-"):
        return "is for what clusters themselves need to run"
    return ""


def _of_secret(path: Path) -> bool:
    """Report whether a path is the name of a secret."""
    return path[-2:-1] == ("imagePullSecrets",) or (bool(path) and _SECRET.fullmatch(str(path[-1])) is not None)


def _error(message: str, path: Path) -> RejectedError:
    return RejectedError(message, where=Pin(path, None).pointer)


RESTRICTED_VOLUMES = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
"""Kinds of volumes that the standard "restricted" allows."""


def loosens_pods(spec: dict[str, Any]) -> bool:
    """Report whether the pod spec of a valid template fails the Pod Security Standard "restricted".

    The standard "baseline" allows all that templates may have without privileges. Seaway adds the fields of
    "restricted" that a template does not set.
    """
    containers = [each for name in ("initContainers", "containers") for each in spec.get(name) or ()]
    contexts = [each.get("securityContext") or {} for each in (spec, *containers) if isinstance(each, dict)]
    volumes = [each for each in spec.get("volumes") or () if isinstance(each, dict)]
    return any(map(_loosens, contexts)) or any(each.keys() - RESTRICTED_VOLUMES - {"name"} for each in volumes)


def _loosens(context: Any) -> bool:  # noqa: ANN401  # a template may have any value
    if not isinstance(context, dict):
        return False
    own = context.get("capabilities", {"drop": ["ALL"]})
    drops = (own.get("drop") or ()) if isinstance(own, dict) else ()
    return context.get("runAsNonRoot") is False or context.get("runAsUser") == 0 or "ALL" not in drops


MAX_BYTES = 64 * 1024
MAX_MANIFESTS = 16


def read_manifests(text: str) -> list[dict[str, Any]]:
    """Parse the manifests of a file, one per YAML document.

    Raises
    ------
    RejectedError
        When it is not YAML, is too large, has no manifest, or has a value that JSON does not support.
    """
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise RejectedError(f"is larger than {MAX_BYTES // 1024} KiB")
    manifests: list[dict[str, Any]] = []
    for document in yaml_documents(text):
        value = document.value
        where = f"manifest {len(manifests) + 1}"
        if not isinstance(value, dict):
            raise RejectedError("must be an object with fields", where=where)
        _require_plain(value, where)
        manifests.append(value)
        if len(manifests) > MAX_MANIFESTS:
            raise RejectedError(f"has more than {MAX_MANIFESTS} manifests")
    if not manifests:
        raise RejectedError("has no manifest")
    return manifests


def _require_plain(value: object, where: str) -> None:
    """Check that a value is valid in JSON. YAML parses ``on`` as a boolean, and dates as dates."""
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise RejectedError(f"the field {key!r} is not a text: quote it", where=where)
            if "${" in key:
                raise RejectedError(f"{key[:60]!r}: a placeholder cannot name a field", where=where)
            _require_plain(each, f"{where}/{key}")
    elif isinstance(value, list):
        for place, each in enumerate(value):
            _require_plain(each, f"{where}/{place}")
    elif value is not None and not isinstance(value, str | int | float):
        raise RejectedError(f"{value!s:.60} is not a plain value: quote it", where=where)
