"""Facts of real clusters: read from labels as vendors write them, and set by operators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.api.app import make_app
from seaway.application.control.dispatch import InPlace
from seaway.application.views import ClusterView
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import ServerSettings, Settings
from seaway.domain.facts import Facts, Location
from seaway.testing.clocks import VirtualClock
from tests.conformance.test_kubernetes_backends import gpu_node, wait
from tests.fakes.kubernetes import ApiServer, KarmadaWorld
from tests.fakes.kubernetes.kinds import CLUSTERS
from tests.fakes.memory_store import MemoryStore
from tests.integration.cli_runs import command_line

pytestmark = pytest.mark.anyio

A100 = "NVIDIA A100-SXM4-80GB"
EKS = {
    "topology.kubernetes.io/region": "eu-central-1",
    "topology.kubernetes.io/zone": "eu-central-1a",
    "eks.amazonaws.com/capacityType": "ON_DEMAND",
    "node.kubernetes.io/instance-type": "p4d.24xlarge",
    "feature.node.kubernetes.io/rdma.available": "true",
    "hardware.seaway.io/nvlink": "",
    "seaway.io/price-per-gpu-hour": "4.10",
}
KARPENTER = EKS | {
    "topology.kubernetes.io/zone": "eu-central-1b",
    "karpenter.sh/capacity-type": "spot",
    "seaway.io/price-per-gpu-hour": "1.25",
}


def labelled(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """Return a node of two GPUs with labels."""
    body = gpu_node(name, 2)
    body["metadata"]["labels"] |= labels
    return body


def plane_of(backends: KubernetesBackends | KarmadaBackends, store: MemoryStore | None = None) -> ControlPlane:
    """Create a control plane over clusters."""
    clock = VirtualClock()
    settings = Settings(server=ServerSettings(no_auth=True))
    return make_plane(settings, store or MemoryStore(), backends, clock, dispatcher=InPlace(clock), random=Random(1))


def seen(plane: ControlPlane, holds: Callable[[ClusterView], bool]) -> ClusterView:
    """Return the only cluster once it is as expected."""

    def known() -> bool:
        plane.controller.step()
        return any(holds(each) for each in plane.overview.clusters())

    wait(known, "the cluster")
    (cluster,) = plane.overview.clusters()
    return cluster


async def asked(  # any JSON
    plane: ControlPlane, method: str, path: str, body: object = None, status: int = 200
) -> Any:  # noqa: ANN401
    """Send a request to the API, as an admin."""
    transport = httpx.ASGITransport(make_app(plane))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.request(method, f"/api/v1{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()


async def tried(plane: ControlPlane, status: int = 200, **placement: object) -> Any:  # noqa: ANN401  # any JSON
    """Try a job of two GPUs."""
    resources = {"cpu": 1, "memory": "1Gi", "gpus": 2}
    job = {"name": "train", "run": {"image": "train"}, "resources": resources, "placement": placement}
    return await asked(plane, "POST", "/jobs?dry_run=true", job, status)


async def price_sources(plane: ControlPlane, cluster: str = "east") -> list[tuple[str | None, bool, str | None]]:
    """Return the prices of normal and of spot GPUs, whether they are spot prices, and their sources."""
    shown = await asked(plane, "GET", f"/fleet/clusters/{cluster}")
    return [(each["price_per_gpu_hour"], each["spot_price"], each["source"]) for each in shown["prices"]]


async def test_each_price_has_its_source(tmp_path: Path) -> None:
    """Set facts precede those of the settings, and these the reported ones, for spot nodes as for others."""
    known = Facts(provider="metal", prices={"A100": 4_000_000}, spot_prices={"A100": 2_000_000}, labels={"a": "b"})
    with ApiServer("east") as server:
        server.create(labelled("node-1", EKS))
        server.create(labelled("node-2", KARPENTER))
        server.kubeconfig(tmp_path / "east")
        backends = KubernetesBackends(tmp_path, ClusterOptions(known={"east": known}), seed=1)
        try:
            plane = plane_of(backends)
            seen(plane, lambda each: each.nodes == 2)
            assert await price_sources(plane) == [("4.00", False, "settings"), ("2.00", True, "settings")]
            facts = {"region": "eu", "spot_price_per_gpu_hour": {"*": "1"}}
            shown = await asked(plane, "PATCH", "/fleet/clusters/east/facts", facts)
            sources = {"region": "set", "zones": "reported", "provider": "settings", "hardware": "reported"}
            assert shown["sources"] == {**sources, "labels.a": "settings"}
            plane.controller.step()
            assert await price_sources(plane) == [("4.00", False, "settings"), ("1.00", True, "set")]
        finally:
            backends.close()


async def test_facts_are_read_from_labels_of_nodes(tmp_path: Path) -> None:
    """Region, zones and special hardware that all GPU nodes have, and prices, those of spot nodes apart."""
    with ApiServer("east") as server:
        server.create(labelled("node-1", EKS))
        server.create(labelled("node-2", KARPENTER))
        server.kubeconfig(tmp_path / "east")
        backends = KubernetesBackends(tmp_path, ClusterOptions(), seed=1)
        try:
            plane = plane_of(backends)
            facts = seen(plane, lambda each: each.nodes == 2).facts
            assert facts == Facts(
                "eu-central-1",
                ("eu-central-1a", "eu-central-1b"),
                hardware=frozenset({"rdma", "nvlink"}),
                prices={A100: 4_100_000},
                spot_prices={A100: 1_250_000},
            )
            answer = await tried(plane, hardware=["nvlink"], regions=["eu-central-1"])
            assert {each["node"]: each["price_per_hour"] for each in answer["candidates"]} == {
                "node-1": "8.20",
                "node-2": "2.50",
            }
            assert await price_sources(plane) == [("4.10", False, "reported"), ("1.25", True, "reported")]
            server.put(labelled("node-2", KARPENTER | {"seaway.io/price-per-gpu-hour": "cheap"}))
            seen(plane, lambda each: not each.facts.spot_prices)
            assert await price_sources(plane) == [("4.10", False, "reported")] * 2
            (problem,) = backends.clusters()[0].view.problems()["node/node-2"]
            assert problem.text == "'cheap' is not a price like 2.50"
        finally:
            backends.close()


async def test_an_operator_sets_what_a_cluster_does_not_report(tmp_path: Path) -> None:
    """Unknown facts are null and exclude the cluster with that reason, until they are set; they survive a restart."""
    with ApiServer("east") as server:
        server.create(gpu_node("node-1", 2))
        server.kubeconfig(tmp_path / "east")
        backends = KubernetesBackends(tmp_path, ClusterOptions(known={"east": Facts(provider="metal")}), seed=1)
        try:
            store = MemoryStore()
            plane = plane_of(backends, store)
            seen(plane, lambda each: each.nodes == 1)
            shown = await asked(plane, "GET", "/fleet/clusters/east")
            unknown = ("region", "location", "hardware", "price_per_gpu_hour", "own_facts")
            assert [shown[name] for name in unknown] == [None] * 5
            assert (shown["prices"][0]["price_per_gpu_hour"], shown["provider"]) == (None, "metal")
            assert (await tried(plane))["candidates"][0]["price_per_hour"] is None
            assert "region of the cluster is unknown" in (await tried(plane, 422, regions=["eu"]))["detail"]
            assert "price unknown" in (await tried(plane, 422, max_price_per_gpu_hour="9"))["detail"]
            assert "hardware of the cluster is unknown" in (await tried(plane, 422, hardware=["nvlink"]))["detail"]
            await asked(
                plane,
                "PATCH",
                "/fleet/clusters/east/facts",
                {"region": "eu", "hardware": [], "price_per_gpu_hour": {"A100": "2.5"}, "provider": "own"},
            )
            plane = plane_of(backends, store)
            seen(plane, lambda each: each.nodes == 1)
            shown = await asked(plane, "GET", "/fleet/clusters/east")
            assert [shown[name] for name in unknown[:4]] == ["eu", None, [], "2.50"]
            assert shown["provider"] == "own"
            assert "price above the maximum" in (await tried(plane, 422, max_price_per_gpu_hour="2"))["detail"]
            assert (await tried(plane, max_price_per_gpu_hour="2.5"))["fits"]
            assert "cluster lacks requested hardware" in (await tried(plane, 422, hardware=["nvlink"]))["detail"]
            assert (await tried(plane, regions=["eu"]))["candidates"][0]["price_per_hour"] == "5.00"
            patch = {"provider": None, "price_per_gpu_hour": {"A100": None}}
            left = await asked(plane, "PATCH", "/fleet/clusters/east/facts", patch)
            assert (left["provider"], left["price_per_gpu_hour"], left["region"]) == ("metal", None, "eu")
            assert (left["own_facts"]["provider"], left["own_facts"]["price_per_gpu_hour"]) == (None, {})
        finally:
            backends.close()


def test_facts_of_members_come_from_karmada(tmp_path: Path) -> None:
    """Region, zones and provider of the Cluster object, its labels and annotations, before those of the nodes."""
    with KarmadaWorld(["alpha"]) as world:
        world.members["alpha"].create(labelled("node-1", EKS))
        change = {
            "metadata": {
                "labels": {"team": "vision", "price-per-gpu-hour.seaway.io/A100": "3"},
                "annotations": {"seaway.io/location": "50.11,8.68"},
            },
            "spec": {"provider": "aws", "region": "eu-central", "zone": "eu-central-1a"},
        }
        world.control.patch(CLUSTERS, "", "alpha", change)
        backends = KarmadaBackends(world.kubeconfig(tmp_path / "karmada"), ClusterOptions(), seed=1)
        try:
            plane = plane_of(backends)
            facts = seen(plane, lambda each: each.nodes == 1 and bool(each.facts.provider)).facts
            assert (facts.provider, facts.region, facts.zones) == ("aws", "eu-central", ("eu-central-1a",))
            assert (facts.location, facts.labels["team"]) == (Location(50.11, 8.68), "vision")
            assert (facts.microprice(A100), facts.hardware) == (3_000_000, frozenset({"rdma", "nvlink"}))
            world.control.patch(CLUSTERS, "", "alpha", {"spec": {"zones": ["eu-central-1a", "eu-central-1b"]}})
            seen(plane, lambda each: each.facts.zones == ("eu-central-1a", "eu-central-1b"))
        finally:
            backends.close()


def test_the_command_sets_facts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`seaway cluster set` shows every fact with its source, refuses wrong values, and returns to what is reported."""
    with command_line(capsys, monkeypatch, tmp_path) as cli:
        cli.step(2)
        where = ("--location", "52.52,13.40", "--zone", "eu-1", "--zone", "eu-2", "--label", "team=a")
        done = cli("cluster", "set", "a", "--price-per-gpu-hour", "2.5", "--hardware", "none", *where, "-o", "json")
        assert done.code == 0, done.err
        body = done.body
        assert (body["price_per_gpu_hour"], body["hardware"], body["zones"]) == ("2.50", [], ["eu-1", "eu-2"])
        cli.step()
        assert "2.50" in cli("fleet").out
        assert cli("cluster", "list").out == cli("fleet").out
        shown = cli("cluster", "set", "a", "--unset", "zone", "--unset", "label=team").out
        lines = {line.split("  ")[0]: line.split()[-1] for line in shown.splitlines()}
        assert (lines["region"], lines["location"], lines["zones"]) == ("reported", "set", "-")
        assert "team" not in shown
        shown = cli("cluster", "set", "a", "--unset", "price-per-gpu-hour", "--price-per-gpu-hour", "A10=9").out
        lines = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in shown.splitlines()}
        assert lines["price per GPU hour of A10"] == "set, but no GPU has it"
        assert lines[f"price per GPU hour of {A100}"] != "set"
        for wrong, says in (
            (("--price-per-gpu-hour", "A100=much"), "not a price"),
            (("--location", "100,0"), "latitude"),
            (("--label", "team"), "not a label"),
            (("--unset", "size"), "not a fact"),
        ):
            refused = cli("cluster", "set", "a", *wrong)
            assert (refused.code != 0, says in refused.err) == (True, True), refused.err
        assert "not found" in cli("cluster", "set", "nowhere", "--region", "eu").err
        cli.sign_in("user")
        assert "operator" in cli("cluster", "set", "a", "--region", "us").err
