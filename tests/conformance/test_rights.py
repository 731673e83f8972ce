"""The rights in deploy/kubernetes are those that Seaway uses: they cover its requests, and little else."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import kubernetes_validate  # type: ignore[import-untyped]  # ships no types
import pytest
import yaml

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions, KubernetesCluster
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.adapters.kubernetes.leadership import Candidate, LeaseDurations, PodLeaderLabel
from seaway.adapters.kubernetes.rights import DIRECT, KARMADA, Rights
from seaway.adapters.kubernetes.templates.namespace_objects import EVERY_TENANT, NamespaceOptions
from seaway.adapters.kubernetes.templates.registry import BUILT_IN
from seaway.adapters.kubernetes.templates.safety import KINDS
from seaway.adapters.kubernetes.usage.measured import Exporters
from seaway.adapters.kubernetes.usage.scraping import Scraping
from seaway.application.ports.backend import Removal
from seaway.application.ports.sessions import SessionKind, SessionRequest
from seaway.domain.errors import SeawayError, UnavailableError
from tests.conformance.test_kubernetes_backends import furnish, wait
from tests.conformance.test_own_templates import WITH
from tests.fakes.kubernetes import ApiServer, KarmadaWorld
from tests.fakes.kubernetes.exchange import Answer, Request
from tests.fakes.kubernetes.kinds import PODS
from tests.unit.adapters.kubernetes.templates.sample import deployment, share

MANIFESTS = Path(__file__).parents[2] / "deploy" / "kubernetes"
FILES = sorted(MANIFESTS.glob("*.yaml"))
VERSION = "1.36"
WAIT_S = 30.0
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}

FOR_EVERYBODY = ("/livez", "/version", "/api", "/apis")
"""Paths that Kubernetes' own roles ``system:public-info-viewer`` and ``system:discovery`` allow for all clients."""

CONNECTIONS = {f"pods/{each.value}" for each in SessionKind}
"""Subresources that connect to containers."""

KNOWN_ROLES = {("ClusterRole", "seaway-deploy")}
"""Roles that another manifest binds: `namespaces.yaml` in all namespaces, or `tenant.yaml` in one."""

