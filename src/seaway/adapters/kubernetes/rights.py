"""Rights of Seaway in an API server: which of those that it uses are missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.objects.core import Part
from seaway.adapters.kubernetes.objects.decode import read_body

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

RIGHTS_S = 20.0
"""Timeout of all questions together, seconds."""

READ = ("list", "watch")
WRITE = ("create", "patch", "delete")

WORKLOADS = (
    "services",
    "deployments.apps",
    "jobs.batch",
    "jobs.batch.volcano.sh",
    "pytorchjobs.kubeflow.org",
    "rayclusters.ray.io",
    "rayjobs.ray.io",
    "resourceclaimtemplates.resource.k8s.io",
)
"""Objects of the built-in templates, as ``resource.group``."""

Verbs = Mapping[str, Sequence[str]]
"""Verbs of each resource."""


class Rights(NamedTuple):
    """Rights in an API server, as `deploy/kubernetes` grants them.

    Attributes
    ----------
    cluster
        Rights in the whole cluster.
    tenants
        Rights in the namespaces of tenants.
    """

    cluster: Verbs
    tenants: Verbs


_LOOK = {
    "nodes": READ,
    "pods": READ,
    "resourceslices.resource.k8s.io": READ,
    "resourceclaims.resource.k8s.io": READ,
    **dict.fromkeys(WORKLOADS, READ),
    "events": READ,
    "workloads.kueue.x-k8s.io": READ,
}
_POLICIES = ("propagationpolicies.policy.karmada.io", "overridepolicies.policy.karmada.io")
_BINDINGS = "resourcebindings.work.karmada.io"
_CONTENT = dict.fromkeys(("networkpolicies.networking.k8s.io", "resourcequotas", "limitranges"), ("create", "patch"))

_SESSIONS = dict.fromkeys(("pods/exec", "pods/attach", "pods/portforward"), ("get", "create"))

DIRECT = Rights(
    {**_LOOK, "namespaces": ("get", "create")},
    {**dict.fromkeys(WORKLOADS, WRITE), "pods/log": ("get",), **_SESSIONS, **_CONTENT},
)
"""Rights in a cluster that Seaway uses directly: `member.yaml` and `namespaces.yaml`."""

KARMADA = Rights(
    {
        "clusters.cluster.karmada.io": READ,
        "clusters.cluster.karmada.io/proxy": ("get",),
        "namespaces": ("get", "create"),
        **dict.fromkeys((*_POLICIES, *WORKLOADS, _BINDINGS), READ),
    },
    {**dict.fromkeys((*_POLICIES, *WORKLOADS), WRITE), _BINDINGS: ("patch",), **_CONTENT},
)
"""Rights in the control plane of Karmada: `karmada.yaml` and `namespaces.yaml`."""


@dataclass(frozen=True, slots=True)
class Right:
    """One right.

    Attributes
    ----------
    resource
        Resource as ``resource.group``, or ``resource.group/part``.
    namespace
        Namespace; empty for the whole cluster.
    """

    resource: str
    verb: str
    namespace: str = ""

    @property
    def group(self) -> str:
        """API group of the resource; empty for the core group."""
        return self.resource.partition("/")[0].partition(".")[2]


class _Group(Part, frozen=True):
    name: str = ""


class _Groups(Part, frozen=True):
    groups: tuple[_Group, ...] = ()


class _Status(Part, frozen=True):
    allowed: bool = False


class _Review(Part, frozen=True):
    status: _Status = _Status()


async def missing_rights(api: Api, rights: Rights, namespace: str) -> list[Right]:
    """Return those of `rights` that Seaway lacks, without those for groups that the server does not have.

    Parameters
    ----------
    namespace
        Namespace of a tenant.

    Raises
    ------
    ApiError, UnavailableError
        When the server refuses the question, or does not answer.
    """
    groups = {each.name for each in read_body(await api.get("/apis"), _Groups).groups} | {""}
    asked = [
        right
        for verbs, where in ((rights.cluster, ""), (rights.tenants, namespace))
        for right in _each(verbs, where)
        if right.group in groups
    ]
    allowed = await asyncio.gather(*(_allowed(api, right) for right in asked))
    return [right for right, has in zip(asked, allowed, strict=True) if not has]


def _each(verbs: Verbs, namespace: str) -> Iterable[Right]:
    return (Right(resource, verb, namespace) for resource, each in verbs.items() for verb in each)


async def _allowed(api: Api, right: Right) -> bool:
    qualified, _, part = right.resource.partition("/")
    asked = {
        "verb": right.verb,
        "group": right.group,
        "resource": qualified.partition(".")[0],
        "subresource": part,
        "namespace": right.namespace,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    return read_body(await api.create(REVIEWS, body), _Review).status.allowed


def describe(missing: Sequence[Right]) -> str:
    """Return missing rights as one text, such as ``list, watch events; create services in namespace a``."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for right in missing:
        verbs.setdefault((right.resource, right.namespace), []).append(right.verb)
    return "; ".join(
        f"{', '.join(each)} {resource}{f' in namespace {namespace}' if namespace else ''}"
        for (resource, namespace), each in verbs.items()
    )
