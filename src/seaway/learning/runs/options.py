"""Settings from options and files: parsed by name and type, and checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeVar, get_type_hints

from seaway.domain.errors import RejectedError
from seaway.learning.settings import DdpgSettings, PilotSettings, PpoSettings

S = TypeVar("S")

BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
SIZES = "-"
"""Separator of the sizes of layers, as in 128-64."""


@dataclass(frozen=True, slots=True)
class Range:
    """Valid range of a number.

    Attributes
    ----------
    minimum, maximum
        Limits, inclusive unless `exclusive` is true.
    exclusive
        Whether the minimum is exclusive.
    """

    minimum: float
    maximum: float = float("inf")
    exclusive: bool = False

    def contains(self, value: float) -> bool:
        """Report whether a number is finite and in the range."""
        return (
            isfinite(value)
            and (value > self.minimum if self.exclusive else value >= self.minimum)
            and value <= self.maximum
        )

    def __str__(self) -> str:
        if self.maximum == float("inf"):
            return f"{'more than' if self.exclusive else 'at least'} {self.minimum:.12g}"
        start, to = ("above", "up to") if self.exclusive else ("from", "to")
        return f"{start} {self.minimum:.12g} {to} {self.maximum:.12g}"


RATE = Range(0, 1, exclusive=True)
SHARE = Range(0, 1)
COUNT = Range(1)
SIZE = Range(1, 4096)
CAPACITY = Range(1, 10_000_000)
NON_NEGATIVE = Range(0)
RANGES: Mapping[str, Range] = {
    **dict.fromkeys(("actor_rate", "critic_rate", "rate", "soft_update", "clip"), RATE),
    **dict.fromkeys(("expert_share", "discount", "trace_decay", "average"), SHARE),
    **dict.fromkeys(("offers", "epochs", "actor_delay", "updates"), COUNT),
    **dict.fromkeys(("figures", "width", "pairs"), COUNT),
    **dict.fromkeys(("hidden", "heads"), SIZE),
    **dict.fromkeys(("live_pool", "expert_pool", "steps", "batch"), CAPACITY),
    "attention": Range(0, 4096),
    "spread": Range(0, 100, exclusive=True),
    "judged": Range(2),
    **dict.fromkeys(("episodes", "evaluate_every", "checkpoint_every", "draws", "threads"), COUNT),
    **dict.fromkeys(("noise", "noise_end", "target_noise", "target_clip", "warm_up"), NON_NEGATIVE),
    **dict.fromkeys(("patience", "checkpoint_s", "entropy", "candidates", "packings"), NON_NEGATIVE),
    "packing_s": Range(0, 3600, exclusive=True),
    **dict.fromkeys(("seed", "draw_seed"), Range(0, 2**32 - 1)),
}
"""Ranges of all settings, by name."""


def read_pairs(texts: Sequence[str], where: str) -> dict[str, str]:
    """Parse `name=value` pairs; names can have dashes.

    Raises
    ------
    RejectedError
        When a text is no such pair, or a name is duplicated.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        key = name.strip().replace("-", "_")
        if not (key and sign and value.strip()):
            raise RejectedError(f"{text!r} is not a name=value, like soft_update=0.01", where=where)
        if key in found:
            raise RejectedError(f"{key} is given twice", where=where)
        found[key] = value.strip()
    return found


def names_of(settings: object) -> tuple[str, ...]:
    """Return the names of the settings of a dataclass, in order."""
    return tuple(each.name for each in fields(settings))  # type: ignore[arg-type]  # a dataclass


def unknown(name: str, known: Sequence[str], whose: str, where: str) -> RejectedError:
    """Return the error for an unknown name, with a suggestion."""
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(known)}"
    return RejectedError(f"{whose} has no {name!r}; {hint}", where=where)


