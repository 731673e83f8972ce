"""Users' own templates: their syntax, and the resulting objects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.kubernetes.templates.catalog import read_folder
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.names import JOB, PART, REPLICAS
from seaway.adapters.kubernetes.templates.placeholders import PLACEHOLDERS
from seaway.adapters.kubernetes.templates.registry import BUILT_IN, Template, problems, render
from seaway.adapters.kubernetes.templates.safety import Rules
from seaway.adapters.kubernetes.templates.user import read_template
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError
from seaway.domain.job import NodeRules
from seaway.domain.job_spec import Expose, ServiceType
from seaway.domain.node import Toleration
from seaway.domain.pod_rules import PRIVILEGES
from seaway.domain.runtime import Container, Run, Runtime, Volume, VolumeKind
from tests.unit.adapters.kubernetes.templates import sample
from tests.unit.adapters.kubernetes.templates.sample import OWN_JOB, deployment, many, one, options, share
from tests.unit.adapters.kubernetes.templates.schemas import validate

SERVE = """\
# an inference server with its settings
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${deployment_name}-settings
data:
  queue: ${queue}
  total: ${total_replicas}
  shell: echo $${HOME}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
  labels: {app: '${job_name}'}
spec:
  replicas: ${replicas}
  selector:
    matchLabels: {app: '${name}'}
  template:
    metadata:
      labels: {app: '${name}'}
    spec:
      nodeSelector: {disk: ssd}
      tolerations: [{key: spot, operator: Exists}]
      containers:
      - name: proxy
        image: proxy:1
      - name: main
        image: ${image}
        command: ${command}
        args: [--replicas, '${replicas}', '--name=${name}', '${args}']
        env: ${env}
        ports: ${ports}
        resources: {limits: {cpu: 64, ephemeral-storage: 1Gi}}
"""


def rendered(text: str, made: Deployment | None = None, rules: Rules = Rules(), **chosen: Any) -> list[Manifest]:  # noqa: ANN401, B008
    """Render a deployment by a template of this text."""
    made = made or deployment("mine")
    return render(made, options(**chosen), {"mine": read_template("mine", text, rules)})


def complaints(text: str, rules: Rules = Rules()) -> list[str]:  # noqa: B008  # frozen
    """Return all errors of a template."""
    with pytest.raises(RejectedError) as caught:
        read_template("mine", text, rules)
    return [str(each) for each in (caught.value, *caught.value.also)]


def changed(path: str, value: object) -> str:
    """Return the example with another value in its Deployment; the path has dots."""
    first, second = yaml.safe_load_all(SERVE)
    at = second
    *way, last = path.split(".")
    for step in way:
        at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
    at[int(last) if isinstance(at, list) else last] = value
    return yaml.safe_dump_all([first, second])


def pod(manifests: list[Manifest]) -> Any:  # noqa: ANN401  # a pod template as in YAML
    """Return the first Deployment's pod template."""
    return many(manifests, "Deployment")[0]["spec"]["template"]


# ---------------------------------------------------------------- rendering


def test_a_service_is_added_for_a_template_or_job_that_demands_one() -> None:
    """The annotation of a template gives the type, which a job can change; without both, the template has its own."""
    annotated = changed("metadata.annotations", {"seaway.io/expose": "NodePort"})
    balanced = deployment("mine", expose=Expose(ServiceType.LOAD_BALANCER))
    assert one(rendered(annotated), "Service").body["spec"]["type"] == "NodePort"
    assert one(rendered(annotated, balanced), "Service").body["spec"]["type"] == "LoadBalancer"
    assert one(rendered(SERVE, balanced), "Service").body["spec"]["type"] == "LoadBalancer"
    assert "Service" not in {each.kind for each in rendered(SERVE)}
    (complaint,) = complaints(changed("metadata.annotations", {"seaway.io/expose": "Nodeport"}))
    assert "must be one of ClusterIP, NodePort, LoadBalancer, Ingress, HTTPRoute" in complaint


