"""The Helm chart: valid, with minimal rights, and clear errors for unusable values."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import kubernetes_validate  # type: ignore[import-untyped]  # ships no types
import pytest
import yaml

from seaway import __version__
from seaway.adapters.kubernetes.leadership import LEADER_LABEL
from seaway.api.http.health import ALIVE, READY_OR_WAITING
from seaway.bootstrap.settings import UsageSettings, load_settings
from seaway.domain.errors import RejectedError
from tests.missing import skip_or_fail

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "seaway"
LEADER = CHART.parents[1] / "kubernetes" / "leader.yaml"
PROMETHEUS = CHART.parents[1] / "prometheus"
VERSION = "1.36"
PATIENCE_S = 60

LEAST: dict[str, Any] = {
    "database": {"existingSecret": "db"},
    "clusters": {"kubeconfigs": {"existingSecret": "kubeconfigs"}},
}
SQLITE: dict[str, Any] = {**LEAST, "replicas": 1, "database": {"sqlite": True}}
ALL: dict[str, Any] = {
    "replicas": 3,
    "database": {"existingSecret": "db", "key": "uri"},
    "clusters": {
        "karmada": {"existingSecret": "karmada"},
        "templates": {"existingConfigMap": "templates"},
        "usage": {"everySeconds": 60, "exporters": "a=b:1@gpu"},
    },
    "settings": {
        "control": {"grace_period_s": 120, "unhealthy_cluster_threshold": 0.4, "reservations": False},
        "oidc": {"issuer": "https://id.example", "roles": {"admins": "admin"}},
        "clusters": {"request_timeout_s": 5},
    },
    "tls": {"existingSecret": "tls"},
    "podDisruptionBudget": {"enabled": True},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "tokenSecret": {"name": "metrics"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "imagePullSecrets": [{"name": "pull"}],
    "priorityClassName": "high",
    "nodeSelector": {"a": "b"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "extraEnv": [{"name": "A", "value": "b"}],
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "serviceAccount": {"annotations": {"a": "b"}},
    "service": {"annotations": {"a": "b"}},
}
EVERY = pytest.mark.parametrize("values", [LEAST, SQLITE, ALL], ids=["least", "sqlite", "all"])

BY_LIBRARY = """
import json, sys
import helm_python
chart, values, name, namespace, notes = json.load(sys.stdin)
try:
    with helm_python.Chart.load(chart) as loaded:
        texts = loaded.render(values, name=name, namespace=namespace)
except helm_python.HelmError as error:
    sys.exit(str(error))
texts = [text for path, text in sorted(texts.items()) if path.endswith("NOTES.txt") is notes]
print("\\n---\\n".join(texts))
"""
"""Program that renders with Helm's own engine, from the package helm-python-sdk; in its own process, as it is in Go."""


class RefusedError(Exception):
    """The chart rejects its values."""


def rendered(values: dict[str, Any], name: str = "seaway", *, notes: bool = False) -> str:
    """Render the chart; return its objects, or its notes."""
    if (helm := shutil.which("helm")) and not notes:  # which prints notes only with a cluster
        command, given = [helm, "template", name, str(CHART), "--namespace", "sw", "--values", "-"], json.dumps(values)
    elif find_spec("helm_python"):
        command, given = [sys.executable, "-c", BY_LIBRARY], json.dumps([str(CHART), values, name, "sw", notes])
    else:
        skip_or_fail(LookupError("neither helm nor the package helm-python-sdk is here: pip install -e '.[chart]'"))
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise RefusedError(done.stderr)
    return done.stdout


