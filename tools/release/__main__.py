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
from tools.release.trial import TrialError, install, try_out

ROOT = Path(__file__).resolve().parents[2]


def release(*, dry_run: bool) -> int:
    """Build, check and try a release; return the exit status."""
    version = version_of(ROOT)
    unready = problems(ROOT)
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
        if dry_run:
            print(f"seaway {version} can be released" + (", once the warnings are fixed" if unready else ""))
            return 0
        _keep(version, source, wheel)
    return 0


def _keep(version: str, source: Path, wheel: Path) -> None:
    """Move the archives to `dist`, and print what remains to be done."""
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    for each in (source, wheel):
        shutil.move(each, dist / each.name)
    print(f"""
dist/{source.name} and dist/{wheel.name} are ready. Next:

  git tag -a v{version} -m 'Seaway {version}'
  git push origin v{version}
  twine upload dist/{source.name} dist/{wheel.name}

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
    return release(dry_run=parser.parse_args(arguments).dry_run)


if __name__ == "__main__":
    raise SystemExit(main())
