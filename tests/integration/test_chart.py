"""The Helm chart: valid objects, least privileges, and clear errors."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from base64 import b64decode
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import kubernetes_validate  # type: ignore[import-untyped]  # ships no types
import pytest
import yaml

from dashboards.files import write_chart_files
from dashboards.language import Language
from seaway import __version__
from seaway.adapters.kubernetes.leadership import LEADER_LABEL
from seaway.api.http.health import ALIVE, READY_OR_WAITING
from seaway.bootstrap.settings import UsageSettings, load_settings
from seaway.domain.errors import RejectedError
from tests.missing import skip_or_fail

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "seaway"
LEADER = CHART.parents[1] / "kubernetes" / "leader.yaml"
AGENT = CHART.parents[1] / "agent" / "kubernetes.yaml"
ENFORCE = "pod-security.kubernetes.io/enforce"
GATEWAYS = [{"name": "gw-1", "node": "node-1", "tokenSecret": "agent-gw-1"}]
PROMETHEUS = CHART.parents[1] / "prometheus"
VERSION = "1.36"
TIMEOUT_S = 60

MINIMAL: dict[str, Any] = {
    "database": {"existingSecret": "db"},
    "clusters": {"kubeconfigs": {"existingSecret": "kubeconfigs"}},
}
SQLITE: dict[str, Any] = {**MINIMAL, "replicas": 1, "database": {"sqlite": True}}
ALL: dict[str, Any] = {
    "replicas": 3,
    "database": {"existingSecret": "db", "key": "uri"},
    "clusters": {
        "karmada": {"existingSecret": "karmada"},
        "templates": {"existingConfigMap": "templates"},
        "tenants": {"existingConfigMap": "tenants"},
        "usage": {"everySeconds": 60, "exporters": "a=b:1@gpu"},
    },
    "agents": {"gateways": GATEWAYS},
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
ALL_VALUES = pytest.mark.parametrize("values", [MINIMAL, SQLITE, ALL], ids=["least", "sqlite", "all"])

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
"""Program that renders with Helm's own engine, from the package helm-python-sdk, in a separate process."""


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
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
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


@ALL_VALUES
def test_all_objects_are_valid(values: dict[str, Any]) -> None:
    """Kubernetes accepts each object, and all but the agents have the release's namespace and labels."""
    for (kind, name), each in render(values).items():
        if kind not in {"ServiceMonitor", "PrometheusRule"}:
            kubernetes_validate.validate(each, VERSION, strict=True)
        if kind != "Namespace":
            assert each["metadata"]["namespace"] == ("gateway-agents" if "agent" in name else "sw")
        assert each["metadata"]["labels"]["app.kubernetes.io/instance"] == "seaway"


@ALL_VALUES
def test_pods_meet_the_restricted_standard(values: dict[str, Any]) -> None:
    """Pods pass the restricted pod security standard, write only to volumes, and have no service links."""
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


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, f"seaway:{__version__}"),
        ({"repository": "example/seaway", "tag": "x"}, "example/seaway:x"),
        ({"tag": "x", "digest": f"sha256:{'0' * 64}"}, f"seaway@sha256:{'0' * 64}"),
    ],
)
def test_a_digest_replaces_the_tag_of_all_images(image: dict[str, str], expected: str) -> None:
    """The server and the agents run one image: that of the digest, or of the tag, or of the chart's version."""
    deployments = {**MINIMAL, "image": image, "agents": {"gateways": GATEWAYS}}
    pods = [each["spec"]["template"]["spec"] for (kind, _), each in render(deployments).items() if kind == "Deployment"]
    assert [each["image"] for pod in pods for each in pod["containers"]] == [expected, expected]


@ALL_VALUES
def test_config_map_has_valid_settings(values: dict[str, Any], tmp_path: Path) -> None:
    """The settings allow several replicas with leader election."""
    settings = settings_of(render(values), tmp_path)
    assert settings.server.host == "0.0.0.0"
    assert settings.clusters.usage.exporters
    assert settings.leader.lease == ("" if values is SQLITE else "seaway")
    assert settings.leader.namespace == settings.leader.kubeconfig == ""


