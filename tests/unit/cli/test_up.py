import json
from pathlib import Path

import pytest

from seaway.cli.main import main


@pytest.mark.slow
def test_up_once_runs_a_demo_to_completion(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer sees what came of 300 jobs, where one went, and why another had to wait."""
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as done:
        main(["up", "--once"])
    assert not done.value.code
    out = capsys.readouterr().out
    assert out.startswith("3 simulated clusters with 112 GPUs, 4 gateways; 300 jobs")
    assert "completed" in out
    assert "300" in out
    assert "was placed" in out
    assert "→ cluster-" in out
    assert "was refused: 0 of" in out


@pytest.mark.slow
def test_up_once_tells_programs_what_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-o json has jobs by state, how many were turned away and why, waits, the busiest moment and how long it took."""
    fleet = tmp_path / "fleet.yaml"
    node = '{name: "n{}", count: 2, cpu: 32, memory: 256Gi, gpus: 4, model: T4, gpu_memory: 15Gi}'
    fleet.write_text(f"clusters:\n  - name: small\n    nodes:\n      - {node}\n", encoding="utf-8")
    with pytest.raises(SystemExit) as done:
        main(["up", "--once", "--fleet", str(fleet), "-o", "json"])
    assert not done.value.code
    said = json.loads(capsys.readouterr().out)
    assert said["fleet"] == {"clusters": 1, "gpus": 8, "gateways": 0}
    assert said["submitted"] == 30
    assert said["refused"] == sum(said["refused_because"].values()) > 0
    assert said["states"] == {"completed": 30 - said["refused"]}
    assert 0 < said["wait_s"]["median"] <= said["wait_s"]["longest"] < said["duration_s"]
    assert 0 < said["busiest_share"] <= 1


def test_up_once_takes_no_option_that_it_would_not_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Anything that has no meaning for a demo is refused, all of it in one line; so is -o for a server."""
    with pytest.raises(SystemExit) as done:
        main(["up", "--once", "--port", "1", "--data", str(tmp_path), "--tls-key", "k", "--simulated", "http://h"])
    assert done.value.code == 2
    assert "--port, --tls-key, --simulated, --data cannot be used with --once" in capsys.readouterr().err
    with pytest.raises(SystemExit) as done:
        main(["up", "-o", "json", "--data", str(tmp_path)])
    assert done.value.code == 2
    assert "--once" in capsys.readouterr().err


def test_wrong_settings_are_reported_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every mistake in the settings is reported at once, with where it stands."""
    config = tmp_path / "seaway.toml"
    config.write_text('[server]\nprot = 1\n[control]\nstale_after_s = "soon"\n', encoding="utf-8")
    monkeypatch.setenv("SEAWAY_SERVER_PORT", "many")
    with pytest.raises(SystemExit) as done:
        main(["up", "--config", str(config), "--data", str(tmp_path / "data")])
    assert done.value.code == 2
    said = capsys.readouterr().err
    assert "did you mean 'port'?" in said
    assert "[control] stale_after_s" in said
    assert "SEAWAY_SERVER_PORT" in said


def test_everybody_is_an_admin_on_loopback_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without tokens Seaway does not listen where others could reach it."""
    with pytest.raises(SystemExit) as done:
        main(["up", "--no-auth", "--host", "0.0.0.0", "--port", "0", "--data", str(tmp_path)])  # that is the point
    assert done.value.code == 2
    assert "127.0.0.1" in capsys.readouterr().err
