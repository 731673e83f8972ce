"""Dashboards as files: for a folder that Grafana reads, and for the sidecar that looks for ConfigMaps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.every import dashboards
from dashboards.language import Language

SIDECAR_LABEL, FOLDER_ANNOTATION = "grafana_dashboard", "grafana_folder"
"""By what the sidecar of kube-prometheus-stack knows dashboards, and where they go, unless it was told otherwise."""


def as_json(dashboard: Dashboard) -> str:
    """Write a dashboard down, the same each time."""
    return json.dumps(dashboard, cls=JSONEncoder, indent=1, ensure_ascii=False) + "\n"


def write_folders(out: Path, languages: Iterable[Language]) -> list[Path]:
    """Write one file for each dashboard, in a folder for each language; return them.

    The folders' names are what Grafana calls its own, where the provider is told to follow them.
    """
    written = []
    for language in languages:
        folder = out / language.folder
        folder.mkdir(parents=True, exist_ok=True)
        for name, dashboard in dashboards(language).items():
            written.append(folder / f"{name}.json")
            written[-1].write_text(as_json(dashboard), encoding="utf-8")
    return written


def write_config_maps(out: Path, languages: Iterable[Language], namespace: str) -> list[Path]:
    """Write one ConfigMap for each dashboard, labelled for the sidecar, in a file for each language; return these."""
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for language in languages:
        maps = [_config_map(name, each, language, namespace) for name, each in dashboards(language).items()]
        written.append(out / f"dashboards-{language.value}.yaml")
        written[-1].write_text(yaml.safe_dump_all(maps, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return written


def _config_map(name: str, dashboard: Dashboard, language: Language, namespace: str) -> dict[str, Any]:
    uid = language.uid(name)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"grafana-{uid}",
            "namespace": namespace,
            "labels": {SIDECAR_LABEL: "1", "app.kubernetes.io/part-of": "seaway"},
            "annotations": {FOLDER_ANNOTATION: language.folder},
        },
        "data": {f"{uid}.json": as_json(dashboard)},
    }
