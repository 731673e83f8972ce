"""The kinds of objects that a server knows, and their special rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Json = dict[str, Any]
"""An object, decoded from JSON."""

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of objects: its path and its rules.

    Attributes
    ----------
    group, version, kind, plural
        Its names; the group is empty for the core.
    namespaced
        Whether its objects are in namespaces.
    status
        Whether ``/status`` is a subresource.
    scale
        Whether ``/scale`` is a subresource.
    custom
        Whether a CustomResourceDefinition defines it: its list items have apiVersion and kind, a PUT needs a version,
        and ``/status`` changes nothing but the status.
    generation
        Whether changes increase ``metadata.generation``.
    keeps_status
        Whether a create stores the status of the object.
    fields
        Fields for field selectors beside name and namespace.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    status: bool = False
    scale: bool = False
    custom: bool = False
    generation: bool = True
    keeps_status: bool = False
    fields: tuple[str, ...] = ()
    short: tuple[str, ...] = ()

    @cached_property
    def api_version(self) -> str:
        """``apps/v1``, or ``v1`` of the core."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def opening(self) -> bytes:
        """Opening bytes of an object, with apiVersion and kind."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()

    @cached_property
    def item_opening(self) -> bytes:
        """Opening bytes of an item of a list."""
        return self.opening if self.custom else b"{"

    @cached_property
    def qualified(self) -> str:
        """``deployments.apps``, as in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def field_paths(self) -> tuple[tuple[str, ...], ...]:
        """Return the path of each of `fields`."""
        return tuple(tuple(name.split(".")) for name in self.fields)

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of a collection or an object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{within}/{self.plural}" + (f"/{name}" if name else "")

    def key(self, namespace: str, name: str) -> str:
        """Return the key of an object, which is also the sort key of lists."""
        return f"{namespace}/{name}" if self.namespaced else name


def _custom(group: str, version: str, kind: str, plural: str, **more: Any) -> Kind:  # noqa: ANN401, the fields of Kind
    return Kind(group, version, kind, plural, **{"custom": True, "status": True, **more})


_EVENT_FIELDS = (
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.kind",
    "involvedObject.uid",
    "reason",
    "type",
)

NODES = Kind(
    "", "v1", "Node", "nodes", False, True, generation=False, keeps_status=True, fields=("spec.unschedulable",),
    short=("no",),
)  # fmt: skip
PODS = Kind(
    "", "v1", "Pod", "pods", status=True, fields=("spec.nodeName", "status.phase", "spec.schedulerName"), short=("po",)
)
NAMESPACES = Kind(
    "", "v1", "Namespace", "namespaces", False, True, generation=False, fields=("status.phase",), short=("ns",)
)
SERVICES = Kind("", "v1", "Service", "services", status=True, generation=False, short=("svc",))
EVENTS = Kind("", "v1", "Event", "events", generation=False, fields=_EVENT_FIELDS, short=("ev",))
CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps", generation=False, short=("cm",))
SECRETS = Kind("", "v1", "Secret", "secrets", generation=False, fields=("type",))
SERVICE_ACCOUNTS = Kind("", "v1", "ServiceAccount", "serviceaccounts", generation=False, short=("sa",))
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments", status=True, scale=True, short=("deploy",))
REPLICA_SETS = Kind("apps", "v1", "ReplicaSet", "replicasets", status=True, scale=True, short=("rs",))
STATEFUL_SETS = Kind("apps", "v1", "StatefulSet", "statefulsets", status=True, scale=True, short=("sts",))
JOBS = Kind("batch", "v1", "Job", "jobs", status=True)
NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", short=("netpol",))
INGRESSES = Kind("networking.k8s.io", "v1", "Ingress", "ingresses", status=True, short=("ing",))
RESOURCE_QUOTAS = Kind("", "v1", "ResourceQuota", "resourcequotas", status=True, generation=False, short=("quota",))
LIMIT_RANGES = Kind("", "v1", "LimitRange", "limitranges", generation=False, short=("limits",))
LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases", generation=False)
RESOURCE_SLICES = Kind(
    "resource.k8s.io", "v1", "ResourceSlice", "resourceslices", False, fields=("spec.nodeName", "spec.driver")
)
RESOURCE_CLAIMS = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", status=True, generation=False)
DEVICE_CLASSES = Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", False)
CLAIM_TEMPLATES = Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", generation=False)