RANKED = """\
apiVersion: batch/v1
kind: Job
metadata: {name: '${name}'}
spec:
  completions: ${replicas}
  parallelism: ${replicas}
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: ${image}
        command: [sh, -c, 'set -- ${ranks}; shift "$JOB_COMPLETION_INDEX"; echo "$1"']
        env:
        - {name: MASTER_ADDR, value: '${rank_0}'}
        - {name: MASTER_PORT, value: '${rank_0_port}'}
        - {name: SEAWAY_RING, value: '${ring}'}
"""


def test_a_template_with_ranks_can_be_a_ring() -> None:
    """Each pod gets its rank and the address of replica 0, for which Seaway adds a service in its cluster."""
    run = Run("image:1")
    read = {"mine": read_template("mine", RANKED, Rules())}
    ring = ("alpha",) * 3 + ("beta",) * 3
    here = deployment("mine", run=run, ring=True, replicas=6)
    home = render(replace(here, ranks=ring), options(), read)
    assert problems(here.spec, options(), read) == []
    service = one(home, "Service")
    assert service.body["spec"]["type"] == "NodePort"
    (first, *_) = many(home, "Job")
    assert sample.env(first)["MASTER_ADDR"] == f"{service.name}.seaway.svc"
    elsewhere = deployment("mine", run=run, ring=True, replicas=6, numbers=(3, 4, 5))
    written = render(replace(elsewhere, ranks=ring, rank_0="192.0.2.7:31337"), options(), read)
    assert "Service" not in {each.kind for each in written}
    shared, _ = many(written, "Job")
    assert "set -- 3 4; shift" in sample.container(shared)["command"][2]
    given = sample.env(shared)
    assert (given["MASTER_ADDR"], given["MASTER_PORT"]) == ("192.0.2.7", "31337")
    assert given["SEAWAY_RING"] == "alpha,alpha,alpha,beta,beta,beta"
    within = render(here, options(), read)
    assert one(within, "Service").body["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RANKED.replace("Indexed", "NonIndexed"), "must be a Job with completionMode Indexed, whose pods have ranks"),
        (RANKED.replace("${ranks}", "1"), r"must use \$\{ranks\} to give each pod its rank"),
    ],
)
def test_a_template_of_a_ring_must_give_ranks(text: str, said: str) -> None:
    """Only pods with an index can have a rank, and only with ranks is there a replica 0."""
    (complaint,) = complaints(text)
    assert re.search(said, complaint)


def test_a_template_is_filled_in_for_each_part() -> None:
    """The workload is rendered for each part; objects that do not depend on the part come once, before it."""
    manifests = rendered(SERVE)
    assert [each.kind for each in manifests] == ["ConfigMap", "Deployment", "Deployment"]
    assert [each["spec"]["replicas"] for each in many(manifests, "Deployment")] == [2, 1]
    for each in manifests:
        validate(each.pinned())
        validate(each.body)
    assert sample.same_bytes(manifests, rendered(SERVE))


def test_containers_and_setup_commands_of_a_job_are_added() -> None:
    """A template runs them if it runs the job's command; without it, setup commands are rejected."""
    beside = Container("log", Run("log:1"), 250, 256)
    made = deployment("mine", runtime=Runtime(setup=("export A=1",), containers=(beside,)))
    _, main, log = pod(rendered(SERVE, made))["spec"]["containers"]
    assert main["command"] == ["/bin/sh", "-ec", 'export A=1\nexec "$@"', "sh", "python", "train.py"]
    assert (main["resources"]["limits"]["cpu"], log["resources"]["limits"]["cpu"]) == ("750m", "250m")
    fixed = {"mine": read_template("mine", changed("spec.template.spec.containers.1.command", ["serve"]), Rules())}
    assert [each.where for each in problems(made.spec, options(), fixed)] == ["setup"]


