"""Conversion of job files of other schedulers. The files are in `job_files`."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from seaway.cli.jobs.file import read_any_jobs, written_jobs
from seaway.domain.errors import RejectedError
from seaway.wire.job_imports.converted import Result
from seaway.wire.job_imports.files import convert_script
from seaway.wire.job_imports.sbatch import memory_mib
from seaway.wire.job_imports.shell import script_command
from seaway.wire.job_in import JobIn
from seaway.wire.reading import read_value

FILES = Path(__file__).parent / "job_files"


def cases() -> Iterator[Any]:
    """Yield the files and their results."""
    for file in sorted(FILES.glob("*.yaml")):
        for case in yaml.safe_load(file.read_text(encoding="utf-8")):
            yield pytest.param(case, id=case["like"])


def test_ten_files_of_each_scheduler_are_tried() -> None:
    """There are ten files or more of each of Slurm, SkyPilot and Kubernetes."""
    for name in ("slurm", "skypilot", "kubernetes"):
        tried = yaml.safe_load((FILES / f"{name}.yaml").read_text(encoding="utf-8"))
        assert len([each for each in tried if "dstack" not in each["like"]]) >= 10


@pytest.mark.parametrize("case", [*cases()])
def test_a_file_is_converted_or_refused_with_the_reason(case: dict[str, Any], tmp_path: Path) -> None:
    """Each field of the job is as expected, and valid for the server; or each field that prevents it is named."""
    script = "script" in case
    path = tmp_path / ("job.sbatch" if script else "file.yaml")
    path.write_text(case.get("script") or case["file"], encoding="utf-8")
    if "refused" in case:
        with pytest.raises(RejectedError) as raised:
            read_any_jobs(str(path))
        errors = (raised.value, *raised.value.also)
        assert sorted(each.where.split(":", 2)[2] for each in errors) == sorted(case["refused"])
        return
    jobs = read_any_jobs(str(path))
    for job in jobs:  # a folder is sent first
        read_value(JobIn, {name: value for name, value in job.fields.items() if name != "workdir"}).spec()
    generated = script or "apiVersion" not in case["file"]
    found = [without_script(job.fields, script=generated) for job in jobs]
    assert found == ([case["job"]] if script else case["jobs"])


@pytest.mark.parametrize("case", [each for each in cases() if "refused" in each.values[0]])
def test_a_refused_field_is_left_out_on_request(case: dict[str, Any], tmp_path: Path) -> None:
    """A file whose refused fields are all ignored is converted, and reports each of them, unless nothing is left."""
    path = tmp_path / ("job.sbatch" if "script" in case else "file.yaml")
    path.write_text(case.get("script") or case["file"], encoding="utf-8")
    if case["refused"] == ["type"] or all(each.startswith("kind ") for each in case["refused"]):
        with pytest.raises(RejectedError, match="no job that can be converted"):
            read_any_jobs(str(path), case["refused"])
        return
    (job, *_) = read_any_jobs(str(path), case["refused"])
    assert job.converted
    assert {each.field for each in job.converted.notes if "ignored" in each.text} == {*case["refused"]}


def without_script(fields: dict[str, Any], *, script: bool) -> dict[str, Any]:
    """Return the fields without a generated script."""
    run = dict(fields.get("run", {}))
    if script and run.get("command", [""])[0] in ("bash", "ksh", "sh") and "-c" in run["command"][1:3]:
        del run["command"]
    return {name: value for name, value in fields.items() if name != "run"} | ({"run": run} if run else {})


def as_kubernetes_does(word: str) -> str:
    """Replace the escapes that Kubernetes replaces in commands; fail if it would replace a variable."""
    plain = re.sub(r"\$\$|\$\(", lambda match: "$" if match[0] == "$$" else "VARIABLE", word)
    assert "VARIABLE" not in plain
    return plain


def run_script(text: str, *args: str, **environment: str) -> str:
    """Convert a batch script, run its command as a replica does, and return the output."""
    converted = convert_script(text, "test.sbatch")
    assert converted is not None
    command = [as_kubernetes_does(each) for each in converted.fields["run"]["command"]]
    env = {"PATH": "/usr/bin:/bin", "HOSTNAME": "pod-1", **environment}
    done = subprocess.run([*command, *args], env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr + (f"exit {done.returncode}" if done.returncode else "")


def test_a_script_runs_as_in_slurm() -> None:
    """Variables of Slurm, arguments, subshells and the process ID work in the container."""
    text = (
        "#!/bin/bash\n#SBATCH --job-name=x\n#SBATCH --array=0-3\n#SBATCH --chdir=/usr\n#SBATCH -c 3\n"
        'echo "$(pwd) $1 $2 $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, $SLURM_CPUS_PER_TASK CPUs"\n'
        '[ "$$" -gt 0 ] && echo $((1 + 1)) $SLURM_JOB_ID\n'
    )
    array = {"SEAWAY_ARRAY_JOB_ID": "j1", "SEAWAY_ARRAY_TASK_ID": "2", "SEAWAY_ARRAY_TASK_COUNT": "4"}
    assert run_script(text, "a", "b c", **array) == "/usr a b c 2 of 4, 3 CPUs\n2 j1\n"


def test_a_script_reads_the_index_of_an_array_that_the_submit_asks_for() -> None:
    """As with `sbatch --array`, the script names no array. Without one, the index is empty, which the report says."""
    text = '#!/bin/bash\n#SBATCH --gpus=1\nset -u\necho "task $SLURM_ARRAY_TASK_ID"\n'
    assert run_script(text, SEAWAY_ARRAY_TASK_ID="2") == "task 2\n"
    assert run_script(text) == "task \n"
    converted = convert_script(text, "test.sbatch")
    assert converted is not None
    assert [each.result for each in converted.notes if each.field == "SLURM_ARRAY_TASK_ID"] == [Result.CHANGED]


def test_srun_starts_the_tasks_of_a_node() -> None:
    """Each task of a node is a process with its rank and local rank, and a failure of one is that of the step."""
    text = (
        "#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=3\n"
        "srun --label -u sh -c 'sleep 0.$SLURM_LOCALID; echo rank $SLURM_PROCID local $SLURM_LOCALID of $SLURM_NTASKS;"
        " [ $SLURM_LOCALID != 1 ]'\n"
    )
    out = run_script(text, NODE_RANK="1", MASTER_ADDR="first")
    assert sorted(out.removesuffix("exit 1").split("\n")) == [
        "",
        *(f"rank {3 + local} local {local} of 6" for local in range(3)),
    ]
    assert out.endswith("exit 1")


def test_the_first_host_is_the_address_of_replica_0() -> None:
    """The usual way to find the first host in Slurm yields the address that all replicas share."""
    text = (
        "#!/bin/bash\n#SBATCH --nodes=2\n"
        'head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\nsrun echo "$head" "$SLURM_NODEID"\n'
    )
    assert run_script(text, MASTER_ADDR="first", NODE_RANK="1") == "first 1\n"


def test_lists_of_hosts_are_those_of_the_gang(tmp_path: Path) -> None:
    """Nodes of Slurm and SkyPilot are the hosts in the file that each replica has; a single node is the container."""
    hosts = tmp_path / "hosts"
    hosts.write_text("a.svc slots=2\nb.svc slots=2\n")
    text = (
        "#!/bin/bash\n#SBATCH --nodes={}\nsrun true\n"
        'for each in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do echo "$each"; done\necho $SLURM_NODELIST\n'
    )
    assert run_script(text.format(2), SEAWAY_HOSTFILE=str(hosts)) == "a.svc\nb.svc\na.svc,b.svc\n"
    assert run_script(text.format(1)) == "pod-1\npod-1\n"
    path = tmp_path / "task.yaml"
    path.write_text('num_nodes: 2\nrun: for ip in $SKYPILOT_NODE_IPS; do echo "to $ip"; done\n')
    (job,) = read_any_jobs(str(path))
    command = [as_kubernetes_does(each) for each in job.fields["run"]["command"]]
    env = {"PATH": "/usr/bin:/bin", "SEAWAY_HOSTFILE": str(hosts)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "to a.svc\nto b.svc\n"


def test_all_keys_of_an_object_in_the_file_become_variables(tmp_path: Path) -> None:
    """Keys of envFrom are read from the objects of the file. Variables of the container take precedence."""
    path = tmp_path / "file.yaml"
    path.write_text(
        "{apiVersion: v1, kind: Secret, metadata: {name: hf}, stringData: {TOKEN: x, LEVEL: y}}\n---\n"
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {LEVEL: '3', MODE: fast}}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: fit}\nspec:\n  restartPolicy: Never\n  containers:\n"
        "    - {name: a, image: x, env: [{name: MODE, value: slow}],\n"
        "       envFrom: [{secretRef: {name: hf}}, {configMapRef: {name: conf}},"
        " {prefix: P_, configMapRef: {name: conf}}]}\n"
    )
    (job,) = read_any_jobs(str(path), ["Secret", "ConfigMap"])
    assert job.fields["run"] == {
        "image": "x",
        "env": {"MODE": "slow"},
        "env_from_secret": {"TOKEN": "hf/TOKEN"},
        "env_from_config_map": {"LEVEL": "conf/LEVEL", "P_LEVEL": "conf/LEVEL", "P_MODE": "conf/MODE"},
    }
    read_value(JobIn, job.fields).spec()


def test_secrets_of_a_task_are_given_by_options(tmp_path: Path) -> None:
    """A secret is refused until an option names the object that has it."""
    path = tmp_path / "task.yaml"
    path.write_text("secrets: {HF_TOKEN: }\nrun: python fit.py\n")
    with pytest.raises(RejectedError, match="--env-from-secret HF_TOKEN=SECRET/KEY"):
        written_jobs([str(path)], {})
    (job,) = written_jobs([str(path)], {"run.env_from_secret": {"HF_TOKEN": "hf/token"}})
    assert job.fields["run"]["env_from_secret"] == {"HF_TOKEN": "hf/token"}


def test_a_relative_folder_of_a_script_is_sent() -> None:
    """A relative `--chdir` is a folder of this machine; an absolute one is one of the image."""
    sent, there = (
        convert_script(f"#!/bin/bash\n#SBATCH --chdir={path}\npwd\n", "x.sbatch") for path in ("src", "/opt")
    )
    assert sent is not None
    assert there is not None
    assert (sent.get("workdir"), there.get("workdir")) == ("src", None)


def test_a_long_script_is_split_and_runs() -> None:
    """A script longer than a word of a command may be is split, and gets its arguments."""
    text = "".join(f"# {at} $$ $(true) {'x' * 90}\n" for at in range(200)) + 'echo "$# $1 $(echo deep)"\n'
    command = script_command(text, "name")
    assert max(map(len, command)) <= 4096
    done = subprocess.run(
        [*map(as_kubernetes_does, command), "one", "two"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "2 one deep\n"


def test_a_report_names_the_line_of_each_option() -> None:
    """The report has each option with its line and result, also those that the job does not need."""
    text = (
        "#!/bin/bash\n#SBATCH --gpus=1\n#SBATCH --output=x  # a comment\n#SBATCH -p Big\n"
        "module load cuda\npython fit.py\n#SBATCH --mem=1G\n"
    )
    converted = convert_script(text, "fit.sh")
    assert converted is not None
    found = {(each.line, each.field): each.result for each in converted.notes}
    assert found[2, "--gpus"] is Result.SAME
    assert found[3, "--output"] is Result.DROPPED
    assert found[4, "--partition"] is Result.CHANGED
    assert found[5, "module"] is Result.DROPPED
    assert found[7, "#SBATCH --mem=1G"] is Result.DROPPED
    assert converted.fields["name"] == "fit"
    assert converted.lines["queue"] == 4


@pytest.mark.parametrize(
    ("options", "notify", "dropped"),
    [
        (
            "--mail-type=BEGIN,END,TIME_LIMIT --mail-user=ada@example.com",
            [{"to": "ada@example.com", "when": ["started", "finished"]}],
            {"--mail-type TIME_LIMIT"},
        ),
        (
            "--mail-type=ALL --mail-user=ada@example.com",
            [{"to": "ada@example.com", "when": ["started", "failed", "preempted", "finished"]}],
            set(),
        ),
        ("--mail-type=NONE", None, set()),
        ("--mail-type=END", None, {"--mail-type"}),
        ("--mail-type=END --mail-user=ada", None, {"--mail-type"}),
        ("--mail-user=ada@example.com", None, {"--mail-user"}),
    ],
)
def test_e_mails_of_slurm_are_messages_of_the_job(options: str, notify: object, dropped: set[str]) -> None:
    """Types of e-mails with a counterpart are kept, and the others are named."""
    text = f"#!/bin/bash\n#SBATCH --gpus=1 {options}\npython fit.py\n"
    converted = convert_script(text, "fit.sh")
    assert converted is not None
    assert converted.fields.get("notify") == notify
    assert {each.field for each in converted.notes if "mail" in each.field and each.result is Result.DROPPED} == dropped
    read_value(JobIn, converted.fields).spec()
    ignored = convert_script(text, "fit.sh", frozenset({"mail-type"}))
    assert ignored is not None
    assert "notify" not in ignored.fields


@pytest.mark.parametrize(
    ("text", "mib"), [("16G", 16384), ("512", 512), ("1T", 1 << 20), ("2048K", 2), ("1.5G", 1536), ("x", None)]
)
def test_memory_has_powers_of_1024(text: str, mib: int | None) -> None:
    """Slurm's units are powers of 1,024, and the default is MiB."""
    assert memory_mib(text) == mib


