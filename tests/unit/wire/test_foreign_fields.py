"""Fields of the job files of other schedulers: each is kept, changed or not kept with a reason, or refused."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.errors import RejectedError
from seaway.wire.job_imports.converted import Converted, Result
from seaway.wire.job_imports.files import convert_documents, convert_script
from seaway.wire.yaml import yaml_documents

Case = tuple[str, dict[str, Any] | set[str], set[str]]
"""Text of a file; fields of the job by path, or the refused fields; and the fields that are reported as changed."""

SKYPILOT: dict[str, Case] = {
    "a set of models": ("resources: {accelerators: {T4:2, L4:2}}\nrun: ./fit", {"resources.gpus": 2}, set()),
    "models by number": ("resources: {accelerators: {V100: 4}}\nrun: ./fit", {"resources.gpus": 4}, set()),
    "memory by CPUs": (
        "resources: {cpus: 6, memory: 2x, accelerators: 'L4:4'}\nrun: ./fit",
        {"resources.memory": "12GB"},
        set(),
    ),
    "memory by parts of CPUs": (
        "resources: {cpus: 3+, memory: 1.5x+}\nrun: ./fit",
        {"resources.memory": "4.5GB"},
        set(),
    ),
    "memory without CPUs": ("resources: {memory: 4x, accelerators: 'L4:4'}\nrun: ./fit", {"resources.memory"}, set()),
    "regions of alternatives": (
        "resources: {accelerators: 'L4:1', any_of: [{region: north}, {infra: gcp/south}]}\nrun: ./fit",
        {"placement.regions": ["north", "south"], "resources.gpus": 1},
        set(),
    ),
    "models and regions": (
        "resources: {any_of: [{infra: aws/north, accelerators: L4}, {region: south, accelerators: T4}]}\nrun: ./fit",
        {"placement.regions": ["north", "south"]},
        {"resources.any_of[0]"},
    ),
    "one alternative without a region": (
        "resources: {any_of: [{region: north}, {cloud: gcp}]}\nrun: ./fit",
        {"placement": None},
        {"resources.any_of[0]"},
    ),
    "region of infra": ("resources: {infra: azure/west}\nrun: ./fit", {"placement.regions": ["west"]}, set()),
    "zone of infra": (
        "resources: {infra: aws/west/west-1c}\nrun: ./fit",
        {"placement": {"regions": ["west"], "node_labels": {"topology.kubernetes.io/zone": "west-1c"}}},
        set(),
    ),
    "zone": (
        "resources: {zone: west-1c}\nrun: ./fit",
        {"placement.node_labels": {"topology.kubernetes.io/zone": "west-1c"}},
        set(),
    ),
    "any region of a cloud": ("resources: {infra: aws/*}\nrun: ./fit", {"placement": None}, set()),
    "a context": ("resources: {infra: k8s/lab}\nrun: ./fit", {"placement.clusters": ["lab"]}, {"resources.infra"}),
    "instances in alternatives": (
        "resources: {any_of: [{instance_type: big, ports: 80}, {instance_type: huge}]}\nrun: ./fit",
        {"resources.instance_type"},
        set(),
    ),
    "ports of alternatives": (
        "resources: {any_of: [{region: a, ports: 80}, {region: a, ports: [81, 82]}]}\nrun: ./fit",
        {"run.ports": [80, 81, 82]},
        set(),
    ),
    "different CPUs": (
        "resources: {ordered: [{cpus: 2}, {cpus: 4}]}\nrun: ./fit",
        {"resources.ordered[0].cpus"},
        set(),
    ),
    "no alternatives": ("resources: {cpus: 2, any_of: []}\nrun: ./fit", {"resources.cpu": 2}, set()),
    "alternatives of texts": ("resources: {any_of: [a]}\nrun: ./fit", {"resources.any_of"}, set()),
    "recovery by exit codes": (
        "resources: {job_recovery: {max_restarts_on_errors: 2, recover_on_exit_codes: [7]}}\nrun: ./fit",
        {"resources.job_recovery.recover_on_exit_codes"},
        set(),
    ),
    "a list of variables": ("num_nodes: 1\nenvs: [a]\nrun: ./fit", {"envs"}, set()),
    "no nodes": ("num_nodes: 0\nrun: ./fit", {"num_nodes"}, set()),
    "a group of jobs": (
        "name: g\nexecution: parallel\n---\nname: a\nnum_nodes: 1\nrun: a\n---\nname: b\nnum_nodes: 1\nrun: b",
        {"execution"},
        set(),
    ),
    "a port of a service": ("service: {ports: eighty}\nrun: ./fit", {"service.ports"}, set()),
}

TASK = "type: task\ncommands: [./fit]\n"
DSTACK: dict[str, Case] = {
    "a range of memory": (
        TASK + "resources: {gpu: 'A100:40GB..:2'}",
        {"resources": {"gpus": 2, "gpu_use_types": ["A100"]}},
        set(),
    ),
    "a large size": (
        TASK + "resources: {gpu: 'A100:60GB..'}",
        {"resources.gpu_use_types": ["A100-80GB"], "resources.gpus": 1},
        set(),
    ),
    "models without enough memory": (
        TASK + "resources: {gpu: {name: [L4, H200], memory: 100GB..}}",
        {"resources.gpu_use_types": ["H200"]},
        {"resources.gpu"},
    ),
    "no model with enough memory": (TASK + "resources: {gpu: 'L4:80GB..'}", {"resources.gpu"}, set()),
    "an unknown model": (
        TASK + "resources: {gpu: 'RTX9999:40GB..'}",
        {"resources.gpu_use_types": ["RTX9999"]},
        {"resources.gpu"},
    ),
    "compute capability": (
        TASK + "resources: {gpu: {compute_capability: 9.0, total_memory: 1TB, count: 2}}",
        {"resources.gpu.compute_capability", "resources.gpu.total_memory"},
        set(),
    ),
    "a range of GPUs": (TASK + "resources: {gpu: {count: {min: 1, max: 4}}}", {"resources.gpu"}, set()),
    "a fixed range of GPUs": (TASK + "resources: {gpu: {count: {min: 4, max: 4}}}", {"resources.gpus": 4}, set()),
    "another part of a GPU": (TASK + "resources: {gpu: {cores: 4}}", {"resources.gpu.cores"}, set()),
    "ARM": (
        TASK + "resources: {cpu: 'arm:4..', memory: 8GB.., shm_size: 2GB}",
        {
            "resources": {"cpu": 4, "memory": "8GB", "shm_size": "2GB"},
            "placement.node_labels": {"kubernetes.io/arch": "arm64"},
        },
        set(),
    ),
    "CPUs by parts": (
        TASK + "resources: {cpu: {arch: x86, count: {min: 2}}}",
        {"resources.cpu": 2, "placement.node_labels": {"kubernetes.io/arch": "amd64"}},
        set(),
    ),
    "a word for replicas": ("type: service\nport: 80\ncommands: [a]\nreplicas: many", {"replicas"}, set()),
    "a range to a word": ("type: service\nport: 80\ncommands: [a]\nreplicas: 1..b", {"replicas"}, set()),
    "no limits": (TASK + "max_duration: off\nstop_duration: off", {"time_limit": None, "checkpoint": None}, set()),
    "weeks": (TASK + "max_duration: 2w", {"time_limit": "14d"}, set()),
    "seconds": (TASK + "max_duration: 90", {"time_limit": "90s"}, set()),
    "a wrong duration": (TASK + "max_duration: soon", {"max_duration"}, set()),
    "a secret in a command": ("type: task\ncommands: ['x ${{ secrets.a }}']", {"commands[0]"}, set()),
    "a secret in the image": (TASK + "image: 'x:${{ env.a }}'", {"image"}, set()),
    "the master ends": (TASK + "nodes: 2\nstop_criteria: master-done", {"stop_criteria"}, set()),
    "the only node ends": (TASK + "stop_criteria: master-done", {"name": "file"}, set()),
    "an order of the start": (TASK + "nodes: 2\nstartup_order: master-first", {"replicas": 2}, {"startup_order"}),
    "one zone": (
        TASK + "availability_zones: [a-1]",
        {"placement.node_labels": {"topology.kubernetes.io/zone": "a-1"}},
        set(),
    ),
    "several zones": (TASK + "availability_zones: [a-1, a-2]", {"availability_zones"}, set()),
    "an end at low use": (
        TASK + "utilization_policy: {min_gpu_utilization: 5, time_window: 1h}",
        {"name": "file"},
        {"utilization_policy"},
    ),
    "a port that is none": (TASK + "ports: [http]", {"ports"}, set()),
}


def pod(spec: str, metadata: str = "name: p") -> str:
    """Return the manifest of a Pod."""
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{{metadata}}}\nspec: {{restartPolicy: Never, {spec}}}"


PROGRAM = "containers: [{name: c, image: 'a:1', command: [./fit]}]"


def with_limits(limits: str) -> str:
    """Return the manifest of a Pod with limits."""
    return pod(f"containers: [{{name: c, image: 'a:1', resources: {{limits: {{{limits}}}}}}}]")


LIMITS = "spec.containers[0].resources.limits."
MARK = "metadata.annotations."
TEMPLATE = "template: {spec: {containers: [{name: c, image: 'a:1', command: [./fit]}]}}"


def of_kind(kind: str, version: str, spec: str) -> str:
    """Return a manifest."""
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: m}}\nspec: {{{spec}}}"


KUBERNETES: dict[str, Case] = {
    "two MIG profiles": (
        with_limits("nvidia.com/mig-1g.10gb: 1, nvidia.com/mig-2g.20gb: 1"),
        {f"{LIMITS}nvidia.com/mig-2g.20gb"},
        set(),
    ),
    "a GPU and a MIG profile": (
        with_limits("nvidia.com/gpu: 1, nvidia.com/mig-2g.20gb: 1"),
        {f"{LIMITS}nvidia.com/mig-2g.20gb"},
        set(),
    ),
    "GPUs of two vendors": (with_limits("nvidia.com/gpu: 1, amd.com/gpu: 1"), {f"{LIMITS}amd.com/gpu"}, set()),
    "two amounts of memory": (
        with_limits("nvidia.com/gpu: 1, nvidia.com/gpumem: 800, nvidia.com/gpumem-percentage: 10"),
        {f"{LIMITS}nvidia.com/gpumem-percentage"},
        set(),
    ),
    "no limit of cores": (
        with_limits("nvidia.com/gpu: 1, nvidia.com/gpucores: 0"),
        {"resources.gpu_cores": None},
        set(),
    ),
    "half a GPU by number": (with_limits("nvidia.com/gpu: 500m"), {f"{LIMITS}nvidia.com/gpu"}, set()),
    "half a GPU of KAI": (
        pod(PROGRAM, "name: p, annotations: {gpu-fraction: '0.25'}"),
        {"resources": {"gpus": 1, "gpu_memory": "25%", "gpu_vendor": ["NVIDIA"]}},
        {f"{MARK}gpu-fraction"},
    ),
    "memory of KAI": (
        pod(PROGRAM, "name: p, annotations: {gpu-memory: '3000'}"),
        {"resources": {"gpus": 1, "gpu_memory": "3000Mi", "gpu_vendor": ["NVIDIA"]}},
        {f"{MARK}gpu-memory"},
    ),
    "an unknown mark of a subdomain": (
        pod(PROGRAM, "name: p, annotations: {new.kueue.x-k8s.io/rule: 'x'}"),
        {"metadata.annotations.new.kueue.x-k8s.io/rule"},
        set(),
    ),
    "a device by an annotation": (
        pod(PROGRAM, "name: p, annotations: {cdi.k8s.io/own: 'nvidia.com/gpu=0'}"),
        {"metadata.annotations.cdi.k8s.io/own"},
        set(),
    ),
    "a wrong fraction": (pod(PROGRAM, "name: p, annotations: {gpu-fraction: '1.5'}"), {f"{MARK}gpu-fraction"}, set()),
    "a queue of KAI": (
        pod(PROGRAM, "name: p, labels: {kai.scheduler/queue: lab}"),
        {"queue": "lab", "labels": None},
        set(),
    ),
    "a local queue of Kueue": (
        pod(PROGRAM, "name: p, labels: {kueue.x-k8s.io/queue-name: lab}"),
        {"queue": "lab", "labels": None},
        {"metadata.labels.kueue.x-k8s.io/queue-name"},
    ),
    "rules of Kueue": (
        pod(PROGRAM, "name: p, labels: {kueue.x-k8s.io/max-exec-time-seconds: '90', kueue.x-k8s.io/priority-class: x}"),
        {"time_limit": "90s", "labels": None},
        {"metadata.labels.kueue.x-k8s.io/priority-class"},
    ),
    "a topology": (
        pod(PROGRAM, "name: p, annotations: {kueue.x-k8s.io/podset-required-topology: block}"),
        {f"{MARK}kueue.x-k8s.io/podset-required-topology"},
        set(),
    ),
    "a preferred topology": (
        pod(PROGRAM, "name: p, annotations: {kueue.x-k8s.io/podset-preferred-topology: block}"),
        {"name": "p"},
        set(),
    ),
    "a group of pods": (
        pod(PROGRAM, "name: p, labels: {kueue.x-k8s.io/pod-group-name: g}"),
        {"metadata.labels.kueue.x-k8s.io/pod-group-name"},
        set(),
    ),
    "a group of Volcano": (
        pod(PROGRAM, "name: p, annotations: {scheduling.k8s.io/group-name: g}"),
        {f"{MARK}scheduling.k8s.io/group-name"},
        set(),
    ),
    "an unknown mark of a scheduler": (
        pod(PROGRAM, "name: p, annotations: {kueue.x-k8s.io/new-rule: g}"),
        {f"{MARK}kueue.x-k8s.io/new-rule"},
        set(),
    ),
    "another network": (
        pod(PROGRAM, "name: p, annotations: {k8s.v1.cni.cncf.io/networks: rdma}"),
        {f"{MARK}k8s.v1.cni.cncf.io/networks"},
        set(),
    ),
    "own labels": (
        pod(PROGRAM, "name: p, labels: {own.example/job-name: a, job-name: b, the-job-name: c}"),
        {"labels": {"own.example/job-name": "a", "the-job-name": "c"}},
        set(),
    ),
    "a priority": (pod(f"{PROGRAM}, priorityClassName: high"), {"priority": None}, {"spec.priorityClassName"}),
    "a required spread": (
        pod(f"{PROGRAM}, topologySpreadConstraints: [{{maxSkew: 1, topologyKey: zone}}]"),
        {"spec.topologySpreadConstraints[0]"},
        set(),
    ),
    "a probe": (
        pod("containers: [{name: c, image: 'a:1', livenessProbe: {exec: {command: [x]}}}]"),
        {"name": "p"},
        {"spec.containers[0].livenessProbe"},
    ),
    "partial admission": (
        of_kind("Job", "batch/v1", f"parallelism: 8, completions: 8, {TEMPLATE}").replace(
            "name: m", "name: m, annotations: {kueue.x-k8s.io/job-min-parallelism: '3'}"
        ),
        {"replicas": {"min": 3, "max": 8}},
        {f"{MARK}kueue.x-k8s.io/job-min-parallelism"},
    ),
    "restarts by exit code": (
        of_kind(
            "PyTorchJob", "kubeflow.org/v1", f"pytorchReplicaSpecs: {{Master: {{restartPolicy: ExitCode, {TEMPLATE}}}}}"
        ),
        {"template": "pytorchjob"},
        {"spec.pytorchReplicaSpecs.Master.restartPolicy"},
    ),
    "plugins of Volcano": (
        of_kind("Job", "batch.volcano.sh/v1alpha1", f"plugins: {{mpi: [], env: [], svc: []}}, tasks: [{{{TEMPLATE}}}]"),
        {"spec.plugins.mpi"},
        set(),
    ),
    "parameters of Ray": (
        of_kind(
            "RayJob",
            "ray.io/v1",
            "entrypoint: ./fit, rayClusterSpec: {headGroupSpec: {rayStartParams: "
            f"{{num-cpus: '0', port: '1'}}, {TEMPLATE}}}}}",
        ),
        {"spec.rayClusterSpec.headGroupSpec.rayStartParams.num-cpus"},
        set(),
    ),
    "a Deployment": (
        of_kind("Deployment", "apps/v1", f"replicas: 3, selector: {{}}, strategy: {{type: Recreate}}, {TEMPLATE}"),
        {"template": "deployment", "replicas": 3, "run.command": ["./fit"]},
        {"spec.strategy"},
    ),
    "a StatefulSet": (
        of_kind("StatefulSet", "apps/v1", f"replicas: 2, serviceName: s, {TEMPLATE}"),
        {"template": "deployment", "replicas": 2},
        {"kind"},
    ),
    "claims of a StatefulSet": (
        of_kind("StatefulSet", "apps/v1", f"volumeClaimTemplates: [{{}}], {TEMPLATE}"),
        {"spec.volumeClaimTemplates"},
        set(),
    ),
    "a Deployment without replicas": (
        of_kind("Deployment", "apps/v1", f"replicas: 0, {TEMPLATE}"),
        {"spec.replicas"},
        set(),
    ),
    "a RayCluster": (
        of_kind(
            "RayCluster", "ray.io/v1", f"headGroupSpec: {{{TEMPLATE}}}, workerGroupSpecs: [{{replicas: 2, {TEMPLATE}}}]"
        ),
        {"template": "raycluster", "replicas": 3, "gang": True},
        {"kind"},
    ),
    "hosts of Ray": (
        of_kind(
            "RayCluster",
            "ray.io/v1",
            f"headGroupSpec: {{{TEMPLATE}}}, workerGroupSpecs: [{{numOfHosts: 2, {TEMPLATE}}}]",
        ),
        {"spec.workerGroupSpecs[0].numOfHosts"},
        set(),
    ),
    "a JobSet": (
        of_kind(
            "JobSet",
            "jobset.x-k8s.io/v1alpha2",
            "failurePolicy: {maxRestarts: 2}, replicatedJobs: [{name: w, "
            f"replicas: 2, template: {{spec: {{parallelism: 3, completions: 3, {TEMPLATE}}}}}}}]",
        ),
        {"replicas": 6, "gang": True, "retries": 2, "template": "torchrun"},
        set(),
    ),
    "a JobSet that ends early": (
        of_kind(
            "JobSet",
            "jobset.x-k8s.io/v1alpha2",
            f"successPolicy: {{operator: Any}}, replicatedJobs: [{{name: w, template: {{spec: {{{TEMPLATE}}}}}}}]",
        ),
        {"spec.successPolicy"},
        set(),
    ),
    "a LeaderWorkerSet": (
        of_kind(
            "LeaderWorkerSet",
            "leaderworkerset.x-k8s.io/v1",
            f"replicas: 1, leaderWorkerTemplate: {{size: 4, workerT{TEMPLATE[1:]}}}",
        ),
        {"replicas": 4, "gang": True, "template": "torchrun"},
        {"spec.leaderWorkerTemplate"},
    ),
    "groups of a LeaderWorkerSet": (
        of_kind(
            "LeaderWorkerSet",
            "leaderworkerset.x-k8s.io/v1",
            f"replicas: 2, leaderWorkerTemplate: {{size: 4, workerT{TEMPLATE[1:]}}}",
        ),
        {"spec.replicas"},
        set(),
    ),
}


def convert(text: str) -> list[Converted]:
    """Convert the documents of a file."""
    documents = [(each.value, each.lines()) for each in yaml_documents(text)]
    return [each for each in convert_documents(documents, "file.yaml") if each]  # type: ignore[arg-type]  # mappings


def at(fields: dict[str, Any], path: str) -> object:
    """Return a field by its path; None without it."""
    value: Any = fields
    for each in path.split("."):
        value = value.get(each) if isinstance(value, dict) else None
    return value


def check(case: Case) -> None:
    """Convert a file, and compare fields and reports."""
    text, expected, changed = case
    if isinstance(expected, set):
        with pytest.raises(RejectedError) as raised:
            convert(text)
        places = [each.where.split(":", 2) for each in (raised.value, *raised.value.also)]
        assert {name for _, _, name in places} == expected
        assert all(line.isdecimal() for _, line, _ in places)
        return
    (job,) = convert(text)
    assert {path: at(job.fields, path) for path in expected} == expected
    assert {each.field for each in job.notes if each.result is Result.CHANGED} >= changed
    given = {
        name for name, value in yaml.safe_load(text.partition("\n---")[0]).items() if value not in ({}, [], None, "")
    }
    reported = {re.split(r"[.\[]", each.field)[0] for each in job.notes}
    assert given - {"type", "apiVersion", "kind", "metadata", "spec"} <= reported


@pytest.mark.parametrize("case", SKYPILOT.values(), ids=SKYPILOT)
def test_fields_of_skypilot(case: Case) -> None:
    """Amounts, places and alternatives keep their meaning, and no part of a field is forgotten."""
    check(case)


@pytest.mark.parametrize("case", DSTACK.values(), ids=DSTACK)
def test_fields_of_dstack(case: Case) -> None:
    """Ranges, durations and rules keep their meaning, and no part of a field is forgotten."""
    check(case)


@pytest.mark.parametrize("case", KUBERNETES.values(), ids=KUBERNETES)
def test_fields_of_kubernetes(case: Case) -> None:
    """Resources, marks of schedulers and kinds keep their meaning, and no part of a field is forgotten."""
    check(case)


def test_a_toleration_of_all_taints_is_named_in_the_report() -> None:
    """The report of a toleration without a key says that every taint is tolerated."""
    (job,) = convert(pod(f"{PROGRAM}, tolerations: [{{operator: Exists}}]", "name: p"))
    assert "placement.tolerations: every taint" in {each.text for each in job.notes}


NAMES = sorted({word for cases in (SKYPILOT, DSTACK, KUBERNETES) for text, _, _ in cases.values()
                for word in re.findall(r"[A-Za-z_][\w./-]*", text)})  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from(NAMES),
    st.sampled_from(
        ["9" * 5000, "1e999999", "-1", "0x10", "1..2", "..", "٣", "1:2:3", "4x", "500m", "", "a/b/c", "${{ x }}"]
    ),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)


def paths_of(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the paths of all values in a document."""
    found = [path] if path else []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [each for key, inner in pairs for each in paths_of(inner, (*path, key))]


