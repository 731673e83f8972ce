"""Statements of the documentation."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

from seaway import Client
from seaway.bootstrap.settings import KINDS, SECTIONS
from seaway.learning.instances.folder import read_instances
from tools.docs.settings import PLACE, descriptions

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "contributing").rglob("*.md")])

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INSTANCE = re.compile(r"(?:--instances |Path\(\")(benchmarks[^\s\")]*)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every link of a page to a file of the repository leads to one that is there."""
    links = [unquote(link.partition("#")[0]) for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))]
    targets = [link for link in links if link and not re.match(r"[a-z]+:", link)]
    assert [link for link in targets if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_instances_that_commands_name_are_there_or_to_be_made(page: Path) -> None:
    """No page has a reader type the name of a folder of instances in `benchmarks` that the repository has not."""
    named = INSTANCE.findall(page.read_text(encoding="utf-8"))
    assert [each for each in named if not list((ROOT / each).glob("**/nodes.csv"))] == []


def test_the_instance_to_try_learning_on_can_be_made_by_what_the_page_says(tmp_path: Path) -> None:
    """Who types it has an instance under the name that the other commands of the page use."""
    text = (ROOT / "docs" / "learning.md").read_text(encoding="utf-8")
    (block,) = (each for each in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) if "nodes.csv" in each)
    subprocess.run(["bash", "-ec", block], cwd=tmp_path, check=True)
    (made,) = read_instances([tmp_path / "instances"])
    assert (made.name, len(made.fleet.clusters), len(made.jobs)) == ("toy-0", 4, 60)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_has_a_description(section: str) -> None:
    """The source says what each does; the page of settings has a place for the table of the section."""
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    (part,) = re.findall(rf"^## \[{section}\]\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert PLACE.findall(part) == [section]
    described = descriptions(SECTIONS[section])
    assert [name for name in KINDS[section] if not described.get(name)] == []


def test_every_method_of_the_client_is_written_down() -> None:
    """The page of the client names what a client can do, and nothing that it cannot."""
    rows = re.findall(r"^\| [a-z ]+ \| (.*) \|$", (ROOT / "docs" / "client.md").read_text(encoding="utf-8"), re.M)
    plumbing = {"close", "send", "body", "each", "listen"}
    methods = {name for name in dir(Client) if not name.startswith("_")} - plumbing
    assert {name for row in rows for name in re.findall(r"`(\w+)[(`]", row)} == methods


def test_no_section_is_written_down_that_is_gone() -> None:
    """The page of settings has the sections there are, in order."""
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\w+)\]$", text, re.MULTILINE) == list(SECTIONS)