@pytest.mark.parametrize("text", ["", "name: x\n", '{"name": "x"}', "x: [1, 2]\n"])
def test_a_job_of_seaway_is_no_script(text: str) -> None:
    """Other texts are no batch scripts."""
    assert convert_script(text, "job.yaml") is None


def test_a_program_with_an_image_is_a_job_of_seaway(tmp_path: Path) -> None:
    """Fields of other schedulers beside it are errors of that job."""
    file = tmp_path / "job.yaml"
    file.write_text("name: x\nservice: {port: 80}\nresources: {gpus: 1}\nrun: {image: nginx}\n", encoding="utf-8")
    (job,) = read_any_jobs(str(file))
    assert job.converted is None
    with pytest.raises(RejectedError, match="unknown field 'service'"):
        read_value(JobIn, job.fields)


@pytest.mark.parametrize(
    "field", ["replicas: 2", "image: ubuntu", "resources: {gpus: 1}", "queue: batch", "network: {max_latency: 20ms}"]
)
def test_a_script_in_a_job_of_seaway_is_an_error_of_that_job(field: str, tmp_path: Path) -> None:
    """Fields that SkyPilot does not have make a file a job of Seaway, and the error shows the form that it needs."""
    file = tmp_path / "job.yaml"
    file.write_text(f"name: x\n{field}\nrun: |\n  python train.py\n", encoding="utf-8")
    (job,) = read_any_jobs(str(file))
    assert job.converted is None
    with pytest.raises(RejectedError) as caught:
        read_value(JobIn, job.fields)
    errors = {each.where: each.message for each in (caught.value, *caught.value.also)}
    assert errors["run"] == 'must be a mapping, like {image: ubuntu, command: [sh, -c, "python train.py"]}'


