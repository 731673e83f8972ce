"""Agreement of the documentation with the code."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer

from seaway import Client
from seaway.bootstrap.settings import KINDS, SECTIONS
from seaway.cli.main import make_app
from seaway.learning.instances.instance import read_instances
from tests.words import Source
from tools.docs.settings import PLACE, descriptions

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "contributing").rglob("*.md")])
SOURCES = ("src", "tests", "benchmarks", "tools", "lab", "dashboards", "examples")

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INSTANCE = re.compile(r"(?:--instances |Path\(\")(benchmarks[^\s\")]*)")
MODULE = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`")
LISTED = re.compile(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w+\n-+$|\Z)", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"```(?:bash|console)?\n(.*?)```", re.DOTALL)
INLINE = re.compile(r"`(seaway [^`\n]+)`")
OTHERS = re.compile(r"\s[|>;#&]|&&| -- ")
OPTION = re.compile(r"--[a-z][\w-]*$")
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_pages_have_their_options(page: Path) -> None:
    """Each option behind a command of Seaway exists."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for block in SHELL.findall(text) for line in block.splitlines()] + INLINE.findall(text)
    commands = [OTHERS.split(line)[0].split()[1:] for line in lines if line.startswith("seaway ")]
    unknown = [(words, each) for words in commands for each in words if OPTION.match(each) and not _has(words, each)]
    assert unknown == [] or page.name == "CHANGELOG.md"  # which also names what is gone


def _has(words: Sequence[str], option: str) -> bool:
    """Report whether a command has an option, or the command line before it."""
    command: Any = _top()
    context, options = typer.Context(command), {"--help"}
    for word in ("", *words):
        found = command.get_command(context, word) if word and hasattr(command, "get_command") else None
        if found or not word:
            command = found or command
            context = typer.Context(command, parent=context)
            options |= {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    return option in options


@cache
def _top() -> Any:  # noqa: ANN401  # Typer has no public names for the classes of commands
    return typer.main.get_command(make_app())


@pytest.mark.parametrize("top", ["src", "benchmarks", "tools", "lab", "dashboards"])
def test_docstrings_name_existing_parameters_and_attributes(top: str) -> None:
    """Each name that a docstring lists is one of the function or class, or of its bases."""
    paths = [str(path.relative_to(ROOT)) for path in (ROOT / top).rglob("*.py")]
    sources = [Source(path, (ROOT / path).read_text(encoding="utf-8")) for path in paths]
    found = [(source.path, node) for source in sources for node in source.statements]
    classes = defaultdict[str, list[ast.ClassDef]](list)
    for _, node in found:
        if isinstance(node, ast.ClassDef):
            classes[node.name].append(node)
    listed = [
        (path, node, names)
        for path, node in found
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (names := _documented(node))
    ]
    unknown = [
        f"{path}:{node.lineno}: {name}"
        for path, node, names in listed
        for name in sorted(names - _names(node, classes))
    ]
    assert unknown == []


def _documented(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the names in the lists of parameters and attributes of a docstring."""
    listed = LISTED.findall((ast.get_docstring(node) or "") + "\n")
    lines = [line for part in listed for line in part.splitlines() if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for line in lines for name in line.split(",")}


def _names(node: ast.AST, classes: Mapping[str, Sequence[ast.ClassDef]]) -> set[str]:
    """Return the parameters of a function, or those of a class with its attributes and those of its bases."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    found = set[str]()
    for each in ast.walk(node):
        match each:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                found.add(name)
            case ast.Assign(targets=targets):
                found.update(target.id for target in targets if isinstance(target, ast.Name))
    bases = [base for base in getattr(node, "bases", ()) if isinstance(base, ast.Name)]
    return found.union(*(_names(each, classes) for base in bases for each in classes.get(base.id, ())))
