"""Bindings that Karmada does not let Seaway schedule: waiting callers get Karmada's message."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.adapters.kubernetes.deploy import bindings
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.application.ports.backend import Answer
from seaway.testing.backends import BackendUnderTest, deploy
from tests.conformance.test_kubernetes_backends import OPTIONS, Under, furnish
from tests.fakes.kubernetes import KarmadaWorld

WAIT_S = 30.0
"""Time limit, shorter than the wait for a binding."""

PATCHED = "*/resourcebindings/*"


@pytest.fixture
def world() -> Iterator[KarmadaWorld]:
    """Start a Karmada with one member."""
    with KarmadaWorld(["alpha"]) as made:
        furnish(made.members["alpha"])
        yield made


@pytest.fixture
def under(world: KarmadaWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BackendUnderTest]:
    """Join it, with immediate retries."""
    monkeypatch.setattr(bindings, "RETRY_INTERVAL_S", 0.01)
    backends = KarmadaBackends(world.kubeconfig(tmp_path / "karmada"), OPTIONS, seed=1)
    yield Under(world.members["alpha"], backends.clusters()[0], backends.close, world.control).made()
    backends.close()


def answer(under: BackendUnderTest, template: str = "job") -> Answer:
    """Deploy, and wait for the result."""
    made = deploy(under)
    (sent,) = under.backend.send([replace(made, spec=replace(made.spec, template=template))])
    assert isinstance(sent, Future)
    return sent.result(WAIT_S)


@pytest.mark.parametrize("code", [403, 422])
def test_a_binding_that_may_not_be_scheduled_refuses_the_job(
    code: int, under: BackendUnderTest, world: KarmadaWorld
) -> None:
    """Without the right, or with a webhook against it, the answer reports that without a wait."""
    world.control.faults.error(code, PATCHED, method="PATCH")
    found = answer(under)
    assert (found.done, found.refused, found.by) == (False, True, "Karmada")
    assert "fault" in found.reason


def test_what_karmada_does_not_take_is_refused_by_it(under: BackendUnderTest, world: KarmadaWorld) -> None:
    """No other member helps if the control plane rejects a Job, or does not know the kind."""
    fault = world.control.faults.error(422, "*/jobs/*", method="PATCH")
    assert answer(under).by == "Karmada"
    world.control.faults.end(fault)
    world.control.faults.error(404, "/apis/kubeflow.org/*")
    found = answer(under, "pytorchjob")
    assert (found.refused, found.by) == (True, "Karmada")
    assert "Karmada does not know PyTorchJob" in found.reason


def test_what_a_member_could_not_have_is_not_refused_by_karmada(under: BackendUnderTest) -> None:
    """The member did not reject it: another member may accept it."""
    found = answer(under, "kueue")
    assert (found.refused, found.everywhere, found.by) == (True, True, "")


@pytest.mark.parametrize(("code", "times"), [(401, 3), (403, 1)])
def test_what_may_pass_is_given_again(code: int, times: int, under: BackendUnderTest, world: KarmadaWorld) -> None:
    """An expired token, and a right that is not active yet, do not reject a job."""
    world.control.faults.error(code, PATCHED, method="PATCH", times=times)
    assert answer(under) == Answer(done=True)
