"""Objects of users' own templates are found after a restart, and removed, with each way of sending commands."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import KubernetesCluster
from seaway.adapters.kubernetes.collect import health
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.adapters.kubernetes.templates.registry import BUILT_IN, Templates
from seaway.adapters.kubernetes.templates.safety import Rules
from seaway.adapters.kubernetes.templates.user import read_template
from seaway.application.ports.backend import Answer, Command
from seaway.domain.deployment import Deployment, WorkloadPhase
from seaway.domain.errors import UnavailableError
from seaway.testing.backends import BackendUnderTest, deploy, removal
from tests.conformance.test_kubernetes_backends import OPTIONS, TIMEOUT_S, Under, furnish, wait
from tests.fakes.kubernetes import ApiServer, KarmadaWorld
from tests.fakes.kubernetes.kinds import (
    CLAIM_TEMPLATES,
    CONFIG_MAPS,
    OVERRIDES,
    PODS,
    POLICIES,
    REPLICA_SETS,
    STATEFUL_SETS,
)

WAIT_S = 30.0
OWN = """\
# a service of numbered replicas, with its settings
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${deployment_name}-settings
data:
  total: ${total_replicas}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: ${name}
spec:
  replicas: ${replicas}
  serviceName: none
  selector:
    matchLabels: {app: '${name}'}
  template:
    metadata:
      labels: {app: '${name}'}
    spec:
      containers: [{name: main, image: 'main:1'}]