def test_volumes_of_a_job_are_added() -> None:
    """Every container of a template gets the volumes of the job, unless the template has one of the same name."""
    run = replace(sample.RUN, env_from_secret=(("TOKEN", "hf/token"),))
    made = deployment("mine", run=run, runtime=Runtime((Volume("/data", VolumeKind.CLAIM, "imagenet"),)))
    spec = pod(rendered(SERVE, made))["spec"]
    assert spec["volumes"] == [{"name": "volume-0", "persistentVolumeClaim": {"claimName": "imagenet"}}]
    mount = {"name": "volume-0", "mountPath": "/data"}
    assert [each["volumeMounts"] for each in spec["containers"]] == [[mount], [mount]]
    token = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}
    assert token in spec["containers"][1]["env"]
    taken = changed("spec.template.spec.volumes", [{"name": "volume-0", "emptyDir": {}}])
    with pytest.raises(RejectedError, match="its template has 'volume-0' in volumes itself"):
        rendered(taken, made)


def test_placeholders_stand_for_values() -> None:
    """Each placeholder becomes a value of its type; numbers become texts where only texts are valid."""
    manifests = rendered(SERVE)
    settings = one(manifests, "ConfigMap").body
    assert settings["data"] == {"queue": "default", "total": "3", "shell": "echo ${HOME}"}
    main = pod(manifests)["spec"]["containers"][1]
    name = many(manifests, "Deployment")[0]["metadata"]["name"]
    assert main["image"] == "registry.example/train:1"
    assert main["command"] == ["python", "train.py"]
    assert main["args"] == ["--replicas", "2", f"--name={name}", "--fast"]
    assert main["env"] == [{"name": "MODE", "value": "fast"}]
    assert main["ports"] == [{"name": "port-0", "containerPort": 8080}]


def test_seaway_s_part_is_put_in() -> None:
    """Labels, place, devices and resources are Seaway's; the rest of the template stays."""
    made = deployment("mine", nodes=NodeRules((("zone", "a"),), (Toleration("gpu"),)), labels={"team": "a"})
    manifests = rendered(SERVE, made, pull_secrets=("registry",))
    template = pod(manifests)
    spec, labels = template["spec"], template["metadata"]["labels"]
    assert spec["nodeSelector"] == {"disk": "ssd", "zone": "a", "kubernetes.io/hostname": "node-0"}
    assert [each["key"] for each in spec["tolerations"]] == ["spot", "gpu"]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["automountServiceAccountToken"] is False
    assert template["metadata"]["annotations"] == {REPLICAS: "0-1", "nvidia.com/use-gpuuuid": "GPU-a"}
    assert (labels[JOB], labels["team"]) == (made.job_id, "a")
    proxy, main = spec["containers"]
    assert "resources" not in proxy
    assert main["resources"]["limits"] == {
        "ephemeral-storage": "1Gi",
        "cpu": "1000m",
        "memory": "2048Mi",
        "nvidia.com/gpu": "1",
        "nvidia.com/gpumem": "8192",
        "nvidia.com/gpucores": "50",
    }
    assert many(manifests, "Deployment")[0]["metadata"]["labels"]["app"] == "train"


def test_pins_stay_apart_here_too() -> None:
    """A template's body names no place, so it can go through Karmada like any other."""
    text = str([each.body for each in rendered(SERVE)])
    assert "GPU-a" not in text
    assert "node-0" not in text


