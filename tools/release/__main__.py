"""`script/release`: build, check and try a release."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.release.archives import build, content_problems
from tools.release.readiness import problems, version_of
from tools.release.supply import REQUIREMENTS, audit, image_problems, install_tools, write_requirements, write_sbom
from tools.release.trial import TrialError, install, try_out

ROOT = Path(__file__).resolve().parents[2]


def release(*, dry_run: bool, keep: bool = False, base: str = "") -> int:
    """Build, check and try a release; return the exit status."""
    version = version_of(ROOT)
    unready = problems(ROOT) + image_problems(base)
    for each in unready:
        print(f"{'warning' if dry_run else 'error'}: {each}", file=sys.stderr)
    if unready and not dry_run:
        return 1
    with TemporaryDirectory(prefix="seaway-release-") as made:
        folder = Path(made)
        print(f"Building seaway {version} ...")
        source, wheel = build(ROOT, folder / "dist")
        if wrong := content_problems(ROOT, source, wheel):
            print("\n".join(f"error: {each}" for each in wrong), file=sys.stderr)
            return 1
        print("Installing the wheel into an empty environment ...")
        commands = install(wheel, ROOT / "constraints.txt", folder / "environment")
        print("Running seaway up --once, and a server with a job ...")
        try:
            try_out(commands, folder / "home", version)
        except TrialError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        requirements, sbom = folder / REQUIREMENTS, folder / f"seaway-{version}.cdx.json"
        vulnerable = _check_dependencies(folder, wheel, requirements, sbom)
        if vulnerable and not dry_run:
            return 1
        if keep or not dry_run:
            _keep(source, wheel, requirements, sbom)
        if dry_run:
            print(f"seaway {version} can be released" + (", once the warnings are fixed" if unready else ""))
            return 0
        _print_next(version, base, source, wheel)
    return 0


def _check_dependencies(folder: Path, wheel: Path, requirements: Path, sbom: Path) -> bool:
    """Write the hashes and the SBOM of all dependencies; report whether one has a known vulnerability."""
    print("Writing hashes and an SBOM of the dependencies, and searching for vulnerabilities ...")
    write_requirements(wheel, ROOT, requirements)
    tools = install_tools(ROOT, folder / "tools")
    write_sbom(tools, requirements, sbom)
    vulnerable, skipped = audit(tools, requirements)
    for each in vulnerable:
        print(f"error: {each}", file=sys.stderr)
    if skipped:
        print(f"SKIPPED: vulnerabilities were not searched completely: {skipped}", file=sys.stderr)
    return bool(vulnerable)


def _keep(*files: Path) -> None:
    """Move files to `dist`."""
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    for each in files:
        shutil.move(each, dist / each.name)


def _print_next(version: str, base: str, source: Path, wheel: Path) -> None:
    print(f"""
dist/{source.name} and dist/{wheel.name} are ready. Next:

  git tag -a v{version} -m 'Seaway {version}'
  git push origin v{version}
  twine upload dist/{source.name} dist/{wheel.name}
  docker build --build-arg BASE={base} --tag example/seaway:{version} .

contributing/release.md lists the remaining steps.""")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `script/release`; without arguments, with those of the process."""
    parser = argparse.ArgumentParser(
        prog="script/release",
        description="Build the source archive and the wheel, check their contents, install the wheel into an empty "
        "environment and run it. Refuses uncommitted changes, a version that is tagged, and an unfinished changelog.",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="do everything, keep nothing; what would be refused is a warning"
    )
    parser.add_argument("--keep", action="store_true", help="with --dry-run: leave the files in dist/, for an image")
    parser.add_argument("--base", default="", metavar="NAME@sha256:DIGEST", help="base image of the release's image")
    given = parser.parse_args(arguments)
    return release(dry_run=given.dry_run, keep=given.keep, base=given.base)


if __name__ == "__main__":
    raise SystemExit(main())
