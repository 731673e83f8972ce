"""Discovery of exporter pods."""

from __future__ import annotations

import pytest

from seaway.adapters.kubernetes.objects.core import Meta, PodObject, PodSpec, PodStatus
from seaway.adapters.kubernetes.usage.measured import Exporters, exporter_of, read_exporters
from seaway.bootstrap.settings import UsageSettings
from seaway.domain.errors import RejectedError


def test_the_default_finds_hami_and_both_ways_to_install_dcgm() -> None:
    """HAMi's device plugin contains its monitor; DCGM's chart and NVIDIA's operator label exporters differently."""
    assert read_exporters(UsageSettings().exporters) == (
        Exporters("app.kubernetes.io/component=hami-device-plugin", 9394, "kube-system"),
        Exporters("app.kubernetes.io/name=dcgm-exporter", 9400, "gpu-operator"),
        Exporters("app=nvidia-dcgm-exporter", 9400, "gpu-operator"),
    )


def test_a_namespace_narrows_where_they_are_looked_for() -> None:
    """Other users' pods are then ignored, and rights can be narrower."""
    (found,) = read_exporters(" app=dcgm,tier=node:9400@gpu-operator ;")
    assert found == Exporters("app=dcgm,tier=node", 9400, "gpu-operator")
    assert found.collection == "/api/v1/namespaces/gpu-operator/pods"
    assert read_exporters("") == ()


@pytest.mark.parametrize(
    "text", ["app=dcgm", "app=dcgm:", "app=dcgm:0", "app=dcgm:65536", ":9400", "a:1@", "a b:1", "a:1@B/c"]
)
def test_what_is_written_otherwise_is_refused(text: str) -> None:
    """The error comes at the start, with the setting's name."""
    with pytest.raises(RejectedError, match="PORT") as refused:
        read_exporters(f"a=b:1; {text}")
    assert refused.value.where == "[clusters] usage.exporters"


@pytest.mark.parametrize(
    ("node", "phase", "deleted", "runs"),
    [
        ("n", "Running", "", True),
        ("", "Running", "", False),
        ("n", "Pending", "", False),
        ("n", "Running", "now", False),
    ],
)
def test_only_a_pod_that_runs_is_read(node: str, phase: str, deleted: str, *, runs: bool) -> None:
    """A pending or terminating pod does not answer."""
    pod = PodObject(
        Meta(name="p", namespace="gpu", deletion_timestamp=deleted), PodSpec(node_name=node), PodStatus(phase=phase)
    )
    found = exporter_of(pod, 9400, 0)
    assert (found is not None) is runs
    if found:
        assert found.path == "/api/v1/namespaces/gpu/pods/p:9400/proxy/metrics"
