"""Queries of dashboards, read from their JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dashboards.files import as_json
from dashboards.frame import Frame, build
from dashboards.language import Language


@dataclass(frozen=True)
class Asked:
    """A query of a panel and its legend; for a table, the title of its column."""

    dashboard: str
    title: str
    legend: str
    query: str


def read(frame: Frame, language: Language = Language.ENGLISH) -> dict[str, Any]:
    """Return the JSON of a dashboard."""
    found: dict[str, Any] = json.loads(as_json(build(frame, language)))
    return found


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all panels without rows."""
    return [each for each in dashboard["panels"] if each["type"] != "row"]


def asked(name: str, frame: Frame) -> Iterator[Asked]:
    """Return all queries of a dashboard."""
    for panel in panels(read(frame)):
        titles: dict[str, str] = {}
        for step in panel.get("transformations", ()):
            titles |= step["options"].get("renameByName", {})
        for target in panel["targets"]:
            legend = titles.get(f"Value #{target['refId']}", target.get("legendFormat", ""))
            yield Asked(name, panel["title"], legend, target["expr"])
