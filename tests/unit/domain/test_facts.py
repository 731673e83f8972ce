"""Facts of clusters: precedence, prices, distances."""

from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.facts import Facts, Location, location_of
from seaway.testing.plugins import gpu, node

A100 = "NVIDIA A100-SXM4-80GB"


def test_own_facts_precede_reported_ones() -> None:
    """A known fact replaces the reported one; an unknown one leaves it; labels and prices are merged by key."""
    own = Facts(region="eu", hardware=frozenset(), prices={"A100": 2}, labels={"team": "a"})
    reported = Facts(
        "us", ("us-1",), hardware=frozenset({"rdma"}), prices={A100: 9, "NVIDIA T4": 1}, labels={"team": "b", "x": "y"}
    )
    both = own.over(reported)
    assert (both.region, both.zones, both.hardware) == ("eu", ("us-1",), frozenset())
    assert both.labels == {"team": "a", "x": "y"}
    assert [both.microprice(model) for model in (A100, "NVIDIA T4", "NVIDIA L4")] == [2, 1, None]
    assert own.over(both) == both
    assert Facts(prices={"*": 0}).over(reported).microprice(A100) == 0


def test_the_most_specific_price_applies() -> None:
    """The longest part of the model's name in any case, and `*` to all others; without any, the price is unknown."""
    facts = Facts(prices={"*": 1, "a100": 2, "A100-SXM4": 3}, spot_prices={"A100": 1})
    assert [facts.microprice(model) for model in ("L40S", "A100-PCIE", A100)] == [1, 2, 3]
    assert (facts.microprice(A100, spot=True), facts.microprice("L40S", spot=True)) == (1, 1)
    assert Facts(prices={"A100": 2}).microprice("L40S") is None


@pytest.mark.parametrize(
    ("name", "model", "applies"),
    [
        ("A10", "NVIDIA A10", True),
        ("A10", "NVIDIA A100-SXM4-80GB", False),
        ("V100", "Tesla V100-SXM2-32GB", True),
        ("V100", "V100M32", False),
        ("L4", "NVIDIA L40S", False),
        ("00", "NVIDIA A100", False),
        ("a100-sxm4", "NVIDIA A100-SXM4-80GB", True),
        ("RTX_A6000", "NVIDIA_RTX_A6000_48GB", True),
    ],
)
def test_a_price_names_whole_numbers_of_a_model(name: str, model: str, *, applies: bool) -> None:
    """The price of an A10 is not that of an A100 without a price of its own."""
    assert Facts(prices={name: 2}).microprice(model) == (2 if applies else None)


@pytest.mark.parametrize(
    "label",
    [
        {"karpenter.sh/capacity-type": "spot"},
        {"eks.amazonaws.com/capacityType": "SPOT"},
        {"cloud.google.com/gke-spot": "true"},
        {"kubernetes.azure.com/scalesetpriority": "spot"},
    ],
)
def test_spot_nodes_have_the_spot_price(label: dict[str, str]) -> None:
    """Labels of vendors mark spot capacity; nodes with an unknown price among their models have no price."""
    facts = Facts(prices={"A100": 5}, spot_prices={"A100": 2})
    assert facts.node_microprice(node(gpu(model=A100), labels=label)) == 2
    assert facts.node_microprice(node(gpu(model=A100))) == 5
    assert facts.node_microprice(node(gpu(model=A100), gpu(uuid="other", model="T4"))) is None
    assert facts.node_microprice(node()) is None


def test_distances_follow_the_surface_of_the_earth() -> None:
    """Berlin to New York is about 6,385 km, also across the date line, and half the Earth to the other side."""
    berlin = location_of("52.52,13.405")
    assert berlin.distance_km(Location(40.7128, -74.006)) == pytest.approx(6385, abs=10)
    assert Location(0, 179).distance_km(Location(0, -179)) == pytest.approx(222.4, abs=0.1)
    assert Location(0, 0).distance_km(Location(0, 180)) == pytest.approx(20015, abs=1)


@pytest.mark.parametrize("text", ["", "52.5", "91,0", "0,181", "nan,0", "a,b", "1,2,3"])
def test_a_location_is_a_point_on_the_earth(text: str) -> None:
    """Two numbers in the ranges of latitude and longitude."""
    with pytest.raises(RejectedError):
        location_of(text)