@given(st.data(), st.sampled_from([*SKYPILOT.values(), *DSTACK.values(), *KUBERNETES.values()]))
def test_no_value_raises_anything_but_an_error_of_the_importer(data: st.DataObject, case: Case) -> None:
    """A file with any value at any place is converted, or refused with file and line."""
    documents = [*yaml.safe_load_all(case[0])]
    document = data.draw(st.sampled_from(documents))
    *outer, last = data.draw(st.sampled_from(paths_of(document)))
    target: Any = document
    for step in outer:
        target = target[step]
    target[last] = data.draw(VALUES)
    refused = _refused(lambda: convert_documents([(each, {}) for each in documents], "file.yaml"))
    assert all(re.match(r"file\.yaml:\d+:", each.where) for each in refused)


OPTIONS = (
    "nodes",
    "ntasks",
    "ntasks-per-node",
    "gres",
    "gpus",
    "gpus-per-task",
    "mem",
    "mem-per-gpu",
    "time",
    "array",
    "cpus-per-task",
    "cpus-per-gpu",
    "signal",
    "dependency",
    "mail-type",
    "export",
    "gpu-bind",
    "chdir",
)


ODD = st.sampled_from(["9" * 5000, "٣", "1-2", "gpu:9a:1", "a:b", "-1", "0", "1e9"])


@given(
    st.lists(
        st.tuples(st.sampled_from(OPTIONS), ODD | st.text(st.sampled_from("0123456789:-.,KMGagpu"), max_size=8)),
        max_size=4,
    )
)
def test_no_option_of_sbatch_raises_anything_but_an_error_of_the_importer(options: list[tuple[str, str]]) -> None:
    """A script with any value of an option is converted, or refused with file and line."""
    text = "#!/bin/bash\n" + "".join(f"#SBATCH --{name}={value}\n" for name, value in options) + "./fit\n"
    refused = _refused(lambda: convert_script(text, "file.sbatch"))
    assert all(re.match(r"file\.sbatch:\d+:", each.where) for each in refused)


def _refused(convert: Callable[[], object]) -> list[RejectedError]:
    try:
        convert()
    except RejectedError as error:
        return [error, *error.also]
    return []
