"""Agreement of the image with the package, the chart and the server. No test builds the image."""

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
from tools.release.supply import EXTRAS, REQUIREMENTS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHECK = ROOT / "deploy" / "image" / "healthy.py"
TIMEOUT_S = 30


def instructions() -> list[tuple[str, str]]:
    """Read the Dockerfile: instructions and their arguments, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines if line)]


def arguments(word: str) -> list[str]:
    """Return the arguments of every instruction of a kind."""
    return [rest for each, rest in instructions() if each == word]


def variables() -> dict[str, str]:
    """Return the environment that the image sets."""
    return dict(pair.split("=", 1) for rest in arguments("ENV") for pair in rest.split())


def chart() -> dict[str, Any]:
    """Read the chart's Deployment without the lines that have template expressions."""
    text = (ROOT / "deploy/helm/seaway/templates/deployment.yaml").read_text(encoding="utf-8")
    whole = "\n".join(line for line in text.splitlines() if "{{" not in line)
    read: dict[str, Any] = yaml.safe_load(whole)
    pod: dict[str, Any] = read["spec"]["template"]["spec"]
    return pod


def in_context(path: str) -> bool:
    """Return whether .dockerignore leaves a file in the build context: the last pattern that matches decides."""
    found = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = [path, *(str(each) for each in Path(path).parents), *Path(path).parts]
        if line and not line.startswith("#") and any(fnmatch.fnmatchcase(each, pattern) for each in parts):
            found = line.startswith("!")
    return found


def copied() -> list[str]:
    """Return the files that the image copies from the build context."""
    return [file for rest in arguments("COPY") if not rest.startswith("--from") for file in rest.split()[:-1]]


def test_image_installs_package_with_hashes_of_dependencies() -> None:
    """The image installs the wheel of the release, and only dependencies with the hashes that the release wrote."""
    (install,) = [rest for rest in arguments("RUN") if " install " in rest and "pip" in rest]
    dependencies, package = [part for part in install.split("&&") if "pip install" in part]
    assert f"--require-hashes -r dist/{REQUIREMENTS}" in dependencies
    assert "--no-deps --no-index dist/seaway-*.whl" in package
    assert set(EXTRAS.split(",")) == PROJECT["optional-dependencies"].keys() - {
        "dev",
        "chart",
        "docs",
        "grafana",
        "learn",
        "ray",
    }
    assert set(copied()) == {"dist", "deploy/image/healthy.py"}


def test_build_context_has_copied_files_only() -> None:
    """Copied files are not ignored; sources, history, environments and caches are."""
    assert [file for file in copied() if not in_context(file)] == []
    assert in_context(f"dist/{REQUIREMENTS}")
    for file in (".git/config", ".venv/bin/python", "tests/conftest.py", "src/seaway/cli/main.py", "seaway.db"):
        assert not in_context(file)


def test_base_image_has_no_default() -> None:
    """Both stages use the base image of the build argument."""
    assert {rest.removesuffix(" AS build") for rest in arguments("FROM")} == {"${BASE}"}
    assert arguments("ARG") == ["BASE", "BASE"]


def test_base_image_needs_a_digest() -> None:
    """The first step of the build fails for a tag alone, and says what to give."""
    check = arguments("RUN")[0]
    assert instructions().index(("RUN", check)) < instructions().index(("COPY", "dist dist"))
    digest = f"@sha256:{'0' * 64}"
    for base in (f"python:3.11-slim{digest}", f"mirror.example:5000/python{digest}"):
        assert subprocess.run(["sh", "-c", check], env={**os.environ, "BASE": base}, check=False).returncode == 0
    for base in ("", "python:3.11-slim", "python@sha256:0", f"python{digest}0"):
        done = subprocess.run(
            ["sh", "-c", check], env={**os.environ, "BASE": base}, check=False, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"BASE={base} has no digest: give --build-arg BASE=NAME@sha256:DIGEST")


def test_image_runs_as_non_root_user_of_chart() -> None:
    """The user is numeric, that of the chart, and owns the folders that it writes to."""
    security = chart()["securityContext"]
    (user,) = arguments("USER")
    assert user == f"{security['runAsUser']}:{security['runAsGroup']}" != "0:0"
    (accounts,) = [rest for rest in arguments("RUN") if "useradd" in rest]
    uid, gid = user.split(":")
    assert f"--uid {uid} --gid {gid}" in accounts
    folders = {variables()["SEAWAY_DATA"], variables()["SEAWAY_CACHE"]}
    (owned,) = re.findall(rf"install -d -o {uid} -g {gid} -m 0700 (.*)", accounts)
    assert set(owned.split()) == folders


def test_ports_and_folders_match_server_and_chart() -> None:
    """The image exposes the server's port and stores data where the chart mounts its volumes."""
    (container,) = chart()["containers"]
    (port,) = container["ports"]
    assert arguments("EXPOSE") == [str(ServerSettings().port)] == [str(port["containerPort"])]
    data, cache = variables()["SEAWAY_DATA"], variables()["SEAWAY_CACHE"]
    assert arguments("VOLUME") == [data]
    assert {data, cache} <= {each["mountPath"] for each in container["volumeMounts"]}
    assert {"name": "SEAWAY_CACHE", "value": cache} in container["env"]


def test_image_has_compiled_engine() -> None:
    """The cache that a server copies at its start is made by the image's own command, for any processor."""
    made = variables()["SEAWAY_COMPILED"]
    (command,) = [rest for rest in arguments("RUN") if "seaway compile" in rest]
    assert command.startswith(f"SEAWAY_CACHE={made} ")
    (venv,) = [rest.split()[-1] for rest in arguments("COPY") if rest.startswith("--from=build")]
    assert Path(made).is_relative_to(venv)
    processors = [rest for rest in arguments("ENV") if "NUMBA_CPU_NAME=generic" in rest]
    assert len(processors) == 2, "one for the stage that compiles, one for the stage that runs"


def test_entry_point_is_the_package_command() -> None:
    """The entry point is the package's command on PATH, which the chart calls too."""
    (entry,) = (json.loads(rest) for rest in arguments("ENTRYPOINT"))
    (container,) = chart()["containers"]
    assert entry == container["command"][:1] == list(PROJECT["scripts"])
    assert variables()["PATH"].startswith("/opt/seaway/bin:")


@contextmanager
def serving(status: int, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Answer /healthz on a local port."""

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
        thread.join(TIMEOUT_S)
        server.server_close()


def check(port: int) -> int:
    """Run the health check as the image does; return its exit code."""
    (line,) = arguments("HEALTHCHECK")
    command = json.loads(line[line.index("[") :])
    assert (ROOT / "deploy" / "image" / Path(command[1]).name) == CHECK
    environment = {**os.environ, "SEAWAY_SERVER_PORT": str(port)}
    return subprocess.run([sys.executable, CHECK], env=environment, timeout=TIMEOUT_S, check=False).returncode


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_health_check_passes_for_healthy_server_only(status: int, code: int) -> None:
    """The exit code of the health check follows the status of the server."""
    with serving(status) as port:
        assert check(port) == code
    assert check(port) == 1


def test_health_check_accepts_any_certificate(tmp_path: Path) -> None:
    """A server with TLS is checked too, for any name in its certificate."""
    pair = Certificates.make().server
    for name, content in (("crt", pair.certificate), ("key", pair.key)):
        (tmp_path / name).write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    with serving(200, context) as port:
        assert check(port) == 0