ISOLATES = "NetworkPolicy.networking.k8s.io"
LIMITED = ClusterOptions(
    namespace_options=NamespaceOptions(
        own={
            EVERY_TENANT: (
                {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": {"hard": {}}},
                {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": {"limits": []}},
            )
        }
    )
)
"""Options with each kind of objects in tenants' namespaces."""

CLAIMS = "resourceclaimtemplates.resource.k8s.io"
UNSEEN = {
    ("", verb, CLAIMS): "written for devices that are asked for by claims; nodes here have none"
    for verb in ("create", "patch", "delete")
}
"""Allowed rights that this test does not use: by namespace, verb and resource, with the reason."""


IRREGULAR = {"Ingress": "ingresses", "NetworkPolicy": "networkpolicies"}


def plural_of(kind: str) -> str:
    """Return the plural of a kind as in rights, like ``jobs.batch`` for ``Job.batch``."""
    name, dot, group = kind.partition(".")
    return IRREGULAR.get(name, f"{name.lower()}s") + dot + group


OWN_KINDS = {plural_of(each) for each in KINDS}
"""Kinds that users' templates may write."""


class Right(NamedTuple):
    """A request to an API server, or the permission for it."""

    namespace: str
    verb: str
    resource: str
    """Like ``jobs.batch`` or ``pods/log``."""

    name: str = ""


@dataclass
class Asked:
    """The requests to a server."""

    rights: set[Right]

    async def __call__(self, request: Request) -> Answer | None:
        """Record a request, and leave it to the server."""
        self.rights |= set(needed(request))
        return None


def needed(request: Request) -> Iterator[Right]:
    """Yield the rights that an API server checks for a request, from its request info."""
    parts = request.path.strip("/").split("/")
    plain = parts[0] == "api"
    if f"/{parts[0]}" in FOR_EVERYBODY and len(parts) <= (2 if plain else 3):
        return
    group, rest = ("", parts[2:]) if plain else (parts[1], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, part = (*rest, "", "")[:3]
    qualified = f"{plural}.{group}" if group else plural
    verb = VERBS[request.method]
    if verb == "get" and not name:
        verb = "watch" if request.watches else "list"
    yield Right(namespace, verb, f"{qualified}/{part}" if part else qualified, name)
    if f"{qualified}/{part}" in CONNECTIONS:
        yield Right(namespace, "create", f"{qualified}/{part}", name)  # since Kubernetes 1.35, for web sockets
    if verb == "patch" and b"apply" in request.headers.get(b"content-type", b""):
        yield Right(namespace, "create", qualified)  # a missing object is created


def objects(*files: str) -> list[dict[str, Any]]:
    """Read manifests."""
    return [each for file in files for each in yaml.safe_load_all((MANIFESTS / file).read_text(encoding="utf-8"))]


def allowed(*files: str) -> set[Right]:
    """Return the rights in manifests, whose roles must all be bound to Seaway's account."""
    found, roles, bound = set(), set(), set()
    for each in objects(*files):
        if each["kind"] in {"Role", "ClusterRole"}:
            roles.add((each["kind"], each["metadata"]["name"]))
            found |= set(_rights(each["rules"], each["metadata"].get("namespace", "")))
        elif each["kind"] in {"RoleBinding", "ClusterRoleBinding"}:
            bound.add((each["roleRef"]["kind"], each["roleRef"]["name"]))
            assert {"kind": "ServiceAccount", "name": "seaway", "namespace": "seaway"} in each["subjects"]
            assert each["kind"] == f"{each['roleRef']['kind']}Binding"
    assert bound <= roles | KNOWN_ROLES
    assert roles - bound <= KNOWN_ROLES
    return found


def _rights(rules: Iterable[dict[str, Any]], namespace: str) -> Iterator[Right]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                plural, slash, part = resource.partition("/")
                qualified = (f"{plural}.{group}" if group else plural) + slash + part
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames", [""]):
                        yield Right(namespace, verb, qualified, name)


def covering(right: Right) -> set[Right]:
    """Return the rights that each include a right: for its namespace or all, for its name or all."""
    return {right._replace(namespace=where, name=name) for where in ("", right.namespace) for name in ("", right.name)}


def is_tried(right: Right) -> bool:
    """Report whether a request is tried once at the start, and is optional.

    Remaining objects of deleted templates are looked up this way.
    """
    return (right.namespace, right.verb) in (("", "list"), ("seaway", "list")) and right.resource in OWN_KINDS


def prove(asked: set[Right], *files: str) -> None:
    """Check that all requests are allowed, and that all rights are used or known to be necessary."""
    rights = allowed(*files)
    assert sorted(each for each in asked if not covering(each) & rights and not is_tried(each)) == []
    used = {right for each in asked for right in covering(each)}
    assert sorted(each for each in rights - used if each[:3] not in UNSEEN) == []


def drive(cluster: KubernetesCluster, member: ApiServer, templates: Iterable[str] = BUILT_IN) -> None:
    """Run a job of every template in a cluster, read a log, connect to a container, and remove them all."""
    wait(lambda: _is_observed(cluster), "the first list")
    made = []
    for number, template in enumerate(sorted(templates)):  # the first, a deployment, has pods
        placed = [("node-1", (share("GPU-node-1-0"),))]
        made.append(replace(deployment(template, placed, attempt=number + 1), cluster="alpha"))
    answers = [each.result(WAIT_S) for each in cluster.send(made)]
    assert [each.reason for each in answers if not each.done] == []
    wait(lambda: bool(member.list(PODS, "seaway-default")), "pods")
    wait(lambda: _reads_a_log(cluster, made[0].job_id), "a log")
    for kind in SessionKind:
        wanted = SessionRequest(kind, command=("true",), port=9)
        cluster.open_session(f"sw-{made[0].job_id}-1", 0, wanted).result(WAIT_S).close()
    removals = [Removal(each.job_id, each.attempt, "alpha") for each in made]
    wait(lambda: all(each.result(WAIT_S).done for each in cluster.send(removals)), "the end of it all")


def _is_observed(cluster: KubernetesCluster) -> bool:
    try:
        return cluster.changes("", 0).complete
    except UnavailableError:
        return False


def _reads_a_log(cluster: KubernetesCluster, job: str) -> bool:
    try:
        list(cluster.logs(f"sw-{job}-1", 0, 10))
    except SeawayError:
        return False
    return True


def written(asked: Iterable[Right]) -> set[str]:
    """Return the namespaces that are written to, and the cluster-scoped resources."""
    writes = {*VERBS.values()} - {"get"}
    return {
        each.namespace or each.resource for each in asked if each.verb in writes and each.resource not in CONNECTIONS
    }


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_a_cluster_that_is_driven_directly() -> None:
    """A member's roles allow Seaway's requests there, and no more."""
    asked = Asked(set())
    with ApiServer("alpha") as server, _folder() as folder:
        furnish(server)
        server.app.before.append(asked)
        server.kubeconfig(folder / "alpha")
        backends = KubernetesBackends(folder, LIMITED, seed=1)
        try:
            drive(backends.clusters()[0], server)
        finally:
            backends.close()
    prove(asked.rights, "member.yaml", "namespaces.yaml")
    assert written(asked.rights) == {"seaway-default", "namespaces"}


def test_a_cluster_with_templates_of_your_own() -> None:
    """Beside a member's rights they need rights for the kinds that they write, which are also watched."""
    asked = Asked(set())
    with ApiServer("alpha") as server, _folder() as folder:
        furnish(server)
        server.app.before.append(asked)
        server.kubeconfig(folder / "alpha")
        backends = KubernetesBackends(folder, ClusterOptions(templates=WITH), seed=1)
        try:
            drive(backends.clusters()[0], server, WITH)
        finally:
            backends.close()
    rights = allowed("templates.yaml")
    beside = rights | allowed("member.yaml", "namespaces.yaml")
    assert [each for each in asked.rights if not covering(each) & beside] == []
    own = {each for each in rights if each.resource in {"configmaps", "statefulsets.apps"}}
    assert own <= {each._replace(name="", namespace="") for each in asked.rights}


def test_templates_may_write_what_has_rights() -> None:
    """Templates may write exactly the kinds that the rights of the preceding test cover."""
    built_in = {each.resource for each in allowed("member.yaml", "namespaces.yaml")} - {plural_of(ISOLATES)}
    rights = allowed("templates.yaml")
    assert {each.resource for each in rights} == OWN_KINDS - built_in
    verbs = {"list", "watch", "create", "patch", "delete"}
    assert {each[:3] for each in rights} == {("", verb, each) for verb in verbs for each in OWN_KINDS - built_in}
    assert allowed("karmada-member-templates.yaml") == {each for each in rights if each.verb in {"list", "watch"}}


def test_karmada_and_a_member_behind_its_proxy() -> None:
    """In Karmada Seaway may write, and in members only read and connect to containers."""
    control, behind = Asked(set()), Asked(set())
    world = KarmadaWorld(["alpha"])
    with _folder() as folder:
        world.control.app.before.insert(0, control)
        world.members["alpha"].app.before.append(behind)
        world.open()
        furnish(world.members["alpha"])
        backends = KarmadaBackends(world.kubeconfig(folder / "karmada"), LIMITED, seed=1)
        try:
            drive(backends.clusters()[0], world.members["alpha"], BUILT_IN.keys() - {"kueue"})  # direct access only
        finally:
            backends.close()
            world.close()
    prove(control.rights, "karmada.yaml", "namespaces.yaml")
    prove(behind.rights, "karmada-member.yaml")
    assert written(control.rights) == {"seaway-default", "namespaces"}
    assert written(behind.rights) == set()


def test_reading_real_use() -> None:
    """Reading real use needs one more right, only in the namespace of the exporters."""
    asked = Asked(set())
    exporters = (Exporters("app=dcgm", 9400, "kube-system"),)
    with ApiServer("alpha") as server, _folder() as folder:
        furnish(server)
        server.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "dcgm", "namespace": "kube-system", "labels": {"app": "dcgm"}},
                "spec": {"nodeName": "node-1", "containers": [{"name": "exporter", "image": "exporter"}]},
            }
        )
        server.serve_page("kube-system", "dcgm", 9400, b'DCGM_FI_DEV_FB_USED{UUID="GPU-node-1-0"} 1\n')
        server.app.before.insert(0, asked)
        server.kubeconfig(folder / "alpha")
        backends = KubernetesBackends(folder, ClusterOptions(scraping=Scraping(0.1, exporters)), seed=1)
        try:
            (cluster,) = backends.clusters()
            wait(lambda: bool(cluster.usage()), "real use")
        finally:
            backends.close()
    more = Right("kube-system", "get", "pods/proxy", "dcgm:9400")
    assert more in asked.rights
    assert allowed("usage.yaml") == {Right(each, "get", "pods/proxy") for each in ("kube-system", "gpu-operator")}
    beside = allowed("member.yaml", "usage.yaml")
    assert [each for each in asked.rights if not covering(each) & beside and not is_tried(each)] == []


