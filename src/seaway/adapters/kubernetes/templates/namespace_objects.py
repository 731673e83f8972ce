"""Content of tenants' namespaces besides jobs: labels, NetworkPolicies, and objects of the operator.

References
----------
Kubernetes documentation, "Multi-tenancy", "Network Policies", "Enforce Pod Security Standards with Namespace Labels".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from seaway.adapters.kubernetes.templates.names import MANAGED_BY, MANAGER, RANK_0, ROLE, TENANT, port_name
from seaway.adapters.kubernetes.templates.safety import MAX_BYTES, kind_of, read_manifests
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import MAX_PORTS

ENFORCE = "pod-security.kubernetes.io/enforce"
RESTRICTED, BASELINE = "restricted", "baseline"

ISOLATION = "seaway-isolation"
"""Name of the NetworkPolicy for all pods of a namespace."""

RAY = "seaway-ray"
"""Name of the NetworkPolicy for heads of Ray clusters."""

DNS_PORT = 53
RAY_DASHBOARD_PORT = 8265
METADATA = (ip_network("169.254.0.0/16"), ip_network("fd00:ec2::254/128"))
"""Addresses of metadata services of clouds, which give away the credentials of nodes."""


@dataclass(frozen=True, slots=True)
class NamespaceOptions:
    """Options for the content of tenants' namespaces.

    Attributes
    ----------
    pod_security
        Level of the Pod Security Standards that the namespace enforces; empty for none.
    network_policies
        True to isolate the pods of a tenant.
    egress
        Networks that pods may connect to besides DNS and pods of the same tenant.
    own
        Objects of the operator by tenant; those of `EVERY_TENANT` are for all tenants.
    """

    pod_security: str = RESTRICTED
    network_policies: bool = True
    egress: tuple[IPv4Network | IPv6Network, ...] = ()
    own: Mapping[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)

    def objects(self, namespace: str, tenant: str) -> list[dict[str, Any]]:
        """Return the objects of a tenant's namespace. Those of the tenant replace equal ones for all tenants."""
        found = network_policies(self.egress) if self.network_policies else []
        for each in (*self.own.get(EVERY_TENANT, ()), *self.own.get(tenant, ())):
            found = [one for one in found if _identity(one) != _identity(each)]
            found.append(each)
        marks = {MANAGED_BY: MANAGER, TENANT: tenant}
        return [_placed(each, namespace, marks) for each in found]

    def namespace(self, name: str, tenant: str) -> dict[str, Any]:
        """Return a namespace; `tenant` is empty if it is for all tenants."""
        labels = {MANAGED_BY: MANAGER}
        if tenant:
            labels[TENANT] = tenant
        if self.pod_security:
            labels[ENFORCE] = self.pod_security
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


EVERY_TENANT = "_all"
"""Name for the objects of all tenants' namespaces. No tenant has it."""


def _identity(body: dict[str, Any]) -> tuple[str, str]:
    return body["kind"], body["metadata"]["name"]


def _placed(body: dict[str, Any], namespace: str, marks: dict[str, str]) -> dict[str, Any]:
    metadata = body["metadata"]
    labels = {**(metadata.get("labels") or {}), **marks}
    return {**body, "metadata": {**metadata, "namespace": namespace, "labels": labels}}


def network_policies(egress: Sequence[IPv4Network | IPv6Network] = ()) -> list[dict[str, Any]]:
    """Return the NetworkPolicies of a tenant's namespace.

    Pods may connect to each other and to DNS servers. Everybody may connect to the ports of jobs, and to rank 0 of
    rings. The operator of Ray
    may connect to heads of Ray clusters, from a namespace that is not a tenant's.
    """
    peers: list[dict[str, Any]] = [{"podSelector": {}}]
    dns = [{"port": DNS_PORT, "protocol": protocol} for protocol in ("UDP", "TCP")]
    names = [*map(port_name, range(MAX_PORTS)), RANK_0]
    ports = [{"port": name, "protocol": protocol} for protocol in ("TCP", "UDP") for name in names]
    outside = [{"to": [_block(each)]} for each in egress]
    every = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": peers}, {"ports": ports}],
        "egress": [{"to": peers}, {"ports": dns}, *outside],
    }
    operator = {
        "namespaceSelector": {"matchExpressions": [{"key": TENANT, "operator": "DoesNotExist"}]},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "kuberay-operator"}},
    }
    head = {
        "podSelector": {"matchLabels": {ROLE: "head"}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [operator], "ports": [{"port": RAY_DASHBOARD_PORT, "protocol": "TCP"}]}],
    }
    return [_policy(ISOLATION, every), _policy(RAY, head)]


