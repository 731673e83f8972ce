"""Jobs as YAML, and the line numbers of their fields."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from seaway.domain.errors import RejectedError
from seaway.domain.units import FIGURES
from seaway.wire.job_in import VOLUME, JobIn
from seaway.wire.yaml import read_yaml, yaml_document

Document = dict[str, Any]
"""Job as a nested mapping, as in YAML."""

LARGEST = 64 * 1024
"""Maximum number of characters of a text that the form shows. Longer texts are sent to the API unchanged."""

FIRST = tuple(JobIn.model_fields)
"""Order of the fields."""


def read_document(text: str) -> Document:
    """Read a job in YAML.

    Raises
    ------
    RejectedError
        When the text is too long for a form, is not YAML, is not a mapping, or contains a number that is too long.
    """
    if len(text) > LARGEST:
        raise RejectedError(f"has more than {LARGEST:,} characters")
    read = read_yaml(text)
    if read is None:
        return {}
    if not isinstance(read, dict) or not all(isinstance(name, str) for name in read):
        raise RejectedError("must be a mapping of names to values, like `name: train`")
    try:
        repr(read)
    except ValueError:  # Python cannot print numbers of thousands of digits, as in hexadecimal text
        raise RejectedError("holds a number of too many digits") from None
    return read


def written(document: Mapping[str, Any]) -> str:
    """Write a job in YAML: known fields in their order, then all others; empty for an empty job."""
    if not document:
        return ""
    order = {name: at for at, name in enumerate(FIRST)}
    ordered = dict(sorted(document.items(), key=lambda each: order.get(each[0], len(order))))
    text: str = yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


TRIGGER, WINDOW = frozenset({"metric", "target", "query"}), frozenset({"start", "end", "timezone", "replicas"})
"""Fields of a trigger with a metric, and of one with a time window."""

BOUNDS = re.compile(r"\s*(\d{1,9})\s*-\s*(\d{1,9})\s*")
"""Pattern of a range of replicas."""


def value_at(document: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401  # any value of YAML
    """Return the value at a path like ``resources.gpus``; None if there is none.

    For ``scale``, it is that of the first trigger with a metric, or of the first one with a time window. A range of
    replicas has the parts ``min`` and ``max``.
    """
    here: Any = document
    for step in path.split("."):
        if isinstance(here, list):
            here = next((each for each in here if _is_like(each, step)), None)
        elif isinstance(here, str) and (bounds := BOUNDS.fullmatch(here)):
            here = {"min": int(bounds[1]), "max": int(bounds[2])}
        here = here.get(step) if isinstance(here, Mapping) else None
    return here


def _is_like(trigger: object, name: str) -> bool:
    """Report whether a trigger has a field of the same kind of trigger as `name`."""
    kind = TRIGGER if name in TRIGGER else WINDOW
    return isinstance(trigger, Mapping) and not kind.isdisjoint(trigger)


def _with_trigger(triggers: list[Any], name: str, value: object) -> list[Any]:
    """Return triggers with a changed field of the first one of its kind, without those that become empty."""
    at = next((at for at, each in enumerate(triggers) if _is_like(each, name)), len(triggers))
    first = triggers[at] if at < len(triggers) else {}
    return [*triggers[:at], *filter(None, [changed(first, name, value)]), *triggers[at + 1 :]]


def _bounds(replicas: object) -> Document:
    """Return a number or a range of replicas as its parts."""
    if isinstance(replicas, int):
        return {"min": replicas, "max": replicas}
    return {name: bound for name in ("min", "max") if (bound := value_at({"": replicas}, f".{name}")) is not None}


def changed(document: Document, path: str, value: object) -> Document:
    """Return a job with a changed value at a path. None removes the value, and parts that become empty."""
    step, _, rest = path.partition(".")
    result = dict(document)
    inner = result.get(step)
    if step == "scale" and rest:
        value = _with_trigger(inner if isinstance(inner, list) else [], rest, value) or None
    elif rest:
        inner = _bounds(inner) if step == "replicas" and not isinstance(inner, dict) else inner
        value = changed(inner if isinstance(inner, dict) else {}, rest, value) or None
    if value is None:
        result.pop(step, None)
    else:
        result[step] = value
    return result


_Plain: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Plain):  # type: ignore[misc]  # one of the two classes
    """YAML dumper that writes lists of plain values on one line, and uses no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """Return True, so that a repeated value is written in full each time."""
        return True


def _short_list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.SequenceNode:
    plain = not any(isinstance(each, list | dict) for each in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=plain)


_Dumper.add_representer(list, _short_list)


NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
"""Pattern of a number. A value with more digits remains text, and the API reports the error."""

STEP = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True, slots=True)
class Kind:
    """Conversion between a value of a job and the text of a form's field.

    Attributes
    ----------
    read
        Converts the typed text, which is not empty.
    shown
        Converts a value of this kind to text.
    """

    read: Callable[[str], Any]
    shown: Callable[[Any], str]


def amount(text: str) -> int | float | str:
    """Return a number if the text is one; otherwise return the text, such as an amount with a unit."""
    if not NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