def test_devices_may_be_claimed() -> None:
    """With dynamic resource allocation the claims of each part come before its workload."""
    manifests = rendered(SERVE, terms=sample.NVIDIA_DRA)
    kinds = [each.kind for each in manifests]
    assert kinds == ["ConfigMap", "ResourceClaimTemplate", "Deployment", "ResourceClaimTemplate", "Deployment"]
    assert pod(manifests)["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == manifests[1].name
    for each in manifests:
        validate(each.pinned())


def test_a_pointer_finds_the_pod_template() -> None:
    """Unknown kinds give the path of their pod template; the annotation itself is not sent."""
    text = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: ${name}
  annotations: {seaway.io/pod-template: /spec/replicatedJobs/0/template/spec/template}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        completions: ${replicas}
        parallelism: ${replicas}
        template:
          spec:
            restartPolicy: Never
            containers: [{name: main, image: '${image}'}]
"""
    first, _ = rendered(text)
    body = first.pinned()
    template = body["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert template["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "node-0"}
    assert template["metadata"]["labels"][PART] == body["metadata"]["labels"][PART]
    assert "seaway.io/pod-template" not in body["metadata"]["annotations"]
    assert read_template("mine", text, Rules()).needs == ("JobSet.jobset.x-k8s.io",)


def annotated(text: str, **said: str) -> str:
    """Add annotations to the workload of `SERVE`."""
    written = ", ".join(f"seaway.io/{key.replace('_', '-')}: {value}" for key, value in said.items())
    return text.replace("  labels: {app: '${job_name}'}", f"  annotations: {{{written}}}")


@pytest.mark.parametrize(
    ("said", "single_cluster", "restarting"),
    [
        ({}, False, True),
        ({"restarts": '"false"'}, False, False),
        ({"restarts": '"true"', "single_cluster": '"true"'}, True, True),
        ({"single_cluster": '"false"'}, False, True),
    ],
)
def test_a_template_says_what_it_is(said: dict[str, str], single_cluster: bool, restarting: bool) -> None:
    """It can set whether pods restart, with a default by kind, and whether replicas stay in one cluster."""
    text = annotated(SERVE, **said)
    found = read_template("mine", text, Rules())
    assert (found.single_cluster, found.restarts) == (single_cluster, restarting)
    assert not any(key in str(each.pinned()) for each in rendered(text) for key in ("io/restarts", "io/single-cluster"))


def test_a_job_does_not_return_by_itself() -> None:
    """A kind whose pods end is finished when they have ended."""
    text = SERVE.replace("apps/v1", "batch/v1").replace("kind: Deployment", "kind: Job")
    assert not read_template("mine", text, Rules()).restarts


@pytest.mark.parametrize(
    ("before", "after", "in_parts"),
    [
        ("", "", True),
        ("  completions: ${replicas}\n", "", True),  # a work queue, whose pods end when one has completed
        ("completions: ${replicas}", "completions: 100", False),  # other pods follow in place of completed ones
        ("metadata: {", "metadata: {annotations: {seaway.io/restarts: 'true'}, ", False),
    ],
)
def test_completed_pods_of_a_job_release_their_devices(before: str, after: str, in_parts: bool) -> None:
    """They do unless the Job starts other pods in their place, and their part is not written again."""
    text = OWN_JOB.replace(before, after)
    assert read_template("mine", text, Rules()).ends_in_parts is in_parts
    made = deployment("mine")
    place = made.placements[0].place
    over = replace(made, placements=tuple(replace(each, completed=each.place == place) for each in made.placements))
    jobs = many(rendered(text, over), "Job")
    assert len(jobs) == len(many(rendered(text, made), "Job")) - in_parts
    first, *others = many(rendered(text, over, shared=True), "Job")
    assert first["spec"].get("suspend", False) is in_parts
    assert not any("suspend" in each["spec"] for each in others)


def test_what_a_template_says_is_yes_or_no() -> None:
    """Any value but a boolean is an error with its place."""
    (complaint,) = complaints(annotated(SERVE, restarts="always"))
    assert 'must be "true" or "false"' in complaint
    assert "/metadata/annotations/seaway.io~1restarts" in complaint


def test_what_differs_from_part_to_part_needs_its_own_name() -> None:
    """Two different objects of one name are an error."""
    text = SERVE.replace("total: ${total_replicas}", "total: ${replicas}")
    with pytest.raises(RejectedError, match=r"differs from part to part"):
        rendered(text)


def test_a_template_says_what_it_needs() -> None:
    """Fields of the job that a template uses are required; its first line is its description."""
    template = read_template("mine", SERVE, Rules())
    assert template.purpose == "an inference server with its settings"
    assert template.requires == ("run.image", "run.command")
    assert template.needs == ()
    with pytest.raises(RejectedError, match=r"run\.command"):
        rendered(SERVE, deployment("mine", run=Run("image:1")))


# ---------------------------------------------------------------- no injection

ANY_TEXT = st.text(max_size=30) | st.sampled_from(
    [
        "${name}",
        "a: b",
        "- x",
        "'",
        '"',
        "\n---\nkind: Secret",
        "{{x}}",
        "$(id)",
        "&a [*a]",
        "!!python/object:x",
        "null",
        "1",
    ]
)


def shape(value: object) -> object:
    """Return the structure of a value: fields and types, but neither texts nor the length of lists."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted({json.dumps(shape(each), sort_keys=True) for each in value})
    return type(value).__name__


@given(
    image=ANY_TEXT.filter(bool),
    command=st.lists(ANY_TEXT, min_size=1, max_size=4),
    args=st.lists(ANY_TEXT, min_size=1, max_size=4),
    env=st.lists(st.tuples(ANY_TEXT, ANY_TEXT), min_size=1, max_size=3),
    node=ANY_TEXT,
)
def test_no_value_changes_structure(
    image: str, command: list[str], args: list[str], env: list[tuple[str, str]], node: str
) -> None:
    """For any values of a job, its objects have the structure of the template, with the values unchanged."""
    placed = [(node, (share("GPU-a"),))]
    plain = rendered(SERVE, deployment("mine", placed))
    odd = rendered(SERVE, deployment("mine", placed, run=Run(image, tuple(command), tuple(args), tuple(env), (80,))))
    assert [shape(each.body) for each in odd] == [shape(each.body) for each in plain]
    main = pod(odd)["spec"]["containers"][1]
    assert main["image"] == image
    assert main["command"] == command
    assert main["args"][3:] == args
    assert main["env"] == [{"name": name, "value": value} for name, value in env]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.text(max_size=8)
    | st.sampled_from([f"${{{p}}}" for p in PLACEHOLDERS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PATHS = st.sampled_from(
    [
        "metadata",
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "kind",
        "spec",
        "spec.replicas",
        "spec.template",
        "spec.template.metadata",
        "spec.template.metadata.labels",
        "spec.template.spec",
        "spec.template.spec.nodeSelector",
        "spec.template.spec.tolerations",
        "spec.template.spec.imagePullSecrets",
        "spec.template.spec.volumes",
        "spec.template.spec.containers",
        "spec.template.spec.containers.1",
        "spec.template.spec.containers.1.resources",
        "spec.template.spec.containers.1.resources.limits",
    ]
)


@given(path=PATHS, value=VALUES)
def test_a_broken_template_is_rejected_and_nothing_worse(path: str, value: object) -> None:
    """Any value anywhere in a template works or is rejected when it is loaded or rendered."""
    with suppress(RejectedError):
        rendered(changed(path, value))


@given(st.text(max_size=200))
def test_a_file_of_anything_is_rejected(text: str) -> None:
    """A text that is not a template is rejected."""
    with pytest.raises(RejectedError):
        read_template("mine", text, Rules())


# ---------------------------------------------------------------- checks when it is loaded


@pytest.mark.parametrize(
    ("path", "value", "power"),
    [
        ("spec.template.spec.hostNetwork", True, "host"),
        ("spec.template.spec.hostPID", True, "host"),
        ("spec.template.spec.hostIPC", "true", "host"),
        ("spec.template.spec.containers.1.ports", [{"containerPort": 80, "hostPort": 80}], "host"),
        ("spec.template.spec.containers.1.livenessProbe", {"httpGet": {"host": "10.0.0.1", "port": 80}}, "host"),
        ("spec.template.spec.initContainers", [{"name": "a", "startupProbe": {"tcpSocket": {"host": "b"}}}], "host"),
        ("spec.template.spec.containers.1.lifecycle", {"preStop": {"httpGet": {"host": "${image}"}}}, "host"),
        ("spec.template.spec.volumes", [{"name": "a", "hostPath": {"path": "/"}}], "host-path"),
        ("spec.template.spec.containers.1.securityContext", {"privileged": True}, "privileged"),
        ("spec.template.spec.containers.1.securityContext", {"privileged": "${image}"}, "privileged"),
        ("spec.template.spec.containers.1.securityContext", {"allowPrivilegeEscalation": True}, "privileged"),
        ("spec.template.spec.containers.1.securityContext", {"capabilities": {"add": ["ALL"]}}, "privileged"),
        ("spec.template.spec.containers.1.securityContext", {"capabilities": {"add": "${args}"}}, "privileged"),
        ("spec.template.spec.containers.1.securityContext", {"capabilities": "${args}"}, "privileged"),
        ("spec.template.spec.containers.1.securityContext", {"procMount": "Unmasked"}, "privileged"),
        ("spec.template.spec.securityContext", {"seccompProfile": {"type": "Unconfined"}}, "privileged"),
        ("spec.template.spec.securityContext", {"seccompProfile": {"type": "${image}"}}, "privileged"),
        ("spec.template.spec.securityContext", {"sysctls": [{"name": "a", "value": "b"}]}, "privileged"),
        ("spec.template.spec.initContainers", [{"name": "a", "securityContext": {"privileged": True}}], "privileged"),
        ("spec.template.spec.serviceAccountName", "admin", "service-account"),
        ("spec.template.spec.automountServiceAccountToken", True, "service-account"),
        (
            "spec.template.spec.volumes",
            [{"name": "a", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
            "service-account",
        ),
        ("spec.template.spec.schedulerName", "mine", "scheduler"),
        ("anywhere.at.all.hostPath", {"path": "/"}, "host-path"),
    ],
)
def test_power_over_nodes_has_to_be_allowed(path: str, value: object, power: str) -> None:
    """Fields with power over nodes or the API are rejected, with their place, unless the operator allows them."""
    text = changed(path, value)
    (said,) = complaints(text)
    assert said.startswith("template 'mine', manifest 2 (Deployment)/")
    assert path.split(".", maxsplit=1)[0] in said
    assert complaints(text, Rules(privileges=frozenset(PRIVILEGES) - {power})) == [said]
    assert isinstance(read_template("mine", text, Rules(privileges=frozenset({power}))), Template)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.template.spec.nodeName", "node-9"),
        ("spec.template.spec.resourceClaims", [{"name": "a"}]),
        ("spec.template.spec.containers.1.resources", {"limits": {"nvidia.com/gpu": 8}}),
        ("spec.template.spec.containers.0.resources", {"requests": {"nvidia.com/gpumem": 1}}),
        ("spec.template.spec.containers.0.resources", {"claims": [{"name": "a"}]}),
        ("spec.template.metadata.annotations", {"nvidia.com/use-gpuuuid": "GPU-z"}),
        ("spec.template.metadata.labels", {"hami.io/webhook": "ignore"}),
        ("metadata.labels", {"seaway.io/job": "other"}),
        ("metadata.ownerReferences", []),
        ("spec.template.metadata.finalizers", ["example.com/a"]),
        ("spec.template.metadata.annotations", {"volcano.sh/vgpu-use-gpuuuid": "GPU-z"}),
        ("spec.template.metadata.annotations", {"volcano.sh/vgpu-node": "node-9"}),
        ("spec.template.metadata.annotations", {"hygon.com/nouse-gpuuuid": "GPU-z"}),
        ("spec.template.metadata.annotations", {"cdi.k8s.io/mine": "nvidia.com/gpu=all"}),
        ("spec.template.spec.priorityClassName", "system-node-critical"),
        ("metadata.namespace", "kube-system"),
        ("metadata.namespace", "${image}"),
        ("spec.externalIPs", ["10.0.0.1"]),
    ],
)
def test_some_things_no_one_may_set(path: str, value: object) -> None:
    """Place, devices, labels and namespace are Seaway's, whatever the operator allows."""
    (said,) = complaints(changed(path, value), Rules(privileges=frozenset(PRIVILEGES)))
    assert "manifest 2 (Deployment)/" in said


NAMES_OF_OTHERS = [
    ("spec.template.spec.volumes", lambda name: [{"name": "v", "secret": {"secretName": name}}]),
    (
        "spec.template.spec.volumes",
        lambda name: [{"name": "v", "projected": {"sources": [{"secret": {"name": name}}]}}],
    ),
    ("spec.template.spec.volumes", lambda name: [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]),
    ("spec.template.spec.volumes", lambda name: [{"name": "v", "csi": {"nodePublishSecretRef": {"name": name}}}]),
    ("spec.template.spec.containers.1.envFrom", lambda name: [{"secretRef": {"name": name}}]),
    (
        "spec.template.spec.containers.0.env",
        lambda name: [{"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "a"}}}],
    ),
    ("spec.template.spec.imagePullSecrets", lambda name: [{"name": name}]),
    ("spec.template.spec.priorityClassName", lambda name: name),
]


@pytest.mark.parametrize(("path", "named"), NAMES_OF_OTHERS)
@pytest.mark.parametrize("word", ["job_name", "image"])
def test_no_job_chooses_secrets_volumes_or_rank(path: str, named: Callable[[str], object], word: str) -> None:
    """Placeholders with free text of a submitter cannot name others' objects; those that Seaway sets can."""
    (said,) = complaints(changed(path, named(f"${{{word}}}")))
    assert said.endswith(f"may not come from ${{{word}}}, which jobs are free to choose")
    for free in ("${name}-own", "${deployment_name}", "${tenant}-of-all", "fixed"):
        assert isinstance(read_template("mine", changed(path, named(free)), Rules()), Template)


@pytest.mark.parametrize(
    "own",
    [{"capabilities": {"drop": ["NET_RAW"]}}, {"privileged": False}, {"runAsNonRoot": False}, {"runAsUser": 0}],
)
def test_a_template_has_its_own_security_context(own: dict[str, Any]) -> None:
    """Fields of the template are kept, also where they loosen Seaway's, and Seaway adds the others."""
    added = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    spec = pod(rendered(changed("spec.template.spec.containers.1.securityContext", own)))["spec"]
    assert spec["containers"][1]["securityContext"] == {**added, **own}
    assert spec["containers"][0]["securityContext"] == added
    spec = pod(rendered(changed("spec.template.spec.securityContext", {"runAsNonRoot": False})))["spec"]
    assert spec["securityContext"] == {"runAsNonRoot": False, "seccompProfile": {"type": "RuntimeDefault"}}


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("v1", "ServiceAccount"),
        ("v1", "Secret"),
        ("v1", "Namespace"),
        ("v1", "Node"),
        ("v1", "Pod"),
        ("v1", "List"),
        ("v1", "PersistentVolume"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "CronJob"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        ("policy.karmada.io/v1alpha1", "ClusterPropagationPolicy"),
        ("example.com/v1", "Thing"),
        ("", ""),
    ],
)
def test_only_known_kinds_are_written(api: str, kind: str) -> None:
    """Cluster-scoped kinds, kinds that grant rights, and unknown ones are rejected."""
    other = yaml.safe_dump({"apiVersion": api, "kind": kind, "metadata": {"name": "${name}"}})
    (said,) = complaints(f"{SERVE}---\n{other}")
    assert f"manifest 3 ({kind})/kind" in said


def test_operators_may_allow_more_kinds() -> None:
    """An operator can allow a kind; kinds that grant rights are never allowed."""
    thing = "---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: '${name}'}\n"
    assert read_template("mine", SERVE + thing, Rules(kinds=frozenset({"Thing.example.com"}))).needs == (
        "Thing.example.com",
    )
    account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: '${name}'}\n"
    assert complaints(SERVE + account, Rules(kinds=frozenset({"ServiceAccount"})))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SERVE.replace("${queue}", "${quue}"), r"/data/queue: unknown placeholder 'quue'; available: name, "),
        (
            SERVE.replace("image: ${image}", "image: x/${image}"),
            r"/containers/1/image: \$\{image\} must be the whole value",
        ),
        (SERVE.replace("echo $${HOME}", "echo ${HOME}"), "unknown placeholder 'HOME'"),
        (SERVE.replace("kind: ConfigMap", "kind: ${job_name}"), "/kind: .* may not be in a template"),
        (SERVE.replace("disk: ssd", "'${queue}': ssd"), "a placeholder cannot name a field"),
        (SERVE.replace("${deployment_name}-settings", "settings"), "/metadata/name: must contain"),
        (SERVE.replace("  name: ${name}\n  labels", "  name: ${deployment_name}\n  labels"), "one object per part"),
        (SERVE.replace("replicas: ${replicas}", "replicas: 1").replace("'${replicas}'", "x"), r"has no \$\{replicas\}"),
        (SERVE.partition("---\n")[0], "but none has one"),
        (f"{SERVE}---\n{SERVE.partition('---')[2]}", "but 2 have one"),
        (SERVE.replace("containers:", "sidecars:"), "no pod template with containers"),
        (
            SERVE.replace("queue: ${queue}", "queue: 2026-01-01"),
            "manifest 1/data/queue: 2026-01-01 is not a plain value",
        ),
        (SERVE.replace("queue: ${queue}", "on: x"), "the field True is not a text"),
        (SERVE + "---\n[]", "manifest 3: must be an object"),
        ("# nothing\n---\n", "has no manifest"),
        ("a: [", "not YAML"),
        (SERVE + "---\na: 1\na: 2\n", f"line {SERVE.count(chr(10)) + 3}: the field 'a' is duplicated"),
        (SERVE + "#" * 70_000, "larger than 64 KiB"),
        ("---\na: 1\n" * 17, "more than 16 manifests"),
        ("a: " + "[" * 40 + "]" * 40, "deeper than 32"),
        (
            "a: &a [x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"
                for a, b in zip("abcdef", "bcdefg", strict=True)
            ),
            "expands to more",
        ),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, said: str) -> None:
    """Every error is found when the template is loaded, with its place."""
    with pytest.raises(RejectedError, match=said):
        read_template("mine", text, Rules())


