from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.missing import need_programs, skip_or_fail
from tests.servers.missing import MissingError

ROOT = Path(__file__).resolve().parents[2]


def test_missing_database_skips_locally_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test without its database server is skipped on a user's machine and fails in CI."""
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install"):
        skip_or_fail(MissingError("apt-get install mariadb-server"))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI has to run this test: apt-get install"):
        skip_or_fail(MissingError("apt-get install mariadb-server"))


def test_missing_program_and_its_package_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that needs a program names it and its package; with all programs it runs."""
    monkeypatch.setenv("CI", "true")
    need_programs("bash", "env")
    with pytest.raises(pytest.fail.Exception, match="there is no seaway-none: apt-get install prometheus"):
        need_programs("bash", "seaway-none")


def test_ci_fails_when_requirements_cannot_be_installed(tmp_path: Path) -> None:
    """CI names the missing requirement, runs no test and fails."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    text = (tmp_path / ".ci" / "run").read_text(encoding="utf-8").replace("/usr/", f"{tmp_path}/")
    (tmp_path / ".ci" / "run").write_text(text.replace(f"#!{tmp_path}/", "#!/usr/"), encoding="utf-8")
    for name in ("bash", "dirname", "mktemp", "tail", "rm"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    (tmp_path / "bin" / "apt-get").write_text("#!/bin/sh\necho no network >&2\nexit 100\n", encoding="utf-8")
    (tmp_path / "bin" / "apt-get").chmod(0o755)
    environment = {**os.environ, "PATH": str(tmp_path / "bin")}
    done = subprocess.run(
        ["bash", str(tmp_path / ".ci" / "run")], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    needed = done.stderr.partition("still needed: apt-get install ")[2].split()
    assert {"mariadb-server", "postgresql", "prometheus", "chromium-headless-shell"} <= set(needed), done.stderr
    assert "all tests" not in done.stdout
    assert os.geteuid() != 0 or "no network" in done.stderr
