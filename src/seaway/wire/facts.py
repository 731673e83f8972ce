"""Requests and views of the facts of clusters: location, hardware, prices, labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from seaway.application.views import ClusterView
from seaway.domain.errors import RejectedError
from seaway.domain.facts import ALL_MODELS, MAX_MICROPRICE, NO_FACTS, Facts, Location, location_of
from seaway.domain.numbers import exact_number
from seaway.domain.reasons import Reason
from seaway.wire.fields import Labels, OneOrMore, Reference, ReferenceOrNone, no_entries, no_pairs
from seaway.wire.message import Incoming, Shown

MICRO = 10**6
LONGEST_PRICE = 40
"""Maximum length of a price in an error, characters."""

MAX_PRICES = 64
"""Maximum number of prices of a cluster."""


def microprice(value: object) -> int:
    """Read a price, a number or a decimal text like ``2.50``; return millionths of the currency's unit.

    Raises
    ------
    RejectedError
        If it is not a price, is out of range, or has more than six decimal places.
    """
    price = exact_number(value.strip() if isinstance(value, str) else value)
    shown = repr(value) if len(str(value)) <= LONGEST_PRICE else f"{str(value)[:LONGEST_PRICE]!r}..."
    if price is None:
        raise RejectedError(Reason("not_a_price", value=shown))
    micros = price * MICRO
    if micros > MAX_MICROPRICE:
        raise RejectedError(Reason("price_too_high", value=shown, most=MAX_MICROPRICE // MICRO))
    if micros.denominator != 1:
        raise RejectedError(Reason("price_too_fine", value=shown))
    return micros.numerator


def price_text(micros: int) -> str:
    """Format a price in millionths as an exact decimal with at least two places."""
    whole, rest = divmod(micros, MICRO)
    return f"{whole}.{f'{rest:06d}'.rstrip('0'):0<2}"


def price_or_none(micros: int | None) -> str | None:
    """Format a price as `price_text` does; None if it is unknown."""
    return None if micros is None else price_text(micros)


def _price(value: object) -> object:
    try:
        microprice(value)
    except RejectedError as error:
        raise PydanticCustomError("price", "{why}", {"why": error.message}) from None
    return value


def _by_model(value: object) -> object:
    """Read a single price as that of all models."""
    return value if isinstance(value, Mapping) or value is None else {ALL_MODELS: value}


Price = Annotated[str | int | float, AfterValidator(_price), Field(examples=["2.50", 2.5])]
Prices = Annotated[
    dict[Reference, Price],
    Field(max_length=MAX_PRICES),
    BeforeValidator(_by_model, json_schema_input_type=Price | dict[Reference, Price]),
]
"""Prices by the name of models; a single price applies to all models."""


class LocationIn(Incoming):
    """A point on the Earth, in degrees."""

    latitude: Annotated[float, Field(ge=-90, le=90)]
    longitude: Annotated[float, Field(ge=-180, le=180)]

    def location(self) -> Location:
        """Return the location."""
        return Location(self.latitude, self.longitude)


class FactsIn(Incoming):
    """Facts of a cluster that an operator sets. They precede those that the cluster reports."""

    region: ReferenceOrNone = ""
    """Region of the cluster."""
    zones: OneOrMore = no_entries()
    """Zones of the cluster."""
    provider: ReferenceOrNone = ""
    """Provider of its machines."""
    location: LocationIn | None = None
    """Geographic location."""
    hardware: OneOrMore | None = None
    """Special hardware, for jobs that request it; an empty list states that the cluster has none."""
    price_per_gpu_hour: Prices = no_pairs()
    """Price of a GPU per hour by a name that covers its model, such as `A100`. The longest name applies, and `*` to
    all other models."""
    spot_price_per_gpu_hour: Prices = no_pairs()
    """The same for spot nodes. A spot node without a spot price has the normal price."""
    labels: Labels = no_pairs()
    """Labels of the cluster."""

    def facts(self) -> Facts:
        """Return the facts."""
        return Facts(
            self.region,
            tuple(self.zones),
            self.provider,
            self.location.location() if self.location else None,
            None if self.hardware is None else frozenset(self.hardware),
            _micros(self.price_per_gpu_hour),
            _micros(self.spot_price_per_gpu_hour),
            self.labels,
        )


NO_HARDWARE = "none"
"""Word for a cluster without special hardware."""

_FIELDS = {
    "price-per-gpu-hour": "price_per_gpu_hour",
    "spot-price-per-gpu-hour": "spot_price_per_gpu_hour",
    "region": "region",
    "zone": "zones",
    "provider": "provider",
    "location": "location",
    "hardware": "hardware",
    "label": "labels",
}
"""Fields of `FactsIn` by the names of options."""


def patch_of(given: Mapping[str, Sequence[str]], unset: Iterable[str] = ()) -> dict[str, Any]:
    """Return a merge patch for facts that a user wrote.

    Parameters
    ----------
    given
        Written values by option: prices as ``MODEL=PRICE`` or ``PRICE``, labels as ``KEY=VALUE``, the location as
        ``LAT,LON``. An option without values is left out.
    unset
        Facts to remove, an option's name or ``NAME=KEY`` for one price or label.

    Raises
    ------
    RejectedError
        If a value is invalid.
    """
    patch: dict[str, Any] = {}
    for each in unset:
        name, _, key = each.partition("=")
        field = _FIELDS.get(name)
        if field is None or (key and name not in _PAIRS):
            raise RejectedError(Reason("not_a_fact", name=each[:80], names=tuple(_FIELDS)), where="unset")
        if not key:
            patch[field] = None
        elif patch.get(field, {}) is not None:
            patch.setdefault(field, {})[key] = None
    for name, values in given.items():
        if values:
            read = _PAIRS.get(name) or _VALUES[name]
            patch[_FIELDS[name]] = _over(patch.get(_FIELDS[name]), read(values))
    return patch


def _over(before: Any, value: Any) -> Any:  # noqa: ANN401  # of any field
    return {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value


def _priced(values: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in values:
        model, _, price = each.rpartition("=")
        microprice(price.strip())
        found[model.strip() or ALL_MODELS] = price.strip()
    return found


def _labelled(values: Sequence[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in values]
    for key, equals, _ in pairs:
        if not equals:
            raise RejectedError(Reason("not_a_label", key=key[:80]), where="labels")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _located(values: Sequence[str]) -> dict[str, float]:
    where = location_of(values[-1])
    return {"latitude": where.latitude, "longitude": where.longitude}


_PAIRS: dict[str, Callable[[Sequence[str]], Any]] = {
    "price-per-gpu-hour": _priced,
    "spot-price-per-gpu-hour": _priced,
    "label": _labelled,
}
_VALUES: dict[str, Callable[[Sequence[str]], Any]] = {
    "region": lambda values: values[-1],
    "provider": lambda values: values[-1],
    "zone": list,
    "location": _located,
    "hardware": lambda values: [each for each in values if each != NO_HARDWARE],
}


class FactsPatch(BaseModel):
    """Facts of a cluster to set, as in `FactsIn`; null returns to what the cluster reports."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{"region": "eu", "price_per_gpu_hour": {"A100": "2.50", "T4": None}}]},
    )