def test_all_mistakes_are_reported_at_once() -> None:
    """All errors are reported together."""
    text = SERVE.replace("${queue}", "${quue}").replace("nodeSelector: {disk: ssd}", "hostPID: true\n      nodeName: x")
    assert len(complaints(text)) == 3


# ---------------------------------------------------------------- folders


def test_templates_are_called_like_their_files(tmp_path: Path) -> None:
    """A folder's files are templates by name; others are ignored."""
    (tmp_path / "serve.yaml").write_text(SERVE)
    (tmp_path / "other.yml").write_text(SERVE)
    (tmp_path / "notes.txt").write_text("x")
    found = read_folder(tmp_path, Rules(), BUILT_IN)
    assert sorted(found) == ["other", "serve"]
    assert render(deployment("serve"), options(), {**BUILT_IN, **found})


def test_a_folder_says_which_files_are_wrong(tmp_path: Path) -> None:
    """Errors of all files are reported together, each with its file."""
    (tmp_path / "job.yaml").write_text(SERVE)
    (tmp_path / "Bad Name.yaml").write_text(SERVE)
    (tmp_path / "broken.yaml").write_text("a: [")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "huge.yaml").write_text("#" * 100_000)
    with pytest.raises(RejectedError) as caught:
        read_folder(tmp_path, Rules(), BUILT_IN)
    said = [str(each) for each in (caught.value, *caught.value.also)]
    assert [each.partition(":")[0] for each in said] == [
        "Bad Name.yaml",
        "binary.yaml",
        "broken.yaml",
        "huge.yaml",
        "job.yaml",
    ]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A missing folder is an error, not an empty one."""
    with pytest.raises(RejectedError, match="nowhere"):
        read_folder(tmp_path / "nowhere", Rules(), BUILT_IN)
