"""Facts of clusters: where they are, their special hardware, and the prices of their GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import asin, cos, isfinite, radians, sin, sqrt

from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.gpu_models import covers, most_specific
from seaway.domain.node import Node
from seaway.domain.reasons import Reason

EARTH_RADIUS_KM = 6371.0088
"""Mean radius of the Earth, kilometres."""

ALL_MODELS = "*"
"""Name of the price that applies to all GPU models without their own."""

MAX_MICROPRICE = 10**12
"""Maximum price of a GPU for an hour, millionths of the currency's unit."""


@dataclass(frozen=True, slots=True)
class Location:
    """A point on the Earth, in degrees: positive to the north and to the east.

    Raises
    ------
    RejectedError
        If a value is out of range.
    """

    latitude: float
    longitude: float

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, value, most in (("latitude", self.latitude, 90), ("longitude", self.longitude, 180)):
            if not isfinite(value) or abs(value) > most:
                raise RejectedError(
                    Reason("location_out_of_range", name=name, value=value, most=most), where="location"
                )

    def distance_km(self, other: Location) -> float:
        """Return the great-circle distance to another point, by the haversine formula.

        References
        ----------
        Sinnott, Virtues of the Haversine, Sky and Telescope 68(2), 1984.
        """
        lat, other_lat = radians(self.latitude), radians(other.latitude)
        across = sin(radians(other.longitude - self.longitude) / 2)
        along = sin((other_lat - lat) / 2)
        return 2 * EARTH_RADIUS_KM * asin(min(1.0, sqrt(along**2 + cos(lat) * cos(other_lat) * across**2)))


def location_of(text: str) -> Location:
    """Read a location like ``52.52,13.40``.

    Raises
    ------
    RejectedError
        If it is invalid.
    """
    try:
        latitude, longitude = map(float, text.split(","))
    except ValueError:
        message = Reason("use_location", value=text[:60])
        raise RejectedError(message, where="location") from None
    return Location(latitude, longitude)


@dataclass(frozen=True, slots=True)
class Facts:
    """Properties of a cluster that scheduling uses and that its nodes do not show. Empty and None mean unknown.

    Attributes
    ----------
    region
        Region of the cluster.
    zones
        Zones of its nodes.
    provider
        Provider of its machines, such as ``aws``.
    location
        Geographic location.
    hardware
        Special hardware, such as ``nvlink`` or ``rdma``; an empty set is known to have none.
    prices
        Price of a GPU for an hour, in millionths of the currency's unit, by a name that covers the model.
        Numbers in it are whole. The longest match applies, and `ALL_MODELS` to all other models.
    spot_prices
        The same for spot nodes. A spot node without a spot price has the normal price.
    labels
        Labels of the cluster.
    """

    region: str = ""
    zones: tuple[str, ...] = ()
    provider: str = ""
    location: Location | None = None
    hardware: frozenset[str] | None = None
    prices: Mapping[str, int] = field(default_factory=dict)
    spot_prices: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject prices out of range."""
        for micros in (*self.prices.values(), *self.spot_prices.values()):
            if not 0 <= micros <= MAX_MICROPRICE:
                raise RejectedError(Reason("price_out_of_range", most=MAX_MICROPRICE // 10**6))

    def over(self, other: Facts) -> Facts:
        """Return these facts, with those of `other` where these are unknown.

        A price of these facts precedes all prices of `other` for the same models, even more specific ones.
        """
        return Facts(
            self.region or other.region,
            self.zones or other.zones,
            self.provider or other.provider,
            self.location or other.location,
            other.hardware if self.hardware is None else self.hardware,
            _prices_over(self.prices, other.prices),
            _prices_over(self.spot_prices, other.spot_prices),
            {**other.labels, **self.labels},
        )

    def microprice(self, model: str, *, spot: bool = False) -> int | None:
        """Return the price of a GPU of a model for an hour, millionths; None if it is unknown."""
        found = self.price_name(model, spot=spot)
        return None if found is None else (self.spot_prices if found[1] else self.prices)[found[0]]

    def price_name(self, model: str, *, spot: bool = False) -> tuple[str, bool] | None:
        """Return the name under which the price of a model is, and whether among spot prices; None if it is unknown."""
        name = _name_of(self.spot_prices, model) if spot else None
        if name is not None:
            return name, True
        name = _name_of(self.prices, model)
        return None if name is None else (name, False)

    def node_microprice(self, node: Node, devices: Iterable[Device] | None = None) -> int | None:
        """Return the highest price among devices of a node; None without devices, or if a price is unknown.

        Parameters
        ----------
        devices
            Devices to consider; None for all of the node.
        """
        models = {each.model for each in (node.devices if devices is None else devices)}
        prices = [self.microprice(model, spot=node.spot) for model in models]
        known = [price for price in prices if price is not None]
        return max(known) if known and len(known) == len(prices) else None


NO_FACTS = Facts()
"""The value for clusters of which nothing is known."""


def names_model(name: str, model: str) -> bool:
    """Report whether the name of a price covers a product, see `seaway.domain.gpu_models.covers`."""
    return name == ALL_MODELS or covers(name, model)


def _name_of(prices: Mapping[str, int], model: str) -> str | None:
    return most_specific(prices, model) or (ALL_MODELS if ALL_MODELS in prices else None)


def _prices_over(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {
        **{name: price for name, price in second.items() if not any(names_model(each, name) for each in first)},
        **first,
    }
