"""The built-in templates: their objects, and their common rules."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.kubernetes.device_plugins.views import DeviceResources
from seaway.adapters.kubernetes.templates import plain
from seaway.adapters.kubernetes.templates.context import Exposure
from seaway.adapters.kubernetes.templates.manifest import Manifest, as_yaml
from seaway.adapters.kubernetes.templates.names import (
    ATTEMPT,
    INDEX,
    JOB,
    MANAGED_BY,
    MAX_RESTARTS,
    PART,
    REPLICAS,
    TENANT,
    numbers_of,
)
from seaway.adapters.kubernetes.templates.registry import BUILT_IN, problems, render
from seaway.adapters.kubernetes.templates.runtime import Mounting, command_of
from seaway.adapters.kubernetes.templates.safety import RESTRICTED_VOLUMES
from seaway.application.ports.templates import Delivery
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError
from seaway.domain.job import NodeRules, ResourceRequest
from seaway.domain.job_spec import Expose, JobSpec, ServiceType
from seaway.domain.node import Toleration
from seaway.domain.runtime import (
    Container,
    ContainerPort,
    LimitWarning,
    PortProtocol,
    RestartPolicy,
    Run,
    Runtime,
    Volume,
    VolumeKind,
)
from tests.unit.adapters.kubernetes.templates import sample
from tests.unit.adapters.kubernetes.templates.sample import container, deployment, env, many, one, options, share
from tests.unit.adapters.kubernetes.templates.schemas import validate

GOLDEN = Path(__file__).parent / "golden"
WRITE = "SEAWAY_WRITE_GOLDEN"
"""Environment variable that rewrites the examples instead of comparing them."""

every = pytest.mark.parametrize("template", sorted(BUILT_IN))


def pod_templates(value: object) -> list[dict[str, Any]]:
    """Find all pod templates in an object."""
    if isinstance(value, dict):
        own = [value] if "containers" in value.get("spec", {}) else []
        return own + [each for part in value.values() for each in pod_templates(part)]
    if isinstance(value, list):
        return [each for part in value for each in pod_templates(part)]
    return []


def workloads(manifests: list[Manifest]) -> list[dict[str, Any]]:
    """Return the objects that run pods."""
    return [each.pinned() for each in manifests if each.replicas]


# ---------------------------------------------------------------- all templates


@every
@pytest.mark.parametrize("terms", [sample.HAMI, sample.VOLCANO, sample.PLUGIN, sample.NVIDIA_DRA])
def test_kubernetes_would_take_it(template: str, terms: DeviceResources) -> None:
    """Every object of every template is valid, with its pins and without."""
    for manifest in render(deployment(template, labels={"team": "a"}), options(terms)):
        validate(manifest.pinned())
        validate(manifest.body)


@every
def test_the_same_is_written_each_time(template: str) -> None:
    """The same deployment gives the same bytes, for any order of its placements."""
    made = deployment(template, gang=True)
    turned = replace(made, placements=made.placements[::-1])
    assert sample.same_bytes(render(made, options()), render(turned, options()))
    assert as_yaml(render(made, options())) == as_yaml(render(turned, options()))


@every
def test_everything_is_marked(template: str) -> None:
    """Objects and pods have Seaway's labels; users' labels stay."""
    made = deployment(template, labels={"team": "a"})
    manifests = render(made, options())
    marked = [each.pinned()["metadata"] for each in manifests]
    marked += [each["metadata"] for body in workloads(manifests) for each in pod_templates(body)]
    assert len(marked) > len(manifests)
    for metadata in marked:
        labels = metadata["labels"]
        assert (labels[JOB], labels[ATTEMPT], labels[TENANT]) == (made.job_id, "1", "default")
        assert labels[MANAGED_BY] == "seaway"
        assert labels[PART]
        assert labels["team"] == "a"
        assert numbers_of(metadata["annotations"][REPLICAS])
    assert len({(each.kind, each.name) for each in manifests}) == len(manifests)


@every
def test_each_replica_is_in_one_pod_template(template: str) -> None:
    """The pod templates of a deployment divide its replicas, each with its own label."""
    found: list[int] = []
    parts: list[str] = []
    for body in workloads(render(deployment(template), options())):
        for pods in pod_templates(body):
            found += numbers_of(pods["metadata"]["annotations"][REPLICAS])
            parts.append(pods["metadata"]["labels"][PART])
    assert sorted(found) == [0, 1, 2]
    assert len(set(parts)) == len(parts)


@every
def test_every_pod_is_tied_to_its_place(template: str) -> None:
    """Every pod template has nodes and devices, and no token for the cluster's API."""
    for body in workloads(render(deployment(template), options())):
        for pods in pod_templates(body):
            spec = pods["spec"]
            assert ("nodeSelector" in spec) != ("affinity" in spec)
            assert set(pods["metadata"]["annotations"]["nvidia.com/use-gpuuuid"].split(",")) <= {"GPU-a", "GPU-b"}
            assert spec["automountServiceAccountToken"] is False
            assert "nodeName" not in spec


@every
def test_a_body_without_pins_names_no_place(template: str) -> None:
    """Only its pins name the place of a workload."""
    for manifest in render(deployment(template), options()):
        text = str(manifest.body)
        assert not any(each in text for each in ("node-0", "node-1", "GPU-a", "GPU-b"))


@every
def test_a_failed_replica_is_seen(template: str) -> None:
    """Only a service restarts its containers or is retried by its controller."""
    for body in workloads(render(deployment(template), options())):
        for pods in pod_templates(body):
            assert pods["spec"]["restartPolicy"] == ("Always" if template == "deployment" else "Never")
        policy = body["spec"].get("runPolicy", body["spec"])
        assert policy.get("backoffLimit", 0) == 0
        assert "ttlSecondsAfterFinished" not in body["spec"]


@every
def test_an_image_is_needed(template: str) -> None:
    """A job without an image is rejected, unless the cluster has a default image."""
    made = deployment(template, run=replace(sample.RUN, image=""))
    with pytest.raises(RejectedError, match=r"run\.image"):
        render(made, options())
    assert "fallback:1" in as_yaml(render(made, options(default_image="fallback:1")))


@every
def test_examples_stay_as_they_are(template: str) -> None:
    """The output of a template changes only on purpose: set SEAWAY_WRITE_GOLDEN to rewrite the examples."""
    text = f"# {BUILT_IN[template].purpose}\n" + as_yaml(render(deployment(template, gang=True), options()))
    file = GOLDEN / f"{template}.yaml"
    if os.environ.get(WRITE):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


