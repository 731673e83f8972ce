"""Checks before a release."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.release.archives import build, content_problems, package_files, source_problems, wheel_problems
from tools.release.readiness import changelog_problems, problems
from tools.release.supply import (
    HASH,
    LOCKS,
    REQUIREMENTS,
    SupplyError,
    image_problems,
    read_audit,
    requirement_lines,
)

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = {"seaway/__init__.py", "seaway/cli/main.py"}
INFO = "seaway-1.2.0.dist-info/METADATA"

READY = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n\n### Added\n\n- Much.\n"


def repository(folder: Path, changelog: str = READY) -> Path:
    """Make a repository of version 1.2.0 with everything committed."""
    files = {
        "pyproject.toml": '[project]\nversion = "1.2.0"\n',
        "src/seaway/__init__.py": '__version__ = "1.2.0"\n',
        "CHANGELOG.md": changelog,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "all"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def test_a_committed_repository_with_a_dated_changelog_is_ready(tmp_path: Path) -> None:
    """Nothing is reported where version, changelog and working tree are right."""
    assert problems(repository(tmp_path)) == []


def test_uncommitted_changes_are_reported(tmp_path: Path) -> None:
    """A release has exactly what is committed."""
    (repository(tmp_path) / "new.txt").touch()
    assert problems(tmp_path) == ["the working tree has uncommitted changes: commit them"]


def test_a_version_is_released_once(tmp_path: Path) -> None:
    """A tag of the version is reported."""
    subprocess.run(["git", "tag", "v1.2.0"], cwd=repository(tmp_path), check=True)
    assert [each.partition(":")[0] for each in problems(tmp_path)] == ["the tag v1.2.0 exists"]


def test_both_versions_agree(tmp_path: Path) -> None:
    """The package and pyproject.toml have one version."""
    source = repository(tmp_path) / "src" / "seaway" / "__init__.py"
    source.write_text('__version__ = "1.1.0"\n', encoding="utf-8")
    assert "src/seaway/__init__.py has another version than pyproject.toml (1.2.0)" in problems(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (" - 2026-12-01", "", "has no date"),
        ("[Unreleased]\n", "[Unreleased]\n\n- One more.\n", "has entries under [Unreleased]"),
        ("[1.2.0]", "[1.1.0]", "has to begin with the sections"),
        ("## [Unreleased]\n", "", "has to begin with the sections"),
    ],
)
def test_an_unfinished_changelog_is_reported(old: str, new: str, says: str) -> None:
    """It has an empty section for what comes next, and a dated one for the version."""
    (found,) = changelog_problems(READY.replace(old, new), "1.2.0")
    assert says in found


def test_the_changelog_has_the_form_of_keep_a_changelog() -> None:
    """Unreleased changes first, then versions, each with the usual kinds of changes."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    kinds = {"Added", "Changed", "Deprecated", "Fixed", "Removed", "Security"}
    assert sections[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\]( - \d{4}-\d{2}-\d{2})?", each) for each in sections[1:])
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= kinds


def test_a_wheel_has_the_package_and_nothing_else() -> None:
    """Files outside seaway/, unknown, missing and test files are reported. The build adds dashboards."""
    made = "seaway/dashboards/Seaway/fleet.json"
    assert wheel_problems([*PACKAGE, made, INFO], PACKAGE) == []
    assert wheel_problems([*PACKAGE, INFO], PACKAGE) == ["seaway/dashboards/ is missing"]
    assert wheel_problems([*PACKAGE, made, INFO, "tests/a.py"], PACKAGE) == ["tests/a.py is outside seaway/"]
    assert wheel_problems(["seaway/__init__.py", made], PACKAGE) == ["seaway/cli/main.py is missing"]
    assert wheel_problems([*PACKAGE, made, "seaway/x.log"], PACKAGE) == ["seaway/x.log is not in the repository"]
    tests = {*PACKAGE, made, "seaway/cli/test_main.py", "seaway/tests/fakes.py", "seaway/conftest.py"}
    assert [each.partition(" ")[2] for each in wheel_problems(tests, tests)] == ["is a test"] * 3


