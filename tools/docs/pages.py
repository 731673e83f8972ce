"""The pages of the repository, gathered in the layout that they have there."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
FOLDERS = ("docs", "contributing")
UNLISTED = re.compile(r"docs/(?:adr/\d|next\.md$)")
"""Pages that the navigation does not need: decisions, which have a list, and notes on work in progress."""

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
TITLE = re.compile(r"^# (.*)$", re.MULTILINE)


def gather(root: Path, target: Path) -> set[str]:
    """Copy all pages and what they link to; return the names of the pages that readers should find in the navigation.

    A page can link to any file of the repository, and to a folder: what is outside `FOLDERS` comes along when a page
    links to it. A folder without a README.md gets a page that lists its files.
    """
    own = [root / name for name in ROOT_PAGES]
    own += [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.md"))]
    waiting, copied = [*own, root / "docs" / "adr"], set()
    while waiting:
        path = waiting.pop()
        if path in copied:
            continue
        copied.add(path)
        copy = target / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            files = sorted(each for each in path.rglob("[!.]*") if each.is_file() and each.suffix != ".pyc")
            waiting += files
            if path / "README.md" not in files:
                copy.mkdir(exist_ok=True)
                (copy / "index.md").write_text(_listing(root, path, files), encoding="utf-8")
        else:
            shutil.copyfile(path, copy)
            if path.suffix == ".md":
                waiting += _linked(root, path)
    return {str(path.relative_to(root)) for path in own} | {"docs/adr/index.md"}


def _linked(root: Path, page: Path) -> Iterator[Path]:
    """Return the files and folders of the repository that a page links to."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        path = (page.parent / unquote(link)).resolve()
        if ":" not in link and path.exists() and path.is_relative_to(root):
            yield path


def _listing(root: Path, folder: Path, files: Iterable[Path]) -> str:
    """Return a page that lists the files of a folder, pages by their titles."""
    name = folder.relative_to(root).as_posix()
    head = "# Decisions\n\nWhy Seaway is built as it is.\n" if name == "docs/adr" else f"# `{name}`\n"
    rows = [f"- [{title_of(each)}]({each.relative_to(folder).as_posix()})" for each in files]
    return "\n".join([head, *rows, ""])


def title_of(path: Path) -> str:
    """Return the first heading of a page, or the name of another file."""
    found = TITLE.search(path.read_text(encoding="utf-8")) if path.suffix == ".md" else None
    return found[1] if found else path.name


def navigation_problems(config: Path, target: Path, pages: set[str]) -> list[str]:
    """List pages that the navigation lacks or has twice, and names without a page."""
    nav = tomllib.loads(config.read_text(encoding="utf-8"))["project"]["nav"]
    named = list(_names(nav))
    missing = sorted(name for name in named if not (target / name).is_file())
    expected = {name for name in pages if not UNLISTED.match(name)}
    return [
        *(f"{name} is not in the navigation: add it to {config.name}" for name in sorted(expected - set(named))),
        *(f"{name} does not exist: remove it from {config.name}" for name in missing),
        *(f"{name} is in {config.name} twice" for name in sorted({name for name in named if named.count(name) > 1})),
    ]


def _names(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list):
        for each in nav:
            yield from _names(each)
    elif isinstance(nav, dict):
        for each in nav.values():
            yield from _names(each)
