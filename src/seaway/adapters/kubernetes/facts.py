"""Facts of clusters from labels of their nodes, and from Karmada's Cluster objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seaway.adapters.kubernetes.objects.core import Meta, Part
from seaway.domain.errors import RejectedError
from seaway.domain.facts import ALL_MODELS, Facts, location_of
from seaway.domain.node import Node
from seaway.wire.facts import microprice

PRICE = "seaway.io/price-per-gpu-hour"
"""Label of a node or Cluster object with the price of its GPUs."""

SPOT_PRICE = "seaway.io/spot-price-per-gpu-hour"
"""The same for the spot nodes of a Cluster object."""

MODEL_PRICES = "price-per-gpu-hour.seaway.io/"
SPOT_MODEL_PRICES = "spot-price-per-gpu-hour.seaway.io/"
"""Beginnings of labels of a Cluster object with the price of a model, such as ``price-per-gpu-hour.seaway.io/A100``."""

HARDWARE = "hardware.seaway.io/"
"""Beginning of labels of a node or Cluster object with its special hardware, such as ``hardware.seaway.io/nvlink``."""

RDMA = ("feature.node.kubernetes.io/rdma.available", "true")
"""Label of Node Feature Discovery for nodes with RDMA."""

LOCATION = "seaway.io/location"
"""Annotation of a Cluster object: latitude and longitude, such as ``52.52,13.40``."""


class MemberSpec(Part, frozen=True):
    """Specification of a member cluster. The field `zone` is that of older versions of Karmada."""

    provider: str = ""
    region: str = ""
    zone: str = ""
    zones: tuple[str, ...] | None = None


class MemberObject(Part, frozen=True):
    """A member cluster.

    References
    ----------
    Karmada API, v1.15: cluster/v1alpha1.
    """

    metadata: Meta = Meta()
    spec: MemberSpec = MemberSpec()


def member_facts(member: MemberObject) -> tuple[Facts, list[str]]:
    """Return the facts of a member cluster, and the problems of its labels and annotations."""
    spec, labels = member.spec, member.metadata.labels
    problems: list[str] = []
    prices, spot_prices = (
        _prices(labels, label, prefix, problems)
        for label, prefix in ((PRICE, MODEL_PRICES), (SPOT_PRICE, SPOT_MODEL_PRICES))
    )
    zones = spec.zones or ((spec.zone,) if spec.zone else ())
    location = None
    if written := member.metadata.annotations.get(LOCATION):
        try:
            location = location_of(written)
        except RejectedError as error:
            problems.append(f"{LOCATION}: {error.message}")
    found = hardware_of(labels) or None
    return Facts(spec.region, tuple(zones), spec.provider, location, found, prices, spot_prices, labels), problems


def hardware_of(labels: Mapping[str, str]) -> frozenset[str]:
    """Return the special hardware that labels of a node or a Cluster object name."""
    named = {
        key.removeprefix(HARDWARE) for key, value in labels.items() if key.startswith(HARDWARE) and value != "false"
    }
    return frozenset(named | ({"rdma"} if labels.get(RDMA[0]) == RDMA[1] else set()))


def node_price(labels: Mapping[str, str]) -> int | None:
    """Return the price of a node's GPUs by its label; None without one; raises as `microprice`."""
    return microprice(labels[PRICE]) if PRICE in labels else None


def facts_of_nodes(nodes: Iterable[Node]) -> Facts:
    """Return the facts of a cluster that the labels of its nodes show.

    The region is known if all nodes that have one agree. The special hardware is that of all nodes with GPUs. If nodes
    have different prices for a model, the highest applies.
    """
    listed = list(nodes)
    regions = {node.region for node in listed if node.region}
    zones = sorted({node.zone for node in listed if node.zone})
    with_gpus = [node for node in listed if node.devices]
    hardware = frozenset.intersection(*(hardware_of(node.labels) for node in with_gpus)) if with_gpus else frozenset()
    prices: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for node in with_gpus:
        try:
            price = node_price(node.labels)
        except RejectedError:
            continue  # a problem of the node
        for device in node.devices if price is not None else ():
            known = prices[node.spot]
            known[device.model] = max(price or 0, known.get(device.model, 0))
    return Facts(
        regions.pop() if len(regions) == 1 else "",
        tuple(zones),
        hardware=hardware or None,
        prices=prices[False],
        spot_prices=prices[True],
    )


def _prices(labels: Mapping[str, str], every: str, prefix: str, problems: list[str]) -> dict[str, int]:
    """Read the prices of a Cluster object's labels."""
    named = {ALL_MODELS: every} if every in labels else {}
    named |= {key.removeprefix(prefix): key for key in labels if key.startswith(prefix)}
    found: dict[str, int] = {}
    for model, key in named.items():
        try:
            found[model] = microprice(labels[key])
        except RejectedError as error:
            problems.append(f"{key}: {error.message}")
    return found