"""
WITH = {**BUILT_IN, "own": read_template("own", OWN, Rules())}


@dataclass
class Way:
    """A cluster, and the way of sending commands to it."""

    folder: Path
    member: ApiServer
    commands: ApiServer
    """The server that gets the objects."""

    karmada: Path | None = None
    """The kubeconfig of its control plane."""

    @contextmanager
    def joined(self, templates: Templates) -> Iterator[KubernetesCluster]:
        """Run a process with these templates."""
        cluster_options = replace(OPTIONS, templates=templates)
        backends = (
            KarmadaBackends(self.karmada, cluster_options, seed=1)
            if self.karmada
            else KubernetesBackends(self.folder, cluster_options, seed=1)
        )
        try:
            yield backends.clusters()[0]
        finally:
            backends.close()

    def left(self) -> list[str]:
        """Return the names of all objects that Seaway wrote, and of their dependents."""
        marked = "app.kubernetes.io/managed-by=seaway,seaway.io/job"
        kinds = (CONFIG_MAPS, STATEFUL_SETS, *((POLICIES, OVERRIDES) if self.karmada else ()))
        found = [each for kind in kinds for each in self.commands.list(kind, "seaway-default", marked)]
        found += [
            each
            for kind in (CONFIG_MAPS, STATEFUL_SETS, PODS)
            for each in self.member.list(kind, "seaway-default", marked)
        ]
        return [each["metadata"]["name"] for each in found]


@pytest.fixture(params=["directly", "through Karmada"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    """Start servers."""
    folder = tmp_path / "kubeconfigs"
    folder.mkdir()
    if request.param == "directly":
        with ApiServer("alpha") as server:
            furnish(server)
            server.kubeconfig(folder / "alpha")
            yield Way(folder, server, server)
    else:
        with KarmadaWorld(["alpha"]) as world:
            furnish(world.members["alpha"])
            yield Way(folder, world.members["alpha"], world.control, world.kubeconfig(tmp_path / "karmada"))


def answer(cluster: KubernetesCluster, command: Command) -> Answer:
    """Send a command, and wait for its result."""
    (sent,) = cluster.send([command])
    assert isinstance(sent, Future)
    try:
        return sent.result(WAIT_S)
    except UnavailableError as error:  # Karmada was not listed yet
        return Answer(done=False, reason=str(error))


def under(way: Way, cluster: KubernetesCluster) -> BackendUnderTest:
    """Wait for the first list of a cluster."""
    return Under(way.member, cluster, lambda: None, way.commands).made()


def phases(cluster: KubernetesCluster) -> list[WorkloadPhase]:
    """Return the phases of all workloads there."""
    return [copy.phase for copy in cluster.changes("", 0).workloads]


def runs(way: Way) -> Deployment:
    """Run a job of the template in a process, and end the process."""
    with way.joined(WITH) as cluster:
        one = deploy(under(way, cluster))
        one = replace(one, spec=replace(one.spec, template="own"))
        assert answer(cluster, one).done
        wait(lambda: phases(cluster) == [WorkloadPhase.RUNNING], "the job running")
    return one


@pytest.mark.parametrize("templates", [WITH, BUILT_IN], ids=["as it was", "without the template"])
def test_a_removal_ends_after_a_restart(way: Way, templates: Templates) -> None:
    """A new process finds and removes the objects of a workload, even if the template has been deleted."""
    one = runs(way)
    assert way.left()
    with way.joined(templates) as cluster:
        wait(lambda: answer(cluster, removal(one)).done, "the removal done")
        wait(lambda: not way.left(), "nothing left")


def test_what_no_one_runs_any_more_is_removed_after_a_restart(way: Way) -> None:
    """After a user deleted the workload, its other objects remain, and the removal deletes them."""
    one = runs(way)
    for each in way.commands.list(STATEFUL_SETS, "seaway-default"):
        way.commands.delete(STATEFUL_SETS, "seaway-default", each["metadata"]["name"], propagation="Background")
    wait(lambda: not way.member.list(PODS, "seaway-default"), "no pods")
    assert way.left()
    with way.joined(WITH) as cluster:
        under(way, cluster)
        assert phases(cluster) == [WorkloadPhase.GONE]
        wait(lambda: answer(cluster, removal(one)).done, "the removal done")
        wait(lambda: not way.left(), "nothing left")


def test_claims_of_devices_are_removed_after_a_restart(way: Way) -> None:
    """Any template may write resource claims, for nodes with dynamic resource allocation."""
    one = runs(way)
    (settings,) = way.commands.list(CONFIG_MAPS, "seaway-default", f"seaway.io/job={one.job_id}")
    meta = {key: settings["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": meta}
    way.commands.create({**claim, "spec": {"spec": {"devices": {"requests": []}}}})
    with way.joined(BUILT_IN) as cluster:
        wait(lambda: answer(cluster, removal(one)).done, "the removal done")
        wait(lambda: not way.commands.list(CLAIM_TEMPLATES, "seaway-default"), "no claims")


def test_a_workload_that_vanishes_is_reported(way: Way) -> None:
    """A deleted workload is reported, also of a kind that only users' templates write, and from before the start."""
    runs(way)
    with way.joined(WITH) as cluster:
        under(way, cluster)
        cursor = cluster.changes("", 0).cursor
        for each in way.commands.list(STATEFUL_SETS, "seaway-default"):
            way.commands.delete(STATEFUL_SETS, "seaway-default", each["metadata"]["name"], propagation="Background")
        wait(
            lambda: [each.phase for each in cluster.changes(cursor, 0).workloads] == [WorkloadPhase.GONE],
            "that it is gone",
        )


def test_what_controllers_make_is_not_taken_for_ours(way: Way) -> None:
    """A Deployment's ReplicaSets have its labels; they are deleted with it, and are not workloads of their own."""
    sets = OWN.replace("StatefulSet", "ReplicaSet").replace("  serviceName: none\n", "")
    templates = {**BUILT_IN, "own": read_template("own", sets, Rules())}
    with way.joined(templates) as cluster:
        one = deploy(under(way, cluster))
        one = replace(one, spec=replace(one.spec, template="deployment"))
        assert answer(cluster, one).done
        wait(lambda: phases(cluster) == [WorkloadPhase.RUNNING], "the job running")
    assert way.member.list(REPLICA_SETS, "seaway-default", f"seaway.io/job={one.job_id}")
    with way.joined(templates) as cluster:
        under(way, cluster)
        assert {kind for kind, _ in cluster.view.objects_of((one.job_id, 1))} == {"/apis/apps/v1/deployments"}


