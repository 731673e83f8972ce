"""`seaway policy` on this machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from seaway import Client
from seaway.cli import remote
from seaway.cli.learning import policy_store
from seaway.cli.main import main
from seaway.domain.errors import RejectedError
from seaway.learning.policies import session
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import PolicyFile, pack, write_policy
from seaway.learning.policies.library import FolderLibrary
from seaway.learning.policies.onnx_message import MISSING
from seaway.learning.policies.signature import read_trusted, require_trusted
from tests.fakes.policies import cluster_policy, node_policy
from tests.unit.client.requesting import SERVER, Stub, problem


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a data folder of one's own, and work in a folder with a policy file."""
    monkeypatch.setenv("SEAWAY_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    write_policy(tmp_path / "best.policy", cluster_policy("mine"))
    return tmp_path / "data"


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """Run the command line; return what it prints, or what is wrong."""
    with pytest.raises(SystemExit) as done:
        main(("policies", *arguments))
    printed = capsys.readouterr()
    assert (done.value.code or 0) == code, printed
    return printed.err if code else printed.out


def test_a_policy_is_imported_listed_and_removed(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    """Anything that is imported is listed among the others, with what it does, until it is removed."""
    retained = run(capsys, "import", "best.policy")
    assert str(data / "policies" / "mine.policy") in retained
    assert cluster_policy("mine").digest in retained
    rows = {each["name"]: each for each in json.loads(run(capsys, "-o", "json"))["policies"]}
    assert rows["mine"] == {"name": "mine", "description": "weights by lot", "source": "trained"}
    assert rows["bestfit"]["source"] == "seaway"
    assert run(capsys, "list", "-o", "name") == run(capsys, "-o", "name")
    run(capsys, "import", "best.policy")
    run(capsys, "rm", "mine")
    assert "mine" not in run(capsys, "-o", "name").split()
    assert "is not there" in run(capsys, "rm", "mine", code=1)


def test_what_was_not_imported_is_neither_removed_nor_exported(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    """Anything that comes with Seaway is always there, as on a server.

    A heuristic has no file that could be written.
    """
    for name in ("pilot", "seaway"):
        assert f"policy '{name}' is built in and cannot be removed" in run(capsys, "rm", name, code=2)
    assert "is a heuristic and has no file" in run(capsys, "export", "seaway", code=2)
    assert not data.exists()
    assert not Path("seaway.policy").exists()


def test_what_is_no_policy_file_is_refused_in_our_words(capsys: pytest.CaptureFixture[str]) -> None:
    """Anything that a library says of an archive is left out."""
    Path("text.policy").write_text("text", encoding="utf-8")
    assert run(capsys, "show", "text.policy", code=2) == ("error: text.policy: not a policy file, or a truncated one\n")


def test_a_policy_is_imported_under_another_name(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    """Another of its name is not replaced, nor is one of Seaway's; under a name of its own it decides the same."""
    run(capsys, "import", "best.policy")
    write_policy(Path("other.policy"), cluster_policy("mine", seed=1))
    assert "another policy 'mine'" in run(capsys, "import", "other.policy", code=2)
    assert "that Seaway has" in run(capsys, "import", "other.policy", "--name", "bestfit", code=2)
    assert "not a name of a policy" in run(capsys, "import", "other.policy", "--name", "../x", code=2)
    run(capsys, "import", "other.policy", "--name", "other")
    assert FolderLibrary(data / "policies").load("other").model == cluster_policy(seed=1).model


def test_a_policy_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A file, an imported policy and a heuristic are shown with the known state of them."""
    text = run(capsys, "show", "best.policy")
    assert "cluster, for 2 clusters" in text
    assert "unsigned" in text
    run(capsys, "import", "best.policy")
    body = json.loads(run(capsys, "show", "mine", "-o", "json"))
    assert body["trained"]["digest"] == read_policy(Path("best.policy")).digest
    assert json.loads(run(capsys, "show", "fgd", "-o", "json"))["trained"] is None
    assert "trained policy 'none' not found" in run(capsys, "show", "none", code=1)


def test_a_policy_is_exported(capsys: pytest.CaptureFixture[str]) -> None:
    """It comes out byte by byte as it went in; its network alone too, for other programs."""
    write_policy(Path("best.policy"), node_policy("mine"))
    run(capsys, "import", "best.policy")
    run(capsys, "export", "mine")
    assert Path("mine.policy").read_bytes() == Path("best.policy").read_bytes()
    Path("mine.policy").write_bytes(b"a user's")
    assert "exists already" in run(capsys, "export", "mine", code=2)
    assert Path("mine.policy").read_bytes() == b"a user's"
    run(capsys, "export", "mine", "--force")
    assert Path("mine.policy").read_bytes() == Path("best.policy").read_bytes()
    assert not list(Path().glob(".*.part"))
    run(capsys, "export", "mine", "net.onnx")
    assert Path("net.onnx").read_bytes() == node_policy("mine").model
    assert "has to end with" in run(capsys, "export", "mine", "mine.txt", code=2)
    assert "cannot be written" in run(capsys, "export", "mine", "no/mine.policy", code=2)


def test_policies_are_shown_and_exported_where_nothing_can_be_tried(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a file takes no onnxruntime; it is reported that the policy was not tried."""
    run(capsys, "import", "best.policy")

    def missing(*_: object) -> None:
        raise RejectedError(MISSING)

    monkeypatch.setattr(policy_store, "can_try", lambda: False)
    monkeypatch.setattr(session, "_runtime", missing)
    for what in ("best.policy", "mine"):
        with pytest.raises(SystemExit) as done:
            main(("policies", "show", what))
        printed = capsys.readouterr()
        assert not done.value.code
        assert "cluster, for 2 clusters" in printed.out
        assert "policy mine is not tried here: trained policies need onnxruntime" in printed.err
    run(capsys, "export", "mine")
    assert Path("mine.policy").read_bytes() == Path("best.policy").read_bytes()


def test_the_settings_of_a_policy_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The way how it was trained stands below what it says of itself."""
    file = cluster_policy("mine")
    manifest = replace(file.manifest, config={"algo": "ddpg", "layers": [128, 64]})
    write_policy(Path("best.policy"), PolicyFile(manifest, file.model, file.trials))
    lines = [line.split() for line in run(capsys, "show", "best.policy").splitlines()]
    assert ["algo", "ddpg"] in lines
    assert ["layers", "[128,", "64]"] in lines


def test_operators_see_how_a_policy_did_as_a_shadow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy of the server is shown with its decisions as the shadow of each visible queue."""
    body = policy_store.shown_file(cluster_policy("mine"))
    row = {"queue": "batch", "shadow": f"mine@{body['trained']['model_sha256'][:12]}"}
    counts = {"jobs": 1_000, "answered": 900, "fallbacks": 60}
    rows = [{**row, **counts}, {**row, **counts}, {**row, **counts, "queue": "night"}]
    rows += [{**row, **counts, "shadow": other} for other in ("mine@000000000000", "fgd", "mine")]
    compared = httpx.Response(200, json={"shadows": rows, "next": None})
    for answer, says in (
        (compared, ["queue batch: decided 1,800 of 2,000 jobs, the fallback 120", "queue night: decided 900 of"]),
        (problem(403, "only operators may"), []),
    ):
        stub = Stub([httpx.Response(200, json=body), answer])
        client = Client(SERVER, transport=httpx.MockTransport(stub), pace=stub.pace)
        monkeypatch.setattr(remote, "connect", lambda _, client=client: client)
        shown = run(capsys, "show", "mine", "--remote")
        assert ("as a shadow" in shown) == bool(says)
        assert all(each in shown for each in says)


def test_a_policy_is_signed_by_a_key_as_openssh_makes_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Anything that is printed is the line that servers trust it by."""
    key = tmp_path / "key"
    try:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    except FileNotFoundError:
        pytest.skip("ssh-keygen is not installed")
    line = run(capsys, "sign", "best.policy", "--key-file", str(key))
    assert line.split()[:2] == key.with_suffix(".pub").read_text().split()[:2]
    require_trusted(read_policy(Path("best.policy")), read_trusted(line))
    assert "SHA256:" in run(capsys, "show", "best.policy")
    assert "not a private key" in run(capsys, "sign", "best.policy", "--key-file", f"{key}.pub", code=2)
    assert "cannot be read" in run(capsys, "sign", "best.policy", "--key-file", "none", code=2)
    run(capsys, "import", "best.policy", "--name", "renamed")
    assert json.loads(run(capsys, "show", "renamed", "-o", "json"))["trained"]["signed_by"] == ""


def test_damaged_policies_are_refused(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    """On the way in with the reason; one that was damaged since is listed with it."""
    Path("short.policy").write_bytes(pack(cluster_policy())[:-1])
    assert "short.policy: not a policy file" in run(capsys, "import", "short.policy", code=2)
    (data / "policies").mkdir(parents=True)
    (data / "policies" / "short.policy").write_bytes(b"")
    write_policy(data / "policies" / "wrong.policy", cluster_policy("right"))
    rows = {each["name"]: each["description"] for each in json.loads(run(capsys, "-o", "json"))["policies"]}
    assert rows["short"].startswith("cannot be used: ")
    assert "is policy 'right'" in rows["wrong"]
