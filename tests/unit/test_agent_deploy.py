"""The ways to run an agent that are handed out agree with what it takes."""

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
    """Read the Deployment."""
    read: dict[str, Any] = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_set_what_there_is(unit: Path) -> None:
    """Each unit starts a command that there is, with settings that there are."""
    text = unit.read_text(encoding="utf-8")
    assert set(re.findall(r"^Environment=(\w+)=", text, re.MULTILINE)) <= VARIABLES
    (command,) = re.findall(r"^ExecStart=\S+/seaway (\w+)", text, re.MULTILINE)
    assert command in {each.name for each in COMMANDS}


def test_manifest_sets_what_there_is() -> None:
    """The Deployment has this version, settings that there are, and the least that giving privileges up takes."""
    (container,) = manifest()["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"seaway:{__version__}"
    assert {each["name"] for each in container["env"]} <= VARIABLES
    rights = container["securityContext"]["capabilities"]
    assert (rights["drop"], sorted(rights["add"])) == (["ALL"], ["NET_RAW", "SETGID", "SETPCAP", "SETUID"])


def test_never_two_at_a_time() -> None:
    """An update ends the old agent first: the reports of two would overtake each other."""
    spec = manifest()["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
