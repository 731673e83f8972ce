"""Supply chain of a release: hashes of dependencies, an SBOM, vulnerabilities, and the digest of the base image."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

EXTRAS = "gateway,mysql,policy,postgres,s3"
"""Extras of the package in the image."""

REQUIREMENTS = "requirements.txt"
LOCKS = Path("locks")
"""Folder of the committed hashes, in a repository."""
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
PINNED_IMAGE = re.compile(r"\S+@sha256:[0-9a-f]{64}")


class SupplyError(Exception):
    """A part of the supply chain cannot be verified."""


def write_requirements(wheel: Path, root: Path, file: Path) -> None:
    """Write all dependencies of the wheel with versions and hashes, for this machine's Python and architecture.

    Raises
    ------
    SupplyError
        When the hash of a dependency is not among the committed ones.
    """
    constraints = root / "constraints.txt"
    known = {each for lock in (root / LOCKS).glob("*.txt") for each in HASH.findall(lock.read_text(encoding="utf-8"))}
    command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--dry-run"]
    command += ["--ignore-installed", "--only-binary", ":all:", "-c", str(constraints), "--report", "-"]
    done = subprocess.run([*command, f"{wheel}[{EXTRAS}]"], check=True, capture_output=True, text=True)
    file.write_text(
        "".join(f"{line}\n" for line in requirement_lines(json.loads(done.stdout), known)), encoding="utf-8"
    )


def requirement_lines(report: Mapping[str, Any], known: Container[str]) -> list[str]:
    """Return the lines of a requirements file from an installation report of pip.

    Parameters
    ----------
    report
        The report, with the hashes that the index has today.
    known
        The hashes of the files that were tested.

    Raises
    ------
    SupplyError
        When a dependency has another hash, or none.
    """
    lines = []
    for each in report["install"]:
        name, version = each["metadata"]["name"], each["metadata"]["version"]
        digest = each["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if name == "seaway":
            continue
        if digest not in known:
            raise SupplyError(f"{name} {version} has no hash of {LOCKS}/: {digest}. Was its file replaced?")
        lines.append(f"{name.lower()}=={version} --hash=sha256:{digest}")
    return sorted(lines)


def install_tools(root: Path, folder: Path) -> Path:
    """Install the tools of this module into a new environment; return its commands."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", str(root / LOCKS / "release.txt")], check=True)
    return folder / "bin"


def write_sbom(commands: Path, requirements: Path, file: Path) -> None:
    """Write an SBOM of the dependencies in CycloneDX format."""
    command = [str(commands / "cyclonedx-py"), "requirements", "--output-reproducible", "-o", str(file)]
    subprocess.run([*command, str(requirements)], check=True, capture_output=True)


def audit(commands: Path, requirements: Path) -> tuple[list[str], str]:
    """Search for known vulnerabilities of the dependencies.

    Returns
    -------
    tuple of list of str and str
        The vulnerabilities, and the reason why dependencies were not searched; empty if all were.
    """
    command = [str(commands / "pip-audit"), "--disable-pip", "--progress-spinner", "off", "-f", "json"]
    done = subprocess.run([*command, "-r", str(requirements)], check=False, capture_output=True, text=True, timeout=600)
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return [], f"the data of vulnerabilities cannot be reached: {done.stderr.strip()[-200:]}"
    return read_audit(dependencies)


def read_audit(dependencies: Sequence[Mapping[str, Any]]) -> tuple[list[str], str]:
    """Read the result of pip-audit; see `audit`."""
    found = [
        f"{each['name']} {each['version']} has {vulnerability['id']}: upgrade it"
        for each in dependencies
        for vulnerability in each.get("vulns", ())
    ]
    skipped = [str(each["name"]) for each in dependencies if "skip_reason" in each]
    if not skipped:
        return found, ""
    return found, f"no data for {len(skipped)} of {len(dependencies)} dependencies, such as {skipped[0]}"


def image_problems(base: str) -> list[str]:
    """List what is wrong with the base image of a release."""
    if not base:
        return ["no base image: give --base NAME@sha256:DIGEST; contributing/release.md says how to find it"]
    if not PINNED_IMAGE.fullmatch(base):
        return [f"the base image {base!r} has no digest: give NAME@sha256:DIGEST, since a tag can change"]
    return []
