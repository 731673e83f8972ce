"""Fleets from YAML: what is read, and what each mistake is answered with."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.device import DeviceMode
from seaway.domain.errors import RejectedError
from seaway.domain.node import Taint, TaintEffect
from seaway.testing.plugins import A100_40GB_PROFILES
from seaway.wire.fleet_yaml import read_fleet_yaml

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/fleets/three-clusters.yaml"

GOOD = """\
clusters:
  - name: north
    gateway: gw-1
    nodes:
      - name: n{}
        count: 2
        cpu: 8
        memory: 64Gi
        gpus: 2
        model: L4
        gpu_memory: 24Gi
  - name: south
    gateway: gw-2
    nodes: [{name: s, cpu: 500m, memory: 1Gi}]
links:
  - {between: [gw-1, gw-2], latency: 9ms}
"""


def test_the_example_is_read_as_it_says() -> None:
    """Groups become numbered nodes, units become Seaway's own, and links count both ways or one."""
    fleet = read_fleet_yaml(EXAMPLE)
    north, middle, south = fleet.clusters
    assert (north.name, north.region, north.facts.prices) == ("north", "eu-north", {"*": 2_400_000})
    assert north.facts.hardware == frozenset({"nvlink", "rdma"})
    assert [len(each.nodes) for each in fleet.clusters] == [8, 13, 5]
    assert fleet.device_count == 6 * 4 + 2 * 4 + 12 * 2 + 5 * 8
    first, mig = north.nodes[0], north.nodes[6]
    assert (first.name, first.cpu_milli, first.memory_mib) == ("north-a0", 64_000, 524_288)
    assert first.devices[3].uuid == "GPU-north-north-a0-3"
    assert first.devices[3].memory_mib == 81_920
    assert mig.taints == (Taint("dedicated", "inference", TaintEffect.NO_SCHEDULE),)
    assert mig.devices[0].mode is DeviceMode.MIG
    read = [(each.core_milli, each.slice_count, each.size, each.starts) for each in mig.devices[0].mig_profiles]
    assert read == [(each.core_milli, each.slice_count, each.size, each.starts) for each in A100_40GB_PROFILES]
    assert dict(middle.nodes[0].labels) == {"zone": "a"}
    assert middle.nodes[0].devices[0].share_limit == 8
    assert not middle.nodes[12].devices
    assert [each.name for each in fleet.gateways] == ["gw-users", "gw-north", "gw-middle", "gw-south"]
    links = {(link.source, link.target): link for link in fleet.links}
    assert len(links) == 12
    assert links["gw-middle", "gw-north"].latency_ns == 9_000_000
    assert links["gw-south", "gw-north"].loss_ppm == 1_000
    assert links["gw-users", "gw-south"].bandwidth_mbps == 2_000
    assert links["gw-south", "gw-users"].bandwidth_mbps == 500
    assert south.gateway == "gw-south"


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("cpu: 8", "cpus: 8", r":7:clusters\[0\].nodes\[0\].cpus: unknown field 'cpus'; did you mean 'cpu'\?"),
        ("clusters:", "zoo: 1\nclusters:", ":1:zoo: unknown field 'zoo'; known are: clusters, gateways, links"),
        ("cpu: 8", "cpu: 8 cores", r":7:clusters\[0\].nodes\[0\].cpu: '8 cores' is not valid; use a number of CPU"),
        ("memory: 64Gi", "memory: 64", ":8:.*memory: 64 is not valid; use an amount of memory with its unit"),
        ("memory: 64Gi", "memory: 64Pi", ":8:.*memory: is too large"),
        ("        cpu: 8\n", "", r":5:clusters\[0\].nodes\[0\]: 'cpu' is missing"),
        ("        model: L4\n", "", ":5:.*: 'model' is missing, but the nodes have devices"),
        ("name: n{}", "name: n", ":5:.*name: 2 nodes cannot have one name"),
        ("count: 2", "count: 0", ":6:.*count: must be a whole number from 1"),
        ("count: 2", "count: yes", ":6:.*count: must be a whole number from 1"),
        ("gpus: 2", "gpus: 65", ":9:.*gpus: must be a whole number from 0 to 64"),
        ("name: south", "name: north", ":12:.*: another cluster is called 'north'"),
        ("name: south", "name: 12", ":12:.*name: 12 is not a text; put it in quotes"),
        ("name: south", "name: ''", ":12:.*name: is empty"),
        ("[gw-1, gw-2]", "[gw-1, gw-22]", ":16:.*: unknown gateway 'gw-22'; did you mean 'gw-2'?"),
        ("[gw-1, gw-2]", "[gw-1, gw-1]", ":16:.*: a link needs two different gateways"),
        ("[gw-1, gw-2]", "[gw-1]", ":16:.*between: must name two gateways"),
        ("between: [gw-1, gw-2]", "from: gw-1", ":16:.*: use 'between"),
        ("latency: 9ms", "latency: 9", ":16:.*latency: 9 is not valid; use a time with its unit"),
        ("latency: 9ms", "loss: 2, latency: 9ms", ":16:.*loss: 2 is more than all"),
        ("- {between", "- {between: [gw-2, gw-1], latency: 1ms}\n  - {between", ":17:.* appears more than once"),
        ("    gateway: gw-1\n", "    gateway: gw-1\n    gateway: gw-1\n", ":4: the field 'gateway' is duplicated"),
        ("gateway: gw-1\n", "price_per_gpu_hour: -1\n", ":3:.*: -1 is not a price"),
        ("gateway: gw-1\n", "price_per_gpu_hour: .nan\n", ":3: .nan is not a number"),
        ("gateway: gw-1\n", "hardware: nvlink\n", ":3:.*hardware: must be a list"),
        ("gpus: 2", "gpus: 2\n        mig: [8g.1gb]", ":10:.*'8g.1gb' is not a MIG profile"),
        (
            "gpus: 2",
            "gpus: 2\n        topology: {nvlink: [[0, 2]]}",
            ":10:.*nvlink.*a whole number from 0 to 1",
        ),
        ("gpus: 2", "gpus: 2\n        topology: {nvlink: [[0], [0]]}", ":10:.*GPU 0 is in two groups"),
        ("gpus: 2", "gpus: 2\n        topology: {nvswitch: [[0]]}", ":10:.*nvswitch"),
        ("gpus: 2", "gpus: 2\n        taints: [mine]", ":10:.*'mine' is not a taint"),
        ("gpus: 2", "gpus: 2\n        labels: {fast: true}", ":10:.*labels.fast: True is not a text"),
        ("nodes: [{", "nodes: [[{", "is not YAML"),
        ("name: south", "name: 2001-99-99", "is not a valid date"),
        ("  - name: south", "  - south", "is not YAML|must be a mapping"),
        (GOOD, "", "is empty"),
        (GOOD, "clusters: []", ":1:clusters: is empty"),
        (GOOD, "[" * 100_000, "nests deeper than"),
        (GOOD, "a: \x00", "is not YAML"),
        (GOOD, "clusters: !!python/object:os.system x", ":1: this is not YAML: tags like this are not supported"),
    ],
)
def test_mistakes_are_named_by_file_line_and_field(tmp_path: Path, was: str, becomes: str, says: str) -> None:
    """Each mistake is answered with where it stands and what would do."""
    path = tmp_path / "fleet.yaml"
    assert was in GOOD
    path.write_text(GOOD.replace(was, becomes, 1))
    with pytest.raises(RejectedError, match=f"fleet.yaml.*({says})"):
        read_fleet_yaml(path)


