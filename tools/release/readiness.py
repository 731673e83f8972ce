"""Checks of the repository before a release."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

HEADING = re.compile(r"^## \[(?P<name>[^\]]+)\](?P<date> - \d{4}-\d{2}-\d{2})?$", re.MULTILINE)
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


def git(root: Path, *arguments: str) -> str:
    """Return the output of a git command in a repository."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def version_of(root: Path) -> str:
    """Return the version that pyproject.toml declares."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def problems(root: Path) -> list[str]:
    """List what has to be fixed before the release, one sentence each."""
    version = version_of(root)
    source = (root / "src" / "seaway" / "__init__.py").read_text(encoding="utf-8")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = changelog_problems(changelog, version)
    if VERSION.findall(source) != [version]:
        found.append(f"src/seaway/__init__.py has another version than pyproject.toml ({version})")
    if git(root, "status", "--porcelain"):
        found.append("the working tree has uncommitted changes: commit them")
    if git(root, "tag", "--list", f"v{version}"):
        found.append(f"the tag v{version} exists: raise the version in pyproject.toml and src/seaway/__init__.py")
    return found


def changelog_problems(text: str, version: str) -> list[str]:
    """List what is wrong with a changelog for the release of a version."""
    headings = list(HEADING.finditer(text))
    names = [each["name"] for each in headings]
    if names[:2] != ["Unreleased", version]:
        return [f"CHANGELOG.md has to begin with the sections [Unreleased] and [{version}]"]
    found = []
    if text[headings[0].end() : headings[1].start()].strip():
        found.append(f"CHANGELOG.md has entries under [Unreleased]: move them to [{version}]")
    if not headings[1]["date"]:
        found.append(f"CHANGELOG.md has no date for [{version}]: write '## [{version}] - YYYY-MM-DD'")
    return found