def test_where_seaway_itself_runs() -> None:
    """The Lease is read, created, renewed and released, and the own pod is labelled; no other object is touched."""
    asked = Asked(set())
    with ApiServer("alpha") as server, _folder() as folder:
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seaway"}})
        spec = {"containers": [{"name": "seaway", "image": "seaway:1"}]}
        meta = {"name": "me", "namespace": "seaway"}
        server.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        server.app.before.append(asked)
        credentials = Credentials(server.kubeconfig(folder / "alpha"), "alpha")

        async def lead() -> None:
            api = Api("alpha", credentials)
            candidate = Candidate(api, "seaway", "seaway", "me", LeaseDurations())
            assert await candidate.attempt()
            assert await candidate.attempt()
            await candidate.release()
            assert not await PodLeaderLabel(api, "seaway", "me").show(leads=True)
            await api.close()

        reactor = EventLoopThread()
        try:
            reactor.run(lead(), WAIT_S)
        finally:
            reactor.close()
    prove(asked.rights, "leader.yaml")


@pytest.mark.parametrize(
    ("rights", "files"),
    [
        (DIRECT, ("member.yaml", "namespaces.yaml")),
        (KARMADA, ("karmada.yaml", "namespaces.yaml")),
    ],
)
def test_the_doctor_asks_for_exactly_the_rights_of_the_manifests(rights: Rights, files: tuple[str, ...]) -> None:
    """Rights in tenants' namespaces are those of role ``seaway-deploy``; all others are in the whole cluster."""
    asked = {(verb, resource) for part in rights for resource, verbs in part.items() for verb in verbs}
    assert asked == {(each.verb, each.resource) for each in allowed(*files)}
    roles = {each["metadata"]["name"]: each for each in objects(*files) if each["kind"] == "ClusterRole"}
    deploys = set(_rights(roles["seaway-deploy"]["rules"], ""))
    assert {(verb, resource) for resource, verbs in rights.tenants.items() for verb in verbs} == {
        (each.verb, each.resource) for each in deploys
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_manifests_are_valid(file: Path) -> None:
    """Every manifest is valid by Kubernetes' schemas, and no rule allows everything on a resource."""
    for each in objects(file.name):
        kubernetes_validate.validate(each, VERSION, strict=True)
        for rule in each.get("rules", ()):
            assert "*" not in {value for values in rule.values() for value in values}