RUNTIME = Runtime(
    (
        Volume("/data", VolumeKind.CLAIM, "imagenet", read_only=True),
        Volume("/hf", VolumeKind.SECRET, "hf", read_only=True),
        Volume("/etc/app.toml", VolumeKind.CONFIG_MAP, "settings", read_only=True, sub_path="app.toml"),
        Volume("/scratch", VolumeKind.EMPTY_DIR, size_mib=1024),
        Volume("/bucket", VolumeKind.CSI, "s3.example", read_only=True, attributes=(("bucket", "b"),), secret="s3"),
    ),
    shm_mib=512,
)
OBJECTS = replace(sample.RUN, env_from_secret=(("TOKEN", "hf/token"),), env_from_config_map=(("LEVEL", "settings/l"),))
MOUNTING = Mounting(("s3.example",))


@every
def test_volumes_and_variables_of_objects_are_in_every_pod(template: str) -> None:
    """Each pod mounts the volumes of its job, and reads variables from Secrets and ConfigMaps, by their names only."""
    manifests = render(deployment(template, run=OBJECTS, runtime=RUNTIME), options(mounting=MOUNTING))
    for manifest in manifests:
        validate(manifest.pinned())
    for body in workloads(manifests):
        for pods in pod_templates(body):
            (main,) = pods["spec"]["containers"]
            mounts = {each["mountPath"]: each for each in main["volumeMounts"]}
            sources = {each["name"]: each for each in pods["spec"]["volumes"]}
            assert mounts.keys() - {"/etc/seaway"} == {
                *("/dev/shm", "/data", "/hf", "/etc/app.toml", "/scratch", "/bucket")
            }
            assert [path for path, each in mounts.items() if not each.get("readOnly")] == ["/dev/shm", "/scratch"]
            assert mounts["/etc/app.toml"]["subPath"] == "app.toml"
            assert sources["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "512Mi"}
            source = sources[mounts["/bucket"]["name"]]["csi"]
            assert (source["readOnly"], source["nodePublishSecretRef"]) == (True, {"name": "s3"})
            found = {each["name"]: each.get("valueFrom") for each in main["env"]}
            assert found["TOKEN"] == {"secretKeyRef": {"name": "hf", "key": "token"}}
            assert found["LEVEL"] == {"configMapKeyRef": {"name": "settings", "key": "l"}}


MORE = Runtime(
    volumes=RUNTIME.volumes[:1],
    init_containers=(
        Container("fetch", Run("curl:1", ("curl",), env_from_secret=(("KEY", "s3/key"),))),
        Container("proxy", Run(), 250, 256, sidecar=True),
    ),
    containers=(Container("log", Run("log:1"), 250, 256),),
)


@every
def test_containers_share_the_resources_of_their_replica(template: str) -> None:
    """Containers get their part, the program the rest with the devices, and all of them the volumes of the job."""
    manifests = render(deployment(template, runtime=MORE), options())
    for manifest in manifests:
        validate(manifest.pinned())
    for body in workloads(manifests):
        for pods in pod_templates(body):
            fetch, proxy = pods["spec"]["initContainers"]
            main, log = pods["spec"]["containers"]
            limits = [each["resources"]["limits"] for each in (fetch, proxy, main, log)]
            assert [each["cpu"] for each in limits] == ["750m", "250m", "500m", "250m"]
            assert [each["memory"] for each in limits] == ["1792Mi", "256Mi", "1536Mi", "256Mi"]
            assert ["nvidia.com/gpu" in each for each in limits] == [False, False, True, False]
            assert [each.get("restartPolicy") for each in (fetch, proxy, log)] == [None, "Always", None]
            assert (proxy["image"], log["image"]) == (main["image"], "log:1")
            for each in (fetch, proxy, log):
                assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in each["env"]
                assert each["volumeMounts"][0]["mountPath"] == "/data"


def expanded(word: str) -> str:
    """Replace an escaped ``$`` as Kubernetes does; fail if it would replace a variable."""
    plain = re.sub(r"\$\$|\$\((?!\()", lambda match: "$" if match[0] == "$$" else "VARIABLE", word)
    assert "VARIABLE" not in plain
    return plain


def started(spec: JobSpec, *command: str) -> str:
    """Run a command as the container of a job does; return its output."""
    words = [expanded(each) for each in command_of(spec, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


ARCHIVE = f"sha256:{'0' * 64}"
DELIVERY = Delivery("https://seaway.example", "curl:1", lambda each: f"swd_{each.job_id}")


@every
def test_a_working_directory_is_fetched_before_all_other_containers(template: str) -> None:
    """An init container fetches the archive with its token into a volume, in which all containers start."""
    manifests = render(
        deployment(template, runtime=replace(MORE, workdir=ARCHIVE)), options(mounting=Mounting(delivery=DELIVERY))
    )
    for manifest in manifests:
        validate(manifest.pinned())
    for body in workloads(manifests):
        for pods in pod_templates(body):
            first = pods["spec"]["initContainers"][0]
            given = {each["name"]: each["value"] for each in first["env"]}
            assert (first["name"], first["image"]) == ("seaway-workdir", "curl:1")
            assert given["SEAWAY_WORKDIR_URL"] == f"https://seaway.example/api/v1/workdirs/{ARCHIVE}"
            assert given["SEAWAY_WORKDIR_TOKEN"] == f"swd_{sample.JOB}"
            assert {"name": "workdir", "emptyDir": {}} in pods["spec"]["volumes"]
            for each in (*pods["spec"]["initContainers"], *pods["spec"]["containers"]):
                assert each["workingDir"] == "/workdir"
                assert {"name": "workdir", "mountPath": "/workdir"} in each["volumeMounts"]


def test_a_working_directory_needs_an_address_for_pods() -> None:
    """Without an address that pods reach, a job with a folder is rejected before it is stored."""
    spec = deployment(runtime=Runtime(workdir=ARCHIVE)).spec
    assert [each.where for each in problems(spec, options())] == ["workdir"]
    assert problems(spec, options(mounting=Mounting(delivery=DELIVERY))) == []


def test_setup_commands_run_before_the_program_in_its_shell() -> None:
    """The program has their variables and its own arguments; a failed command ends the container."""
    spec = deployment(runtime=Runtime(setup=("cd /", "export A=$(echo 1)\nB=2; export B"))).spec
    assert started(spec, "sh", "-c", 'echo "$A $B $PWD $1"', "sh", "two words $HOME") == "1 2 / two words $HOME"
    with pytest.raises(subprocess.CalledProcessError):
        started(deployment(runtime=Runtime(setup=("false", "true"))).spec, "true")


def test_a_program_is_warned_before_its_time_limit() -> None:
    """The program, and not its shell, gets the signal when this much time is left."""
    spec = deployment(time_limit_s=61, runtime=Runtime(setup=("true",), warning=LimitWarning("SIGUSR2", 60))).spec
    program = 'trap "echo warned; exit" USR2; while :; do sleep 0.1; done'
    assert started(spec, "sh", "-c", program) == "warned"


@pytest.mark.parametrize(
    ("template", "policy"), [("job", RestartPolicy.ON_FAILURE), ("deployment", RestartPolicy.NEVER)]
)
def test_a_warning_counts_from_the_first_start_of_a_program(
    template: str, policy: RestartPolicy, tmp_path: Path
) -> None:
    """A file of the pod has the first start. A program that restarts after its warning is warned at once."""
    runtime = Runtime(restart_policy=policy, warning=LimitWarning("SIGUSR1", 60))
    made = deployment(template, time_limit_s=10_000, runtime=runtime, restarts=template == "deployment")
    (job, *_) = workloads(render(made, options()))
    assert {"name": "state", "mountPath": "/run/seaway"} in container(job)["volumeMounts"]
    program = 'trap "echo warned; exit" USR1; for i in $(seq "$0"); do sleep 0.1; done; echo done'
    words = command_of(made.spec, ("sh", "-c", program))
    words = (*words[:2], expanded(words[2]).replace("/run/seaway", str(tmp_path)), *words[3:])

    def run(tenths: int) -> str:
        ran = subprocess.run([*words, str(tenths)], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
        return ran.stdout.strip()

    begun = tmp_path / "started"
    begun.write_text(f"{int(time.time()) - 9_990}")
    assert run(600) == "warned"
    begun.unlink()
    timer = words[2].replace("sleep", "exit; sleep")  # it would outlast the program here, unlike in a container
    words = (*words[:2], timer, *words[3:])
    assert run(1) == "done"
    first = begun.read_text()
    assert abs(int(first) - time.time()) < 60
    assert (run(1), begun.read_text()) == ("done", first)


@pytest.mark.parametrize("template", ["job", "kueue", "torchrun", "pytorchjob", "volcanojob"])
def test_programs_restart_in_place_where_asked(template: str) -> None:
    """Pods restart, no controller counts that as a failure, and pods have the maximum number for Seaway."""
    runtime = Runtime(restart_policy=RestartPolicy.ON_FAILURE, max_restarts=3)
    for body in workloads(render(deployment(template, runtime=runtime), options())):
        text = str(body)
        assert "'backoffLimit': 0" not in text
        for pods in pod_templates(body):
            assert pods["spec"]["restartPolicy"] == "OnFailure"
            assert pods["metadata"]["annotations"][MAX_RESTARTS] == "3"


@pytest.mark.parametrize("template", ["raycluster", "rayjob"])
def test_ray_pods_run_setup_commands_before_ray(template: str) -> None:
    """KubeRay joins the words to a text for a shell; other fields of the program cannot be applied."""
    for body in workloads(render(deployment(template, runtime=Runtime(setup=("echo 'a b'",))), options())):
        for pods in pod_templates(body):
            text = " ".join(pods["spec"]["containers"][0]["command"]).replace("python train.py", "echo program")
            done = subprocess.run(["bash", "-c", f"{text} && echo ray"], capture_output=True, text=True, check=True)
            assert done.stdout.split("\n")[:-1] == ["a b", *(["program"] if template == "raycluster" else []), "ray"]
    warned = deployment(template, time_limit_s=90, runtime=Runtime(warning=LimitWarning())).spec
    assert [each.where for each in problems(warned, options())] == ["time_limit_warning"]


@every
def test_pods_are_restricted(template: str) -> None:
    """Pods of built-in templates pass the Pod Security Standard "restricted" and have no credentials of the cluster."""
    runtime = replace(RUNTIME, init_containers=MORE.init_containers, containers=MORE.containers)
    made = deployment(template, runtime=runtime)
    for body in workloads(render(made, options(run_as_user=1000, mounting=MOUNTING))):
        for each in pod_templates(body):
            spec = each["spec"]
            assert spec["automountServiceAccountToken"] is False
            ids = dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), 1000)
            profile = {"seccompProfile": {"type": "RuntimeDefault"}}
            assert spec["securityContext"] == {"runAsNonRoot": True, **ids, **profile}
            assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
            assert all(set(volume) <= {"name", *RESTRICTED_VOLUMES} for volume in spec["volumes"])
            for ran in (*spec.get("initContainers", ()), *spec["containers"]):
                assert ran["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
                assert not any("hostPort" in port for port in ran.get("ports", ()))


def test_users_of_images_are_kept_where_asked() -> None:
    """Without a user ID, the image's own user runs the container, unless that is root."""
    job = many(render(deployment(), options(run_as_user=0)), "Job")[0]
    context = job["spec"]["template"]["spec"]["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


PLACES = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("ab")), min_size=1, max_size=8)


@every
@given(places=PLACES)
def test_every_spread_is_valid(template: str, places: list[tuple[str, str]]) -> None:
    """For any spread of replicas over nodes and devices, each is in one template, and all objects are valid."""
    made = deployment(template, placed=[(node, (share(f"GPU-{node}{card}"),)) for node, card in places])
    manifests = render(made, options())
    found = sorted(
        number
        for body in workloads(manifests)
        for pods in pod_templates(body)
        for number in numbers_of(pods["metadata"]["annotations"][REPLICAS])
    )
    assert found == list(range(len(places)))
    for manifest in manifests:
        assert len(manifest.name) <= 63


@every
def test_controllers_have_room_for_names_of_their_own(template: str) -> None:
    """Controllers' names, the longest name with an index or a role as suffix, are still DNS labels."""
    made = deployment(template, job_id="j" * 60, attempt=10**9)
    for body in workloads(render(made, options())):
        name = body["metadata"]["name"]
        tasks = [f"-{task['name']}" for task in body["spec"].get("tasks", [])]
        for suffix in tasks or ["-worker" if template == "pytorchjob" else ""]:
            assert len(f"{name}{suffix}-9999") <= 63
        assert len(name) <= 47  # KubeRay accepts no longer ones


# ---------------------------------------------------------------- single templates


def test_a_job_counts_its_part() -> None:
    """A Job has as many pods as its part has replicas, all in parallel, identified by index."""
    for job, count in zip(many(render(deployment(), options()), "Job"), (2, 1), strict=True):
        assert job["spec"]["completions"] == job["spec"]["parallelism"] == count
        assert job["spec"]["completionMode"] == "Indexed"


def test_what_runs_is_what_was_asked_for() -> None:
    """Image, command, arguments, variables and ports are the job's own."""
    job = many(render(deployment(), options(pull_secrets=("registry",))), "Job")[0]
    ran = container(job)
    assert (ran["image"], ran["command"], ran["args"]) == (
        "registry.example/train:1",
        ["python", "train.py"],
        ["--fast"],
    )
    assert env(job) == {"MODE": "fast"}
    assert ran["ports"] == [{"name": "port-0", "containerPort": 8080}]
    assert job["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    bare = many(render(deployment(run=Run("image:1")), options()), "Job")[0]
    assert set(container(bare)) == {"name", "image", "resources", "securityContext"}


def test_ports_make_a_service() -> None:
    """A job with ports has a service that selects all its pods in the cluster; others have none."""
    manifests = render(deployment("deployment", run=replace(sample.RUN, ports=(80, 443, 80))), options())
    service = one(manifests, "Service").body
    assert [each["port"] for each in service["spec"]["ports"]] == [80, 443]
    for workload in many(manifests, "Deployment"):
        assert service["spec"]["selector"].items() <= workload["spec"]["template"]["metadata"]["labels"].items()
    assert not many(render(deployment(run=Run("image:1")), options()), "Service")


def test_ports_of_all_containers_are_those_of_the_service() -> None:
    """Containers beside the program have their ports, with names that the NetworkPolicy opens."""
    more = (
        Container("log", Run(), 100, 64, ports=(ContainerPort(9100, "metrics", container="log"),)),
        Container("dns", Run(), 100, 64, ports=(ContainerPort(53, protocol=PortProtocol.UDP, container="dns"),)),
    )
    made = deployment("deployment", run=replace(sample.RUN, ports=(80,)), runtime=Runtime(containers=more))
    manifests = render(made, options())
    assert [(each["port"], each["protocol"]) for each in one(manifests, "Service").body["spec"]["ports"]] == [
        (80, "TCP"), (9100, "TCP"), (53, "UDP"),
    ]  # fmt: skip
    for workload in many(manifests, "Deployment"):
        containers = workload["spec"]["template"]["spec"]["containers"]
        assert [each["ports"] for each in containers] == [
            [{"name": "port-0", "containerPort": 80}],
            [{"name": "port-1", "containerPort": 9100}],
            [{"name": "port-2", "containerPort": 53, "protocol": "UDP"}],
        ]


OWN_POD = {
    "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["store"]}],
    "securityContext": {"fsGroup": 2000},
    "containers": [
        {"name": "log", "image": "log:1", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
        {"name": "main", "workingDir": "/src", "env": [{"name": "A", "value": "own"}, {"name": "B", "value": "own"}],
         "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]},
    ],
    "initContainers": [{"name": "fetch-data", "image": "curl:8"}],
    "volumes": [{"name": "scratch", "emptyDir": {}}],
}  # fmt: skip


@pytest.mark.parametrize(
    "template", ["job", "deployment", "torchrun", "pytorchjob", "volcanojob", "raycluster", "rayjob"]
)
def test_an_own_pod_spec_is_completed(template: str) -> None:
    """Own fields of the pods stay. Nodes, devices, variables, security and the rest of the resources are Seaway's."""
    run = Run("image:1", ("train",), env=(("A", "job"),), pod=json.dumps(OWN_POD))
    plain = render(deployment(template, run=replace(run, pod="")), options())
    manifests = render(deployment(template, run=run), options())
    specs = [each for manifest in manifests for each in pod_specs(manifest.body)]
    assert len(specs) == len([each for manifest in plain for each in pod_specs(manifest.body)]) > 0
    for spec, before in zip(specs, (each for manifest in plain for each in pod_specs(manifest.body)), strict=True):
        program, log, *_ = spec["containers"]
        own = before["containers"][0]
        assert spec["hostAliases"] == OWN_POD["hostAliases"]
        assert spec["securityContext"] == {**before["securityContext"], "fsGroup": 2000}
        assert (program["name"], program["workingDir"]) == (own["name"], "/src")
        assert program.get("command") == own.get("command")
        assert {"name": "A", "value": "job"} in program["env"]
        assert {"name": "B", "value": "own"} in program["env"]
        assert {"name": "A", "value": "own"} not in program["env"]
        assert {"name": "scratch", "mountPath": "/scratch"} in program["volumeMounts"]
        assert program["resources"]["requests"] == {
            "cpu": f"{int(own['resources']['requests']['cpu'][:-1]) - 500}m",
            "memory": f"{int(own['resources']['requests']['memory'][:-2]) - 1024}Mi",
        }
        assert log["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        assert [each["name"] for each in spec["initContainers"]] == ["fetch-data"]
        assert {"name": "scratch", "emptyDir": {}} in spec["volumes"]
        assert spec["automountServiceAccountToken"] is False
        kept = ("restartPolicy", "nodeSelector", "schedulerName", "enableServiceLinks")
        assert {name: spec.get(name) for name in kept} == {name: before.get(name) for name in kept}


def pod_specs(value: object) -> Iterator[dict[str, Any]]:
    """Yield the pod specs in a manifest."""
    if isinstance(value, dict):
        if "containers" in value and "restartPolicy" in value:
            yield value
        for each in value.values():
            yield from pod_specs(each)
    elif isinstance(value, list):
        for each in value:
            yield from pod_specs(each)


def test_a_service_keeps_its_name_in_all_attempts() -> None:
    """Clients keep its name, in every cluster; clusters whose objects share an API server have a name each."""

    def names(**chosen: Any) -> set[str]:  # noqa: ANN401  # fields of options
        return {
            one(render(deployment(attempt=attempt, cluster=cluster), options(**chosen)), "Service").name
            for attempt in (1, 2)
            for cluster in ("alpha", "beta")
        }

    assert names() == {f"sw-{sample.JOB}"}
    assert len(names(shared=True)) == 2


EXPOSURE = Exposure(tuple(ServiceType), domain="apps.example.com", ingress_class="nginx", gateway="infra/public")


@pytest.mark.parametrize("kind", ServiceType)
def test_ports_are_exposed_as_demanded(kind: ServiceType) -> None:
    """The service has the type of the job, or a route of that kind leads to it by a host name of the job."""
    chosen = options(exposure=EXPOSURE)
    manifests = render(deployment("deployment", expose=Expose(kind)), chosen)
    service = one(manifests, "Service")
    assert service.body["spec"].get("type", "ClusterIP") == ("ClusterIP" if kind.by_host else kind)
    routes = [each for each in manifests if each.kind in ("Ingress", "HTTPRoute")]
    assert [each.kind for each in routes] == ([kind.value] if kind.by_host else [])
    for route in routes:
        text = str(route.body)
        assert (route.name, f"{sample.JOB}.apps.example.com" in text, service.name in text) == (
            service.name,
            True,
            True,
        )
    if kind is ServiceType.INGRESS:
        validate(routes[0].body)
    validate(service.body)


def test_the_operator_s_default_exposes_jobs_that_demand_nothing() -> None:
    """A job without a type gets that of the operator."""
    chosen = options(exposure=replace(EXPOSURE, default=ServiceType.NODE_PORT))
    assert one(render(deployment(), chosen), "Service").body["spec"]["type"] == "NodePort"


def test_a_deployment_finds_only_its_own_pods() -> None:
    """The selectors of an attempt's Deployments are disjoint, and each matches its own template."""
    first, second = many(render(deployment("deployment"), options()), "Deployment")
    assert first["spec"]["selector"] != second["spec"]["selector"]
    for each in (first, second):
        assert each["spec"]["selector"]["matchLabels"].items() <= each["spec"]["template"]["metadata"]["labels"].items()


def ranks(job: dict[str, Any], tmp_path: Path) -> list[str]:
    """Run the command of a Job's pods with a program that prints rank and arguments, and return its output."""
    show = tmp_path / "show"
    show.write_text('#!/bin/sh\necho "$NODE_RANK $PET_NODE_RANK $*"\n')
    show.chmod(0o755)
    shown = []
    for index in range(job["spec"]["completions"]):
        ran = container(job)
        words = [str(show) if word == "python" else word for word in (*ran["command"], *ran["args"])]
        variables = {**env(job), "JOB_COMPLETION_INDEX": str(index), "PATH": os.environ["PATH"]}
        done = subprocess.run(words, env=variables, capture_output=True, text=True, check=True)
        shown.append(done.stdout.strip())
    return shown


def test_torchrun_ranks_are_the_replicas_numbers(tmp_path: Path) -> None:
    """Every pod gets its rank, over all parts, and runs the job's own command with its own arguments."""
    placed = [("node-0", (share("GPU-a"),)), ("node-1", (share("GPU-b"),)), ("node-0", (share("GPU-a"),))]
    run = replace(sample.RUN, args=("two words", "$HOME", "'"))
    jobs = many(render(deployment("torchrun", placed, run=run), options()), "Job")
    assert ranks(jobs[0], tmp_path) == ["0 0 train.py two words $HOME '", "2 2 train.py two words $HOME '"]
    assert ranks(jobs[1], tmp_path) == ["1 1 train.py two words $HOME '"]


def test_torchrun_needs_no_shell_where_devices_are_not_shared() -> None:
    """A part of one replica has a fixed rank; only others start with a shell."""
    shared, alone = many(render(deployment("torchrun"), options()), "Job")
    assert container(shared)["command"][:2] == ["/bin/sh", "-c"]
    assert container(alone)["command"] == ["python", "train.py"]
    assert env(alone)["NODE_RANK"] == env(alone)["PET_NODE_RANK"] == "2"


def test_torchrun_pods_meet_at_replica_0() -> None:
    """All pods get one address, the DNS name of the pod of replica 0."""
    manifests = render(deployment("torchrun", run=replace(sample.RUN, ports=())), options(namespace="work"))
    (service,) = many(manifests, "Service")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    jobs = many(manifests, "Job")
    wanted = f"{jobs[0]['metadata']['name']}-0.{service['metadata']['name']}.work.svc"
    for job in jobs:
        given = env(job)
        assert given["MASTER_ADDR"] == given["PET_MASTER_ADDR"] == wanted
        assert given["MASTER_PORT"] == given["PET_MASTER_PORT"] == "29500"
        assert given["NNODES"] == given["PET_NNODES"] == "3"
        assert given["PET_NPROC_PER_NODE"] == "1"
        assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]


def test_torchrun_heeds_the_users_port() -> None:
    """The user may set the port; an invalid port is rejected."""
    manifests = render(deployment("torchrun", run=replace(sample.RUN, env=(("MASTER_PORT", "1234"),))), options())
    assert env(many(manifests, "Job")[0])["PET_MASTER_PORT"] == "1234"
    assert many(manifests, "Service")[0]["spec"]["ports"][0]["port"] == 1234
    with pytest.raises(RejectedError, match="MASTER_PORT"):
        render(deployment("torchrun", run=replace(sample.RUN, env=(("MASTER_PORT", "x"),))), options())


def test_torchrun_over_clusters_needs_an_address() -> None:
    """If replica 0 is in another cluster, the pods need its address."""
    here = deployment("torchrun", numbers=(3, 4, 7))
    with pytest.raises(RejectedError, match="replica 0 is in another cluster"):
        render(here, options())
    reported = deployment(
        "torchrun", numbers=(3, 4, 7), run=replace(sample.RUN, env=(("MASTER_ADDR", "master.example"),))
    )
    jobs = many(render(reported, options()), "Job")
    for name in ("MASTER_ADDR", "PET_MASTER_ADDR"):
        assert {env(job)[name] for job in jobs} == {"master.example"}
    assert env(jobs[0])["SEAWAY_RANKS"] == "3 4"
    assert env(jobs[1])["NODE_RANK"] == "7"


def test_a_shell_needs_to_know_what_to_run() -> None:
    """Without a command a shell has nothing to start with a rank."""
    with pytest.raises(RejectedError, match=r"run\.command"):
        render(deployment("torchrun", run=Run("image:1")), options())


RING = ("a", "a", "b", "b", "b", "a", "a", "c")


def test_a_service_has_the_ports_of_nodes_of_the_job() -> None:
    """In the order of its ports; the cluster selects the others."""
    made = deployment("deployment", run=replace(sample.RUN, ports=(80, 90)))
    expose = Expose(ServiceType.NODE_PORT, node_ports=(30080,))
    service = one(render(replace(made, spec=replace(made.spec, expose=expose)), options()), "Service")
    assert [each.get("nodePort") for each in service.body["spec"]["ports"]] == [30080, None]


def in_ring(template: str, numbers: tuple[int, ...], *, rank_0: str = "", **env: str) -> Deployment:
    """Return the part of a ring over clusters with some of its replicas."""
    made = deployment(template, numbers=numbers, run=replace(sample.RUN, env=tuple(env.items())))
    home = numbers[0] == 0
    return replace(
        made, spec=replace(made.spec, replicas=8, ring=True), ranks=RING, rank_0="" if home else rank_0 or AT
    )


AT = "192.0.2.7:31337"


def test_replicas_of_a_ring_get_their_rank_the_ring_and_the_address_of_rank_0() -> None:
    """A fixed rank, or one by a shell where replicas share devices, the cluster of every rank, and where to meet."""
    shared, alone = many(render(in_ring("job", (3, 4, 7)), options()), "Job")
    for job in (shared, alone):
        assert env(job)["WORLD_SIZE"] == "8"
        assert env(job)["SEAWAY_RING"] == "a,a,b,b,b,a,a,c"
        assert (env(job)["MASTER_ADDR"], env(job)["MASTER_PORT"]) == ("192.0.2.7", "31337")
    assert env(alone)["RANK"] == "7"
    assert env(shared)["SEAWAY_RANKS"] == "3 4"
    assert "export RANK=" in container(shared)["command"][2]
    assert container(alone)["command"] == ["python", "train.py"]
    made = deployment("job")
    within = render(replace(made, spec=replace(made.spec, ring=True)), options())
    job = many(within, "Job")[0]
    assert "SEAWAY_RING" not in env(job)
    assert env(job)["MASTER_ADDR"].endswith("-peers.seaway.svc")
    assert "RANK" not in env(many(render(deployment("job"), options()), "Job")[0])


def test_replicas_of_a_gang_know_their_rank_and_each_other(tmp_path: Path) -> None:
    """Launchers find ranks from 0, the number of replicas, the address of rank 0 and a file with all hosts."""
    manifests = render(deployment("job", gang=True, run=replace(sample.RUN, ports=())), options())
    service = one(manifests, "Service").body["metadata"]["name"]
    seen, text = {}, ""
    for job in many(manifests, "Job"):
        name, pod = job["metadata"]["name"], job["spec"]["template"]
        validate(job)
        assert pod["spec"]["subdomain"] == service
        text = pod["metadata"]["annotations"]["seaway.io/hostfile"]
        (volume,) = pod["spec"]["volumes"]
        source = volume["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"]
        assert source == "metadata.annotations['seaway.io/hostfile']"
        assert container(job)["volumeMounts"] == [{"name": "hosts", "mountPath": "/etc/seaway", "readOnly": True}]
        for index in range(job["spec"]["completions"]):
            out = tmp_path / f"{name}-{index}"
            script = ["/bin/sh", "-c", f"echo $RANK $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR $MASTER_PORT > {out}"]
            command = container(job)["command"]
            command = [*command[:4], *script] if command[0] == "/bin/sh" else script
            ran = {**env(job), "PATH": os.environ["PATH"], "JOB_COMPLETION_INDEX": str(index)}
            subprocess.run(command, env=ran, check=True)
            rank, *others = out.read_text().split()
            assert others == ["3", "0", text.split()[0], "29500"]
            seen[int(rank)] = f"{name}-{index}.{service}.seaway.svc slots=1"
    assert text.splitlines() == [seen[rank] for rank in range(3)]
    assert env(many(manifests, "Job")[0])["SEAWAY_HOSTFILE"] == "/etc/seaway/hostfile"


def test_a_gang_over_clusters_has_ranks_of_the_whole_job() -> None:
    """Ranks and the address of rank 0 are as in a ring, unless the job gives an address. It is no ring, though."""
    elsewhere = deployment("job", numbers=(3, 4, 7), gang=True)
    elsewhere = replace(elsewhere, spec=replace(elsewhere.spec, replicas=8), ranks=RING, rank_0=AT)
    shared, alone = many(render(elsewhere, options()), "Job")
    assert (env(alone)["RANK"], env(alone)["WORLD_SIZE"], env(shared)["SEAWAY_RANKS"]) == ("7", "8", "3 4")
    assert (env(alone)["MASTER_ADDR"], env(alone)["MASTER_PORT"]) == ("192.0.2.7", "31337")
    assert "SEAWAY_RING" not in env(alone)
    assert len(alone["spec"]["template"]["metadata"]["annotations"]["seaway.io/hostfile"].splitlines()) == 3
    given = replace(sample.RUN, env=(("MASTER_ADDR", "db.example"),))
    given_job = many(render(replace(elsewhere, spec=replace(elsewhere.spec, run=given)), options()), "Job")[1]
    assert env(given_job)["MASTER_ADDR"] == "db.example"


def test_replicas_that_are_no_gang_get_no_ranks() -> None:
    """Independent and elastic replicas, single ones, and those of an image's own command run as they are."""
    variants: tuple[dict[str, Any], ...] = (
        {},
        {"gang": True, "run": replace(sample.RUN, command=())},
        {"gang": True, "min_replicas": 1, "max_replicas": 3},
        {"gang": True, "placed": [("node-0", (share("GPU-a"),))]},
    )
    for fields in variants:
        jobs = many(render(deployment("job", **fields), options()), "Job")
        assert not any("RANK" in name for job in jobs for name in env(job))


def test_a_long_list_of_hosts_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An annotation has a maximum size; a larger gang finds its hosts by DNS."""
    monkeypatch.setattr(plain, "MAX_HOSTFILE", 100)
    first = many(render(deployment("job", gang=True), options()), "Job")[0]
    assert "SEAWAY_HOSTFILE" not in env(first)
    assert "volumes" not in first["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("NodePort", {"type": "NodePort"}),
        ("LoadBalancer", {"type": "LoadBalancer"}),
        ("Pod", {"clusterIP": "None"}),
    ],
)
@pytest.mark.parametrize("template", ["job", "torchrun", "pytorchjob"])
def test_other_clusters_reach_rank_0_as_the_operator_chooses(template: str, kind: str, fields: dict[str, str]) -> None:
    """Its cluster has a service for it, ready or not, and pods with the port that the NetworkPolicy opens."""
    chosen = options(exposure=Exposure(ring=kind))
    written = render(in_ring(template, (0, 1, 7)), chosen)
    (service,) = [each for each in many(written, "Service") if each["metadata"]["name"].endswith("-rank-0")]
    assert service["metadata"]["annotations"]["seaway.io/rank-0"] == "true"
    spec = service["spec"]
    assert {name: spec.get(name) for name in fields} == fields
    assert spec["publishNotReadyAddresses"]
    port = 23_456 if template == "pytorchjob" else 29_500
    assert spec["ports"][0]["port"] == port
    elsewhere = render(in_ring(template, (3, 4, 7)), chosen)
    assert not [each for each in many(elsewhere, "Service") if each["metadata"]["name"].endswith("-rank-0")]
    if template != "pytorchjob":
        job = many(written, "Job")[0]
        assert {"name": "rank-0", "containerPort": port} in container(job)["ports"]
        pod = job["spec"]["template"]
        assert {**pod["metadata"]["labels"], INDEX: "0"}.items() >= spec["selector"].items()


def test_a_service_of_rank_0_that_is_written_again_keeps_its_port_of_nodes() -> None:
    """Pods of other clusters have the address, so it must not change."""
    made = in_ring("job", (0, 1, 7))
    first, *others = made.placements
    known = replace(made, placements=(replace(first, address="[2001:db8::7]:31337"), *others))
    for each, port in ((made, None), (known, 31337)):
        (service,) = [s for s in many(render(each, options()), "Service") if s["metadata"]["name"].endswith("-rank-0")]
        assert service["spec"]["ports"][0].get("nodePort") == port


@pytest.mark.parametrize("template", ["job", "torchrun", "pytorchjob"])
def test_a_ring_needs_an_address_that_seaway_or_the_job_gives(template: str) -> None:
    """The job's own address is used everywhere; without one, the operator must allow one, and Seaway sets the port."""
    own = in_ring(template, (0, 1, 7), MASTER_ADDR="master.example")
    assert not [each for each in many(render(own, options()), "Service") if "-rank-0" in each["metadata"]["name"]]
    none = options(exposure=Exposure(ring=""))
    assert problems(own.spec, none) == []
    (problem,) = problems(in_ring(template, (0, 1, 7)).spec, none)
    assert problem.where == "run.env"
    assert "MASTER_ADDR is needed: rank 0 may be in any cluster" in str(problem)
    (problem,) = problems(in_ring(template, (0, 1, 7), MASTER_PORT="1234").spec, options())
    assert "MASTER_PORT is set by Seaway" in str(problem)


def test_templates_without_ranks_are_no_rings() -> None:
    """The error names those that give ranks."""
    (problem,) = problems(replace(in_ring("job", (0, 1, 7)).spec, template="deployment"), options())
    assert problem.where == "spread"
    assert problem.message == "needs ranks, which deployment does not give: use job, torchrun, pytorchjob"


def test_torchrun_in_a_ring_has_the_ring_and_the_address() -> None:
    """Ranks are those of torchrun, and so are the variables with the address."""
    shared, alone = many(render(in_ring("torchrun", (3, 4, 7), rank_0="[2001:db8::7]:31337"), options()), "Job")
    assert (env(alone)["NODE_RANK"], env(alone)["SEAWAY_RING"]) == ("7", "a,a,b,b,b,a,a,c")
    assert (env(shared)["SEAWAY_RANKS"], env(shared)["SEAWAY_RING"]) == ("3 4", "a,a,b,b,b,a,a,c")
    assert (env(alone)["PET_MASTER_ADDR"], env(alone)["PET_MASTER_PORT"]) == ("2001:db8::7", "31337")


@pytest.mark.parametrize(("local", "rank"), [("0", "3"), ("1", "4"), ("2", "7"), ("", "3")])
def test_a_pytorchjob_in_a_ring_maps_its_ranks_to_those_of_the_ring(local: str, rank: str) -> None:
    """The operator numbers the pods of each cluster from 0; a shell exports the ranks of the whole ring instead."""
    made = in_ring("pytorchjob", (3, 4, 7))
    made = replace(made, spec=replace(made.spec, run=replace(made.spec.run, command=("env",))))
    roles = one(render(made, options()), "PyTorchJob").body["spec"]["pytorchReplicaSpecs"]
    assert {name: role["replicas"] for name, role in roles.items()} == {"Master": 1, "Worker": 2}
    for role in roles.values():
        (found,) = role["template"]["spec"]["containers"]
        given = {each["name"]: each["value"] for each in found["env"]} | ({"RANK": local} if local else {})
        said = subprocess.run(found["command"], env=given, capture_output=True, text=True, check=True).stdout
        exported = dict(line.split("=", 1) for line in said.splitlines())
        assert (exported["RANK"], exported["WORLD_SIZE"], exported["PET_NNODES"]) == (rank, "8", "8")
        assert (exported["MASTER_ADDR"], exported["MASTER_PORT"]) == ("192.0.2.7", "31337")


def test_a_pytorchjob_splits_replica_0_off() -> None:
    """Replica 0 is the master; the others are workers, on any of their nodes, with the devices of all those."""
    (job,) = many(render(deployment("pytorchjob"), options()), "PyTorchJob")
    master, worker = (job["spec"]["pytorchReplicaSpecs"][role] for role in ("Master", "Worker"))
    assert master["template"]["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "node-0"}
    assert master["template"]["metadata"]["annotations"]["nvidia.com/use-gpuuuid"] == "GPU-a"
    assert (master["replicas"], worker["replicas"]) == (1, 2)
    assert worker["template"]["metadata"]["annotations"]["nvidia.com/use-gpuuuid"] == "GPU-a,GPU-b"
    (term,) = worker["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchExpressions"][0]["values"] == ["node-0", "node-1"]


@pytest.mark.parametrize(
    ("nodes", "even"), [("mab", True), ("maabb", True), ("maab", False), ("maa", False), ("m", False)]
)
def test_workers_are_held_to_equal_numbers(nodes: str, even: bool) -> None:
    """Nodes with equal numbers of workers enforce that; others cannot."""
    made = deployment("pytorchjob", placed=[(node, (share(f"GPU-{node}{i}"),)) for i, node in enumerate(nodes)])
    (job,) = many(render(made, options()), "PyTorchJob")
    workers = job["spec"]["pytorchReplicaSpecs"].get("Worker")
    assert (workers is None) == (nodes == "m")
    assert bool(workers and "topologySpreadConstraints" in workers["template"]["spec"]) == even


def test_workers_may_claim_any_of_their_devices() -> None:
    """One claim template for workers of several nodes has the devices of all."""
    manifests = render(deployment("pytorchjob"), options(sample.NVIDIA_DRA))
    claims = many(manifests, "ResourceClaimTemplate")
    assert len({each["metadata"]["name"] for each in claims}) == 2
    (asked,) = claims[1]["spec"]["spec"]["devices"]["requests"]
    (selector,) = asked["exactly"]["selectors"]
    of = 'device.attributes["gpu.nvidia.com"].uuid == '
    assert selector["cel"]["expression"] == f'({of}"GPU-a") || ({of}"GPU-b")'


def test_a_raycluster_has_a_head_and_a_group_for_each_part() -> None:
    """Replica 0 is the head; the rest of each part is a worker group of fixed size."""
    (ray,) = many(render(deployment("raycluster"), options()), "RayCluster")
    assert ray["spec"]["headGroupSpec"]["rayStartParams"] == {"dashboard-host": "0.0.0.0", "num-gpus": "1"}
    assert [group["replicas"] for group in ray["spec"]["workerGroupSpecs"]] == [1, 1]
    alone = deployment("raycluster", placed=[("node-0", ())])
    (ray,) = many(render(alone, options()), "RayCluster")
    assert "workerGroupSpecs" not in ray["spec"]


def test_a_rayjob_runs_the_command_as_its_entry_point() -> None:
    """The command is quoted into one line, and runs only there; KubeRay deletes the cluster at its end."""
    run = replace(sample.RUN, command=("python", "-c"), args=("print('a b')", "$HOME"))
    (ray,) = many(render(deployment("rayjob", run=run), options()), "RayJob")
    assert ray["spec"]["entrypoint"] == """python -c 'print('"'"'a b'"'"')' '$HOME'"""
    assert ray["spec"]["shutdownAfterJobFinishes"] is True
    for pods in pod_templates(ray):
        assert "command" not in pods["spec"]["containers"][0]


@pytest.mark.parametrize(("gang", "least"), [(True, 3), (False, 1)])
def test_volcano_starts_gangs_together(gang: bool, least: int) -> None:
    """A gang starts when all of it can; the end of one replica ends all."""
    (job,) = many(render(deployment("volcanojob", gang=gang), options()), "Job")
    assert job["spec"]["minAvailable"] == least
    assert [task["replicas"] for task in job["spec"]["tasks"]] == [2, 1]
    assert "queue" not in job["spec"]
    (job,) = many(render(deployment("volcanojob"), options(volcano_queue="q")), "Job")
    assert job["spec"]["queue"] == "q"


def test_volcano_s_pods_go_to_a_user_who_knows_their_devices() -> None:
    """Pods with HAMi's devices use HAMi's scheduler; others Volcano's."""
    for terms, scheduler in ((sample.HAMI, "hami-scheduler"), (sample.VOLCANO, "volcano")):
        (job,) = many(render(deployment("volcanojob"), options(terms)), "Job")
        assert {each["spec"]["schedulerName"] for each in pod_templates(job)} == {scheduler}


def test_kueue_lets_jobs_in() -> None:
    """Jobs wait suspended in the queue of their name; they are created once, as Kueue changes them."""
    manifests = render(deployment("kueue", queue="research"), options())
    for job in many(manifests, "Job"):
        assert job["spec"]["suspend"] is True
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
    assert all(each.create_only == (each.kind == "Job") for each in manifests)
    (first, *_) = many(render(deployment("kueue"), options(local_queue="gpu")), "Job")
    assert first["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpu"


def test_what_cannot_reach_over_clusters_is_rejected() -> None:
    """Some templates need all replicas in one cluster."""
    for name, template in BUILT_IN.items():
        part = deployment(name, replicas=5)
        if template.single_cluster:
            with pytest.raises(RejectedError, match="span clusters"):
                render(part, options())
        else:
            assert render(part, options())


def test_an_unknown_template_is_rejected() -> None:
    """The error for a job lists the existing templates."""
    with pytest.raises(RejectedError, match="torchrun"):
        render(deployment("unheard-of"), options())


# ---------------------------------------------------------------- before placing


def spec_of(template: str, **others: Any) -> JobSpec:  # noqa: ANN401  # fields of a deployment
    """Create a job's spec."""
    return deployment(template, **others).spec


def test_a_good_job_has_no_problems() -> None:
    """A valid job has no problems."""
    for name in BUILT_IN:
        assert problems(spec_of(name), options()) == []


def test_problems_are_reported_before_placing() -> None:
    """All problems of a job that do not depend on its place are reported together."""
    bad = spec_of(
        "torchrun",
        run=Run(),
        labels={"hami.io/webhook": "ignore"},
        nodes=NodeRules(tolerations=(Toleration("", "x"),)),
    )
    assert [each.where for each in problems(bad, options())] == [
        "run.image",
        "run.command",
        "labels",
        "placement.tolerations",
    ]
    assert [each.where for each in problems(spec_of("nothing"), options())] == ["template"]
    assert problems(spec_of("job", run=Run()), options(default_image="a")) == []


@pytest.mark.parametrize(
    "label",
    [
        "hami.io/webhook",
        "seaway.io/job",
        "x.nvidia.com/a",
        "resourcebinding.karmada.io/key",
        "kueue.x-k8s.io/queue-name",
        "scheduling.x-k8s.io/pod-group",
        "batch.kubernetes.io/job-name",
        "kubernetes.io/a",
        "pod-security.kubernetes.io/enforce",
        "azure.workload.identity/use",
        "job-name",
        "controller-uid",
        "pod-template-hash",
    ],
)
def test_labels_that_steer_clusters_are_rejected(label: str) -> None:
    """A job may not set labels that change its placement or accounting."""
    with pytest.raises(RejectedError, match="labels"):
        render(deployment(labels={label: "x"}), options())
    own = {"example.com/a": "x", "plain": "y", "notkubernetes.io/a": "x"}
    assert render(deployment(labels=own), options())


def test_shared_memory_is_there_for_those_who_need_it() -> None:
    """Distributed training gets shared memory; other pods have the default."""
    for name in BUILT_IN:
        for body in workloads(render(deployment(name), options())):
            for pods in pod_templates(body):
                assert ("volumes" in pods["spec"]) == (name in {"torchrun", "pytorchjob"})


def test_requests_of_no_devices_have_no_words_for_them() -> None:
    """A job without devices has no device resources and no pins."""
    made = deployment(placed=[("node-0", ())], request=ResourceRequest(100, 64))
    text = as_yaml(render(made, options()))
    assert "nvidia" not in text
    assert "kubernetes.io/hostname: node-0" in text
