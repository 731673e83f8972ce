from __future__ import annotations

import pytest

from seaway.domain.errors import InvariantError
from seaway.domain.network import Link
from seaway.testing.plugins import cluster, fleet, gpu, job, mig_gpu, node


def test_names_are_counted_up_where_they_were_left_out() -> None:
    """Names that are given stay, and the others tell where in the fleet a thing stands."""
    whole = fleet(node(gpu(), gpu(uuid="mine")), cluster(node(), node(name="n")))
    assert [(c.name, n.name) for c, n in whole.nodes] == [
        ("cluster-0", "node-0"),
        ("cluster-1", "node-0"),
        ("cluster-1", "n"),
    ]
    assert [(device.uuid, device.index) for device in whole.devices] == [
        ("GPU-cluster-0-node-0-0", 0),
        ("mine", 1),
    ]


def test_gateways_follow_from_clusters_and_links() -> None:
    """A gateway that a cluster or a link names is part of the fleet."""
    whole = fleet(cluster(gateway="b"), links=[Link("a", "b", 1)], gateways=["c"])
    assert [gateway.name for gateway in whole.gateways] == ["c", "b", "a"]


def test_job_takes_every_figure_on_one_level() -> None:
    """Figures find their way into the request, the rules and the job itself."""
    made = job("j", gpus=1, models={"a"}, node_labels={"x": "y"}, gateway="g", max_latency_ns=5, gang=True)
    assert (made.name, made.gang, made.demand.request.gpus) == ("j", True, 1)
    assert made.demand.devices.models == frozenset({"a"})
    assert made.demand.nodes.node_labels == (("x", "y"),)
    assert (made.demand.gateway, made.demand.network.max_latency_ns) == ("g", 5)


def test_unknown_figure_is_a_bug_of_the_test() -> None:
    """A figure that no part of a job has is refused by name."""
    with pytest.raises(InvariantError, match="gpu_memory"):
        job(gpu_memory=5)


def test_mig_device_can_be_cut() -> None:
    """A device in MIG mode comes with profiles that lie within its memory."""
    device = mig_gpu()
    assert all(profile.memory_mib <= device.memory_mib for profile in device.mig_profiles)