def test_a_file_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
    """The error names the file, and says why it cannot be read."""
    with pytest.raises(RejectedError, match=r"none\.yaml: cannot be read: No such file"):
        read_fleet_yaml(tmp_path / "none.yaml")
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(RejectedError, match="not a text in UTF-8"):
        read_fleet_yaml(tmp_path / "latin")


@given(st.text(max_size=80), st.integers(0, len(GOOD)), st.integers(0, 20))
def test_whatever_is_written_is_read_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, text: str, at: int, cut: int
) -> None:
    """No text makes anything but a fleet or a `RejectedError`."""
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes((GOOD[:at] + text + GOOD[at + cut :]).encode("utf-8", "surrogatepass"))
    with suppress(RejectedError):
        assert read_fleet_yaml(path).clusters


def test_connections_of_devices_are_lists_of_groups(tmp_path: Path) -> None:
    """Each group has the indexes of its devices; the others are in no group, or on NUMA node 0."""
    path = tmp_path / "fleet.yaml"
    connected = "topology: {nvlink: [[1], [0]], pcie_switch: [[0, 1]], numa: [[0], [1]]}"
    path.write_text(GOOD.replace("gpus: 2", f"gpus: 2\n        {connected}"))
    for node in read_fleet_yaml(path).clusters[0].nodes:
        assert [(each.island, each.pcie_switch, each.numa) for each in node.devices] == [(1, 0, 0), (0, 0, 1)]


def test_vendor_of_devices_is_nvidia_by_default(tmp_path: Path) -> None:
    """Other vendors are named, as jobs request them."""
    path = tmp_path / "fleet.yaml"
    path.write_text(GOOD.replace("model: L4", "model: Intel Gaudi 2\n        vendor: Gaudi"))
    assert {each.vendor for each in read_fleet_yaml(path).devices} == {"Gaudi"}
    path.write_text(GOOD)
    assert {each.vendor for each in read_fleet_yaml(path).devices} == {"NVIDIA"}
