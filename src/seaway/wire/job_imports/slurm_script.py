"""Content of batch scripts of Slurm: steps that ``srun`` starts, and variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from seaway.wire.job_imports.converted import Converted, Result
from seaway.wire.job_imports.shell import HOSTS, exports, mentions, refuse_commands, uncommented, unknown
from seaway.wire.job_imports.slurm_options import DROPPED, FLAGS, OPTIONAL, REFUSED, SHORT


@dataclass(slots=True)
class Layout:
    """Numbers of nodes, tasks and resources of a job in Slurm.

    Attributes
    ----------
    nodes
        Number of replicas.
    per_node, cpus
        Tasks of each node, and CPUs of each task.
    cpus_per_node, gpus, memory_mib
        Resources of each node; 0 for the default.
    """

    nodes: int
    per_node: int
    cpus: int = 1
    cpus_per_node: int = 1
    gpus: int = 0
    memory_mib: int = 0

    @property
    def tasks(self) -> int:
        """Number of all tasks."""
        return self.nodes * self.per_node


RANK = "${NODE_RANK:-0}"
UNIQUE = "${SEAWAY_ARRAY_JOB_ID:-${MASTER_ADDR:-$HOSTNAME}}"
"""A text that all replicas of the job share, and no other job has."""

_HEAD = re.compile(
    r"scontrol\s+show\s+hostnames?\s+[\"']?\$\{?SLURM_(?:JOB_)?NODELIST\}?[\"']?\s*\|\s*head\s+-(?:n\s*)?1"
)
_HOSTS = re.compile(
    r"scontrol\s+show\s+hostnames?(?:\s+[\"']?\$\{?SLURM_(?:JOB_)?NODELIST\}?[\"']?)?(?=\s*(?:[|)>;&`]|$))",
    re.MULTILINE,
)
_WORD = re.compile(r"(?:[^\s\"'\\;&|<>()]|\\[^\n]|\"(?:\\.|[^\"\\])*\"|'[^']*')+", re.DOTALL)
_SPACE = re.compile(r"(?:[ \t]|\\\n)+")
_SRUN = re.compile(r"(?<![\w/.$-])srun(?=[ \t]|\\\n)")

SRUN_SHORT = {**SHORT, "l": "label", "u": "unbuffered", "K": "kill-on-bad-exit", "E": "preserve-env", "r": "relative"}

COMMANDS = {
    "sbatch": "a job cannot submit jobs: use --dependency, or seaway with a token in the image",
    "scontrol": "there is no scontrol in a container: replicas have MASTER_ADDR, NNODES and NODE_RANK",
    "sbcast": "there is no sbcast in a container: the image has the files",
}
"""Commands that would do something else in a container, with the reason."""

ABSENT = {
    "module": "environment modules exist only if the image has them",
    "apptainer": "a container cannot start containers unless the image has it: give its image with --image",
    "singularity": "a container cannot start containers unless the image has it: give its image with --image",
    "squeue": "is not in a container", "sacct": "is not in a container", "seff": "is not in a container",
}  # fmt: skip

STEPS = """srun() {{
  rank=0 pids= code=0
  while [ "$rank" -lt {count} ]; do
    SLURM_LOCALID=$rank SLURM_PROCID=$(({node} * {count} + rank)) "$@" &
    pids="$pids $!" rank=$((rank + 1))
  done
  for pid in $pids; do wait "$pid" || code=$?; done
  return "$code"
}}
"""
"""Function that starts the tasks of a node."""


def converted_script(text: str, layout: Layout, directory: str, out: Converted) -> str:
    """Return the script for each replica: with the variables of Slurm, and steps as processes of the replica."""
    script = "\n".join(line for line in text.splitlines() if not line.startswith(("#!", "#SBATCH"))).strip("\n") + "\n"
    script = _HEAD.sub('echo "${MASTER_ADDR:-$HOSTNAME}"', script)
    script = _HOSTS.sub("""cut -d' ' -f1 "$SEAWAY_HOSTFILE\"""" if layout.nodes > 1 else 'echo "$HOSTNAME"', script)
    script, steps = _steps(script, layout, out)
    body = uncommented(script)
    known = _variables(layout, body, out)
    known |= _node_lists(body, layout, out)
    by_mpi = refuse_commands(out, body, layout.nodes)
    for name in unknown(body, "SLURM_", known):
        out.refuse(name, "has no counterpart in the container")
    for name, why in COMMANDS.items():
        if mentions(body, name):
            out.refuse(name, why)
    for name, why in ABSENT.items():
        if re.search(rf"(?m)(?:^|[;&|(])\s*{name}\s", body):
            out.drop(name, why)
    if layout.nodes > 1:
        if not steps and not by_mpi:
            out.refuse("--nodes", f"is {layout.nodes}, but there is no srun, so that Slurm uses only the first node")
        text = "each replica runs the whole script; in Slurm, only srun starts processes on all nodes"
        out.note("script", text, Result.CHANGED)
    if mentions(body, "SLURM_JOB_ID") or mentions(body, "SLURM_JOBID"):
        text = "is a name that all replicas of the job share, not a number"
        out.note("SLURM_JOB_ID", text, Result.CHANGED)
    lines = [exports(known)]
    if directory:
        lines.append(f"cd {shlex.quote(directory)} || exit 1")
        out.note("--chdir", f"run.command: cd {directory}")
    function = STEPS.format(count=layout.per_node, node=RANK) if steps and layout.per_node > 1 else ""
    return "\n".join(lines) + f"\n{function}{script}"


