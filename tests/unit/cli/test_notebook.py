"""Templates of notebooks and model servers, and the addresses by which they are reached."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from seaway.cli.jobs.file import Written, read_jobs, written_jobs
from seaway.cli.jobs.notebook import FOLDER, MAKE_TOKEN, NOTEBOOK, SERVE, free_port, name_of, reachable_url
from seaway.domain.errors import RejectedError
from seaway.wire.job_in import JobIn


def endpoint(address: str, reach: str = "outside", port: int = 8888) -> dict[str, Any]:
    """Return an address of a job."""
    return {"cluster": "a", "port": port, "address": address, "reach": reach, "message": ""}


def test_options_override_a_file_and_both_the_template(tmp_path: Path) -> None:
    """The command is always that of the template, because it makes the token. Errors name the line or the option."""
    path = tmp_path / "job.yaml"
    path.write_text("name: mine\nresources: {gpus: 2, cpu: 8}\nrun: {command: [sleep, inf]}\nlease: 1h\n")
    options = written_jobs([], {"resources.gpus": 4})[0]
    job = NOTEBOOK.job(options, read_jobs(str(path))[0], ["--ip=127.0.0.1"])
    assert (job.fields["name"], job.fields["lease"]) == ("mine", "1h")
    assert job.fields["resources"] == {"cpu": 8, "memory": "8GB", "gpus": 4}
    assert job.fields["run"]["image"] == NOTEBOOK.fields["run"]["image"]
    assert job.fields["run"]["command"][:2] == ["sh", "-c"]
    assert job.fields["run"]["command"][3:] == ["seaway notebook", "--ip=127.0.0.1"]
    assert job.placed(RejectedError("is wrong", where="lease")).where == f"{path}:4:lease"
    assert job.placed(RejectedError("is wrong", where="resources.gpus")).where == "--gpus"


@pytest.mark.parametrize("app", [NOTEBOOK, SERVE], ids=["notebook", "serve"])
def test_a_template_is_a_valid_job(app: Any) -> None:  # noqa: ANN401  # a template
    """It needs no option besides the name."""
    job = app.job(Written({"name": "chat"}), Written({}), ["model"])
    assert JobIn.model_validate(job.fields).run.image


@pytest.mark.parametrize("app", [NOTEBOOK, SERVE], ids=["notebook", "serve"])
def test_a_restarted_container_has_the_same_token(app: Any, tmp_path: Path) -> None:  # noqa: ANN401  # a template
    """Only its user reads the file in a volume of the pod. A token of a Secret replaces it."""
    job = app.job(Written({"name": "chat"}), Written({"volumes": ["work:/work"]}), ["model"])
    assert [str(each.path) for each in JobIn.model_validate(job.fields).volumes] == ["/work", FOLDER]
    script = MAKE_TOKEN.format(folder=tmp_path, variable=app.variable) + f'printf %s "${app.variable}"'

    def started(**environment: str) -> str:
        env = {"PATH": os.environ["PATH"], **environment}
        return subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=True).stdout

    first = started()
    assert re.fullmatch("[0-9a-f]{48}", first)
    assert ((tmp_path / "token").stat().st_mode & 0o777, started()) == (0o600, first)
    assert started(**{app.variable: "of a secret"}) == "of a secret" == (tmp_path / "token").read_text()


def test_the_name_of_a_job_for_a_model_is_valid() -> None:
    """Whatever characters the model has, and if it has none that are allowed."""
    assert [name_of(each) for each in ("Qwen/Qwen2.5-7B", "/models/", "模型", "a" * 80)] == [
        "qwen2-5-7b",
        "models",
        "model",
        "a" * 50,
    ]


def test_the_first_address_that_answers_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    """Addresses for pods, and of other ports, are left out. One that does not answer is reported."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        body = {
            "endpoints": [
                endpoint("127.0.0.1:1"),
                endpoint(address, "cluster"),
                endpoint(address, port=1),
                endpoint("", "outside"),
                endpoint(f"http://{address}/"),
            ]
        }
        assert reachable_url(body, 8888) == f"http://{address}"
        assert capsys.readouterr().err == "http://127.0.0.1:1 cannot be reached from this machine\n"
        assert reachable_url({"endpoints": []}, 8888) == ""
        assert free_port(listener.getsockname()[1]) != listener.getsockname()[1]
