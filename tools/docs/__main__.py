"""`script/docs`: build the documentation site and check its links."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from seaway.api.http.openapi import describe
from tools.docs.application import make_server
from tools.docs.commands import commands_page
from tools.docs.links import site_problems
from tools.docs.metrics import metrics_page
from tools.docs.pages import gather, navigation_problems
from tools.docs.python_api import python_pages
from tools.docs.rest import rest_page
from tools.docs.settings import fill_in

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "zensical.toml"
PAGES = ROOT / "build" / "docs" / "pages"
SITE = ROOT / "build" / "docs" / "site"

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def build() -> list[str]:
    """Build the site; return what is wrong with it."""
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    names = gather(ROOT, PAGES) | write_reference(PAGES)
    fill_in(PAGES / "docs" / "settings.md")
    if wrong := navigation_problems(CONFIG, PAGES, names):
        return wrong
    return zensical_problems() or site_problems(SITE)


def zensical_problems() -> list[str]:
    """Build the site from the gathered pages; return what zensical warns about."""
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(CONFIG)]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if not built.returncode:
        return []
    said, _, _ = COLOUR.sub("", built.stdout).partition("Traceback")
    return [said.strip() or built.stdout]


def write_reference(target: Path) -> set[str]:
    """Write the pages that are generated from the source; return their names."""
    server = make_server()
    pages = {
        "commands": commands_page(),
        "metrics": metrics_page(server),
        "rest": rest_page(describe(server.app)),
        **{f"python/{name}": text for name, text in python_pages().items()},
    }
    for name, text in pages.items():
        path = target / "reference" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copyfile(Path(__file__).with_name("style.css"), target / "reference" / "style.css")
    return {f"reference/{name}.md" for name in pages}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `script/docs`; without arguments, with those of the process."""
    argparse.ArgumentParser(
        prog="script/docs",
        description="Build the documentation site into build/docs/site. Fails on a broken link or anchor, on a page "
        "that the navigation lacks, and on anything that a page would load from another host. Needs no network.",
    ).parse_args(arguments)
    if wrong := build():
        print("\n".join(wrong), file=sys.stderr)
        print(f"script/docs failed: {len(wrong)} problems", file=sys.stderr)
        return 1
    print(f"Open {SITE / 'index.html'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