def _list(text: str) -> list[int | float | str]:
    return [amount(each.strip()) for each in text.split(",") if each.strip()]


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _command(text: str) -> list[str]:
    """Split a command like a shell; split at white space if a quote is not closed."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _pairs(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line.strip()]
    return {line.partition("=")[0].strip(): line.partition("=")[2].strip() for line in lines}


def _joined(value: Any) -> str:  # noqa: ANN401  # any value of YAML
    return ", ".join(map(str, value))


def _volumes(text: str) -> list[Any]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [read_yaml(line) if line.startswith("{") else line for line in lines]


def _volume(value: Any) -> str:  # noqa: ANN401  # any value of YAML
    """Write a volume in its short form if there is one; otherwise as a mapping on one line."""
    if isinstance(value, Mapping):
        source = next((kind for kind in ("claim", "secret", "config_map", "empty_dir") if value.get(kind)), "")
        short = f"{source}={value.get(source)}:{value.get('path')}{':ro' if value.get('read_only') else ''}"
        known = {"path", source, *({"read_only"} if value.get("read_only") is True else ())}
        if value.keys() == known and VOLUME.fullmatch(short):
            return short
        return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).strip()
    return str(value)


TEXT = Kind(str, str)


def _range(value: Any) -> str:  # noqa: ANN401  # any value of YAML
    return f"{value.get('min', '')}-{value.get('max', '')}" if isinstance(value, Mapping) else str(value)


AMOUNT = Kind(amount, str)
CHOICE = Kind(lambda text: {"true": True, "false": False}.get(text, text), lambda value: str(value).lower())
"""True or false, by name."""
RANGE = Kind(amount, _range)
NAMES = Kind(_names, _joined)
NUMBERS = Kind(_list, _joined)
COMMAND = Kind(_command, lambda value: shlex.join(map(str, value)))
LINES = Kind(str.splitlines, lambda value: value if isinstance(value, str) else "\n".join(map(str, value)))


def _warning(value: Any) -> str:  # noqa: ANN401  # any value of YAML
    return f"{value['signal']}@{value['before']}" if isinstance(value, Mapping) else str(value)


def _receivers(value: Any) -> str:  # noqa: ANN401  # any value of YAML
    """Write receivers of messages in their short form, one a line."""
    listed = [value] if isinstance(value, str | Mapping) else value
    return "\n".join(_receiver(each) if isinstance(each, Mapping) else str(each) for each in listed)


def _receiver(value: Mapping[str, Any]) -> str:
    when = value.get("when", ())
    return "=".join(filter(None, (str(value["to"]), when if isinstance(when, str) else ",".join(map(str, when)))))


WARNING = Kind(str, _warning)
RECEIVERS = Kind(lambda text: [line.strip() for line in text.splitlines() if line.strip()], _receivers)


def _mapping(text: str) -> Any:  # noqa: ANN401  # any value of YAML
    """Read YAML; return the text if it is invalid, so that the check of the job reports it."""
    try:
        return read_yaml(text)
    except RejectedError:
        return text


def _mapping_text(value: Any) -> str:  # noqa: ANN401  # any value of YAML
    return value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False).strip()


MAPPING = Kind(_mapping, _mapping_text)
VOLUMES = Kind(_volumes, lambda value: "\n".join(map(_volume, value)))
PAIRS = Kind(_pairs, lambda value: "\n".join(f"{name}={each}" for name, each in value.items()))


def shown(document: Mapping[str, Any], path: str, kind: Kind) -> str:
    """Return the text of a form's field for a job."""
    value = value_at(document, path)
    if value is None:
        return ""
    try:
        return kind.shown(value)
    except (TypeError, AttributeError, KeyError):  # wrong type, which the API reports
        return str(value)


def typed(text: str, kind: Kind) -> Any:  # noqa: ANN401  # any value of YAML
    """Return the value of typed text; None for an empty field."""
    return kind.read(text.strip()) if text.strip() else None


def field_of(where: str, fields: Mapping[str, object]) -> str:
    """Return the form field for the path of an error, like ``run.ports`` for ``run.ports[2]``; empty for none."""
    steps = [step for step in STEP.findall(where) if not step.isdecimal()]
    steps += ["metric"] if steps == ["scale"] else []
    for end in range(len(steps), 0, -1):
        if (path := ".".join(steps[:end])) in fields:
            return path
    return ""


def path_of(figure: str) -> str:
    """Return the job path of a quantity in an explanation, like ``gpu_memory_mib``; empty if the form cannot set it."""
    word = FIGURES.get(figure, ("",))[0]
    return next((path for path in SETTABLE if path.rpartition(".")[2] == word), "")


SETTABLE = (
    "replicas",
    "time_limit",
    *(f"resources.{name}" for name in ("gpus", "gpu_memory", "gpu_cores", "mig", "cpu", "memory")),
    *(f"network.{name}" for name in ("max_latency", "max_jitter", "max_loss", "min_bandwidth")),
)
"""Fields with an amount that a remedy can change."""


def lines_of(text: str) -> dict[str, int]:
    """Return the line of each field, from 1, by path like ``run.ports[0]``. `read_document` must accept the text."""
    return yaml_document(text).lines()


def line_of(lines: Mapping[str, int], path: str) -> int | None:
    """Return the line of a field, or of its closest parent with a line; None for the whole job."""
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path)
