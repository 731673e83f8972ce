"""Rejections of an API server that count as decisions: none that may change a moment later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.connection.responses import error_of
from seaway.adapters.kubernetes.deploy import writing
from seaway.adapters.kubernetes.templates.registry import BUILT_IN
from seaway.adapters.kubernetes.templates.safety import Rules
from seaway.adapters.kubernetes.templates.user import read_template
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.errors import UnavailableError
from seaway.testing.backends import BackendUnderTest, deploy, removal
from tests.conformance.test_kubernetes_backends import OPTIONS, Under, furnish, wait
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import JOBS, NAMESPACES

WAIT_S = 30.0
WRITES = "/apis/batch/*"
OWN = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: ${{name}}
spec:
  parallelism: ${{replicas}}
  completions: ${{replicas}}
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: 'main:1', {field}}}]
"""
WRONG = {
    "misspelt": ("imagePullPolice: Always", ".spec.template.spec.containers[0].imagePullPolice: field not declared"),
    "unreadable": ("resources: {limits: {ephemeral-storage: much}}", "quantities must match"),
}
"""Templates of users with an invalid part, and the server's message."""

OWN_ONES = {name: read_template(name, OWN.format(field=field), Rules()) for name, (field, _) in WRONG.items()}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Return a server without controllers."""
    with ApiServer("alpha", controllers=()) as made:
        furnish(made)
        yield made


@pytest.fixture
def under(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BackendUnderTest]:
    """Join it, with immediate retries of forbidden requests."""
    monkeypatch.setattr(writing, "FORBIDDEN_RETRY_S", 0.0)
    server.kubeconfig(tmp_path / "alpha")
    backends = KubernetesBackends(tmp_path, replace(OPTIONS, templates={**BUILT_IN, **OWN_ONES}), seed=1)
    yield Under(server, backends.clusters()[0], backends.close, server).made()
    backends.close()


def answer(under: BackendUnderTest, command: Command) -> Answer:
    """Send a command, and wait for its result."""
    (sent,) = under.backend.send([command])
    assert isinstance(sent, Future)
    return sent.result(WAIT_S)


def of(under: BackendUnderTest, template: str, attempt: int = 1) -> Deployment:
    """Create a deployment of a template."""
    made = deploy(under, attempt=attempt)
    return replace(made, spec=replace(made.spec, template=template))


@pytest.mark.parametrize("code", [401, 409])
def test_what_may_pass_is_tried_again(code: int, under: BackendUnderTest, server: ApiServer) -> None:
    """An expired token, or a conflicting write, does not reject a job."""
    refused = server.faults.error(code, WRITES, "PATCH")
    with pytest.raises(UnavailableError):
        answer(under, deploy(under))
    server.faults.end(refused)
    assert answer(under, deploy(under)).done


def test_a_cluster_that_was_not_observed_yet_is_named_once(server: ApiServer, tmp_path: Path) -> None:
    """The cluster's name and the error appear once in the message."""
    server.faults.error(503)
    server.kubeconfig(tmp_path / "alpha")
    backends = KubernetesBackends(tmp_path, OPTIONS, seed=1)

    def why() -> str:
        (sent,) = backends.clusters()[0].send([Removal("job", 1, "alpha")])
        with pytest.raises(UnavailableError) as caught:
            sent.result(WAIT_S)
        return str(caught.value)

    try:
        wait(lambda: "is being listed" not in why(), "what went wrong")
        assert why().startswith("alpha: ")
        assert why().count("alpha") == 1
    finally:
        backends.close()


def test_a_removal_that_meets_another_write_is_tried_again(under: BackendUnderTest, server: ApiServer) -> None:
    """A delete is retried like a write."""
    assert answer(under, deploy(under)).done
    server.wait_for(lambda: bool(server.store.all(JOBS)))
    server.faults.error(409, WRITES, "DELETE", times=1)
    with pytest.raises(UnavailableError):
        answer(under, removal(deploy(under)))


def test_a_namespace_that_goes_is_waited_for(under: BackendUnderTest, server: ApiServer) -> None:
    """While it terminates nothing can be created there, and that is not a decision."""
    meta = {"name": "seaway-default", "labels": {"seaway.io/tenant": "default"}, "finalizers": ["test/keep"]}
    server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    server.delete(NAMESPACES, "", "seaway-default")
    with pytest.raises(UnavailableError, match="being terminated"):
        answer(under, deploy(under))


@pytest.mark.parametrize(("template", "says"), [(name, says) for name, (_, says) in WRONG.items()])
def test_what_no_server_can_read_is_refused_in_its_words(template: str, says: str, under: BackendUnderTest) -> None:
    """The server answers 500 as for an internal error; a retry does not help."""
    said = answer(under, of(under, template))
    assert said.refused
    assert said.everywhere
    assert says in said.reason


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("etcdserver: request timed out", ""),
        ('failed calling webhook "a": field not declared in schema', "InternalError"),
        ("failed to convert new object (a/b; c) to proper version: conversion webhook for c failed: EOF", ""),
    ],
)
def test_a_server_that_failed_itself_may_do_better_later(said: str, reason: str) -> None:
    """The same is valid for webhooks that it calls, whatever their message."""
    assert error_of(500, json.dumps({"message": said, "reason": reason}).encode()).status == 500


@pytest.mark.parametrize("said", ["status unknown for quota: team", "not yet ready to handle request"])
def test_a_server_that_is_not_ready_to_judge_decides_nothing(said: str) -> None:
    """Kubernetes' own admission answers 403 until it has read its quotas and limits."""
    body = f'{{"message": "jobs.batch is forbidden: {said}", "reason": "Forbidden"}}'
    assert error_of(403, body.encode()).transient
    assert not error_of(403, b'{"message": "jobs.batch is forbidden: exceeded quota: team"}').transient


def test_what_is_not_allowed_is_believed_when_it_is_reported_twice(under: BackendUnderTest, server: ApiServer) -> None:
    """A new server may not know the rights yet; a second answer counts as a decision."""
    server.faults.error(403, WRITES, "PATCH", times=1)
    assert answer(under, deploy(under)).done
    server.faults.error(403, WRITES, "PATCH", times=2)
    said = answer(under, deploy(under, "second"))
    assert said.refused
    assert said.everywhere


@pytest.mark.parametrize(("code", "refused"), [(401, False), (403, True)])
def test_a_kind_that_cannot_be_looked_up(code: int, refused: bool, under: BackendUnderTest, server: ApiServer) -> None:
    """It is an answer like any other: retried, or a rejection."""
    server.faults.error(code, "/apis/batch/v1", "GET")
    if refused:
        assert answer(under, deploy(under)).refused
        return
    with pytest.raises(UnavailableError):
        answer(under, deploy(under))


def test_a_kind_that_was_taken_out_is_named(under: BackendUnderTest, server: ApiServer) -> None:
    """Its path was known before: the kind is missing now, and not the namespace."""
    assert answer(under, of(under, "pytorchjob")).done
    server.faults.error(404, "/apis/kubeflow.org/*")
    server.faults.error(403, "/api/v1/namespaces", "POST")
    said = answer(under, of(under, "pytorchjob", 2))
    assert said.refused
    assert said.reason == "alpha does not know PyTorchJob of kubeflow.org/v1"