def _node_lists(body: str, layout: Layout, out: Converted) -> dict[str, str]:
    """Return the variables with the list of nodes that a script reads."""
    found = [name for name in ("SLURM_NODELIST", "SLURM_JOB_NODELIST") if mentions(body, name)]
    for name in found:
        out.note(name, "has names of hosts, separated by commas and without ranges", Result.CHANGED)
    return dict.fromkeys(found, f"{HOSTS[:-1]} | paste -sd, -)" if layout.nodes > 1 else "$HOSTNAME")


def _variables(layout: Layout, body: str, out: Converted) -> dict[str, str]:
    """Return the variables that Slurm sets, with those of arrays if the script names one of them."""
    name = str(out.get("name"))
    known = {
        "SLURM_JOB_ID": UNIQUE,
        "SLURM_JOBID": UNIQUE,
        "SLURM_JOB_NAME": name,
        "SLURM_JOB_PARTITION": str(out.get("queue") or "default"),
        "SLURM_JOB_ACCOUNT": str(out.get("tenant") or "default"),
        "SLURM_SUBMIT_DIR": "$PWD",
        "SLURM_TMPDIR": "${TMPDIR:-/tmp}",
        "SLURMD_NODENAME": "$HOSTNAME",
        "SLURM_LAUNCH_NODE_IPADDR": "${MASTER_ADDR:-$HOSTNAME}",
        "SLURM_NODEID": RANK,
        "SLURM_PROCID": RANK,
        "SLURM_LOCALID": "0",
    }
    numbers = {
        "NNODES": layout.nodes,
        "JOB_NUM_NODES": layout.nodes,
        "NTASKS": layout.tasks,
        "NPROCS": layout.tasks,
        "NTASKS_PER_NODE": layout.per_node,
        "TASKS_PER_NODE": layout.per_node,
        "CPUS_PER_TASK": layout.cpus,
        "CPUS_ON_NODE": layout.cpus_per_node,
        "JOB_CPUS_PER_NODE": layout.cpus_per_node,
        "GPUS_ON_NODE": layout.gpus,
        "GPUS_PER_NODE": layout.gpus,
        "GPUS": layout.gpus * layout.nodes,
        "MEM_PER_NODE": layout.memory_mib,
    }
    known |= {f"SLURM_{each}": str(value) for each, value in numbers.items() if value}
    parts = ("ARRAY_JOB_ID", "ARRAY_TASK_ID", "ARRAY_TASK_COUNT", "ARRAY_TASK_MIN", "ARRAY_TASK_MAX")
    named = [f"SLURM_{part}" for part in parts if mentions(body, f"SLURM_{part}")]
    if out.get("array") or named:
        known |= {f"SLURM_{part}": f"$SEAWAY_{part}" for part in parts}
    if named and not out.get("array"):
        out.note(named[0], "is empty without an array: submit with --array, as in --array 0-9", Result.CHANGED)
    return known