def _policy(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}, "spec": spec}


def _block(network: IPv4Network | IPv6Network) -> dict[str, Any]:
    left_out = [str(each) for each in METADATA if each != network and _contains(network, each)]
    return {"ipBlock": {"cidr": str(network)} | ({"except": left_out} if left_out else {})}


def _contains(network: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    return network.version == other.version and other.subnet_of(network)  # type: ignore[arg-type]  # equal versions


KINDS = {
    "ResourceQuota": "v1",
    "LimitRange": "v1",
    "NetworkPolicy.networking.k8s.io": "networking.k8s.io/v1",
}
"""Kinds that an operator may put into tenants' namespaces, with their versions."""

OWN_PREFIX = "seaway-"
"""Prefix of the names of Seaway's own objects."""


def read_tenants(folder: Path) -> dict[str, tuple[dict[str, Any], ...]]:
    """Read the manifests of a folder by tenant: each file has the name of its tenant, or of `EVERY_TENANT`.

    Raises
    ------
    RejectedError
        When the folder cannot be read or a manifest is invalid, with all errors of all files.
    """
    found: dict[str, tuple[dict[str, Any], ...]] = {}
    errors: list[RejectedError] = []
    try:
        for file in sorted(each for each in folder.iterdir() if each.suffix in (".yaml", ".yml")):
            try:
                found[file.stem] = _read_file(file)
            except RejectedError as error:
                errors += [RejectedError(each.message, where=f"{file}: {each.where}") for each in (error, *error.also)]
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}", where=str(error.filename or folder)) from None
    if errors:
        raise RejectedError(errors[0].message, where=errors[0].where, also=tuple(errors[1:]))
    return found


def _read_file(file: Path) -> tuple[dict[str, Any], ...]:
    if file.stat().st_size > MAX_BYTES:
        raise RejectedError(f"is larger than {MAX_BYTES // 1024} KiB")
    try:
        manifests = read_manifests(file.read_text("utf-8"))
    except UnicodeDecodeError:
        raise RejectedError("is not UTF-8 text") from None
    errors = [error for index, each in enumerate(manifests) for error in _errors(each, f"manifest {index + 1}")]
    if errors:
        raise RejectedError(errors[0].message, where=errors[0].where, also=tuple(errors[1:]))
    return tuple(manifests)


def _errors(body: dict[str, Any], where: str) -> Iterator[RejectedError]:
    """Yield the errors of a manifest for tenants' namespaces."""
    if KINDS.get(kind_of(body)) != body.get("apiVersion"):
        yield RejectedError(
            f"{kind_of(body) or 'no kind'!r} is not for tenants' namespaces; available: {', '.join(KINDS)}", where=where
        )
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        yield RejectedError("has no name", where=f"{where}/metadata")
        return
    if metadata["name"].startswith(OWN_PREFIX):
        yield RejectedError(f"names with {OWN_PREFIX} are Seaway's own", where=f"{where}/metadata/name")
    if extra := sorted(metadata.keys() - {"name", "labels", "annotations"}):
        yield RejectedError(f"{', '.join(extra)}: Seaway sets it, leave it out", where=f"{where}/metadata")
    if not all(isinstance(metadata.get(name), dict | None) for name in ("labels", "annotations")):
        yield RejectedError("labels and annotations must have fields", where=f"{where}/metadata")