def render(values: dict[str, Any], name: str = "seaway") -> dict[tuple[str, str], dict[str, Any]]:
    """Render the chart; return its objects by kind and name."""
    objects = [each for each in yaml.safe_load_all(rendered(values, name)) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def settings_of(objects: dict[tuple[str, str], dict[str, Any]], folder: Path, name: str = "seaway") -> Any:  # noqa: ANN401  # settings
    """Load the settings of a rendered chart, as `seaway up` does."""
    file = folder / "seaway.toml"
    file.write_text(objects["ConfigMap", name]["data"]["seaway.toml"], encoding="utf-8")
    server = ("Deployment", name)
    names = {each["name"] for each in objects[server]["spec"]["template"]["spec"]["containers"][0]["env"]}
    url = {"SEAWAY_DATABASE_URL": "postgresql://seaway@db/seaway"} if "SEAWAY_DATABASE_URL" in names else {}
    return load_settings(file, url, {})


@EVERY
def test_all_objects_are_valid(values: dict[str, Any]) -> None:
    """Kubernetes accepts each object, and all are in the release's namespace with its labels."""
    for (kind, _), each in render(values).items():
        if kind not in {"ServiceMonitor", "PrometheusRule"}:
            kubernetes_validate.validate(each, VERSION, strict=True)
        assert each["metadata"]["namespace"] == "sw"
        assert each["metadata"]["labels"]["app.kubernetes.io/instance"] == "seaway"


@EVERY
def test_pods_keep_to_the_restricted_standard(values: dict[str, Any]) -> None:
    """Pods pass the restricted pod security standard, write only to volumes, and get no service links."""
    pods = render(values)["Deployment", "seaway"]["spec"]["template"]["spec"]
    assert pods["securityContext"]["runAsNonRoot"] is True
    assert pods["securityContext"]["runAsUser"] > 0
    assert pods["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & pods.keys()
    assert pods["enableServiceLinks"] is False
    (container,) = pods["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not any("hostPort" in each for each in container["ports"])
    allowed = {"name", "configMap", "emptyDir", "secret", "persistentVolumeClaim"}
    assert all(set(each) <= allowed for each in pods["volumes"])
    assert {each["name"] for each in pods["volumes"]} == {each["name"] for each in container["volumeMounts"]}


@EVERY
def test_seaway_takes_its_settings(values: dict[str, Any], tmp_path: Path) -> None:
    """The settings in the config map are valid, and allow several processes with leader election."""
    settings = settings_of(render(values), tmp_path)
    assert settings.server.host == "0.0.0.0"
    assert settings.clusters.usage.exporters
    assert settings.leader.lease == ("" if values is SQLITE else "seaway")
    assert settings.leader.namespace == settings.leader.kubeconfig == ""


def test_what_is_set_reaches_its_place(tmp_path: Path) -> None:
    """Numbers, booleans and tables become TOML of the same type; sections that the chart writes to keep their rest."""
    objects = render(ALL)
    settings = settings_of(objects, tmp_path)
    assert (
        settings.control.grace_period_s,
        settings.control.unhealthy_cluster_threshold,
        settings.control.reservations,
    ) == (120, 0.4, False)
    assert settings.oidc.roles == {"admins": "admin"}
    assert (settings.clusters.request_timeout_s, settings.clusters.karmada.kubeconfig) == (
        5,
        "/etc/seaway/karmada/kubeconfig",
    )
    assert settings.clusters.usage == UsageSettings(60, "a=b:1@gpu")
    assert settings.clusters.templates_dir == "/etc/seaway/templates"
    assert settings.server.tls_certificate == "/etc/seaway/tls/tls.crt"
    (container,) = objects["Deployment", "seaway"]["spec"]["template"]["spec"]["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    (secret,) = [each["valueFrom"] for each in container["env"] if each["name"] == "SEAWAY_DATABASE_URL"]
    assert secret == {"secretKeyRef": {"name": "db", "key": "uri"}}
    assert objects["PodDisruptionBudget", "seaway"]["spec"]["minAvailable"] == 1
    (endpoint,) = objects["ServiceMonitor", "seaway"]["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["authorization"]["credentials"]["name"]) == ("https", "metrics")


def monitored(**values: Any) -> Any:  # noqa: ANN401  # an object
    """Return Prometheus' scrape configuration."""
    monitor = {"enabled": True, "tokenSecret": {"name": "metrics"}, **values}
    objects = render({**LEAST, "tls": {"existingSecret": "tls"}, "serviceMonitor": monitor}, "other")
    return objects["ServiceMonitor", "other-seaway"]["spec"]["endpoints"][0]


def test_prometheus_is_told_whose_certificate_it_sees() -> None:
    """Prometheus scrapes pods by address, so its configuration has a server name and the certificate authority."""
    assert monitored()["tlsConfig"] == {"serverName": "other-seaway.sw.svc"}
    given = {"serverName": "seaway.example", "ca": {"kind": "configMap", "name": "roots", "key": "all.pem"}}
    ca = {"configMap": {"name": "roots", "key": "all.pem"}}
    assert monitored(tls=given)["tlsConfig"] == {"serverName": "seaway.example", "ca": ca}
    assert monitored(tls={"ca": {"name": "tls"}})["tlsConfig"]["ca"] == {"secret": {"name": "tls", "key": "ca.crt"}}
    plain = render({**LEAST, "serviceMonitor": {"enabled": True, "tokenSecret": {"name": "metrics"}}})
    assert "tlsConfig" not in plain["ServiceMonitor", "seaway"]["spec"]["endpoints"][0]


def test_what_series_say_of_pods_is_kept() -> None:
    """Labels of vGPU series for namespace, pod and container stay, though an operator sets target labels so named."""
    assert monitored()["honorLabels"] is True


def test_alerts_find_the_job_that_they_look_for() -> None:
    """An operator names a job after its Service; alerts on Seaway itself select the plain configuration's name."""
    shipped = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = [each["job_name"] for each in shipped["scrape_configs"]]
    assert monitored()["relabelings"] == [{"targetLabel": "job", "replacement": job}]


def test_the_alerts_are_those_of_the_plain_configuration() -> None:
    """The alerts equal the plain configuration's, with Prometheus' templates unchanged, and only if enabled."""
    files = sorted((PROMETHEUS / "rules").glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    rule = render(ALL)["PrometheusRule", "seaway"]
    assert rule["spec"]["groups"] == groups
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    assert not {kind for kind, _ in render(LEAST)} & {"PrometheusRule"}


def test_notes_say_how_dashboards_are_loaded() -> None:
    """The notes explain how Grafana loads the dashboards, in the namespace of the release."""
    assert "script/dashboards --out dashboards --config-maps --namespace sw" in rendered(ALL, notes=True)
    assert "grafana" not in rendered(LEAST, notes=True)


@EVERY
def test_notes_put_no_password_on_a_command_line(values: dict[str, Any]) -> None:
    """Other users can read the arguments of a process: Seaway reads the database's URL from its environment."""
    said = rendered(values, notes=True)
    assert "admin-token" in said
    assert "--database" not in said
    assert "SEAWAY_DATABASE_URL" not in said


@pytest.mark.parametrize("values", [LEAST, ALL], ids=["least", "all"])
def test_replicas_that_wait_are_ready_and_the_service_asks_who_leads(values: dict[str, Any]) -> None:
    """A rollout waits for each new replica, and completes; requests go to the pod with the leader's label."""
    objects = render(values)
    deployment = objects["Deployment", "seaway"]["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert container["readinessProbe"]["httpGet"]["path"] == READY_OR_WAITING
    assert container["livenessProbe"]["httpGet"]["path"] == ALIVE
    own = {"name": "SEAWAY_LEADER_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    assert own in container["env"]
    assert load_settings(None, {"SEAWAY_LEADER_POD": "seaway-0"}, {}).leader.pod == "seaway-0"
    chosen = objects["Service", "seaway"]["spec"]["selector"]
    assert chosen == {**deployment["selector"]["matchLabels"], LEADER_LABEL: "true"}
    assert LEADER_LABEL not in deployment["template"]["metadata"]["labels"]


def test_a_replica_that_is_alone_needs_no_mark() -> None:
    """With SQLite there is no leader election: the Service selects the single pod without a label."""
    objects = render(SQLITE)
    deployment = objects["Deployment", "seaway"]["spec"]
    assert objects["Service", "seaway"]["spec"]["selector"] == deployment["selector"]["matchLabels"]
    (container,) = deployment["template"]["spec"]["containers"]
    assert "SEAWAY_LEADER_POD" not in {each["name"] for each in container["env"]}


def test_the_only_rights_are_to_hold_the_lease_and_to_mark_who_leads() -> None:
    """The chart's role is that of deploy/kubernetes, for the Lease in the settings; SQLite needs none."""
    (role,) = [each for each in yaml.safe_load_all(LEADER.read_text(encoding="utf-8")) if each["kind"] == "Role"]
    for name in ("seaway", "other"):
        objects = render(LEAST, name)
        full = "seaway" if name == "seaway" else "other-seaway"
        rules = objects["Role", f"{full}-leader"]["rules"]
        assert json.dumps(rules) == json.dumps(role["rules"]).replace('["seaway"]', f'["{full}"]')
        settings = tomllib.loads(objects["ConfigMap", full]["data"]["seaway.toml"])
        assert settings["leader"]["lease"] == full
        assert not {kind for kind, _ in objects} & {"ClusterRole", "ClusterRoleBinding"}
    alone = render(SQLITE)
    assert not {kind for kind, _ in alone} & {"Role", "RoleBinding"}
    assert alone["Deployment", "seaway"]["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    assert alone["Deployment", "seaway"]["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "no database: set database.existingSecret"),
        ({**SQLITE, "replicas": 2}, "SQLite is for one process: set replicas to 1"),
        ({**LEAST, "database": {"existingSecret": "a", "sqlite": True}, "replicas": 1}, "exclude each other"),
        ({"database": {"existingSecret": "db"}}, "which clusters?"),
        ({**LEAST, "clusters": {"simulated": True, "karmada": {"existingSecret": "a"}}}, "which clusters?"),
        ({**LEAST, "clusters": {"simulated": True}}, "simulated clusters live in one process"),
        ({**LEAST, "leader": {"renewSeconds": 20}}, "retrySeconds must be less than renewSeconds"),
        ({**LEAST, "serviceMonitor": {"enabled": True}}, "serviceMonitor.tokenSecret.name"),
        ({**LEAST, "prometheusRule": {"enabled": True}}, "prometheusRule.enabled: set serviceMonitor.enabled"),
        ({**LEAST, "replica": 2}, "replica"),
        ({**LEAST, "settings": {"database": {"url": "postgresql://a:secret@b/c"}}}, "database"),
    ],
)
def test_what_cannot_work_is_refused(values: dict[str, Any], says: str) -> None:
    """Nothing is rendered, and the message names the setting to change."""
    with pytest.raises(RefusedError, match=re.escape(says)):
        render(values)


def test_the_chart_agrees_with_itself() -> None:
    """Its version is the package's, its values match its schema, and every value is in the schema."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == __version__
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(values, schema)
    assert set(schema["properties"]) - {"global"} == set(values)
    used = "".join(file.read_text(encoding="utf-8") for file in (CHART / "templates").iterdir())
    assert sorted(name for name in values if f".Values.{name}" not in used) == []


def test_two_processes_on_sqlite_are_refused_by_seaway_too(tmp_path: Path) -> None:
    """Settings written by hand get the same error."""
    file = tmp_path / "seaway.toml"
    file.write_text('[leader]\nlease = "seaway"\n', encoding="utf-8")
    with pytest.raises(RejectedError, match="a lease is for several processes on one database"):
        load_settings(file, {}, {})
