"""Names and content of tenants' namespaces."""

from __future__ import annotations

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.kubernetes.templates.catalog import read_folder
from seaway.adapters.kubernetes.templates.namespace_objects import (
    EVERY_TENANT,
    NamespaceOptions,
    network_policies,
    read_tenants,
)
from seaway.adapters.kubernetes.templates.namespaces import Namespaces, namespace_of
from seaway.adapters.kubernetes.templates.registry import problems, render
from seaway.adapters.kubernetes.templates.safety import Rules
from seaway.domain.errors import RejectedError
from seaway.domain.tenancy import NAME
from tests.unit.adapters.kubernetes.templates.sample import deployment, many, options

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
TEMPLATE = "seaway-{tenant}"
TENANTS = st.one_of(
    st.from_regex(NAME, fullmatch=True), st.text("ab-.", min_size=1, max_size=63).filter(NAME.fullmatch)
)


@pytest.mark.parametrize(
    ("tenant", "namespace"),
    [
        ("vision", "seaway-vision"),
        ("0", "seaway-0"),
        ("a.b", r"seaway-a-b--[a-z2-7]{16}"),
        ("a--b", r"seaway-a-b--[a-z2-7]{16}"),
        ("x" * 63, r"seaway-x{38}--[a-z2-7]{16}"),
    ],
)
def test_a_namespace_has_the_name_of_its_tenant(tenant: str, namespace: str) -> None:
    """A name that is not a DNS label, or is too long, gets a digest."""
    assert re.fullmatch(namespace, Namespaces().of(tenant))


@given(TENANTS, TENANTS)
def test_two_tenants_never_share_a_namespace(one: str, other: str) -> None:
    """Namespaces are DNS labels, and differ if the tenants differ, also from the digest of another tenant."""
    names = [namespace_of(TEMPLATE, each) for each in (one, other)]
    assert all(LABEL.fullmatch(each) for each in names)
    assert (names[0] == names[1]) is (one == other)
    imitation = names[0].removeprefix("seaway-")
    assert imitation == one or namespace_of(TEMPLATE, imitation) != names[0]


@pytest.mark.parametrize(
    "template",
    ["{tenant}", "{tenant}-gpu", "kube-{tenant}", "karmada-{tenant}", "A-{tenant}", "a" * 64, "-a", "a-{tenant}-"],
)
def test_a_template_that_could_name_others_namespaces_is_rejected(template: str) -> None:
    """Without a prefix of its own, a tenant named kube-system would have its jobs there."""
    with pytest.raises(RejectedError) as refused:
        Namespaces(template)
    assert refused.value.where == "[clusters] namespace"


def test_objects_belong_to_seaway_in_the_namespace_of_their_tenant() -> None:
    """So does an object of an earlier version in the shared namespace, but not one of another Seaway."""
    names = Namespaces()
    assert names.owns("seaway-vision", "vision")
    assert names.owns("seaway", "vision")
    assert not names.owns("seaway-vision", "speech")
    assert not names.owns("seaway-lab-vision", "vision")
    assert (names.matches("seaway-x"), names.matches("seaway-"), names.matches("kube-system")) == (True, False, False)


def test_one_namespace_for_all_tenants_is_listed_alone() -> None:
    """Such a Seaway needs no rights in other namespaces; former namespaces count only if they are set."""
    assert (Namespaces("gpu").scope, Namespaces("gpu").shared) == ("gpu", "gpu")
    assert (Namespaces("gpu", ("old",)).scope, Namespaces().scope, Namespaces().shared) == ("", "", "seaway")
    assert Namespaces("gpu", (TEMPLATE,)).owns("seaway-vision", "vision")