def test_values_become_settings(tmp_path: Path) -> None:
    """Numbers, booleans and tables become TOML of the same type; other keys of their sections remain."""
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
    assert (settings.clusters.tenants_dir, settings.clusters.namespace) == ("/etc/seaway/tenants", "seaway-{tenant}")
    assert settings.server.tls_certificate == "/etc/seaway/tls/tls.crt"
    (container,) = objects["Deployment", "seaway"]["spec"]["template"]["spec"]["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    (secret,) = [each["valueFrom"] for each in container["env"] if each["name"] == "SEAWAY_DATABASE_URL"]
    assert secret == {"secretKeyRef": {"name": "db", "key": "uri"}}
    assert objects["PodDisruptionBudget", "seaway"]["spec"]["minAvailable"] == 1
    (endpoint,) = objects["ServiceMonitor", "seaway"]["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["authorization"]["credentials"]["name"]) == ("https", "metrics")


def test_agents_have_a_namespace_of_their_own() -> None:
    """It alone allows host networking; the pods are those of the plain manifest, and no Service selects them."""
    objects = render(ALL)
    assert objects["Namespace", "gateway-agents"]["metadata"]["labels"][ENFORCE] == "privileged"
    agent = objects["Deployment", "seaway-agent-gw-1"]["spec"]
    _, plain = yaml.safe_load_all(AGENT.read_text(encoding="utf-8"))
    ours, theirs = (one["template"]["spec"]["containers"][0] for one in (agent, plain["spec"]))
    assert ours["securityContext"] == theirs["securityContext"]
    assert agent["selector"] == plain["spec"]["selector"]
    labels = agent["template"]["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget"):
        spec = objects[kind, "seaway"]["spec"]["selector"]
        assert not spec.get("matchLabels", spec).items() <= labels.items()
    assert not {kind for kind, _ in render(MINIMAL)} & {"Namespace"}


def monitored(**values: Any) -> Any:  # noqa: ANN401  # an object
    """Return Prometheus' scrape configuration."""
    monitor = {"enabled": True, "tokenSecret": {"name": "metrics"}, **values}
    objects = render({**MINIMAL, "tls": {"existingSecret": "tls"}, "serviceMonitor": monitor}, "other")
    return objects["ServiceMonitor", "other-seaway"]["spec"]["endpoints"][0]


def test_service_monitor_has_tls_server_name_and_ca() -> None:
    """Prometheus scrapes pods by address, so it needs the server name and the certificate authority."""
    assert monitored()["tlsConfig"] == {"serverName": "other-seaway.sw.svc"}
    given = {"serverName": "seaway.example", "ca": {"kind": "configMap", "name": "roots", "key": "all.pem"}}
    ca = {"configMap": {"name": "roots", "key": "all.pem"}}
    assert monitored(tls=given)["tlsConfig"] == {"serverName": "seaway.example", "ca": ca}
    assert monitored(tls={"ca": {"name": "tls"}})["tlsConfig"]["ca"] == {"secret": {"name": "tls", "key": "ca.crt"}}
    plain = render({**MINIMAL, "serviceMonitor": {"enabled": True, "tokenSecret": {"name": "metrics"}}})
    assert "tlsConfig" not in plain["ServiceMonitor", "seaway"]["spec"]["endpoints"][0]


def test_service_monitor_honours_pod_labels_of_series() -> None:
    """Labels of vGPU series for namespace, pod and container override an operator's target labels."""
    assert monitored()["honorLabels"] is True


def test_alerts_select_the_scrape_job() -> None:
    """An operator names a job after its Service; alerts on Seaway itself select the name of the plain configuration."""
    shipped = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = [each["job_name"] for each in shipped["scrape_configs"]]
    assert monitored()["relabelings"] == [{"targetLabel": "job", "replacement": job}]


def test_dashboards_are_config_maps_for_the_sidecar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each dashboard that was written into the chart is a ConfigMap with the sidecar's label and its folder."""
    copy = shutil.copytree(CHART, tmp_path / "seaway", ignore=shutil.ignore_patterns("dashboards"))
    monkeypatch.setattr(sys.modules[__name__], "CHART", copy)
    enabled = {**MINIMAL, "dashboards": {"enabled": True, "labels": {"grafana_dashboard": "yes"}}}
    with pytest.raises(RefusedError, match="script/dashboards --chart"):
        render(enabled)
    files = write_chart_files(copy / "dashboards", Language)
    maps = {name: each for (kind, name), each in render(enabled).items() if kind == "ConfigMap" and name != "seaway"}
    assert maps.keys() == {f"seaway-{each.stem}" for each in files}
    for file in files:
        made = maps[f"seaway-{file.stem}"]
        assert json.loads(made["data"][file.name]) == json.loads(file.read_text(encoding="utf-8"))
        assert made["metadata"]["labels"]["grafana_dashboard"] == "yes"
        assert made["metadata"]["annotations"]["grafana_folder"] == Language(file.parent.name).folder
        kubernetes_validate.validate(made, VERSION, strict=True)
    assert not [name for kind, name in render(MINIMAL) if kind == "ConfigMap" and name != "seaway"]


def test_alerts_equal_the_plain_configuration() -> None:
    """They keep the templates of Prometheus, and are rendered only if enabled."""
    files = sorted((PROMETHEUS / "rules").glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    rule = render(ALL)["PrometheusRule", "seaway"]
    assert rule["spec"]["groups"] == groups
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    assert not {kind for kind, _ in render(MINIMAL)} & {"PrometheusRule"}


def test_notes_explain_dashboards() -> None:
    """The notes explain how Grafana loads the dashboards, in the namespace of the release."""
    assert "script/dashboards --out dashboards --config-maps --namespace sw" in rendered(ALL, notes=True)
    assert "grafana" not in rendered(MINIMAL, notes=True)


@ALL_VALUES
def test_notes_put_no_password_on_a_command_line(values: dict[str, Any]) -> None:
    """Seaway reads the database URL from its environment, because other users can read arguments of processes."""
    said = rendered(values, notes=True)
    assert "admin-token" in said
    assert "--database" not in said
    assert "SEAWAY_DATABASE_URL" not in said


@pytest.mark.parametrize("values", [MINIMAL, ALL], ids=["least", "all"])
def test_standby_replicas_are_ready_and_service_selects_the_leader(values: dict[str, Any]) -> None:
    """A rollout waits for each new replica and completes; the Service selects the label of the leader."""
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


def test_the_key_of_notifications_is_a_secret() -> None:
    """All pods have one key, which the chart creates and keeps, unless a secret has it already."""
    objects = render(MINIMAL)
    secret = objects["Secret", "seaway-notifications"]
    assert secret["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert len(b64decode(b64decode(secret["data"]["encryption-key"]))) == 32
    for values, name in ((MINIMAL, "seaway-notifications"), ({**MINIMAL, **OWN_KEY}, "mine")):
        (container,) = render(values)["Deployment", "seaway"]["spec"]["template"]["spec"]["containers"]
        (key,) = [each for each in container["env"] if each["name"] == "SEAWAY_NOTIFICATIONS_ENCRYPTION_KEY"]
        assert key["valueFrom"]["secretKeyRef"] == {"name": name, "key": "encryption-key"}
    assert not {kind for kind, _ in render({**MINIMAL, **OWN_KEY})} & {"Secret"}


OWN_KEY = {"notifications": {"existingSecret": "mine"}}


def test_single_replica_needs_no_leader_label() -> None:
    """Without leader election, on SQLite, the Service selects the pod without a label."""
    objects = render(SQLITE)
    deployment = objects["Deployment", "seaway"]["spec"]
    assert objects["Service", "seaway"]["spec"]["selector"] == deployment["selector"]["matchLabels"]
    (container,) = deployment["template"]["spec"]["containers"]
    assert "SEAWAY_LEADER_POD" not in {each["name"] for each in container["env"]}


def test_role_allows_only_lease_and_leader_label() -> None:
    """The role equals that of deploy/kubernetes, for the Lease of the settings; SQLite needs none."""
    (role,) = [each for each in yaml.safe_load_all(LEADER.read_text(encoding="utf-8")) if each["kind"] == "Role"]
    for name in ("seaway", "other"):
        objects = render(MINIMAL, name)
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
        ({**MINIMAL, "database": {"existingSecret": "a", "sqlite": True}, "replicas": 1}, "exclude each other"),
        ({"database": {"existingSecret": "db"}}, "which clusters?"),
        ({**MINIMAL, "clusters": {"simulated": True, "karmada": {"existingSecret": "a"}}}, "which clusters?"),
        ({**MINIMAL, "clusters": {"simulated": True}}, "simulated clusters live in one process"),
        ({**MINIMAL, "leader": {"renewSeconds": 20}}, "retrySeconds must be less than renewSeconds"),
        ({**MINIMAL, "serviceMonitor": {"enabled": True}}, "serviceMonitor.tokenSecret.name"),
        (
            {**MINIMAL, "agents": {"namespace": "sw", "gateways": GATEWAYS}},
            "another namespace than that of the release",
        ),
        ({**MINIMAL, "agents": {"namespace": "seaway-agent", "gateways": GATEWAYS}}, "may be that of a tenant"),
        ({**MINIMAL, "prometheusRule": {"enabled": True}}, "prometheusRule.enabled: set serviceMonitor.enabled"),
        ({**MINIMAL, "replica": 2}, "replica"),
        ({**MINIMAL, "image": {"digest": "v0.1.0"}}, "digest"),
        ({**MINIMAL, "settings": {"database": {"url": "postgresql://a:secret@b/c"}}}, "database"),
    ],
)
def test_invalid_values_are_rejected(values: dict[str, Any], says: str) -> None:
    """Nothing is rendered, and the message names the setting."""
    with pytest.raises(RefusedError, match=re.escape(says)):
        render(values)


def test_version_values_and_schema_agree() -> None:
    """The version is the package's, values match the schema, and the schema has every value."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == __version__
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(values, schema)
    assert set(schema["properties"]) - {"global"} == set(values)
    used = "".join(file.read_text(encoding="utf-8") for file in (CHART / "templates").iterdir())
    assert sorted(name for name in values if f".Values.{name}" not in used) == []


def test_seaway_rejects_two_replicas_on_sqlite(tmp_path: Path) -> None:
    """Settings without the chart have the same error."""
    file = tmp_path / "seaway.toml"
    file.write_text('[leader]\nlease = "seaway"\n', encoding="utf-8")
    with pytest.raises(RejectedError, match="a lease is for several processes on one database"):
        load_settings(file, {}, {})
