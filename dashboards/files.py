"""Dashboards as files: JSON in folders for Grafana's provisioning, and ConfigMaps for its sidecar."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.every import dashboards
from dashboards.language import Language

SIDECAR_LABEL, FOLDER_ANNOTATION = "grafana_dashboard", "grafana_folder"
"""Label by which the sidecar of kube-prometheus-stack finds dashboards, and annotation of their folder, by default."""


def as_json(dashboard: Dashboard) -> str:
    """Return a dashboard as JSON; the output is deterministic."""
    return json.dumps(dashboard, cls=JSONEncoder, indent=1, ensure_ascii=False) + "\n"


def write_folders(out: Path, languages: Iterable[Language]) -> list[Path]:
    """Write each dashboard to a file, in a folder for each language, and return the files.

    The folders have the names of Grafana's folders, for providers with `foldersFromFilesStructure`.
    """
    written = []
    for language in languages:
        folder = out / language.folder
        folder.mkdir(parents=True, exist_ok=True)
        for name, dashboard in dashboards(language).items():
            written.append(folder / f"{name}.json")
            written[-1].write_text(as_json(dashboard), encoding="utf-8")
    return written


def write_chart_files(out: Path, languages: Iterable[Language]) -> list[Path]:
    """Write each dashboard to a file with its UID, in a folder for each language, and return the files.

    The Helm chart has a ConfigMap for each. The folders of languages that are not requested are removed.
    """
    shutil.rmtree(out, ignore_errors=True)
    written = []
    for language in languages:
        (out / language.value).mkdir(parents=True)
        for name, dashboard in dashboards(language).items():
            written.append(out / language.value / f"{language.uid(name)}.json")
            written[-1].write_text(as_json(dashboard), encoding="utf-8")
    return written


def write_config_maps(out: Path, languages: Iterable[Language], namespace: str) -> list[Path]:
    """Write each dashboard to a ConfigMap with the sidecar's label, in a file for each language; return the files."""
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
