"""The image agrees with the package, the chart and the server; building it takes a builder, which tests do not have."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import ssl
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from seaway.bootstrap.settings import ServerSettings
from tests.fakes.kubernetes.certificates import Certificates

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHECK = ROOT / "deploy" / "image" / "healthy.py"
PATIENCE_S = 30


def instructions() -> list[tuple[str, str]]:
    """Read the Dockerfile: words in capitals, and what follows each on its line and the lines that go on."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines if line)]


def given(word: str) -> list[str]:
    """Return what follows every instruction of a kind."""
    return [rest for each, rest in instructions() if each == word]


def variables() -> dict[str, str]:
    """Return the environment that the image sets."""
    return dict(pair.split("=", 1) for rest in given("ENV") for pair in rest.split())


def chart() -> dict[str, Any]:
    """Read the chart's Deployment, with nothing put in its gaps: lines that have some are left out."""
    text = (ROOT / "deploy/helm/seaway/templates/deployment.yaml").read_text(encoding="utf-8")
    whole = "\n".join(line for line in text.splitlines() if "{{" not in line)
    read: dict[str, Any] = yaml.safe_load(whole)
    pod: dict[str, Any] = read["spec"]["template"]["spec"]
    return pod


def sent(path: str) -> bool:
    """Say whether a builder is sent a file, by .dockerignore: the last line that fits decides."""
    found = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = [path, *(str(each) for each in Path(path).parents), *Path(path).parts]
        if line and not line.startswith("#") and any(fnmatch.fnmatchcase(each, pattern) for each in parts):
            found = line.startswith("!")
    return found


def test_it_has_what_the_package_says() -> None:
    """It installs this package with the clients of all databases, pinned, and copies all that this takes."""
    (install,) = [rest for rest in given("RUN") if " install " in rest and "pip" in rest]
    assert "-c constraints.txt" in install
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", install)
    assert set(extras.split(",")) == PROJECT["optional-dependencies"].keys() - {
        "dev",
        "chart",
        "docs",
        "grafana",
        "learn",
        "ray",
    }
    copied = {file for rest in given("COPY") if not rest.startswith("--from") for file in rest.split()[:-1]}
    assert {"pyproject.toml", "constraints.txt", PROJECT["readme"], *PROJECT["license-files"], "src"} <= copied
    assert all((ROOT / file).exists() for file in copied)


def test_builders_are_sent_no_more_than_that() -> None:
    """What is copied is not ignored; history, environments and caches are."""
    copied = [file for rest in given("COPY") if not rest.startswith("--from") for file in rest.split()[:-1]]
    assert [file for file in copied if not sent(file)] == []
    assert sent("src/seaway/cli/main.py")
    for file in (".git/config", ".venv/bin/python", "tests/conftest.py", "src/seaway/__pycache__/x.pyc", "seaway.db"):
        assert not sent(file)


def test_it_starts_from_any_image_with_the_oldest_python() -> None:
    """Both stages start from an image that can be another, of no named registry, with the Python that pins are for."""
    assert {rest.removesuffix(" AS build") for rest in given("FROM")} == {"${BASE}"}
    (base,) = given("ARG")
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert base == f"BASE=python:{oldest}-slim"


def test_it_runs_as_the_account_of_the_chart() -> None:
    """Its user is not root, is said in numbers, is that of the chart, and owns what it writes to."""
    security = chart()["securityContext"]
    (user,) = given("USER")
    assert user == f"{security['runAsUser']}:{security['runAsGroup']}" != "0:0"
    (accounts,) = [rest for rest in given("RUN") if "useradd" in rest]
    uid, gid = user.split(":")
    assert f"--uid {uid} --gid {gid}" in accounts
    folders = {variables()["SEAWAY_DATA"], variables()["SEAWAY_CACHE"]}
    (owned,) = re.findall(rf"install -d -o {uid} -g {gid} -m 0700 (.*)", accounts)
    assert set(owned.split()) == folders


def test_ports_and_folders_are_those_of_server_and_chart() -> None:
    """It exposes the server's port and keeps data where the chart mounts its volumes."""
    (container,) = chart()["containers"]
    (port,) = container["ports"]
    assert given("EXPOSE") == [str(ServerSettings().port)] == [str(port["containerPort"])]
    data, cache = variables()["SEAWAY_DATA"], variables()["SEAWAY_CACHE"]
    assert given("VOLUME") == [data]
    assert {data, cache} <= {each["mountPath"] for each in container["volumeMounts"]}
    assert {"name": "SEAWAY_CACHE", "value": cache} in container["env"]


def test_it_starts_a_command_of_the_package() -> None:
    """Its entry point is the package's command, which the chart calls too, where PATH finds it."""
    (entry,) = (json.loads(rest) for rest in given("ENTRYPOINT"))
    (container,) = chart()["containers"]
    assert entry == container["command"][:1] == list(PROJECT["scripts"])
    assert variables()["PATH"].startswith("/opt/seaway/bin:")


@contextmanager
def serving(status: int, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Answer /healthz on a port of this machine."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002, the name that http.server gives
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Health)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join(PATIENCE_S)
        server.server_close()


def check(port: int) -> int:
    """Run the health check as the image does; return its exit code."""
    (line,) = given("HEALTHCHECK")
    command = json.loads(line[line.index("[") :])
    assert (ROOT / "deploy" / "image" / Path(command[1]).name) == CHECK
    environment = {**os.environ, "SEAWAY_SERVER_PORT": str(port)}
    return subprocess.run([sys.executable, CHECK], env=environment, timeout=PATIENCE_S, check=False).returncode


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_health_check_asks_the_server(status: int, code: int) -> None:
    """It passes while Seaway says that it is well, and only then."""
    with serving(status) as port:
        assert check(port) == code
    assert check(port) == 1


def test_the_health_check_takes_any_certificate(tmp_path: Path) -> None:
    """A server with TLS is asked too, whatever name its certificate is for."""
    pair = Certificates.make().server
    for name, content in (("crt", pair.certificate), ("key", pair.key)):
        (tmp_path / name).write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    with serving(200, context) as port:
        assert check(port) == 0
