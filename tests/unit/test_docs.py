"""Agreement of the documentation with the code."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from seaway import Client
from seaway.bootstrap.settings import KINDS, SECTIONS
from seaway.learning.instances.instance import read_instances
from tools.docs.settings import PLACE, descriptions

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "contributing").rglob("*.md")])
SOURCES = ("src", "tests", "benchmarks", "tools", "lab", "dashboards", "examples")

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INSTANCE = re.compile(r"(?:--instances |Path\(\")(benchmarks[^\s\")]*)")
MODULE = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_point_to_existing_files(page: Path) -> None:
    """Every link of a page to a file of the repository is valid."""
    links = [unquote(link.partition("#")[0]) for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))]
    targets = [link for link in links if link and not re.match(r"[a-z]+:", link)]
    assert [link for link in targets if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_modules_exist(page: Path) -> None:
    """Each module that a page names, such as `control/loop.py`, exists."""
    missing = [name for name in MODULE.findall(page.read_text(encoding="utf-8")) if name not in _modules()]
    assert missing == []


@cache
def _modules() -> frozenset[str]:
    """Return the names of all modules, with each number of folders before them."""
    modules = [*ROOT.glob("*.py"), *(path for top in SOURCES for path in (ROOT / top).rglob("*.py"))]
    parts = [path.relative_to(ROOT).parts for path in modules]
    return frozenset("/".join(each[first:]) for each in parts for first in range(len(each)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_name_existing_or_generated_instances(page: Path) -> None:
    """Commands on pages name only folders of instances that the repository has or that a page generates."""
    named = INSTANCE.findall(page.read_text(encoding="utf-8"))
    assert [each for each in named if not list((ROOT / each).glob("**/nodes.csv"))] == []


def test_documented_command_creates_the_tutorial_instance(tmp_path: Path) -> None:
    """The command creates the instance under the name that the other commands of the page use."""
    text = (ROOT / "docs" / "learning.md").read_text(encoding="utf-8")
    (block,) = (each for each in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) if "nodes.csv" in each)
    subprocess.run(["bash", "-ec", block], cwd=tmp_path, check=True)
    (made,) = read_instances([tmp_path / "instances"])
    assert (made.name, len(made.fleet.clusters), len(made.jobs)) == ("toy-0", 4, 60)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_has_a_description(section: str) -> None:
    """The source describes each setting; the page of settings has a place for the table of each section."""
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    (part,) = re.findall(rf"^## \[{section}\]\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert PLACE.findall(part) == [section]
    described = descriptions(SECTIONS[section])
    assert [name for name in KINDS[section] if not described.get(name)] == []


def test_every_client_method_is_documented() -> None:
    """The page of the client names all methods and no others."""
    rows = re.findall(r"^\| [a-z ]+ \| (.*) \|$", (ROOT / "docs" / "client.md").read_text(encoding="utf-8"), re.M)
    plumbing = {"close", "send", "body", "each", "listen"}
    methods = {name for name in dir(Client) if not name.startswith("_")} - plumbing
    assert {name for row in rows for name in re.findall(r"`(\w+)[(`]", row)} == methods


def test_documented_sections_are_those_of_settings() -> None:
    """The page of settings has the existing sections, in order."""
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\w+)\]$", text, re.MULTILINE) == list(SECTIONS)
