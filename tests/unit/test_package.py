from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest

import seaway
from dashboards.files import write_folders
from dashboards.language import Language
from seaway.cli.serving import dashboards as command
from seaway.domain.errors import RejectedError
from tools.release.archives import build

ROOT = Path(__file__).resolve().parents[2]


def test_version_agrees_with_installed_metadata() -> None:
    """The package and its installed metadata have the same version."""
    assert seaway.__version__ == version("seaway")


@pytest.mark.slow
def test_the_wheel_has_the_dashboards_and_a_command_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel that is built from the source archive has the files of `script/dashboards`. A clone names that script."""
    with pytest.raises(RejectedError, match="script/dashboards"):
        command.dashboards(tmp_path / "none")
    _, wheel = build(ROOT, tmp_path / "dist")
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    monkeypatch.setattr(command, "STORED", tmp_path / "installed" / "seaway" / "dashboards")
    command.dashboards(tmp_path / "out")
    expected = {path.relative_to(tmp_path / "code"): path for path in write_folders(tmp_path / "code", Language)}
    written = {path.relative_to(tmp_path / "out"): path for path in (tmp_path / "out").glob("*/*")}
    assert written.keys() == expected.keys()
    assert len(written) == 12
    for name, path in written.items():
        assert path.read_bytes() == expected[name].read_bytes()
