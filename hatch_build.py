"""Build hook of the wheel: the dashboards for Grafana as JSON, which `seaway dashboards` writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WRITE = (
    "import sys; from pathlib import Path; from dashboards.files import *; write_folders(Path(sys.argv[1]), Language)"
)


class Dashboards(BuildHookInterface[Any]):
    """Dashboards in the wheel. An editable installation has none: `script/dashboards` writes them."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the dashboards, and add them to the package."""
        if version == "editable":
            return
        self._folder = TemporaryDirectory()
        out = Path(self._folder.name)
        subprocess.run([sys.executable, "-c", WRITE, str(out)], cwd=self.root, check=True)
        for file in sorted(out.glob("*/*.json")):
            build_data["force_include"][str(file)] = f"seaway/dashboards/{file.relative_to(out).as_posix()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files."""
        if version != "editable":
            self._folder.cleanup()
