"""Output of `script/dashboards`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboards.__main__ import make_app
from tests.unit.cli.test_without_extras import run

NAMES = {"fleet", "device", "vgpu", "network", "scheduler", "jobs"}


def test_dashboards_are_written_in_both_languages_or_in_one(tmp_path: Path) -> None:
    """Each requested language has a folder, by default both, and each dashboard a file."""
    done = CliRunner().invoke(make_app(), ["--out", str(tmp_path / "both")])
    assert done.exit_code == 0, done.output
    assert {each.name for each in (tmp_path / "both").iterdir()} == {"Seaway", "Seaway 中文"}
    CliRunner().invoke(make_app(), ["--out", str(tmp_path / "one"), "--language", "zh"])
    assert [each.name for each in (tmp_path / "one").iterdir()] == ["Seaway 中文"]
    files = list((tmp_path / "one" / "Seaway 中文").iterdir())
    assert {each.stem for each in files} == NAMES
    assert all(json.loads(each.read_text(encoding="utf-8"))["panels"] for each in files)


def test_config_maps_are_in_one_file_per_language(tmp_path: Path) -> None:
    """Each language has a file of ConfigMaps, which a Grafana sidecar reads."""
    done = CliRunner().invoke(make_app(), ["--out", str(tmp_path), "--config-maps", "-n", "watching"])
    assert done.exit_code == 0, done.output
    assert {each.name for each in tmp_path.iterdir()} == {"dashboards-en.yaml", "dashboards-zh.yaml"}


def test_a_folder_or_the_chart_is_written_not_both(tmp_path: Path) -> None:
    """Without a folder there is nothing to write into but the chart, which takes neither a folder nor ConfigMaps."""
    for options in ([], ["--out", str(tmp_path), "--chart"], ["--chart", "--config-maps"]):
        done = CliRunner().invoke(make_app(), options)
        assert "give a folder, or --chart alone" in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_missing_package_and_unwritable_folder_are_reported(tmp_path: Path) -> None:
    """The last line names the missing package, or the file that has the name of a folder."""
    done = run("grafana_foundation_sdk", "--out there", tmp_path, "dashboards.__main__")
    assert done.returncode == 2
    assert "script/bootstrap --with grafana" in done.stderr.splitlines()[-1]
    (tmp_path / "there").write_text("a file")
    done = run("", "--out there", tmp_path, "dashboards.__main__")
    assert done.returncode == 2
    assert "there" in done.stderr.splitlines()[-1]
