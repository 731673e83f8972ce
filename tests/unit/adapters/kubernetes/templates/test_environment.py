"""Variables that select the devices of a container: only Seaway and operators set them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from seaway.adapters.kubernetes.templates.registry import BUILT_IN, Template, problems, render
from seaway.adapters.kubernetes.templates.safety import Rules
from seaway.adapters.kubernetes.templates.user import read_template
from seaway.domain.arrays import TaskArray
from seaway.domain.errors import RejectedError
from seaway.domain.job import ResourceRequest
from seaway.domain.runtime import Run
from tests.unit.adapters.kubernetes.templates.sample import deployment, many, options

GUARDED = [
    "NVIDIA_VISIBLE_DEVICES",
    "ASCEND_VISIBLE_DEVICES",
    "CAMBRICON_VISIBLE_DEVICES",
    "MTHREADS_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "UNHEARD_OF_VISIBLE_DEVICES",
    "NVIDIA_MIG_CONFIG_DEVICES",
    "NVIDIA_IMEX_CHANNELS",
    "NVIDIA_GDS",
    "CUDA_DEVICE_MEMORY_LIMIT",
    "CUDA_DEVICE_MEMORY_LIMIT_7",
    "CUDA_DEVICE_MEMORY_SHARED_CACHE",
    "CUDA_DEVICE_SM_LIMIT",
    "CUDA_DEVICE_SM_LIMIT_0",
    "CUDA_DISABLE_CONTROL",
    "GPU_CORE_UTILIZATION_POLICY",
    "CUDA_TASK_PRIORITY",
    "CUDA_MPS_PIPE_DIRECTORY",
    "LD_AUDIT",
    "HSA_CU_MASK",
    "NPU_MEM_QUOTA",
    "ASCEND_VNPU_SPECS",
    "CAMBRICON_SPLIT_MEMS",
]

FREE = [
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_TF32_OVERRIDE",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "NCCL_DEBUG",
]

OWN = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: ${name}
spec:
  parallelism: ${replicas}
  template:
    spec:
      initContainers:
      - name: fetch
        image: fetch:1
      containers:
      - name: watch
        image: watch:1
        env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]
      - name: main
        image: ${image}
        env: [{name: MODE, value: calm}, '${env}']
"""

TEMPLATES = {**BUILT_IN, "own": read_template("own", OWN, Rules())}

every = pytest.mark.parametrize("template", TEMPLATES.values(), ids=lambda each: each.name)


def run(*names: str) -> Run:
    """Create a run with these variables."""
    return Run("main:1", ("main",), (), tuple((name, "all") for name in names))


def containers(template: str, **figures: Any) -> list[dict[str, Any]]:  # noqa: ANN401  # as of a deployment
    """Return the containers of all workloads of a deployment, with their environment."""
    found: list[dict[str, Any]] = []

    def look(value: object) -> None:
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            look(each)
        if isinstance(value, dict):
            found.extend(
                {each["name"]: each["value"] for each in one.get("env", ())} | {"of": one["name"]}
                for name in ("initContainers", "containers")
                for one in value.get(name, ())
            )

    for manifest in render(deployment(template, **figures), options(), TEMPLATES):
        look(manifest.pinned())
    return found


@every
@pytest.mark.parametrize("name", GUARDED)
def test_no_job_may_choose_its_devices_itself(template: Template, name: str) -> None:
    """Variables of device plugins and runtimes are rejected at admission and in templates, with the reason."""
    made = deployment(template.name, run=run("MODE", name))
    (said,) = problems(made.spec, options(), TEMPLATES)
    assert said.where == "run.env"
    assert said.message.startswith(f"{name!r} is not for jobs to set, as ")
    with pytest.raises(RejectedError, match=name):
        render(made, options(), TEMPLATES)


@pytest.mark.parametrize("field", ["env_from_secret", "env_from_config_map"])
def test_no_object_chooses_devices_either(field: str) -> None:
    """A variable that selects devices is rejected, wherever its value comes from."""
    chosen: Any = {field: (("NVIDIA_VISIBLE_DEVICES", "mine/all"),)}
    run = Run("main:1", **chosen)
    assert [each.where for each in problems(deployment(run=run).spec, options())] == [f"run.{field}"]


def test_each_such_variable_is_named() -> None:
    """One error names all such variables of a job."""
    found = problems(deployment(run=run(*GUARDED)).spec, options())
    assert [each.message.split("'")[1] for each in found] == GUARDED
    matrix = replace(deployment().spec, array=TaskArray("0", matrix=(("CUDA_DISABLE_CONTROL", ("true",)),)))
    assert [each.where for each in problems(matrix, options())] == ["matrix"]


@every
def test_what_harms_no_one_is_free(template: Template) -> None:
    """Choosing among a job's own devices, driver libraries and preloads are allowed: jobs need them."""
    made = deployment(template.name, run=run(*FREE))
    assert problems(made.spec, options(), TEMPLATES) == []
    assert all(set(FREE) <= each.keys() for each in containers(template.name, run=run(*FREE)) if each["of"] in MAIN)


MAIN = {"main", "pytorch", "ray-head", "ray-worker"}


@every
def test_who_ledgers_no_device_sees_none(template: Template) -> None:
    """CUDA images request all devices, and a runtime may obey: without devices this is overridden."""
    figures = {"placed": [("node-0", ())], "request": ResourceRequest(100, 64)}
    found = [each for each in containers(template.name, run=run("MODE"), **figures) if each["of"] in MAIN]
    assert found
    for each in found:
        assert (each["NVIDIA_VISIBLE_DEVICES"], each["ASCEND_VISIBLE_DEVICES"]) == ("void", "")


@every
def test_who_reserved_devices_is_reported_them_by_their_plugin(template: Template) -> None:
    """With devices, the device plugin sets the variables: Seaway's would override them."""
    found = [each for each in containers(template.name, run=run("MODE")) if each["of"] in MAIN]
    assert found
    assert not any(key.endswith("_VISIBLE_DEVICES") for each in found for key in each)


def test_operators_may_say_what_jobs_may_not() -> None:
    """An operator's template may set them; its containers without devices see none."""
    seen = {each["of"]: each.get("NVIDIA_VISIBLE_DEVICES") for each in containers("own", run=run("A"))}
    assert seen == {"fetch": "void", "watch": "all", "main": None}


@pytest.mark.parametrize("written", ["${command}", "text", 3])
def test_what_is_no_environment_is_left_to_the_cluster(written: object) -> None:
    """Invalid variables of a template are left as they are: the cluster reports the error best."""
    body = yaml.safe_load(OWN)
    body["spec"]["template"]["spec"]["initContainers"][0]["env"] = written
    own = {"own": read_template("own", yaml.safe_dump(body), Rules())}
    (job, *_) = many(render(deployment("own"), options(), own), "Job")
    filled = ["python", "train.py"] if written == "${command}" else written
    assert job["spec"]["template"]["spec"]["initContainers"][0]["env"] == filled


def test_first_containers_have_to_be_some() -> None:
    """A value that is not a list of containers is an error of the template's file, with the place."""
    body = yaml.safe_load(OWN)
    body["spec"]["template"]["spec"]["initContainers"] = "none"
    with pytest.raises(RejectedError, match="list of containers") as caught:
        read_template("own", yaml.safe_dump(body), Rules())
    assert caught.value.where.endswith("/spec/template/spec/initContainers")