def test_a_source_archive_has_what_the_wheel_is_built_from() -> None:
    """The package and the files that pyproject.toml names; anything else is reported."""
    names = [f"seaway-1.2.0/src/{each}" for each in PACKAGE] + ["seaway-1.2.0/pyproject.toml"]
    assert source_problems(names, PACKAGE) == []
    assert source_problems([*names, "seaway-1.2.0/lab/wires.py"], PACKAGE) == [
        "lab/wires.py is neither in src/seaway/ nor expected beside it"
    ]


@pytest.mark.slow
def test_the_archives_of_this_repository_are_right(tmp_path: Path) -> None:
    """Both are built, the wheel from the source archive, and hold what they should."""
    assert len(package_files(ROOT)) > 400
    assert content_problems(ROOT, *build(ROOT, tmp_path / "dist")) == []


def installed(name: str, **hashes: str) -> dict[str, object]:
    """Return an entry of pip's installation report."""
    return {
        "metadata": {"name": name, "version": "1.0"},
        "download_info": {"archive_info": {"hashes": hashes}},
    }


def test_dependencies_are_written_with_hashes() -> None:
    """Each dependency of the package has its version and hash, and a file that was not tested stops the release."""
    report = {"install": [installed("seaway"), installed("PyYAML", sha256="aa"), installed("attrs", sha256="bb")]}
    known = {"aa", "bb"}
    assert requirement_lines(report, known) == ["attrs==1.0 --hash=sha256:bb", "pyyaml==1.0 --hash=sha256:aa"]
    for other in (installed("attrs"), installed("attrs", sha256="cc")):
        with pytest.raises(SupplyError, match=r"attrs 1\.0 has no hash of locks/"):
            requirement_lines({"install": [other]}, known)


def locked(file: Path) -> dict[str, str]:
    """Read the versions in a file of pins, by normalised name."""
    text = file.read_text(encoding="utf-8")
    return {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)}


def test_everything_that_is_installed_has_a_hash() -> None:
    """Each dependency of an extra is in a lock with the version of the pins, and each line of a lock has hashes."""
    pins, locks = locked(ROOT / "constraints.txt"), {each.stem: locked(each) for each in (ROOT / LOCKS).iterdir()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    for extra, needs in extras.items():
        own = locks["dev"] | locks["learn"] | locks[extra] if extra in ("learn", "ray", "chart") else locks["dev"]
        names = {canonicalize_name(Requirement(each).name) for each in needs} - {"seaway", "torch"}
        assert {name for name in names if own.get(name) != pins[name]} == set(), extra
    assert locks["release"].keys() >= locked(ROOT / "tools" / "release" / REQUIREMENTS).keys()
    for file in (ROOT / LOCKS).iterdir():
        for requirement in re.split(r"(?<!\\)\n", file.read_text(encoding="utf-8").strip()):
            assert HASH.search(requirement), requirement


def test_vulnerabilities_and_missing_data_are_reported() -> None:
    """A dependency without data is not reported as free of vulnerabilities."""
    known = {"name": "attrs", "version": "1.0", "vulns": [{"id": "PYSEC-1"}]}
    safe = {"name": "rich", "version": "2.0", "vulns": []}
    assert read_audit([known, safe]) == (["attrs 1.0 has PYSEC-1: upgrade it"], "")
    assert read_audit([safe, {"name": "six", "skip_reason": "not found"}]) == (
        [],
        "no data for 1 of 2 dependencies, such as six",
    )


@pytest.mark.parametrize(
    ("base", "says"),
    [
        ("", "no base image"),
        ("python:3.11-slim", "has no digest"),
        ("python@sha256:abc", "has no digest"),
        (f"python:3.11-slim@sha256:{'a' * 64}", ""),
    ],
)
def test_base_image_has_a_digest(base: str, says: str) -> None:
    """A tag can name another image tomorrow, so a release needs the digest."""
    assert [says in each for each in image_problems(base)] == [True] * bool(says)
