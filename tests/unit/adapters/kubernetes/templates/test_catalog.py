"""Properties of jobs from their templates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seaway.adapters.kubernetes.templates.catalog import TemplateCatalog
from seaway.adapters.kubernetes.templates.context import Exposure
from seaway.adapters.kubernetes.templates.runtime import Mounting
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import Expose, JobSpec, ServiceType
from seaway.domain.runtime import Run, Runtime, Volume, VolumeKind
from tests.unit.adapters.kubernetes.templates.test_user import RANKED

OWN = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: ${name}
  annotations: {seaway.io/single-cluster: "true", seaway.io/restarts: "true"}
spec:
  parallelism: ${replicas}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: main:1}]
"""


@pytest.mark.parametrize(
    ("template", "together", "returns"),
    [
        ("job", False, False),
        ("deployment", False, True),
        ("torchrun", False, False),
        ("pytorchjob", True, False),
        ("raycluster", True, True),
        ("rayjob", True, False),
        ("own", True, True),
        ("not-there", False, False),
    ],
)
def test_templates_settle_what_a_job_is(tmp_path: Path, template: str, together: bool, returns: bool) -> None:
    """For every submitter, the scheduler gets the gang, and the control loop the restart policy."""
    (tmp_path / "own.yaml").write_text(OWN)
    with_template_traits = TemplateCatalog(tmp_path).with_template_traits(
        JobSpec("train", Demand(ResourceRequest()), 2, template=template)
    )
    assert (with_template_traits.single_cluster, with_template_traits.restarts) == (together, returns)
    assert not with_template_traits.ends_in_parts
    seen = with_template_traits.job("x")
    assert (seen.gang, seen.single_cluster) == (together, together)


def test_another_template_settles_again() -> None:
    """The earlier template's properties are dropped; the user's own stay."""
    offer, gang = TemplateCatalog(), JobSpec("train", Demand(ResourceRequest()), 2, gang=True, template="raycluster")
    with_template_traits = offer.with_template_traits(gang)
    again = offer.with_template_traits(
        JobSpec("train", with_template_traits.demand, 2, gang=with_template_traits.gang, template="job")
    )
    assert (again.gang, again.single_cluster, again.restarts) == (True, False, False)


@pytest.mark.parametrize(
    ("fields", "ring", "together"),
    [
        ({}, "NodePort", False),
        ({"env": {"MASTER_PORT": "1234"}}, "NodePort", True),  # another cluster would use it at another address
        ({}, "", True),
        ({"env": {"MASTER_ADDR": "db.example"}}, "", False),
        ({"command": ()}, "", False),
        ({"gang": False}, "", False),
        ({"template": "torchrun", "gang": False}, "", True),
        ({"template": "kueue"}, "", True),
        ({"template": "own"}, "NodePort", True),
        ({"template": "own", "ring": True}, "NodePort", False),
    ],
)
def test_replicas_without_an_address_of_replica_0_elsewhere_stay_in_one_cluster(
    tmp_path: Path, fields: dict[str, Any], ring: str, together: bool
) -> None:
    """Those that meet there could not find each other. A ring is rejected instead."""
    (tmp_path / "own.yaml").write_text(RANKED)
    given = {"gang": True, "command": ("train",), "env": {}, **fields}
    run = Run("image:1", given.pop("command"), env=tuple(given.pop("env").items()))
    spec = JobSpec("train", Demand(ResourceRequest()), 2, run=run, **given)
    found = TemplateCatalog(tmp_path, exposure=Exposure(ring=ring)).with_template_traits(spec)
    assert found.single_cluster is together


EXPOSURE = Exposure((ServiceType.CLUSTER_IP, ServiceType.INGRESS), domain="apps.example.com")


@pytest.mark.parametrize(
    ("exposure", "expose", "where"),
    [
        (EXPOSURE, Expose(ServiceType.INGRESS), None),
        (EXPOSURE, Expose(ServiceType.INGRESS, "chat.apps.example.com"), None),
        (EXPOSURE, Expose(ServiceType.INGRESS, "chat.example.com"), "expose.host"),
        (EXPOSURE, Expose(ServiceType.INGRESS, "badapps.example.com"), "expose.host"),
        (replace(EXPOSURE, domain=""), Expose(ServiceType.INGRESS, "chat.example.com"), None),
        (replace(EXPOSURE, domain=""), Expose(ServiceType.INGRESS), "expose.host"),
        (EXPOSURE, Expose(ServiceType.NODE_PORT), "expose.type"),
        (Exposure(), Expose(ServiceType.NODE_PORT), None),
    ],
)
def test_a_job_is_exposed_only_as_the_operator_allows(exposure: Exposure, expose: Expose, where: str | None) -> None:
    """Its type must be allowed, and its host name must be within the operator's domain, or exist without one."""
    spec = JobSpec("chat", Demand(ResourceRequest()), run=Run("main:1", ports=(80,)), expose=expose)
    found = [each.where for each in TemplateCatalog(exposure=exposure).problems(spec)]
    assert found == ([] if where is None else [where])


@pytest.mark.parametrize(
    ("mounting", "wrong"),
    [
        (Mounting(), ["volumes[1].csi.driver"]),
        (Mounting(("s3.example",)), []),
        (Mounting(("s3.example",), shared_namespace=True), ["volumes[0].claim", "run.env_from_config_map.LEVEL"]),
    ],
)
def test_a_job_mounts_only_what_the_operator_allows(mounting: Mounting, wrong: list[str]) -> None:
    """CSI drivers are listed; in a namespace of all tenants, claims and ConfigMaps may belong to another tenant."""
    run = Run("main:1", env_from_config_map=(("LEVEL", "settings/level"),))
    volumes = (Volume("/data", VolumeKind.CLAIM, "imagenet"), Volume("/s3", VolumeKind.CSI, "s3.example"))
    job = JobSpec("train", Demand(ResourceRequest()), run=run, runtime=Runtime(volumes))
    assert [each.where for each in TemplateCatalog(mounting=mounting).problems(job)] == wrong


def test_kinds_of_routes_are_written_only_where_they_are_allowed() -> None:
    """Without them, Seaway needs no rights for them."""
    plain, routed = (TemplateCatalog(exposure=each).templates["job"].writes for each in (Exposure(), EXPOSURE))
    assert [each.kind for each in plain] == ["Job"]
    assert [each.kind for each in routed] == ["Job", "Ingress"]


def test_what_karmada_would_undo_is_refused_at_admission() -> None:
    """Workloads that change in their cluster, as with Kueue, cannot go through Karmada; all others can."""
    through, straight = TemplateCatalog(through_karmada=True), TemplateCatalog()
    run = Run(image="main:1", command=("main",))
    refused = []
    for name in through.templates:
        spec = JobSpec("job", Demand(ResourceRequest()), run=run, template=name)
        assert straight.problems(spec) == []
        refused += [each.message for each in through.problems(spec)]
    assert refused == ["a kueue must be sent directly to its cluster: Karmada would undo what is changed there"]
