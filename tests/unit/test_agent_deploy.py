"""Agreement of the shipped agent manifests and units with the CLI and its settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from seaway import __version__
from seaway.bootstrap.settings import KINDS, variable
from seaway.cli.main import COMMANDS

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "agent"
VARIABLES = {variable("agent", name) for name in KINDS["agent"]}
UNITS = sorted(FOLDER.glob("*.service"))


def manifest() -> dict[str, Any]:
    """Read the Deployment. Its namespace, before it, allows host networking, and has nothing else."""
    namespace, read = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8"))
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "privileged"}
    assert read["metadata"]["namespace"] == namespace["metadata"]["name"] not in ("seaway", "default")
    made: dict[str, Any] = read
    return made


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_use_existing_commands_and_settings(unit: Path) -> None:
    """Each unit starts an existing command with existing settings."""
    text = unit.read_text(encoding="utf-8")
    assert set(re.findall(r"^Environment=(\w+)=", text, re.MULTILINE)) <= VARIABLES
    (command,) = re.findall(r"^ExecStart=\S+/seaway (\w+)", text, re.MULTILINE)
    assert command in {each.name for each in COMMANDS}


def test_manifest_has_present_version_settings_and_least_rights() -> None:
    """The Deployment has this version, existing settings and the least privileges."""
    (container,) = manifest()["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"seaway:{__version__}"
    assert {each["name"] for each in container["env"]} <= VARIABLES
    rights = container["securityContext"]["capabilities"]
    assert (rights["drop"], sorted(rights["add"])) == (["ALL"], ["NET_RAW", "SETGID", "SETPCAP", "SETUID"])


def test_update_stops_old_agent_first() -> None:
    """The reports of two agents would overtake each other."""
    spec = manifest()["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
