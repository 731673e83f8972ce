"""Checks of `seaway doctor` on this machine: each defect is found, and named with what mends it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest
import yaml

from seaway.adapters.sqlalchemy.schema import migrate
from seaway.bootstrap.cluster_checks import Finding, Level
from seaway.bootstrap.clusters import KUBECONFIGS
from seaway.bootstrap.data import DataFolder
from seaway.cli.serving.doctor import examine_machine, server_remedy
from seaway.domain.errors import RejectedError, SeawayError, UnauthenticatedError, UnavailableError
from seaway.domain.reasons import Reason
from tests.conformance.test_kubernetes_backends import furnish
from tests.fakes.kubernetes import ApiServer, KarmadaWorld, app
from tests.fakes.kubernetes.kinds import NODES
from tests.fakes.s3_server import ACCESS_KEY, SECRET_KEY, s3_server
from tests.integration.served import certificate


def findings(data: Path, settings: str = "") -> dict[str, Finding]:
    """Examine a data folder with settings; return the findings by check, the worst of each."""
    config = None
    if settings:
        config = data / "seaway.toml"
        config.write_text(settings, encoding="utf-8")
    order = list(Level)
    found = sorted(examine_machine(config, data), key=lambda each: order.index(each.level))
    return {each.check: each for each in found}


def test_a_new_installation_has_no_errors(tmp_path: Path) -> None:
    """A missing data folder, database and cluster are notes that say what comes next."""
    found = findings(tmp_path)
    assert {each.level for each in found.values()} <= {Level.OK, Level.NOTE}
    assert "the first start creates it" in found["database"].text
    assert found["clusters"].remedy == "join a real one: seaway cluster join --kubeconfig FILE"


def test_invalid_settings_end_the_checks(tmp_path: Path) -> None:
    """Nothing else can be checked without settings; their error is that of the server."""
    found = findings(tmp_path, "[server]\nprot = 1\n")
    assert list(found) == ["settings"]
    assert found["settings"].level is Level.ERROR
    assert "did you mean 'port'?" in found["settings"].text


def test_all_errors_of_a_settings_file_are_listed(tmp_path: Path) -> None:
    """Each error is a finding of its own, as `seaway up` lists them."""
    (tmp_path / "seaway.toml").write_text("[server]\nport = -1\nprot = 1\n[nothing]\n", encoding="utf-8")
    found = [each.text for each in examine_machine(tmp_path / "seaway.toml", tmp_path)]
    assert [each.level for each in examine_machine(tmp_path / "seaway.toml", tmp_path)] == [Level.ERROR] * len(found)
    assert [any(name in each for each in found) for name in ("port", "prot", "nothing")] == [True] * 3


def test_settings_of_the_running_server_are_examined(tmp_path: Path) -> None:
    """Without a settings file, doctor reads that of the running server, and knows its database and clusters."""
    config = tmp_path / "seaway.toml"
    config.write_text('[clusters]\nkubeconfig_dir = "nowhere"\n', encoding="utf-8")
    folder = DataFolder(tmp_path / "data")
    folder.announce("http://127.0.0.1:1", "set", str(config), "postgresql://seaway:***@db/seaway")
    found = {each.check: each.text for each in examine_machine(None, folder.path)}
    assert found["settings"] == f"{config} is valid, the file of the running server"
    assert found["database"].startswith("postgresql://seaway:***@db/seaway")
    assert "nowhere" in found["clusters"]
    folder.announce("http://127.0.0.1:1", "set")
    found = {each.check: each.text for each in examine_machine(None, folder.path)}
    assert found["settings"] == "defaults and environment variables"
    assert found["clusters"] == "the running server has others, by its options: set"
    folder.close()
    assert {each.check: each.text for each in examine_machine(None, folder.path)}["clusters"] == "simulated"


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (UnavailableError(Reason("server_unreachable", server="http://a", error="refused")), "start it: seaway up"),
        (UnavailableError(Reason("disk_full")), "it runs, and continues by itself when this is mended"),
        (UnauthenticatedError("a token is required"), "sign in with `seaway login`"),
        (RejectedError("is unknown"), ""),
    ],
)
def test_a_server_that_runs_is_not_to_be_started(error: SeawayError, remedy: str) -> None:
    """The remedy is a start only if no server can be reached."""
    assert server_remedy(error).startswith(remedy)
    assert bool(server_remedy(error)) is bool(remedy)


def test_tables_of_the_database(tmp_path: Path) -> None:
    """Tables of this version are fine; a database that does not answer is an error, shown without its password."""
    migrate(f"sqlite:///{tmp_path / 'seaway.db'}")
    assert findings(tmp_path)["database"].level is Level.OK
    lost = findings(tmp_path, '[database]\nurl = "mysql://root:hidden@127.0.0.1:1/seaway"\n')["database"]
    assert lost.level is Level.ERROR
    assert "127.0.0.1:1" in lost.text
    assert "hidden" not in lost.text


def test_the_bucket_of_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket that accepts the credentials is fine; one that refuses them or does not respond is an error."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with s3_server() as store:
        bucket = f'[workdirs]\nbucket = "s3://archives"\nendpoint = "{store.url}"\n'
        for secret, level in ((SECRET_KEY, Level.OK), ("wrong", Level.ERROR)):
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
            assert findings(tmp_path, bucket)["workdirs"].level is level
    assert "did not respond" in findings(tmp_path, bucket)["workdirs"].text
    assert "s3://archives or s3://" in findings(tmp_path, bucket.replace("s3:", "S3:"))["settings"].text
    large = findings(tmp_path, f"{bucket}limit_mib = 6000\nquota_mib = 9000\n")["settings"]
    assert "at most 5120 with a bucket" in large.text


def test_old_and_missing_backups(tmp_path: Path) -> None:
    """Two intervals without a backup are a warning, and so are no automatic backups at all."""
    migrate(f"sqlite:///{tmp_path / 'seaway.db'}")
    (tmp_path / "backups").mkdir()
    for age, level in ((timedelta(hours=60), Level.WARNING), (timedelta(hours=20), Level.OK)):
        name = f"seaway-{datetime.now(UTC) - age:%Y%m%dT%H%M%SZ}.backup"
        (tmp_path / "backups" / name).touch()
        assert findings(tmp_path)["backups"].level is level
    assert findings(tmp_path, "[database]\nbackup_interval_h = 0\n")["backups"].level is Level.WARNING


@pytest.mark.parametrize(("days", "level"), [(90, Level.OK), (10, Level.WARNING), (-1, Level.ERROR)])
def test_certificates_are_renewed_in_time(tmp_path: Path, days: int, level: Level) -> None:
    """A month before its end a certificate is a warning, and an expired one is an error."""
    made = certificate(tmp_path, timedelta(days=days, minutes=1))
    settings = f'[server]\ntls_certificate = "{made.tls_certificate}"\ntls_key = "{made.tls_key}"\n'
    assert findings(tmp_path, settings)["TLS"].level is level


def test_tokens_on_a_network_without_encryption(tmp_path: Path) -> None:
    """An address beyond this machine without TLS is a warning, unless a proxy encrypts."""
    assert findings(tmp_path, '[server]\nhost = "0.0.0.0"\n')["TLS"].level is Level.WARNING
    proxied = '[server]\nhost = "0.0.0.0"\npublic_url = "https://seaway.example"\n'
    assert "TLS" not in findings(tmp_path, proxied)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    """Have a joined cluster ``alpha`` with GPUs."""
    with ApiServer("alpha") as made:
        furnish(made)
        (tmp_path / KUBECONFIGS).mkdir()
        made.kubeconfig(tmp_path / KUBECONFIGS / "alpha.yaml")
        yield made


def test_a_cluster_with_rights_and_gpus(server: ApiServer, tmp_path: Path) -> None:
    """The nodes and GPUs are counted, and missing rights are named with the manifests that grant them."""
    found = findings(tmp_path)
    assert {check: each.level for check, each in found.items() if "alpha" in check} == {
        "cluster alpha": Level.OK,
        "version of alpha": Level.OK,
        "rights in alpha": Level.OK,
        "GPUs in alpha": Level.OK,
    }
    server.reviews.denied = {"list events", "patch services"}
    missing = findings(tmp_path)["rights in alpha"]
    assert missing.level is Level.ERROR
    assert missing.text == "Seaway may not list events; patch services in namespace seaway-default"
    assert "member.yaml" in missing.remedy


@pytest.mark.parametrize(("days", "level"), [(300, Level.OK), (10, Level.WARNING), (-1, Level.ERROR)])
@pytest.mark.usefixtures("server")
def test_tokens_of_clusters_are_renewed_in_time(tmp_path: Path, days: int, level: Level) -> None:
    """A month before its end, the token of a joined cluster is a warning that says how to replace it."""
    ends = datetime.now(UTC) + timedelta(days=days)
    file = tmp_path / KUBECONFIGS / "alpha.yaml"
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    written["users"][0]["user"]["token"] = jwt.encode({"exp": int(ends.timestamp())}, "x" * 32, algorithm="HS256")
    file.write_text(yaml.safe_dump(written), encoding="utf-8")
    found = findings(tmp_path)["token of alpha"]
    assert (found.level, f"{ends:%Y-%m-%d}" in found.text) == (level, True)
    assert ("join again" in found.remedy) == (level is not Level.OK)


@pytest.mark.usefixtures("server")
def test_an_old_version_of_kubernetes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version without admission policies is a warning that names the manifest to use instead."""
    monkeypatch.setattr(app, "VERSION", {**app.VERSION, "gitVersion": "v1.29.4"})
    found = findings(tmp_path)["version of alpha"]
    assert (found.level, "v1.29.4" in found.text, "tenant.yaml" in found.remedy) == (Level.WARNING, True, True)


