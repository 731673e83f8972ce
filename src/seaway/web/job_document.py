"""A job as YAML, and what stands where in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from seaway.domain.errors import RejectedError
from seaway.wire.job_in import JobIn
from seaway.wire.safe_yaml import read_yaml

Document = dict[str, Any]
"""A job as it is written, nested as in YAML."""

LARGEST = 64 * 1024
"""Characters of a text that is shown in a form, too; what is longer goes to the API as it is."""

FIRST = tuple(JobIn.model_fields)
"""Fields in the order in which they are written."""


def read_document(text: str) -> Document:
    """Read a job in YAML.

    Raises
    ------
    RejectedError
        When it is too long for a form, no YAML, no mapping of names to values, or holds a number that is too long.
    """
    if len(text) > LARGEST:
        raise RejectedError(f"has more than {LARGEST:,} characters")
    read = read_yaml(text)
    if read is None:
        return {}
    if not isinstance(read, dict) or not all(isinstance(name, str) for name in read):
        raise RejectedError("has to be a mapping of names to values, like `name: train`")
    try:
        repr(read)
    except ValueError:  # Python writes no number of thousands of digits, which hexadecimal may have
        raise RejectedError("holds a number of too many digits") from None
    return read


def written(document: Mapping[str, Any]) -> str:
    """Write a job in YAML: known fields in their order, then what else there is; nothing for an empty one."""
    if not document:
        return ""
    order = {name: at for at, name in enumerate(FIRST)}
    ordered = dict(sorted(document.items(), key=lambda each: order.get(each[0], len(order))))
    text: str = yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def value_at(document: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401  # anything that YAML may hold
    """Return what stands at a path like ``resources.gpus``; None for nothing."""
    here: Any = document
    for step in path.split("."):
        here = here.get(step) if isinstance(here, Mapping) else None
    return here


def changed(document: Document, path: str, value: object) -> Document:
    """Return a job with something else at a path; None takes away what is there, and parts that are empty then."""
    step, _, rest = path.partition(".")
    result = dict(document)
    if rest:
        inner = result.get(step)
        value = changed(inner if isinstance(inner, dict) else {}, rest, value) or None
    if value is None:
        result.pop(step, None)
    else:
        result[step] = value
    return result


_Plain: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Plain):  # type: ignore[misc]  # either of the two
    """Writes lists of plain values on one line, and everything out that appears twice."""

    def ignore_aliases(self, data: object) -> bool:
        """Write everything out."""
        return True


def _short_list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.SequenceNode:
    plain = not any(isinstance(each, list | dict) for each in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=plain)


_Dumper.add_representer(list, _short_list)
