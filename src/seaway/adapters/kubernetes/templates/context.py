"""What a template works with: a deployment, how its cluster wants it, and its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seaway.adapters.kubernetes.templates.manifest import Manifest, Pin
from seaway.adapters.kubernetes.templates.names import (
    CLUSTER,
    REPLICAS,
    cluster_digest,
    labels,
    numbers_text,
    object_name,
)
from seaway.adapters.kubernetes.templates.parts import Group, Part, parts
from seaway.adapters.kubernetes.templates.pinning import Accesses
from seaway.domain.deployment import Deployment
from seaway.domain.job_spec import JobSpec


def same_name(node: str) -> str:
    """Say that a node's label ``kubernetes.io/hostname`` is its name, as it nearly always is."""
    return node


@dataclass(frozen=True, slots=True)
class TemplateOptions:
    """How a cluster wants its objects.

    Attributes
    ----------
    accesses
        How devices are asked for, by node and uuid.
    namespace
        Where objects go.
    hostname
        From a node's name to its label ``kubernetes.io/hostname``.
    pull_secrets
        Secrets in the namespace by which images are pulled.
    default_image
        For jobs that name none; without it those are rejected.
    hami_scheduler
        Name of HAMi's scheduler, to be set on pods with its devices. Empty leaves that to HAMi's webhook, which
        lets pods pass unseen while it is down.
    local_queue
        Kueue's LocalQueue; empty for one named like the job's queue.
    volcano_queue
        Volcano's Queue; empty for its default.
    """

    accesses: Accesses
    namespace: str = "seaway"
    hostname: Callable[[str], str] = same_name
    pull_secrets: tuple[str, ...] = ()
    default_image: str = ""
    hami_scheduler: str = ""
    local_queue: str = ""
    volcano_queue: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """One deployment about to be written down.

    Attributes
    ----------
    parts
        What the deployment falls into, in the order of their first replicas.
    """

    deployment: Deployment
    options: TemplateOptions
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, deployment: Deployment, options: TemplateOptions) -> Context:
        """Look at a deployment."""
        return cls(deployment, options, parts(deployment))

    @property
    def spec(self) -> JobSpec:
        """What the user asked for."""
        return self.deployment.spec

    @property
    def groups(self) -> tuple[Group, ...]:
        """Each part for itself."""
        return tuple(Group((part,)) for part in self.parts)

    @property
    def whole(self) -> str:
        """Stands, in names and labels, for all of the attempt that goes to this cluster."""
        return cluster_digest(self.deployment)

    @property
    def replicas(self) -> tuple[int, ...]:
        """Numbers of all replicas here, ascending."""
        return tuple(sorted(each for part in self.parts for each in part.replicas))

    def name(self, what: str, role: str = "") -> str:
        """Name an object after what it stands for."""
        return object_name(self.deployment, what) + (f"-{role}" if role else "")

    def metadata(self, what: str, replicas: Sequence[int], role: str = "") -> dict[str, Any]:
        """Return an object's metadata."""
        return {
            "name": self.name(what, role),
            "namespace": self.options.namespace,
            "labels": labels(self.deployment, what),
            "annotations": {REPLICAS: numbers_text(replicas), CLUSTER: self.deployment.cluster},
        }

    def workload(self, api: str, kind: str, spec: dict[str, Any], group: Group | None = None) -> dict[str, Any]:
        """Return an object of this kind that stands for a group of replicas, or for all of them."""
        what, replicas = (group.digest, group.replicas) if group else (self.whole, self.replicas)
        return {"apiVersion": api, "kind": kind, "metadata": self.metadata(what, replicas), "spec": spec}


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod template, and what goes with it.

    Attributes
    ----------
    pins
        From the root of the workload that it is put in.
    claims
        Objects that its pods refer to; they must be there first.
    """

    body: dict[str, Any]
    pins: tuple[Pin, ...]
    claims: tuple[Manifest, ...] = ()
