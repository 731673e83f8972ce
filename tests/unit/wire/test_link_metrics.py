from __future__ import annotations

import json
from dataclasses import replace
from time import process_time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seaway.api.metrics import LINK_METRICS, all_named, as_series, as_text
from seaway.application.network.views import LinkState, LinkView, Side, reported
from seaway.application.ports.agent import Reported
from seaway.domain.errors import RejectedError
from seaway.domain.network import Link
from seaway.wire.metrics import METRICS, as_json

SIDES = {
    "gw-4": Side("::4", site="office"),
    "gw-1": Side("::1", cluster="a"),
    "gw-2": Side("::2", cluster="b,c"),
}


def view(source: str, target: str, state: LinkState = LinkState.MEASURED, mbps: int = 1000) -> LinkView:
    """Make a link on which four of five probes were answered, after 10 ms."""
    raw = Reported(target, "", 0, 5, 4, 10_000_000, 1_000_000)
    link = Link(source, target, 9_000_000, bandwidth_mbps=mbps)
    return LinkView(source, target, link, "", state, 1.0, raw, None, 250 if mbps else None)


def series(*links: LinkView, cluster: str = "") -> dict[str, list[tuple[dict[str, str], float]]]:
    """Write links as Prometheus' text and read that again."""
    text = b"".join(as_text(links, SIDES, LINK_METRICS, cluster)).decode()
    return {
        family.name: [(each.labels, each.value) for each in family.samples]
        for family in text_string_to_metric_families(text)
        if family.samples
    }


def test_metrics_are_of_the_latest_round() -> None:
    """Not of what decisions go by: 10 ms were measured, 9 are published."""
    labels = {"cluster": "a", "source": "gw-4", "target": "gw-1", "site": "office"}
    assert series(view("gw-4", "gw-1")) == {
        "UserToClusterBandwidth": [(labels, 750)],
        "UserToClusterLatency": [(labels, 10_000_000)],
        "UserToClusterJitter": [(labels, 1_000_000)],
        "UserToClusterPacketLoss": [(labels, 0.2)],
    }


def test_links_between_clusters_say_both() -> None:
    """The cluster is the one at the end, as in all metrics; the other stands beside it."""
    (row,) = series(view("gw-1", "gw-2"))["ClusterToClusterLatency"]
    assert row[0] == {"cluster": "b,c", "source": "gw-1", "target": "gw-2", "source_cluster": "a"}


def test_links_to_users_and_old_ones_have_no_series() -> None:
    """Nor has one whose gateway no one knows."""
    others = view("gw-1", "gw-4"), view("gw-4", "gw-9"), view("gw-9", "gw-1")
    assert series(*others, view("gw-4", "gw-1", LinkState.STALE), view("gw-4", "gw-1", LinkState.UNKNOWN)) == {}


def test_a_bandwidth_that_no_one_knows_has_no_series() -> None:
    """0 would say that nothing is free."""
    assert "UserToClusterBandwidth" not in series(view("gw-4", "gw-1", mbps=0))


def test_the_bound_of_a_loss_has_a_series_while_there_is_one() -> None:
    """A measured loss has no bound, and a series of 0 would say that nothing can be lost."""
    bounded = replace(view("gw-4", "gw-1"), loss_bound_ppm=6_667)
    assert [value for _, value in series(bounded)["UserToClusterPacketLossBound"]] == [0.006667]
    assert "UserToClusterPacketLossBound" not in series(view("gw-4", "gw-1"))


def test_links_that_clusters_tell_of_have_metrics_as_they_are_reported() -> None:
    """So that simulated clusters show what real ones would."""
    link = Link("gw-4", "gw-1", 5, 1, 1000, 1000, 100)
    assert {name: rows[0][1] for name, rows in series(reported(link)).items()} == {
        "UserToClusterBandwidth": 900,
        "UserToClusterLatency": 5,
        "UserToClusterJitter": 1,
        "UserToClusterPacketLoss": 0.001,
    }


@pytest.mark.parametrize(("cluster", "count"), [("a", 2), ("b", 1), ("c", 1), ("b,c", 0), ("", 2)])
def test_a_cluster_has_the_links_that_begin_or_end_there(cluster: str, count: int) -> None:
    """Also one of several behind one gateway."""
    found = series(view("gw-4", "gw-1"), view("gw-1", "gw-2"), cluster=cluster)
    assert sum(len(rows) for name, rows in found.items() if name.endswith("Latency")) == count


def test_json_has_them_beside_those_of_gpus() -> None:
    """One document: a list for each metric, empty where there is nothing."""
    others = as_series([view("gw-4", "gw-1")], SIDES, LINK_METRICS)
    body = json.loads(b"".join(as_json([], METRICS, "", others)))
    assert body["data"].keys() == METRICS.keys() | LINK_METRICS.keys()
    assert body["data"]["UserToClusterLatency"] == [
        {"cluster": "a", "source": "gw-4", "target": "gw-1", "site": "office", "value": 10_000_000}
    ]
    assert body["data"]["ClusterToClusterLatency"] == []


def test_metrics_are_found_by_name_whatever_they_are_of() -> None:
    """One of links has none of GPUs beside it; one that is misspelt is reported the nearest of both."""
    assert all_named("UserToClusterJitter") == ({}, {"UserToClusterJitter": LINK_METRICS["UserToClusterJitter"]})
    assert all_named("") == (METRICS, LINK_METRICS)
    with pytest.raises(RejectedError, match="did you mean 'ClusterToClusterPacketLoss'"):
        all_named("clustertoclusterloss")


def test_a_mesh_of_a_hundred_is_written_quickly() -> None:
    """9,900 links in far less than a second of CPU."""
    sides = {f"gw-{at}": Side("::", cluster=f"cluster-{at}") for at in range(100)}
    links = [view(source, target) for source in sides for target in sides if source != target]
    began_s = process_time()
    text = b"".join(as_text(links, sides, LINK_METRICS))
    assert process_time() - began_s < 0.8
    assert text.count(b"\n") == 4 * 9_900 + 2 * 10
