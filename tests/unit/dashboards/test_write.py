"""`script/dashboards`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboards.__main__ import make_app
from tests.unit.cli.test_without_extras import run

NAMES = {"fleet", "device", "vgpu", "network", "scheduler", "jobs"}


def test_dashboards_are_written_in_both_languages_or_in_one(tmp_path: Path) -> None:
    """A folder for each language that is asked for, both without a word, and a file for each dashboard."""
    done = CliRunner().invoke(make_app(), ["--out", str(tmp_path / "both")])
    assert done.exit_code == 0, done.output
    assert {each.name for each in (tmp_path / "both").iterdir()} == {"Seaway", "Seaway 中文"}
    CliRunner().invoke(make_app(), ["--out", str(tmp_path / "one"), "--language", "zh"])
    assert [each.name for each in (tmp_path / "one").iterdir()] == ["Seaway 中文"]
    files = list((tmp_path / "one" / "Seaway 中文").iterdir())
    assert {each.stem for each in files} == NAMES
    assert all(json.loads(each.read_text(encoding="utf-8"))["panels"] for each in files)


def test_config_maps_go_into_one_file_for_each_language(tmp_path: Path) -> None:
    """As kubectl takes them."""
    done = CliRunner().invoke(make_app(), ["--out", str(tmp_path), "--config-maps", "-n", "watching"])
    assert done.exit_code == 0, done.output
    assert {each.name for each in tmp_path.iterdir()} == {"dashboards-en.yaml", "dashboards-zh.yaml"}


@pytest.mark.slow
def test_it_is_said_what_to_install_and_where_nothing_can_be_written(tmp_path: Path) -> None:
    """Without the package the last line names it; a file in the way of a folder is named too."""
    done = run("grafana_foundation_sdk", "--out there", tmp_path, "dashboards.__main__")
    assert done.returncode == 2
    assert "script/bootstrap --with grafana" in done.stderr.splitlines()[-1]
    (tmp_path / "there").write_text("a file")
    done = run("", "--out there", tmp_path, "dashboards.__main__")
    assert done.returncode == 2
    assert "there" in done.stderr.splitlines()[-1]