@pytest.mark.parametrize(
    ("resources", "vendor"),
    [
        ({"nvidia.com/gpu": 1}, ["NVIDIA"]),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000}, ["NVIDIA"]),
        ({"nvidia.com/mig-1g.10gb": 1}, ["NVIDIA"]),
        ({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 4000}, ["NVIDIA"]),
        ({"amd.com/gpu": 1}, ["AMD"]),
        ({"cpu": 1}, None),
    ],
)
def test_the_resource_of_a_pod_sets_the_vendor_of_its_gpus(
    resources: dict[str, int], vendor: list[str] | None, tmp_path: Path
) -> None:
    """A program for cards of one vendor does not get those of another one."""
    container = {"name": "c", "image": "train", "resources": {"limits": resources}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump(pod), encoding="utf-8")
    (job,) = read_any_jobs(str(path))
    assert job.fields["resources"].get("gpu_vendor") == vendor


def test_a_local_queue_of_kueue_is_reported(tmp_path: Path) -> None:
    """The queue stays, and the report says that an import has the queue of the ClusterQueue instead."""
    labels = {"kueue.x-k8s.io/queue-name": "users"}
    spec = {"containers": [{"name": "c", "image": "train"}]}
    path = tmp_path / "pod.yaml"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}, "spec": spec}
    path.write_text(yaml.safe_dump(pod), encoding="utf-8")
    (job,) = read_any_jobs(str(path))
    assert job.fields["queue"] == "users"
    assert job.converted
    assert any("LocalQueue" in each.text for each in job.converted.notes if each.result is Result.CHANGED)