def test_a_kind_that_may_not_be_listed_stops_nothing(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    """The missing right is logged once and counted; jobs run, and the process that wrote them removes them."""
    faults = [way.member.faults, *([way.commands.faults] if way.karmada else [])]
    for each in faults:
        each.error(403, "*/statefulsets", "GET")
    with caplog.at_level(logging.WARNING), way.joined(WITH) as cluster:
        under(way, cluster)
        state = cluster.collector_state()
        assert state.problems["forbidden"] == 1
        assert not any(state.failing_s.values())
        one = deploy(under(way, cluster))
        one = replace(one, spec=replace(one.spec, template="own"))
        assert answer(cluster, one).done
        wait(lambda: phases(cluster) == [WorkloadPhase.RUNNING], "the job running")
        wait(lambda: answer(cluster, removal(one)).done, "the removal done")
        wait(lambda: not way.left(), "nothing left")
    said = [each.getMessage() for each in caplog.records if "until Seaway may list and watch them" in each.getMessage()]
    assert len(said) == len(faults)


def test_a_removal_says_what_may_not_be_listed(way: Way) -> None:
    """After a restart such a workload is not found: its pods continue, and the removal reports the missing right."""
    one = runs(way)
    for each in (way.member.faults, way.commands.faults):
        each.error(403, "*/statefulsets", "GET")
    with way.joined(WITH) as cluster:
        under(way, cluster)
        said = answer(cluster, removal(one))
        assert not said.done
        assert "Seaway cannot list apps/v1/StatefulSet there" in said.reason


def test_a_kind_whose_listing_fails_stops_nothing(
    way: Way, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If listing a kind fails, as without its webhook, jobs still run and are removed; it is logged and counted."""
    monkeypatch.setattr(health, "OPTIONAL_TIMEOUT_S", 0.5)
    one = runs(way)
    faults = [server.faults.error(500, "*/statefulsets", "GET") for server in (way.member, way.commands)]
    with caplog.at_level(logging.WARNING), way.joined(WITH) as cluster:
        known = under(way, cluster)
        state = cluster.collector_state()
        assert state.problems["failing"] == 1
        assert state.failing_s["apps/v1/StatefulSet"] > 0
        other = deploy(known, "other")
        wait(lambda: answer(cluster, other).done, "the workload created, once the kind is ignored on each server")
        wait(lambda: phases(cluster) == [WorkloadPhase.RUNNING] * 2, "both jobs running")
        wait(lambda: answer(cluster, removal(other)).done, "the removal done")
        wait(lambda: "Seaway cannot list apps/v1/StatefulSet" in answer(cluster, removal(one)).reason, "the reason")
        for server, fault in zip((way.member, way.commands), faults, strict=True):
            server.faults.end(fault)
        wait(lambda: answer(cluster, removal(one)).done, "the removal of what is found now")
        wait(lambda: not cluster.collector_state().problems["failing"], "reports of the kind")
    said = [each.getMessage() for each in caplog.records if "is ignored until" in each.getMessage()]
    assert len(said) == (2 if way.karmada else 1)


def test_a_kind_that_begins_to_fail_leaves_its_cluster_observed(way: Way) -> None:
    """Earlier observations of the kind stay valid, and nothing else becomes stale."""
    with way.joined(WITH) as cluster:
        under(way, cluster)
        way.member.faults.error(500, "*/statefulsets", "GET")
        way.member.faults.cut_watches("*/statefulsets")
        wait(lambda: cluster.collector_state().failing_s["apps/v1/StatefulSet"] > 2 * TIMEOUT_S, "the failing kind")
        assert cluster.changes("", 0).complete
