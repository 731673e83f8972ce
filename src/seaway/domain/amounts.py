"""Amounts of resources, as guaranteed to queues, limited by quotas, and held by jobs.

An amount maps names of resources to integers:

- ``gpus``: GPUs, thousandths. A slice counts as its larger share of cores and memory.
- ``gpus/MODEL``: the same, of one product in what jobs hold; in quotas, of all products that the name covers.
- ``gpu_cores``: reserved GPU cores, thousandths of a device.
- ``gpu_memory``: GPU memory, MiB.
- ``cpu``: CPU, thousandths of a core.
- ``memory``: memory, MiB.
- ``jobs``: jobs that hold any of these. They are limited only, and part of neither requests nor guarantees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

from seaway.domain.cluster import Cluster
from seaway.domain.device import WHOLE_DEVICE_MILLI, Device
from seaway.domain.errors import RejectedError
from seaway.domain.gpu_models import covered, covers, most_specific, unknown_model
from seaway.domain.job import Demand
from seaway.domain.numbers import whole_number
from seaway.domain.placement import DeviceSlice, Placement
from seaway.domain.reasons import Reason
from seaway.domain.units import GPU_FORM, LARGEST, cpu_milli, cpu_text, memory_mib, memory_text

Amounts = Mapping[str, int]
"""Amounts by resource. In a limit, a missing resource has no bound; elsewhere it is 0."""

GPUS, GPU_CORES, GPU_MEMORY, CPU, MEMORY = RESOURCES = ("gpus", "gpu_cores", "gpu_memory", "cpu", "memory")
"""Names of the resources, without those of single models."""

JOBS = "jobs"
"""Name of the resource that counts jobs."""

MODEL_PREFIX = "gpus/"
"""Prefix of the name of a resource that counts the GPUs of one model."""

NO_AMOUNTS: Amounts = {}

LONGEST = 80
"""Maximum length of a value in an error, characters."""

MAX_GPU_WEIGHT = 1000
"""Maximum weight of a GPU model in shares."""


def _whole_number(value: object, *, where: str = "") -> int:
    number = whole_number(value.strip() if isinstance(value, str) else value)
    if number is None:
        raise RejectedError(Reason("not_a_whole_number", value=repr(value)[:LONGEST]), where=where)
    return number


_PARSERS: dict[str, Callable[..., int]] = {
    GPUS: partial(cpu_milli, form=GPU_FORM),
    GPU_CORES: partial(cpu_milli, form=GPU_FORM),
    GPU_MEMORY: memory_mib,
    CPU: cpu_milli,
    MEMORY: memory_mib,
    JOBS: _whole_number,
}


def model_resource(model: str) -> str:
    """Return the name of the resource that counts the GPUs of a model. Case is ignored."""
    return MODEL_PREFIX + model.casefold()


def unknown_models(bounds: Mapping[str, Amounts], products: Collection[str]) -> Iterator[Reason]:
    """Yield a warning for each name of a model in some quotas that covers no product.

    Parameters
    ----------
    bounds
        Quotas by field, such as ``limit``.
    """
    for field, amounts in bounds.items():
        for name in sorted(amounts):
            model = name.removeprefix(MODEL_PREFIX)
            if name == model_resource(model) and not covered([model], products):
                yield Reason("model_in_quota", field=f"{field}.{name}", why=unknown_model(model, products))


@lru_cache(maxsize=1 << 16)  # quotas and products are few
def counts_in(resource: str, quota: str) -> bool:
    """Report whether amounts of a resource count in a quota: it is the same, or of a product that the quota covers."""
    if resource == quota:
        return True
    both = resource.startswith(MODEL_PREFIX) and quota.startswith(MODEL_PREFIX)
    return both and covers(quota.removeprefix(MODEL_PREFIX), resource.removeprefix(MODEL_PREFIX))


def amount_of(amounts: Amounts, quota: str) -> int:
    """Return what amounts count in a quota. GPUs of a model are those of all products that its name covers."""
    if not quota.startswith(MODEL_PREFIX):
        return amounts.get(quota, 0)
    return sum([amount for name, amount in amounts.items() if counts_in(name, quota)])


def counts_any(amounts: Amounts, quota: str) -> bool:
    """Report whether any of some amounts counts in a quota, also if it is 0."""
    return quota in amounts or (quota.startswith(MODEL_PREFIX) and any(counts_in(name, quota) for name in amounts))


def in_quotas(amounts: Amounts, quotas: Iterable[str]) -> dict[str, int]:
    """Return amounts with the names of quotas.

    A product that some of these names cover counts under each of them instead of its own name. Others stay as they are.
    """
    names = [name for name in quotas if name.startswith(MODEL_PREFIX)]
    own = {name: amount for name, amount in amounts.items() if not any(counts_in(name, each) for each in names)}
    return {**own, **{each: amount for each in names if (amount := amount_of(amounts, each))}}


def bound_of(amounts: Amounts, quota: str) -> int:
    """Return what a guarantee or limit has of a quota. Names of models that others of it cover count once."""
    if not quota.startswith(MODEL_PREFIX):
        return amounts.get(quota, 0)
    return _without_overlap({name: amount for name, amount in amounts.items() if counts_in(name, quota)})


def bounds_of_all(parts: Sequence[Amounts], names: Iterable[str] = ()) -> dict[str, int]:
    """Return what several guarantees have together, by the names of all of them and by more names."""
    every = {name for part in parts for name in part}.union(names)
    return {name: amount for name in every if (amount := sum(bound_of(part, name) for part in parts))}


def _without_overlap(of_models: Amounts) -> int:
    """Return the sum over names of models; of names that others cover, only what they have beyond these."""
    return sum(
        max(amount, _without_overlap({other: of for other, of in of_models.items() if _is_below(other, name)}))
        for name, amount in of_models.items()
        if not any(_is_below(name, other) for other in of_models)
    )


def _is_below(name: str, other: str) -> bool:
    """Report whether a name of models counts in another one; of two that mean the same, the later one does."""
    return name != other and counts_in(name, other) and (other < name or not counts_in(other, name))


class ModelWeights:
    """Weights of GPU models in shares: that of the most specific name that covers a product, 1 without any.

    Parameters
    ----------
    given
        Weights by the resource of the name.
    """

    def __init__(self, given: Mapping[str, float]) -> None:
        self._given = {name.removeprefix(MODEL_PREFIX): weight for name, weight in given.items()}
        self._known: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._given)

    def of(self, resource: str) -> float:
        """Return the weight of a resource; 1 for one that is not of a model."""
        weight = self._known.get(resource)
        if weight is None:
            name = resource.startswith(MODEL_PREFIX) and most_specific(self._given, resource.removeprefix(MODEL_PREFIX))
            weight = self._known[resource] = self._given[name] if name else 1.0
        return weight


def parse_amounts(given: Mapping[str, object], *, where: str = "") -> dict[str, int]:
    """Parse amounts as users write them, such as ``{"gpus": 16, "gpus/A100": 8, "memory": "2TB"}``.

    Raises
    ------
    RejectedError
        If a resource is unknown or an amount is invalid.
    """
    amounts = {}
    for name, value in given.items():
        at = f"{where}.{name}" if where else name
        model = name.removeprefix(MODEL_PREFIX) if name.startswith(MODEL_PREFIX) else ""
        parser = _PARSERS.get(GPUS if model else name)
        if parser is None:
            raise RejectedError(Reason("unknown_resource", names=RESOURCES, jobs=JOBS), where=at)
        resource = model_resource(model) if model else name
        if resource in amounts:
            raise RejectedError(Reason("model_given_twice"), where=at)
        amounts[resource] = parser(value, where=at)
    return amounts


def split_amounts(text: str, *, where: str = "") -> dict[str, str]:
    """Split amounts in one line, such as ``gpus=16, memory=2TB``, without a check of resources and units.

    Raises
    ------
    RejectedError
        If a part has no ``=``, or a resource is given twice.
    """
    amounts: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, amount = (each.strip() for each in part.partition("="))
        if not (name and amount):
            raise RejectedError(Reason("use_amounts", part=part), where=where)
        if name in amounts:
            raise RejectedError(Reason("given_twice", name=name), where=where)
        amounts[name] = amount
    return amounts


def parse_gpu_weights(text: str, *, where: str) -> dict[str, float]:
    """Parse weights of GPU models in shares, such as ``H100=3, L4=0.5``; return them by resource.

    Raises
    ------
    RejectedError
        If a weight is invalid.
    """
    weights = {}
    for model, given in split_amounts(text, where=where).items():
        try:
            weight = float(given)
        except ValueError:
            weight = 0.0
        if not 0 < weight <= MAX_GPU_WEIGHT:
            why = Reason("gpu_weight", model=model, value=given, most=MAX_GPU_WEIGHT)
            raise RejectedError(why, where=where)
        weights[model_resource(model)] = weight
    return weights


def written_amounts(amounts: Amounts) -> dict[str, int | float | str]:
    """Return amounts as users write them; `parse_amounts` returns the same amounts again."""
    return {
        name: memory_text(amount)
        if _PARSERS.get(name) is memory_mib
        else amount
        if name == JOBS
        else _number_of(amount)
        for name, amount in sorted(amounts.items())
    }


def _number_of(milli: int) -> int | float | str:
    """Return thousandths as a whole number or a fraction; as a text such as ``7m`` if a float is not exact."""
    if milli % 1000 == 0:
        return milli // 1000
    number = milli / 1000
    return number if cpu_milli(number) == milli else f"{milli}m"


def in_base_units(name: str, amount: int) -> float:
    """Return an amount in base units: numbers of GPUs and of CPU cores, and bytes of memory."""
    if name == JOBS:
        return float(amount)
    return float(amount << 20) if name in (GPU_MEMORY, MEMORY) else amount / 1000


def figure_text(name: str, amount: int) -> str:
    """Format one amount without the name of its resource, such as ``16`` or ``2TB``."""
    if name == JOBS:
        return str(amount)
    gpu = name.startswith(GPUS) or name == GPU_CORES
    return f"{amount / 1000:g}" if gpu else cpu_text(amount) if name == CPU else memory_text(amount)


def resource_text(name: str, amount: int) -> str:
    """Return one amount as a reason, such as ``16 gpus``, ``1 gpu`` or ``2TB memory``."""
    figure = figure_text(name, amount)
    if name.startswith(MODEL_PREFIX):
        return Reason("amount_of_model", amount=figure, model=name.removeprefix(MODEL_PREFIX))
    if figure == "1" and name in (GPUS, JOBS):
        return Reason(f"one_of_{name}")
    return Reason(f"amount_{name}", amount=figure)


def amounts_text(amounts: Amounts) -> str:
    """Format amounts, such as ``16 gpus, 2TB memory``; ``nothing`` without any."""
    return ", ".join(resource_text(name, amount) for name, amount in sorted(amounts.items())) or "nothing"


def add(total: dict[str, int], amounts: Amounts, times: int = 1) -> None:
    """Add amounts to a total in place, `times` as much; a resource that becomes 0 is removed."""
    for name, amount in amounts.items():
        left = total.get(name, 0) + times * amount
        if left:
            total[name] = left
        else:
            total.pop(name, None)


def total_of(parts: Iterable[Amounts]) -> dict[str, int]:
    """Return the sum of amounts."""
    total: dict[str, int] = {}
    for each in parts:
        add(total, each)
    return total


def gpus_of_models(amounts: Amounts) -> int:
    """Return the sum of the GPUs of single models in a guarantee or limit, thousandths."""
    return _without_overlap({name: amount for name, amount in amounts.items() if name.startswith(MODEL_PREFIX)})


def exceeded(amounts: Amounts, limit: Amounts) -> list[str]:
    """Return the resources of which `amounts` has more than `limit`, in alphabetical order."""
    return sorted(name for name, most in limit.items() if bound_of(amounts, name) > most)


def requested_amounts(demand: Demand, replicas: int) -> dict[str, int]:
    """Return the least amounts that a job holds once it is placed.

    A share of memory in MiB counts as GPUs only when its device is known, so `gpus` is a lower bound for such jobs. The
    same applies to models: only a job that allows a single model is known to use it.
    """
    request = demand.request.filled()
    share_milli = max(request.gpu_milli, request.gpu_memory_percent * WHOLE_DEVICE_MILLI // 100)
    gpus_milli = request.gpus * share_milli
    amounts = {
        GPUS: gpus_milli,
        GPU_CORES: request.gpus * request.gpu_milli,
        GPU_MEMORY: request.gpus * request.gpu_memory_mib,
        CPU: request.cpu_milli,
        MEMORY: request.memory_mib,
    }
    if len(demand.devices.models) == 1:
        amounts[model_resource(*demand.devices.models)] = gpus_milli
    return {name: amount * replicas for name, amount in amounts.items() if amount}


def held_amounts(
    demand: Demand, placements: Iterable[Placement], device: Callable[[str], Device | None]
) -> dict[str, int]:
    """Return the amounts that a placed job holds.

    Parameters
    ----------
    device
        Lookup of a device by UUID. A slice of an unknown device counts by its cores.
    """
    request = demand.request
    held: dict[str, int] = {}
    for placement in placements:
        if placement.completed:
            continue
        add(held, {CPU: request.cpu_milli, MEMORY: request.memory_mib})
        for taken in placement.slices:
            found = device(taken.uuid)
            share_milli = share_of_device_milli(taken, found)
            add(held, {GPUS: share_milli, GPU_CORES: taken.core_milli, GPU_MEMORY: taken.memory_mib})
            if found:
                add(held, {model_resource(found.model): share_milli})
    return held


def share_of_device_milli(taken: DeviceSlice, device: Device | None) -> int:
    """Return the larger share of a slice, of cores and of memory, thousandths of its device, rounded up."""
    if device is None or not device.memory_mib:
        return taken.core_milli
    return max(taken.core_milli, -(-taken.memory_mib * WHOLE_DEVICE_MILLI // device.memory_mib))


def capacity_of(cluster: Cluster) -> Amounts:
    """Return the total resources of a cluster as amounts."""
    totals = cluster.totals
    models = Counter(model_resource(device.model) for node in cluster.nodes for device in node.devices)
    return {
        **{name: count * WHOLE_DEVICE_MILLI for name, count in models.items()},
        GPUS: totals.gpus * WHOLE_DEVICE_MILLI,
        GPU_CORES: totals.gpu_milli,
        GPU_MEMORY: totals.gpu_memory_mib,
        CPU: totals.cpu_milli,
        MEMORY: totals.memory_mib,
    }


def require_bounds(guarantee: Amounts, limit: Amounts, where: str = "") -> None:
    """Check a guarantee and a limit.

    Parameters
    ----------
    where
        Prefix of the fields in errors.

    Raises
    ------
    RejectedError
        If an amount is negative or too large, a number of jobs is guaranteed, or the guarantee exceeds the limit.
    """
    checked(limit, f"{where}limit")
    if JOBS in guarantee:
        raise RejectedError(Reason("jobs_not_guaranteed"), where=f"{where}guarantee.{JOBS}")
    for name in exceeded(checked(guarantee, f"{where}guarantee"), limit):
        raise RejectedError(
            Reason(
                "guarantee_beyond_limit",
                guarantee=resource_text(name, bound_of(guarantee, name)),
                limit=resource_text(name, limit[name]),
            ),
            where=f"{where}guarantee.{name}",
        )


def require_models(guarantee: Amounts, limit: Amounts, where: str = "") -> None:
    """Check that the guaranteed GPUs of single models together are no more than the guaranteed GPUs and their limit.

    Parameters
    ----------
    where
        Prefix of the field in errors.

    Raises
    ------
    RejectedError
        If they are more.
    """
    of_models = gpus_of_models(guarantee)
    for code, bound in (("models_beyond_guarantee", guarantee), ("models_beyond_limit", limit)):
        if of_models > bound.get(GPUS, of_models):
            raise RejectedError(
                Reason(code, models=resource_text(GPUS, of_models), gpus=resource_text(GPUS, bound[GPUS])),
                where=f"{where}guarantee.{GPUS}",
            )


def checked(amounts: Amounts, where: str) -> Amounts:
    """Return amounts unchanged.

    Raises
    ------
    RejectedError
        If an amount is negative or too large.
    """
    for name, amount in amounts.items():
        if not 0 <= amount <= LARGEST:
            raise RejectedError(Reason("not_between", value=amount, least=0, most=LARGEST), where=f"{where}.{name}")
    return amounts