PYTORCH_JOBS = _custom("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", scale=True)
RAY_CLUSTERS = _custom("ray.io", "v1", "RayCluster", "rayclusters")
RAY_JOBS = _custom("ray.io", "v1", "RayJob", "rayjobs")
VOLCANO_JOBS = _custom("batch.volcano.sh", "v1alpha1", "Job", "jobs", short=("vcjob", "vj"))
POD_GROUPS = _custom("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", short=("pg",))
KUEUE_WORKLOADS = _custom("kueue.x-k8s.io", "v1beta2", "Workload", "workloads", short=("wl",))
LOCAL_QUEUES = _custom("kueue.x-k8s.io", "v1beta2", "LocalQueue", "localqueues")
CLUSTER_QUEUES = _custom("kueue.x-k8s.io", "v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)

HTTP_ROUTES = _custom("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")

CLUSTERS = _custom("cluster.karmada.io", "v1alpha1", "Cluster", "clusters", namespaced=False)
POLICIES = _custom(
    "policy.karmada.io", "v1alpha1", "PropagationPolicy", "propagationpolicies", status=False, short=("pp",)
)
OVERRIDES = _custom("policy.karmada.io", "v1alpha1", "OverridePolicy", "overridepolicies", status=False, short=("op",))
BINDINGS = _custom("work.karmada.io", "v1alpha2", "ResourceBinding", "resourcebindings", short=("rb",))
WORKS = _custom("work.karmada.io", "v1alpha1", "Work", "works", short=("wk",))

KUBERNETES: tuple[Kind, ...] = (
    *(NODES, PODS, NAMESPACES, SERVICES, EVENTS, CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS),
    *(DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, JOBS, LEASES),
    *(NETWORK_POLICIES, INGRESSES, RESOURCE_QUOTAS, LIMIT_RANGES),
    *(RESOURCE_SLICES, RESOURCE_CLAIMS, DEVICE_CLASSES, CLAIM_TEMPLATES),
)
"""Kinds of every Kubernetes cluster."""

OPERATORS: tuple[Kind, ...] = (
    *(PYTORCH_JOBS, RAY_CLUSTERS, RAY_JOBS, VOLCANO_JOBS, POD_GROUPS),
    *(KUEUE_WORKLOADS, LOCAL_QUEUES, CLUSTER_QUEUES, HTTP_ROUTES),
)
"""Kinds of the operators of Kubeflow, Ray, Volcano and Kueue, and of the Gateway API."""

KARMADA: tuple[Kind, ...] = (CLUSTERS, POLICIES, OVERRIDES, BINDINGS, WORKS)
"""Kinds of Karmada's control plane."""


class Kinds:
    """The kinds that one server serves.

    Parameters
    ----------
    kinds
        All of them.
    without
        Groups to leave out, such as ``resource.k8s.io`` of a cluster before Kubernetes 1.34.
    """

    def __init__(self, kinds: Iterable[Kind], without: Sequence[str] = ()) -> None:
        self.all = tuple(kind for kind in kinds if kind.group not in without)
        self._by_path = {(kind.group, kind.version, kind.plural): kind for kind in self.all}
        self._by_name = {(kind.api_version, kind.kind): kind for kind in self.all}

    def served(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind at a path, or None."""
        return self._by_path.get((group, version, plural))

    def named(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind with an apiVersion and a name, or None."""
        return self._by_name.get((api_version, kind))

    def groups(self) -> dict[str, list[str]]:
        """Return the versions of every group but the core."""
        found: dict[str, list[str]] = {}
        for kind in self.all:
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        found.pop("", None)
        return found

    def describe_groups(self) -> Json:
        """Return the body of ``/apis``."""
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [self.describe_group(group) for group in self.groups()],
        }

    def describe_group(self, group: str) -> Json:
        """Return the body of ``/apis/GROUP`` without its kind."""
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version} for version in self.groups().get(group, [])
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def describe_version(self, group: str, version: str) -> Json | None:
        """Return the body of ``/api/v1`` or ``/apis/GROUP/VERSION``; None if there is none."""
        resources: list[Json] = []
        for kind in self.all:
            if (kind.group, kind.version) != (group, version):
                continue
            singular = kind.kind.lower()
            entry = {"name": kind.plural, "singularName": singular, "namespaced": kind.namespaced, "kind": kind.kind}
            resources.append({**entry, "verbs": VERBS, **({"shortNames": list(kind.short)} if kind.short else {})})
            for name, there in (("status", kind.status), ("scale", kind.scale)):
                if there:
                    part = {**entry, "name": f"{kind.plural}/{name}", "singularName": ""}
                    resources.append({**part, "verbs": ["get", "patch", "update"]})
        if not resources:
            return None
        group_version = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
