"""Input of a template: a deployment, the options of its cluster, and its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seaway.adapters.kubernetes.templates.manifest import Group, Manifest, Pin, group_of
from seaway.adapters.kubernetes.templates.names import (
    CLUSTER,
    REPLICAS,
    cluster_digest,
    labels,
    numbers_text,
    object_name,
)
from seaway.adapters.kubernetes.templates.pinning import Accesses
from seaway.adapters.kubernetes.templates.runtime import NO_DRIVERS, Mounting
from seaway.domain.deployment import Deployment, service_name
from seaway.domain.job_spec import JobSpec, ServiceType


def same_name(node: str) -> str:
    """Return the node's name as its hostname label, as in most clusters."""
    return node


@dataclass(frozen=True, slots=True)
class Exposure:
    """Ways in which clients outside a cluster may reach jobs.

    Attributes
    ----------
    types
        Types that jobs may choose.
    default
        Type of jobs that choose none.
    domain
        Domain of all host names; empty for any host name.
    https
        True if host names are reached by HTTPS.
    ingress_class
        Class of Ingresses; empty for the default of the cluster.
    gateway
        Gateway of HTTPRoutes, ``namespace/name``.
    ring
        How replicas in other clusters reach rank 0: by a Service of this type, or by the address of its pod
        (``POD``); empty if each job has to set the address.
    """

    types: tuple[ServiceType, ...] = (ServiceType.CLUSTER_IP, ServiceType.NODE_PORT, ServiceType.LOAD_BALANCER)
    default: ServiceType = ServiceType.CLUSTER_IP
    domain: str = ""
    https: bool = False
    ingress_class: str = ""
    gateway: str = ""
    ring: str = ServiceType.NODE_PORT


@dataclass(frozen=True, slots=True)
class TemplateOptions:
    """Options of a cluster for its objects.

    Attributes
    ----------
    accesses
        Returns the access to a device, by node and UUID.
    namespace
        Namespace of the objects.
    hostname
        Maps a node's name to its label ``kubernetes.io/hostname``.
    pull_secrets
        Image pull secrets in the namespace.
    default_image
        Image of jobs that specify none; if it is empty, such jobs are rejected.
    hami_scheduler
        Name of HAMi's scheduler for pods with its devices. If it is empty, HAMi's webhook sets it while the webhook
        is available.
    local_queue
        Kueue's LocalQueue; empty for the name of the job's queue.
    volcano_queue
        Volcano's Queue; empty for its default.
    run_as_user
        User and group ID of containers; 0 for those of the image.
    exposure
        Ways in which clients outside the cluster may reach jobs.
    mounting
        Volumes that jobs may have.
    shared
        True if the objects of several clusters are in one API server, so that names of services have the cluster.
    """

    accesses: Accesses
    namespace: str = "seaway"
    hostname: Callable[[str], str] = same_name
    pull_secrets: tuple[str, ...] = ()
    default_image: str = ""
    hami_scheduler: str = ""
    local_queue: str = ""
    volcano_queue: str = ""
    run_as_user: int = 0
    exposure: Exposure = Exposure()
    mounting: Mounting = NO_DRIVERS
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """Input of one rendering.

    Attributes
    ----------
    group
        All replicas of the deployment.
    """

    deployment: Deployment
    options: TemplateOptions
    group: Group

    @classmethod
    def of(cls, deployment: Deployment, options: TemplateOptions) -> Context:
        """Create the context of a deployment."""
        return cls(deployment, options, group_of(deployment))

    @property
    def spec(self) -> JobSpec:
        """Specification of the job."""
        return self.deployment.spec

    @property
    def groups(self) -> tuple[Group, ...]:
        """Groups of replicas with equal node and devices, by their first replica."""
        return self.group.alike()

    @property
    def whole(self) -> str:
        """Digest of all replicas of the attempt in this cluster, for names and labels."""
        return cluster_digest(self.deployment)

    @property
    def replicas(self) -> tuple[int, ...]:
        """Indexes of all replicas in this cluster, ascending."""
        return self.group.replicas

    @property
    def service(self) -> str:
        """Name of the job's service in this cluster, the same for all its attempts.

        If the objects of several clusters share an API server, the names of their services differ.
        """
        name = service_name(self.deployment.service_id)
        return f"{name}-{self.whole}" if self.options.shared else name

    def name(self, what: str, role: str = "") -> str:
        """Return the name of the object `what`."""
        return object_name(self.deployment, what) + (f"-{role}" if role else "")

    def metadata(self, what: str, replicas: Sequence[int], role: str = "") -> dict[str, Any]:
        """Return the metadata of an object."""
        return {
            "name": self.name(what, role),
            "namespace": self.options.namespace,
            "labels": labels(self.deployment, what),
            "annotations": {REPLICAS: numbers_text(replicas), CLUSTER: self.deployment.cluster},
        }

    def workload(self, api: str, kind: str, spec: dict[str, Any], group: Group | None = None) -> dict[str, Any]:
        """Return an object for a group of replicas, or for all of them."""
        what, replicas = (group.digest, group.replicas) if group else (self.whole, self.replicas)
        return {"apiVersion": api, "kind": kind, "metadata": self.metadata(what, replicas), "spec": spec}


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod template with its pins and claims.

    Attributes
    ----------
    pins
        Pins with paths from the root of the workload.
    claims
        Objects that its pods refer to, which must be created first.
    """

    body: dict[str, Any]
    pins: tuple[Pin, ...]
    claims: tuple[Manifest, ...] = ()
