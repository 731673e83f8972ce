"""`seaway trace`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seaway.cli.learning.trace import SOURCES
from seaway.cli.main import main

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,393216,2,G2\nn1,64000,262144,2,P100\n"
JOBS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,4000,8192,1,600\nb,4000,8192,2,1000\n"


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run `seaway trace`; return its exit code and what it printed."""
    with pytest.raises(SystemExit) as done:
        main(["trace", *map(str, arguments)])
    said = capsys.readouterr()
    return int(done.value.code or 0), said.out, said.err


@pytest.fixture
def openb(tmp_path: Path) -> Path:
    """Write files named as those of openb."""
    folder = tmp_path / "csv"
    folder.mkdir()
    (folder / "openb_node_list_gpu_node.csv").write_text(NODES)
    for variant in ("default", "gpushare40"):
        (folder / f"openb_pod_list_{variant}.csv").write_text(JOBS)
    return folder


def test_public_traces_have_an_address_and_the_next_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list says where each trace is, how to get it and how to convert it."""
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run(capsys)
    assert code == 0
    assert all(text in out for each in SOURCES for text in (each.name, each.address, each.get, each.convert))
    assert [each["name"] for each in json.loads(run(capsys, "-o", "json")[1])["traces"]] == ["openb", "swf"]


def test_a_converted_trace_can_be_replayed(capsys: pytest.CaptureFixture[str], openb: Path, tmp_path: Path) -> None:
    """The command that it names runs on the files that it wrote."""
    code, out, _ = run(capsys, "convert", openb, "--out", tmp_path / "out", "--order-seed", "42")
    assert code == 0
    assert "2 nodes with 4 GPUs" in out
    words = out.partition("next: seaway ")[2].split()
    words[words.index("seaway,fgd,bestfit")] = "greedy"
    with pytest.raises(SystemExit) as done:
        main([*words, "-o", "json"])
    assert done.value.code == 0
    (outcome,) = json.loads(capsys.readouterr().out)
    assert outcome["arrived_pct"] >= 130


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--variant", "nope"), "--variant: 'nope' is not there; available: default, gpushare40"),
        (("--processors", "4"), "--processors: is for logs"),
    ],
)
def test_an_unknown_variant_is_rejected(
    capsys: pytest.CaptureFixture[str], openb: Path, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    """The error names what there is."""
    code, _, err = run(capsys, "convert", openb, "--out", tmp_path / "out", *options)
    assert (code, err.strip()) == (2, f"error: {said}")


def test_a_folder_without_a_trace_is_rejected(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The error names the missing file, and the command that says where to get it."""
    code, _, err = run(capsys, "convert", tmp_path, "--out", tmp_path / "out")
    assert code == 2
    assert err.strip().endswith("has no openb_node_list_gpu_node.csv; see `seaway trace`")