def test_network_policies_deny_what_jobs_do_not_need() -> None:
    """Pods reach each other, DNS and the given networks, but no metadata service; others reach the jobs' ports."""
    every, ray = network_policies([ip_network("0.0.0.0/0"), ip_network("10.1.0.0/16")])
    for each in (every, ray):
        kubernetes_validate.validate(each, "1.36", strict=True)
    spec = every["spec"]
    assert (spec["podSelector"], spec["policyTypes"]) == ({}, ["Ingress", "Egress"])
    peers, dns, *outside = spec["egress"]
    assert (peers, {each["port"] for each in dns["ports"]}) == ({"to": [{"podSelector": {}}]}, {53})
    assert [each["to"][0]["ipBlock"] for each in outside] == [
        {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]},
        {"cidr": "10.1.0.0/16"},
    ]
    inside, served = spec["ingress"]
    assert inside == {"from": [{"podSelector": {}}]}
    assert "from" not in served
    job = many(render(deployment(), options()), "Job")[0]
    (port,) = job["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert {"port": port["name"], "protocol": "TCP"} in served["ports"]
    (operator,) = ray["spec"]["ingress"][0]["from"]
    assert operator.keys() == {"namespaceSelector", "podSelector"}


QUOTA = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: quota}\nspec: {hard: {pods: '%s'}}\n"


def test_objects_of_a_tenant_replace_those_of_all(tmp_path: Path) -> None:
    """A file has objects for one tenant, or for every tenant; all get the namespace and Seaway's labels."""
    (tmp_path / f"{EVERY_TENANT}.yaml").write_text(QUOTA % 10, "utf-8")
    (tmp_path / "vision.yaml").write_text(QUOTA % 2, "utf-8")
    content = NamespaceOptions(own=read_tenants(tmp_path))

    def quota(tenant: str) -> Any:  # noqa: ANN401  # an object
        found = content.objects(f"seaway-{tenant}", tenant)
        (one,) = (each for each in found if each["kind"] == "ResourceQuota")
        assert one["metadata"]["namespace"] == f"seaway-{tenant}"
        assert one["metadata"]["labels"]["seaway.io/tenant"] == tenant
        return one["spec"]["hard"]["pods"]

    assert (quota("vision"), quota("speech")) == ("2", "10")
    assert NamespaceOptions(network_policies=False).objects("seaway-a", "a") == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (QUOTA.replace("ResourceQuota", "Secret"), "is not for tenants' namespaces"),
        (QUOTA.replace("name: quota", "name: seaway-isolation"), "are Seaway's own"),
        (QUOTA.replace("name: quota", "name: quota, namespace: kube-system"), "namespace: Seaway sets it"),
        (QUOTA.replace("{name: quota}", "{}"), "has no name"),
        (QUOTA.replace("name: quota", "name: quota, labels: 1"), "must have fields"),
        ("", "has no manifest"),
    ],
)
def test_other_objects_are_rejected_at_the_start(text: str, says: str, tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / "vision.yaml").write_text(text.replace("%s", "1"), "utf-8")
    with pytest.raises(RejectedError, match=says) as refused:
        read_tenants(tmp_path)
    assert "vision.yaml" in refused.value.where


OWN = """\
apiVersion: batch/v1
kind: Job
metadata: {name: '${name}'}
spec:
  completions: ${replicas}
  template: {spec: {restartPolicy: Never, %scontainers: [{name: main, image: 'a:1'%s}]}}
"""


@pytest.mark.parametrize(
    ("pod", "container", "loosens"),
    [
        ("", "", False),
        ("securityContext: {runAsUser: 7}, volumes: [{name: a, emptyDir: {}}], ", "", False),
        ("securityContext: {runAsNonRoot: false}, ", "", True),
        ("volumes: [{name: a, nfs: {server: b, path: /}}], ", "", True),
        ("", ", securityContext: {runAsUser: 0}", True),
        ("", ", securityContext: {capabilities: {drop: [NET_RAW]}}", True),
    ],
)
def test_a_template_that_loosens_its_pods_is_known(pod: str, container: str, tmp_path: Path, *, loosens: bool) -> None:
    """Its namespace must allow such pods, or the template could never run."""
    (tmp_path / "own.yaml").write_text(OWN % (pod, container), "utf-8")
    assert read_folder(tmp_path, Rules(), {})["own"].loosens_pods is loosens


@pytest.mark.parametrize(
    "label",
    ["app.kubernetes.io/name", "app.kubernetes.io/component", "seaway.io/tenant", "seaway.io/leads", "x.seaway.io/a"],
)
def test_jobs_may_not_set_labels_that_others_select(label: str) -> None:
    """Services, disruption budgets, network policies and exporters select pods by them."""
    (error,) = problems(deployment(labels={label: "seaway"}).spec, options())
    assert (error.where, repr(label) in error.message) == ("labels", True)