def test_a_cluster_without_gpus(server: ApiServer, tmp_path: Path) -> None:
    """It is usable, but a warning says that no device plugin reports a GPU."""
    for node in server.list(NODES):
        server.delete(NODES, "", node["metadata"]["name"])
    assert findings(tmp_path)["GPUs in alpha"].level is Level.WARNING


def test_a_cluster_that_does_not_answer(server: ApiServer, tmp_path: Path) -> None:
    """It is an error with its name; the other checks go on."""
    server.new_token(only=True)
    found = findings(tmp_path)
    assert found["cluster alpha"].level is Level.ERROR
    assert found["database"].level is Level.NOTE


def test_members_of_karmada(tmp_path: Path) -> None:
    """Rights are asked for in the control plane. Its proxy forwards no such question, so reads count in members."""
    with KarmadaWorld(["alpha"]) as world:
        furnish(world.members["alpha"])
        world.members["alpha"].faults.error(403, "/apis/kubeflow.org/v1/*pytorchjobs")
        settings = f'[clusters.karmada]\nkubeconfig = "{world.kubeconfig(tmp_path / "karmada")}"\n'
        found = findings(tmp_path, settings)
    assert found["Karmada"].level is Level.OK
    assert "PyTorchJob" in found["rights in alpha"].text
    assert "karmada-member.yaml" in found["rights in alpha"].remedy
