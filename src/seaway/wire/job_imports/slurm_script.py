"""Content of batch scripts of Slurm: steps that ``srun`` starts, and variables."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from seaway.wire.job_imports.bash_syntax import Script, line_of
from seaway.wire.job_imports.converted import Converted, Result
from seaway.wire.job_imports.shell import HOSTS, command_names, exports, mentions, refuse_commands, unknown
from seaway.wire.job_imports.slurm_steps import FUNCTION, Layout, Steps

if TYPE_CHECKING:
    from tree_sitter import Node


RANK = "${NODE_RANK:-0}"
UNIQUE = "${SEAWAY_ARRAY_JOB_ID:-${MASTER_ADDR:-$HOSTNAME}}"
"""A text that all replicas of the job share, and no other job has."""

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

FIRST_HOST = 'echo "${MASTER_ADDR:-$HOSTNAME}"'
NODE_LISTS = ("SLURM_NODELIST", "SLURM_JOB_NODELIST")

INPUTS = frozenset({
    "SRUN_CPUS_PER_TASK", "SLURM_CPU_BIND", "SLURM_MEM_BIND", "SLURM_HINT", "SLURM_UNBUFFEREDIO", "SLURM_LABELIO",
})  # fmt: skip
"""Variables that a script may set for srun, and that its processes do not need."""


def converted_script(text: str, layout: Layout, directory: str, out: Converted) -> str:
    """Return the script for each replica: with the variables of Slurm, and steps as processes of the replica.

    All text of the script stays as it is, except calls of srun and lists of hosts.
    """
    original = Script(text)
    steps = Steps(original, layout, out)
    script = Script(original.edited([*steps.edits, *_hosts(original, layout)]))
    body = script.without("comment", "unset_command")
    _inputs(script, out)
    known = _variables(layout, body, out)
    known |= _node_lists(body, layout, out)
    names = command_names(script)
    by_mpi = refuse_commands(out, names, layout.nodes)
    _check_names(out, body, {*known, *INPUTS}, names)
    if layout.nodes > 1:
        if not steps.count and not by_mpi:
            out.refuse("--nodes", f"is {layout.nodes}, but there is no srun, so that Slurm uses only the first node")
        why = "each replica runs the whole script; in Slurm, only srun starts processes on all nodes"
        out.note("script", why, Result.CHANGED)
    if mentions(body, "SLURM_JOB_ID") or mentions(body, "SLURM_JOBID"):
        out.note("SLURM_JOB_ID", "is a name that all replicas of the job share, not a number", Result.CHANGED)
    lines = [exports(known)]
    if directory:
        lines.append(f"cd {shlex.quote(directory)} || exit 1")
        out.note("--chdir", f"run.command: cd {directory}")
    devices = ",".join(map(str, range(layout.gpus)))
    function = FUNCTION.format(count=layout.per_node, node=RANK, gpus=devices) if steps.needs_function else ""
    return "\n".join(lines) + f"\n{function}{script.raw.decode('utf-8', 'surrogatepass')}"


def _check_names(out: Converted, body: str, known: set[str], commands: set[str]) -> None:
    """Report variables and commands of Slurm that a container does not have."""
    for prefix in ("SLURM_", "SRUN_"):
        for name in unknown(body, prefix, known):
            out.refuse(name, "has no counterpart in the container")
    for name, why in COMMANDS.items():
        if name in commands:
            out.refuse(name, why)
    for name, why in ABSENT.items():
        if name in commands:
            out.drop(name, why)


def _inputs(script: Script, out: Converted) -> None:
    """Report the variables of Slurm that the script sets, which change its steps."""
    for each in script.of_type("variable_assignment"):
        name = script.source(each).partition("=")[0].rstrip("+")
        if name in INPUTS:
            with out.at_line(line_of(each)):
                out.drop(name, "the kubelet assigns CPUs, and Seaway stores the output")
        elif name.startswith("SLURM_"):
            with out.at_line(line_of(each)):
                out.refuse(name, "is set by the script: numbers of nodes and tasks are those of the job")


def _hosts(script: Script, layout: Layout) -> list[tuple[int, int, str]]:
    """Return the edits for lists of hosts: the first host of a pipeline, or all hosts."""
    edits = []
    listed = """cut -d' ' -f1 "$SEAWAY_HOSTFILE\"""" if layout.nodes > 1 else 'echo "$HOSTNAME"'
    for node in script.of_type("command", "pipeline"):
        parts = node.named_children if node.type == "pipeline" else [node]
        if not parts or not _lists_hosts(script, parts[0]):
            continue
        if node.type == "command":
            edits.append((node.start_byte, node.end_byte, listed))
        elif re.fullmatch(r"head\s+(-n\s*1|-1|--lines=1)", script.source(parts[1])):
            edits.append((node.start_byte, parts[1].end_byte, FIRST_HOST))
    return edits


def _lists_hosts(script: Script, node: Node) -> bool:
    """Report whether a command prints the names of the job's hosts."""
    words = [script.source(each) for each in node.named_children if node.type == "command"]
    return words[:2] == ["scontrol", "show"] and (
        (len(words) == 3 and words[2] in ("hostname", "hostnames"))
        or (
            len(words) == 4 and words[2] in ("hostname", "hostnames") and words[3].strip('"').strip("${}") in NODE_LISTS
        )
    )


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
        "GPUS_PER_TASK": layout.gpus_per_task,
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
