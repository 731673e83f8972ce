"""On which line of a job's YAML what stands."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from seaway.wire.safe_yaml import Loader


def lines_of(text: str) -> dict[str, int]:
    """Return on which line each field stands, by path like ``run.ports[0]``, from 1, in what `read_document` takes."""
    lines: dict[str, int] = {}
    root = yaml.compose(text, Loader)
    if root is not None:
        _walk(root, "", lines)
    return lines


def line_of(lines: Mapping[str, int], path: str) -> int | None:
    """Return the line of a field, or of what it would be a part of; None for the job as a whole."""
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path)


def _walk(node: yaml.Node, path: str, lines: dict[str, int]) -> None:
    """Note on which line everything below a node stands."""
    if isinstance(node, yaml.SequenceNode):
        for at, part in enumerate(node.value):
            lines[f"{path}[{at}]"] = part.start_mark.line + 1
            _walk(part, f"{path}[{at}]", lines)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = f"{path}.{key.value}" if path else str(key.value)
            lines[name] = key.start_mark.line + 1
            _walk(value, name, lines)