def _steps(script: str, layout: Layout, out: Converted) -> tuple[str, int]:
    """Return the script with its calls of srun as calls of the function, or of the program; and their number."""
    done, count, at = "", 0, 0
    for match in _SRUN.finditer(script):
        line = script[script.rfind("\n", 0, match.start()) + 1 : match.start()]
        if match.start() < at or line.lstrip().startswith("#"):
            continue
        end, options = _options(script, match.end())
        for name, value in options:
            _option(name, value, layout, out)
        count += 1
        done += script[at : match.start()] + ("srun " if layout.per_node > 1 else "")
        at = end
    return done + script[at:], count


def _options(script: str, at: int) -> tuple[int, list[tuple[str, str]]]:
    """Return the position of the program after srun, and the options before it."""
    found: list[tuple[str, str]] = []
    words = _words(script, at)
    for start, word in words:
        at = start
        if not word.startswith("-"):
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            needs = not equals and name not in FLAGS and name not in OPTIONAL
        else:
            name, value = SRUN_SHORT.get(word[1:2], word[1:2]), word[2:]
            needs = not value and name not in FLAGS and name != "kill-on-bad-exit"
        if needs:
            _, value = next(words, (0, ""))
        found.append((name, value.strip("\"'")))
    return at, found


def _words(script: str, at: int) -> Iterator[tuple[int, str]]:
    while space := _SPACE.match(script, at):
        word = _WORD.match(script, space.end())
        if word is None:
            return
        yield word.start(), word[0]
        at = word.end()


def _option(name: str, value: str, layout: Layout, out: Converted) -> None:
    """Check an option of srun: it must agree with those of the job."""
    where = f"srun --{name}"
    numbers = {
        "ntasks": layout.tasks,
        "nodes": layout.nodes,
        "ntasks-per-node": layout.per_node,
        "cpus-per-task": layout.cpus,
        "gpus-per-node": layout.gpus,
        "gpus": layout.gpus * layout.nodes,
    }
    if name in numbers:
        if value.isdecimal() and int(value) != numbers[name]:
            out.refuse(where, f"is {value}, but the job has {numbers[name]}: a step uses all of the job")
    elif name == "gres" or (name.startswith(("gpus", "mem", "cpus")) and name not in DROPPED):
        if value.rpartition(":")[2] not in (str(layout.gpus), "gpu") and name == "gres":
            out.refuse(where, f"is {value}, but the job has {layout.gpus}: a step uses all of the job")
    elif name == "container-image":
        put_image(out, where, value)
    elif name == "mpi" and (value == "none" or layout.tasks == 1):
        out.drop(where, "processes are started without PMI")
    elif name == "export" and value in ("ALL", ""):
        out.drop(where, "processes have the variables of the script")
    elif name in DROPPED:
        out.drop(where, DROPPED[name])
    else:
        out.refuse(where, REFUSED.get(name, "is unknown, so that its meaning would be lost"))


def put_image(out: Converted, name: str, text: str) -> None:
    """Set the image from an address as enroot writes it, like ``nvcr.io#nvidia/pytorch:24.05-py3``."""
    image = text.removeprefix("docker://").replace("#", "/", 1)
    if text.endswith(".sqsh") or text.startswith(("/", ".", "dockerd:", "podman:")):
        out.refuse(name, f"{text} is a local image: push it to a registry, and submit with --image")
    elif "$" in text:
        out.refuse(name, f"{text} has a variable: submit with --image")
    else:
        out.keep(name, "run.image", image)
