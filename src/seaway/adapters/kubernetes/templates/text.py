"""Manifests as people read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from seaway.adapters.kubernetes.templates.manifest import Manifest


class _Dumper(yaml.SafeDumper):
    """Writes lists indented, no aliases, and nothing broken over lines."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401  # whatever is written
        return True


def as_yaml(manifests: Iterable[Manifest]) -> str:
    """Write manifests, pins and all, as one YAML text; equal manifests give equal bytes."""
    return yaml.dump_all(
        [each.pinned() for each in manifests],
        Dumper=_Dumper,
        sort_keys=False,
        explicit_start=True,
        width=1_000_000,
        allow_unicode=True,
    )
