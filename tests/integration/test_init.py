"""`seaway init`: from an empty folder to a server with settings, clusters, tenants, queues and tokens."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from seaway.adapters.kubernetes.templates.names import JOB
from seaway.bootstrap.cluster_checks import Finding
from seaway.bootstrap.cluster_join import joined
from seaway.cli.errors import BAD_INPUT
from seaway.cli.main import main
from seaway.cli.serving.doctor import examine_pods
from seaway.client.calls.jobs import job
from seaway.client.sync import Client
from seaway.domain.errors import UnknownError
from tests.conformance.test_kubernetes_backends import furnish
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import PODS
from tests.integration.walks import commands_of, run

pytestmark = pytest.mark.slow  # each test starts servers

TIMEOUT_S = 600


def free_port() -> str:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


def seaway(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, whose subfolder ``data`` is the data folder."""
    return subprocess.run(
        [sys.executable, "-m", "seaway", *arguments],
        cwd=folder,
        env=os.environ | {"SEAWAY_DATA": str(folder / "data")},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_a_server_is_set_up_with_one_command(tmp_path: Path) -> None:
    """It joins the clusters, creates a tenant, a queue and a token for each team, and is safe to repeat."""
    with ApiServer("alpha") as server:
        furnish(server)
        clusters = ("--kubeconfig", str(server.kubeconfig(tmp_path / "config")), "--context", "alpha")
        made = seaway(tmp_path, "init", "--port", free_port(), *clusters, "--tenant", "vision=2", "--tenant", "speech")
        assert made.returncode == 0, made.stderr
        assert "0 errors" in made.stderr
        assert joined(tmp_path / "data") == ["alpha"]
        tokens = dict(line.split() for line in made.stdout.splitlines())
        assert list(tokens) == ["vision", "speech"]
        assert (tmp_path / "seaway.toml").stat().st_mode & 0o777 == 0o600
        repeated = seaway(tmp_path, "init", "--force", "--port", free_port(), *clusters, "--tenant", "vision=3")
        assert (repeated.returncode, repeated.stdout) == (0, "")
        assert "token vision exists already" in repeated.stderr
        with (tmp_path / "seaway.toml").open("a", encoding="utf-8") as settings:
            settings.write('\n[workdirs]\nurl = "http://127.0.0.1:1"\n')
        process = subprocess.Popen(
            [sys.executable, "-m", "seaway", "up", "--config", "seaway.toml", "--data", "data", "--port", "0"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout
            assert any("listens on" in line for line in iter(process.stdout.readline, ""))
            queue = yaml.safe_load(seaway(tmp_path, "queue", "show", "vision", "-o", "yaml").stdout)
            assert (queue["tenant"], queue["guarantee"]) == ("vision", {"gpus": 3})
            found = seaway(tmp_path, "doctor", "--config", "seaway.toml", "--data", "data", "-o", "json")
            assert found.returncode == 0, found.stdout
            assert {"cluster alpha", "rights in alpha", "GPUs in alpha", "server"} <= {
                each["check"] for each in yaml.safe_load(found.stdout)["checks"]
            }
            assert fetched(server, tmp_path / "data", "python:3", ends="Succeeded") == "ok"
            assert fetched(server, tmp_path / "data", "fail/python:3") == "error"
        finally:
            process.terminate()
            process.communicate()


def fetched(server: ApiServer, data: Path, image: str, ends: str = "") -> str:
    """Check the pods of a cluster; return the result. The pod of the check ends in a phase, or by its image."""
    url = json.loads((data / "server.json").read_text(encoding="utf-8"))["url"]
    token = (data / "admin-token").read_text(encoding="utf-8").strip()
    with ThreadPoolExecutor(1) as pool, Client(url, token) as client:
        checked = pool.submit(list[Finding], examine_pods(client, image))
        while ends and not checked.done():
            for pod in server.list(PODS, labels=JOB):
                if (pod.get("status") or {}).get("phase") == "Running":
                    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
                    server.patch(PODS, namespace, name, {"status": {"phase": ends}}, "status")
            time.sleep(0.1)
        (finding,) = checked.result()
        with pytest.raises(UnknownError):  # the job of the check is deleted
            client.send(job("doctor"))
    assert finding.check == "pods of alpha"
    return finding.level.value


def test_every_command_of_the_walk_for_operators_works(tmp_path: Path) -> None:
    """The commands of docs/walk-operator.md work in their order, in an empty folder."""
    lines = commands_of("walk-operator")
    serve = lines.index("seaway up --config seaway.toml")
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SEAWAY_DATA": str(tmp_path / "data"),
        "SEAWAY_SERVER_PORT": free_port(),
    }
    assert run("\n".join(lines[:serve]), environment, tmp_path, TIMEOUT_S).count("0 errors") == 2  # of init and doctor
    server = subprocess.Popen(
        ["bash", "-c", f"exec {lines[serve]}"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout
        assert any("listens on" in line for line in iter(server.stdout.readline, ""))
        said = run("\n".join(lines[serve + 1 :]), environment, tmp_path, TIMEOUT_S)
    finally:
        server.terminate()
        server.communicate()
    assert "refused, as it should be" in said
    assert "0 errors" in said
    assert (tmp_path / "before-upgrade.backup").exists()


REFUSED = (
    (("--tenant", "Bad!"), "tenant 'Bad!': use"),
    (("--tenant", "a=many"), "'many' is not a number of GPUs"),
    (("--tenant", "a", "--tenant", "a=1"), "a is given twice"),
    (("--port", "99999"), "99999 is not a port"),
    (("--kubeconfig", "missing"), "missing cannot be read"),
    (("--context", "alpha"), "--context: requires --kubeconfig"),
    (("--karmada", "one", "--kubeconfig", "two"), "use either --karmada"),
    (("--tls-certificate", "one"), "--tls-certificate and --tls-key together"),
    (("--config", "missing/seaway.toml"), "cannot be written"),
    (("--database", "oracle://db"), "database"),
)


@pytest.mark.parametrize(("options", "says"), REFUSED)
def test_wrong_input_changes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    says: str,
) -> None:
    """The error names the option, and neither settings nor data exist afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEAWAY_DATA", str(tmp_path / "data"))
    with pytest.raises(SystemExit) as ended:
        main(["init", "--yes", *options])
    assert ended.value.code == BAD_INPUT
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_settings_are_not_replaced(tmp_path: Path) -> None:
    """A settings file that exists stays as it is without --force."""
    (tmp_path / "seaway.toml").write_text("# mine\n", encoding="utf-8")
    ran = seaway(tmp_path, "init")
    assert (ran.returncode, (tmp_path / "seaway.toml").read_text(encoding="utf-8")) == (2, "# mine\n")
    assert "exists already" in ran.stderr


def test_a_start_that_fails_can_be_repeated(tmp_path: Path) -> None:
    """Without a server, new settings are removed again, and the error has the reason of the server once."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = seaway(tmp_path, "init", "--yes", "--port", str(taken.getsockname()[1]))
    assert ran.returncode == BAD_INPUT
    assert ran.stderr.splitlines()[-1].startswith("error: the server does not start: 127.0.0.1:")
    assert not (tmp_path / "seaway.toml").exists()


def test_it_asks_on_a_terminal(tmp_path: Path) -> None:
    """Each question has a default; a wrong team is asked for again."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "seaway", "init"],
        cwd=tmp_path,
        env=os.environ
        | {"SEAWAY_DATA": str(tmp_path / "data"), "KUBECONFIG": "-", "HOME": str(tmp_path)}
        | {"SEAWAY_CACHE": os.environ.get("SEAWAY_CACHE", str(Path.home() / ".cache" / "seaway"))},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    answers = ("", "", free_port(), "", "", "no team!", "vision=2", "")
    os.write(ours, "".join(f"{each}\n" for each in answers).encode())
    out, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, said
    assert out.startswith("vision sw_")
    assert "tenant 'no team!': use" in said
    assert 'host = "127.0.0.1"' in (tmp_path / "seaway.toml").read_text(encoding="utf-8")