def changed(settings: S, given: Mapping[str, object], where: Callable[[str], str]) -> S:
    """Return settings with given values.

    Parameters
    ----------
    given
        Values by known name: text from an option, or a value from JSON.
    where
        Returns the place of a name for errors.

    Raises
    ------
    RejectedError
        When values have the wrong type or are out of range, with all of them.
    """
    kinds = get_type_hints(type(settings))
    values: dict[str, Any] = {}
    wrong: list[RejectedError] = []
    for name, value in given.items():
        try:
            values[name] = read_as(kinds[name], value)
            _check(name, values[name])
        except ValueError as error:
            wrong.append(RejectedError(str(error), where=where(name)))
    if wrong:
        raise RejectedError(wrong[0].message, where=wrong[0].where, also=tuple(wrong[1:]))
    return replace(settings, **values)  # type: ignore[type-var]  # S is a frozen dataclass


def read_as(kind: object, value: object) -> object:
    """Convert a value to the type of a setting.

    Raises
    ------
    ValueError
        When it is invalid, with the expected form.
    """
    read = READERS.get(kind)
    if read is None:
        raise ValueError("cannot be set")
    try:
        return read(value)
    except (TypeError, ValueError, KeyError):
        raise ValueError(f"{value!r} is not {EXPECTED[kind]}") from None


def _check(name: str, value: object) -> None:
    allowed = RANGES.get(name)
    for each in value if isinstance(value, tuple) else (value,):
        if allowed and not allowed.contains(each):
            raise ValueError(f"{each} is not {allowed}")


def _whole(value: object) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError
    return int(value.replace("_", "")) if isinstance(value, str) else int(value)  # type: ignore[call-overload]


def _figure(value: object) -> float:
    if isinstance(value, bool):
        raise ValueError
    return float(value)  # type: ignore[arg-type]


def _boolean(value: object) -> bool:
    return value if isinstance(value, bool) else BOOLEANS[str(value).lower()]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _sizes(value: object) -> tuple[int, ...]:
    """Parse sizes such as ``128-64``, or a list from JSON."""
    parts = value.split(SIZES) if isinstance(value, str) else value
    return tuple(_whole(part) for part in parts)  # type: ignore[attr-defined]  # raises for other types


READERS: Mapping[Any, Callable[[object], Any]] = {
    int: _whole,
    float: _figure,
    bool: _boolean,
    str: _text,
    tuple[int, ...]: _sizes,
}
EXPECTED: Mapping[object, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    tuple[int, ...]: "a list of sizes like 128-64",
}


MIN_OF_PPO = 2
"""Minimum number of steps of a batch, and of all, to compare advantages."""

NEED_DISCOUNT = ("soft_update", "target_noise", "target_clip", "trace_decay")
"""Settings about future rewards, which have no effect without a discount."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Invalid combination of settings.

    Attributes
    ----------
    names
        Settings to change.
    message
        Problem and remedy.
    """

    names: tuple[str, ...]
    message: str


def conflicts_in(settings: object) -> Iterator[Conflict]:
    """Yield the conflicts in the settings of an algorithm."""
    if isinstance(settings, DdpgSettings) and settings.live_pool < settings.warm_up:
        pool, first = settings.live_pool, settings.warm_up
        problem = f"live_pool keeps {pool} transitions, and learning begins when it holds {first} (warm_up): "
        yield Conflict(("live_pool", "warm_up"), f"{problem}it never would; give live_pool {first}, or warm_up {pool}")
    if isinstance(settings, PpoSettings):
        for name in ("batch", "steps"):
            if getattr(settings, name) < MIN_OF_PPO:
                yield Conflict((name,), f"{getattr(settings, name)} is not at least {MIN_OF_PPO}, as ppo needs it")


def unused(settings: object, given: Collection[str]) -> dict[str, str]:
    """Return the given settings without effect, each with the setting that they require."""
    found: dict[str, str] = {}
    if not getattr(settings, "discount", 1.0):
        found |= dict.fromkeys(NEED_DISCOUNT, "it counts with a discount above 0")
    if isinstance(settings, DdpgSettings):
        if not settings.candidates and not settings.discount:
            found["actor_rate"] = "an actor is trained with candidates above 0, or a discount above 0"
        if not settings.attention:
            found["heads"] = "there are heads with attention above 0, which eade-ddpg has"
        if not settings.expert_share:
            found["expert_pool"] = "an expert is asked with expert_share above 0"
    if isinstance(settings, PilotSettings) and not settings.packings:
        found["packing_s"] = "instances are packed with packings above 0"
    return {name: why for name, why in found.items() if name in given}