class LocationOut(Shown):
    """A point on the Earth, in degrees."""

    latitude: float
    longitude: float


class FactsOut(Shown):
    """Facts of a cluster, as in `FactsIn`."""

    region: str | None
    """Null if unknown."""
    zones: list[str]
    """Empty if unknown."""
    provider: str | None
    """Null if unknown."""
    location: LocationOut | None
    """Null if unknown."""
    hardware: list[str] | None
    """Null if unknown; empty if the cluster has none."""
    price_per_gpu_hour: dict[str, str]
    """Exact price per GPU and hour by a name that covers the model, in units of the currency; empty if unknown."""
    spot_price_per_gpu_hour: dict[str, str]
    labels: dict[str, str]


FactSource = Literal["set", "settings", "reported"]
"""Source of a fact: `seaway cluster set`, the settings of the server, or the cluster with its labels."""


class ModelPrice(Shown):
    """Price of the GPUs of a model in a cluster."""

    model: str
    spot: bool
    """True for GPUs of spot nodes."""
    gpus: int
    price_per_gpu_hour: str | None
    """Exact price per GPU and hour, in units of the currency; null if unknown."""
    spot_price: bool = False
    """True if this is a spot price. GPUs of spot nodes without one have the normal price."""
    source: FactSource | None = None
    """Null if it is unknown."""


def facts_fields(facts: Facts) -> dict[str, Any]:
    """Return the fields of `FactsOut` for the facts of a cluster."""
    where = facts.location
    return {
        "region": facts.region or None,
        "zones": list(facts.zones),
        "provider": facts.provider or None,
        "location": {"latitude": where.latitude, "longitude": where.longitude} if where else None,
        "hardware": None if facts.hardware is None else sorted(facts.hardware),
        "price_per_gpu_hour": {name: price_text(price) for name, price in sorted(facts.prices.items())},
        "spot_price_per_gpu_hour": {name: price_text(price) for name, price in sorted(facts.spot_prices.items())},
        "labels": dict(sorted(facts.labels.items())),
    }


def facts_document(facts: Facts) -> dict[str, Any]:
    """Return facts as a document of `FactsIn`, without unknown ones."""
    return {name: value for name, value in facts_fields(facts).items() if value or value == []}


def model_prices(view: ClusterView) -> list[dict[str, Any]]:
    """Return the fields of `ModelPrice` for the models of a cluster."""
    prices = []
    for (model, spot), gpus in sorted(view.models.items()):
        name, is_spot = view.facts.price_name(model, spot=spot) or ("", False)
        priced = (each.spot_prices if is_spot else each.prices for each in (view.own_facts, view.configured_facts))
        prices.append(
            {
                "model": model,
                "spot": spot,
                "gpus": gpus,
                "price_per_gpu_hour": price_or_none(view.facts.microprice(model, spot=spot)),
                "spot_price": is_spot,
                "source": _source(*(name in each for each in priced)) if name else None,
            }
        )
    return prices


def fact_sources(view: ClusterView) -> dict[str, FactSource]:
    """Return the sources of the known facts of a cluster, other than prices, as in `ClusterOut`."""
    own, configured = view.own_facts, view.configured_facts
    plain = ("region", "zones", "provider", "location", "hardware")
    return {
        **{
            name: _source(*(getattr(each, name) != getattr(NO_FACTS, name) for each in (own, configured)))
            for name in plain
            if getattr(view.facts, name) != getattr(NO_FACTS, name)
        },
        **{f"labels.{key}": _source(key in own.labels, key in configured.labels) for key in sorted(view.facts.labels)},
    }


def _source(is_own: bool, is_configured: bool) -> FactSource:
    return "set" if is_own else "settings" if is_configured else "reported"


def _micros(prices: Mapping[str, str | int | float]) -> dict[str, int]:
    return {name: microprice(price) for name, price in prices.items()}
