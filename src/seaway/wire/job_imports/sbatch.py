"""Batch scripts of Slurm.

A node becomes a replica, and each replica runs the whole script. Tasks of a node are processes that ``srun`` starts.

References
----------
Slurm 25.05: sbatch(1), srun(1). Pyxis: options of the plugin for containers.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import ceil
from pathlib import PurePath

from seaway.domain.notifications import Occasion, is_address
from seaway.domain.numbers import exact_number, whole_number
from seaway.wire.job_imports.bash_syntax import Script
from seaway.wire.job_imports.converted import IMAGE, MAX_COUNT, Converted, Note, Result, put_name, shown
from seaway.wire.job_imports.models import put_model
from seaway.wire.job_imports.shell import command_names, put_script
from seaway.wire.job_imports.slurm_options import CHANGED, DROPPED, FLAGS, OPTIONAL, REFUSED, SHORT
from seaway.wire.job_imports.slurm_script import converted_script
from seaway.wire.job_imports.slurm_steps import Layout, bound_gpus, note_binding, put_distribution, put_image

KIND = "sbatch script"

MARK = "\ufeff"
"""Byte order mark, which some editors write."""

SHELLS = ("bash", "sh", "dash", "zsh", "ksh")

_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)B?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", re.ASCII)
_GRES = re.compile(r"(?:gres[/:])?(?P<kind>[a-z_]+)(?::(?P<type>(?!\d+$)[\w.+-]+))?(?:[:=](?P<count>\d+))?", re.ASCII)
_MIG = re.compile(r"(?:.*[_-])?(\d+g\.\d+gb(?:\+me)?)", re.IGNORECASE)
MAX_MEMORY_MIB = 1 << 40
"""Largest amount of memory of a node, MiB."""

MAX_TIME = 10**7
"""Largest number in a time."""

MAILS = {
    "BEGIN": (Occasion.STARTED,),
    "END": (Occasion.FINISHED,),
    "FAIL": (Occasion.FAILED,),
    "REQUEUE": (Occasion.PREEMPTED,),
    "ALL": (Occasion.STARTED, Occasion.FAILED, Occasion.PREEMPTED, Occasion.FINISHED),
}
"""Occasions of messages for each type of e-mails."""

WHEN = {"afterok": "succeeded", "afterany": "finished", "after": "started", "afternotok": "failed"}


def is_sbatch(text: str) -> bool:
    """Report whether a text is a script for ``sbatch``."""
    text = text.removeprefix(MARK)
    return text.startswith("#!") or bool(re.search(r"(?m)^#SBATCH\s", text))


def read_sbatch(text: str, source: str, ignored: frozenset[str]) -> Converted:
    """Convert a batch script."""
    given, text = text, text.removeprefix(MARK).replace("\r\n", "\n")
    out = Converted(KIND, {}, ignored, script=True, text=text)
    options = _options(text, out)
    if given != text:
        why = "has a byte order mark or DOS line breaks, which sbatch rejects: they are removed"
        out.note("script", why, Result.CHANGED)
    stem = PurePath(source).name.partition(".")[0] or "script"
    put_name(out, "--job-name" if "job-name" in options else "", "name", options.pop("job-name", stem))
    layout = _layout(options, out, uses_srun="srun" in command_names(Script(text)))
    _rules(options, out)
    _files(options, text, out)
    if options.get("gres-flags") in ("enforce-binding", "disable-binding"):
        out.drop("--gres-flags", "the kubelet assigns CPUs")
        del options["gres-flags"]
    directory = options.pop("chdir", "")
    if directory and not directory.startswith("/"):
        out.change("--chdir", "workdir", directory, "the folder of this machine is sent")
        directory = ""
    for name in options:
        if name in CHANGED:
            out.note(f"--{name}", CHANGED[name], Result.CHANGED)
        elif name in DROPPED:
            out.drop(f"--{name}", DROPPED[name])
        else:
            out.refuse(f"--{name}", REFUSED.get(name, "is unknown, so that its meaning would be lost"))
    shell = _shell(text, out)
    script = converted_script(text, layout, directory, out)
    put_script(out, "script", script, PurePath(source).name, shell)
    if not out.get("run.image"):
        out.drop(IMAGE, "a batch script names no image: give --image, or the default image of the cluster is used")
    return out


def _options(text: str, out: Converted) -> dict[str, str]:
    """Return the options of the script by long name, and note their lines."""
    options: dict[str, str] = {}
    lines_of: dict[str, int] = {}
    ended = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"#SBATCH\s", line):
            if ended:
                out.notes.append(
                    Note(number, line[:60], Result.DROPPED, "follows a command, so that sbatch ignores it")
                )
                continue
            try:
                words = shlex.split(line[7:], comments=True)
            except ValueError:
                with out.at_line(number):
                    open_end = "ends with a backslash, but each line stands for itself: write the options on one line"
                    out.refuse("#SBATCH", open_end if line.rstrip().endswith("\\") else "has an open quote")
                continue
            for name, value in parse_options(words):
                if name in options:
                    said = f"is set again on line {number}"
                    out.notes.append(Note(lines_of[f"--{name}"], f"--{name}", Result.DROPPED, said))
                options[name] = value
                lines_of[f"--{name}"] = number
        elif line.strip() and not line.startswith("#"):
            ended = True
            lines_of.setdefault("script", number)
    out.lines_of = lines_of
    return options


def parse_options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of sbatch in words, by long name; a word that is no option has an empty name."""
    waiting = iter(words)
    for word in waiting:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and name not in FLAGS and name not in OPTIONAL:
                value = next(waiting, "")
        elif word.startswith("-") and len(word) > 1:
            name, value = SHORT.get(word[1], word[1]), word[2:].removeprefix("=")
            if not value and name not in FLAGS:
                value = next(waiting, "")
        else:
            name, value = word, ""
        yield name, value


def _layout(options: dict[str, str], out: Converted, *, uses_srun: bool) -> Layout:
    """Set replicas and resources, and return the numbers of nodes and tasks."""
    low, _, high = options.get("nodes", "").partition("-")
    if high:
        options["nodes"] = low if low == high else "1"
        if low != high:
            out.refuse("--nodes", "is a range: give one number, or submit with --replicas MIN-MAX")
    nodes, tasks, per_node = (_number(options, name, out) for name in ("nodes", "ntasks", "ntasks-per-node"))
    by_task = nodes is None and per_node is None and (tasks or 1) > 1
    if by_task:
        layout = Layout(tasks or 1, 1)
        _check_tasks(options, layout, out, uses_srun=uses_srun)
    else:
        layout = _nodes(nodes, tasks, per_node, out)
    layout.gpus = _gpus(options, layout, out)
    if "gpu-bind" in options:
        bound = bound_gpus(out, "--gpu-bind", options.pop("gpu-bind"), layout, layout.gpus_per_task)
        layout.gpus_per_task = bound
    if "distribution" in options:
        put_distribution(out, "--distribution", options.pop("distribution"), layout)
    cpus, gpu_cpus = _number(options, "cpus-per-task", out), _number(options, "cpus-per-gpu", out)
    if gpu_cpus and not layout.gpus:
        out.refuse("--cpus-per-gpu", "is given, but the job has no GPUs")
    layout.cpus = cpus or 1
    layout.cpus_per_node = gpu_cpus * layout.gpus if gpu_cpus else layout.cpus * layout.per_node
    out.keep("--cpus-per-gpu" if gpu_cpus else "--cpus-per-task" if cpus else "", "resources.cpu", layout.cpus_per_node)
    _memory(options, layout, out)
    if layout.nodes > 1:
        origin = "--ntasks" if by_task else "--nodes"
        out.keep(origin, "replicas", layout.nodes)
        out.keep(origin, "gang", value=True)
        out.keep(origin, "template", "torchrun", "template: torchrun, which gives each replica its rank")
    if layout.per_node > 1:
        origin = "--ntasks-per-node" if "--ntasks-per-node" in out.lines_of else "--ntasks"
        out.note(origin, f"run.command: srun starts {layout.per_node} processes in each replica")
    return layout


def _number(options: dict[str, str], name: str, out: Converted) -> int | None:
    text = options.pop(name, None)
    if text is None:
        return None
    if not (number := whole_number(text, MAX_COUNT)):
        out.refuse(f"--{name}", f"is {shown(text)!r}, not a whole number from 1 to {MAX_COUNT:,}")
        return None
    return number


def _check_tasks(options: dict[str, str], layout: Layout, out: Converted, *, uses_srun: bool) -> None:
    """Refuse tasks on an unknown number of nodes if something depends on it."""
    per_node = [name for name in ("gres", "gpus-per-node", "mem") if name in options]
    if per_node or not uses_srun:
        why = f"--{per_node[0]} is for each node" if per_node else "there is no srun in the script"
        out.refuse("--ntasks", f"is {layout.nodes} without --nodes, but {why}: add #SBATCH --nodes=1, or more")


def _nodes(nodes: int | None, tasks: int | None, per_node: int | None, out: Converted) -> Layout:
    """Return the layout of equal nodes."""
    if nodes is None:
        nodes = ceil(tasks / per_node) if tasks and per_node else 1
    if tasks and per_node and tasks != nodes * per_node:
        out.refuse("--ntasks", f"is {tasks}, but {nodes} nodes with {per_node} tasks have {nodes * per_node}")
    if tasks and tasks % nodes:
        out.refuse("--ntasks", f"is {tasks}, no multiple of {nodes} nodes: replicas must be equal")
    return Layout(nodes, per_node or ceil((tasks or nodes) / nodes))


def _gpus(options: dict[str, str], layout: Layout, out: Converted) -> int:
    """Set the devices of a replica, and return their number."""
    found: dict[str, int] = {}
    for name in ("gres", "gpus", "gpus-per-node", "gpus-per-task"):
        text = options.pop(name, "")
        for part in text.split(",") if text not in ("", "none", "0") else ():
            count = _devices(name, part, out)
            if not count:
                continue
            if name == "gpus" and count % layout.nodes:
                out.refuse("--gpus", f"is {count}, no multiple of {layout.nodes} nodes: replicas must be equal")
            if name in found:
                out.refuse(f"--{name}", "has GPUs of several types: a replica has GPUs of one type")
            found[name] = {"gpus": count // layout.nodes, "gpus-per-task": count * layout.per_node}.get(name, count)
    if len(set(found.values())) > 1:
        both = " and ".join(f"--{name}" for name in found)
        out.refuse(f"--{next(iter(found))}", f"{both} ask for different numbers of GPUs of a node")
    for name, count in found.items():
        out.keep(f"--{name}", "resources.gpus", count)
    if "gpus-per-task" in found:
        layout.gpus_per_task = found["gpus-per-task"] // layout.per_node
        if layout.per_node > 1:
            note_binding(out, "--gpus-per-task", layout.gpus_per_task)
    return next(iter(found.values()), 0)


def _devices(name: str, part: str, out: Converted) -> int:
    """Set the kind of some devices, and return their number."""
    match = _GRES.fullmatch(part if name == "gres" else f"gpu:{part}")
    if match is None or match["kind"] not in ("gpu", "mps"):
        own = part.startswith(("gpu:", "mps:")) or name != "gres"
        why = "is no TYPE:COUNT" if own else "is of an unknown kind: only gpu and mps have a counterpart"
        out.refuse(f"--{name}", f"{shown(part)!r} {why}")
        return 0
    count = whole_number(match["count"] or 1, MAX_COUNT)
    if count is None:
        out.refuse(f"--{name}", f"is {shown(part)}, but at most {MAX_COUNT:,} devices")
        return 0
    if match["kind"] == "mps":
        _share(f"--{name}", count, out)
        return 1
    if match["type"]:
        _type(f"--{name}", match["type"], out)
    return count


def _share(name: str, percent: int, out: Converted) -> None:
    if not 0 < percent <= 100:
        out.refuse(name, f"asks for {percent}% of a GPU with MPS: at most 100")
        return
    for path in ("resources.gpu_cores", "resources.gpu_memory"):
        out.change(name, path, f"{percent}%", "a share of memory and cores")


def _type(name: str, text: str, out: Converted) -> None:
    if match := _MIG.fullmatch(text):
        out.keep(name, "resources.mig", match[1].lower())
    else:
        put_model(out, name, [text.replace("_", "-")])


def memory_mib(text: str) -> Fraction | None:
    """Return an amount of memory in Slurm's syntax, MiB; None if it is invalid. The default unit is MiB."""
    match = _MEMORY.fullmatch(text)
    number = exact_number(match[1]) if match else None
    if match is None or number is None:
        return None
    return number * Fraction(1024) ** ("KMGT".index((match[2] or "M").upper()) - 1)


def _memory(options: dict[str, str], layout: Layout, out: Converted) -> None:
    counts = {"mem": 1, "mem-per-cpu": layout.cpus_per_node, "mem-per-gpu": layout.gpus}
    given = [name for name in counts if name in options]
    if len(given) > 1:
        out.refuse(f"--{given[1]}", f"is given with --{given[0]}: Slurm accepts only one of them")
    for name in given:
        text = options.pop(name)
        amount = memory_mib(text)
        if amount is None:
            out.refuse(f"--{name}", f"is {shown(text)!r}, not an amount of memory like 16G")
        elif not amount:
            out.refuse(f"--{name}", "is 0, all memory of a node: give an amount")
        elif not counts[name]:
            if name == "mem-per-gpu":
                out.refuse(f"--{name}", "is given, but the job has no GPUs")
        elif amount * counts[name] > MAX_MEMORY_MIB:
            out.refuse(f"--{name}", f"is {shown(text)}, more than a node can have")
        else:
            layout.memory_mib = ceil(amount * counts[name])
            gib, rest = divmod(layout.memory_mib, 1024)
            out.keep(f"--{name}", "resources.memory", f"{layout.memory_mib}Mi" if rest else f"{gib}Gi")


def _rules(options: dict[str, str], out: Converted) -> None:
    """Set the fields that are not about resources."""
    readers: dict[str, Callable[[str, Converted], None]] = {
        "partition": partial(_one_name, "--partition", "queue"),
        "account": partial(_one_name, "--account", "tenant"),
        "time": _time,
        "array": lambda text, out: out.keep("--array", "array", text),
        "dependency": _dependency,
        "signal": _signal,
        "export": _export,
        "exclusive": _exclusive,
        "clusters": lambda text, out: out.keep("--clusters", "placement.clusters", text.split(",")),
        "container-image": lambda text, out: put_image(out, "--container-image", text),
    }
    for name, read in readers.items():
        if name in options:
            read(options.pop(name), out)
    if options.get("begin") == "now":
        del options["begin"]
    _mail(options.pop("mail-type", ""), options.pop("mail-user", ""), out)


def _files(options: dict[str, str], text: str, out: Converted) -> None:
    """Report the files of the output, which the script may read."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#SBATCH"))
    for name in ("output", "error"):
        file = PurePath(options.get(name, "")).name
        if file and "%" not in file and file in body:
            out.note(f"--{name}", f"{file} is not written, but the script names it: seaway logs JOB", Result.CHANGED)
            del options[name]


def _one_name(option: str, path: str, text: str, out: Converted) -> None:
    if "," in text:
        out.refuse(option, f"names several, but a job has one: submit with --{path} NAME --ignore {option[2:]}")
    else:
        put_name(out, option, path, text)


def _exclusive(_: str, out: Converted) -> None:
    if out.get("resources.gpus"):
        out.change("--exclusive", "resources.exclusive", True, "its GPUs are its own, but the nodes are shared")
    else:
        out.refuse("--exclusive", "reserves whole nodes: give --cpus-per-task and --mem instead")


def _mail(types: str, user: str, out: Converted) -> None:
    """Set the receiver of messages. Slurm sends none without a type."""
    kinds = [kind for each in types.upper().split(",") if (kind := each.strip()) and kind != "NONE"]
    if not kinds:
        if user:
            out.drop("--mail-user", "Slurm sends no e-mails without --mail-type")
        return
    if out.ignored & {"mail-type", "mail-user"}:
        out.drop("--mail-type", "ignored, as requested")
        return
    if not is_address(user):
        said = f"{user!r} is the name of a user, not an address" if user else "no --mail-user is given"
        out.drop("--mail-type", f"{said}: add --notify ADDRESS, or the name of a notification")
        return
    for each in (each for each in kinds if each not in MAILS):
        out.drop(f"--mail-type {each}", "has no counterpart: messages are about starts, preemptions and ends")
    wanted = {occasion for each in kinds for occasion in MAILS.get(each, ())}
    if wanted:
        notify = {"to": user, "when": [each.value for each in Occasion if each in wanted]}
        out.keep("--mail-user", "notify", [notify], f"notify: {user}={','.join(notify['when'])}")


def _time(text: str, out: Converted) -> None:
    if text in ("0", "UNLIMITED", "INFINITE"):
        out.drop("--time", "there is no limit")
        return
    match = _TIME.fullmatch(text)
    numbers = [whole_number(each or 0, MAX_TIME) for each in match.groups()] if match else []
    found = [each for each in numbers if each is not None]
    if match is None or len(found) < len(numbers):
        out.refuse("--time", f"is {shown(text)!r}, not a time like 90, 12:00:00 or 2-12")
        return
    days, first, second, third = found
    hours = match[1] is not None or match[4] is not None
    total = days * 86_400 + (first * 3600 + second * 60 + third if hours else first * 60 + second)
    if not total:
        out.drop("--time", "there is no limit")
        return
    size, unit = next((size, unit) for size, unit in ((3600, "h"), (60, "m"), (1, "s")) if total % size == 0)
    out.keep("--time", "time_limit", f"{total // size}{unit}")


def _dependency(text: str, out: Converted) -> None:
    after: list[dict[str, str]] = []
    if "?" in text:
        out.refuse("--dependency", "has alternatives: a job starts after all of its predecessors")
        return
    for part in text.split(","):
        kind, *jobs = part.split(":")
        if kind not in WHEN or not jobs:
            out.refuse("--dependency", f"{part!r} has no counterpart: use {', '.join(WHEN)} and a job")
            return
        if any("+" in job for job in jobs):
            out.refuse("--dependency", f"{part!r} waits some minutes, which has no counterpart")
            return
        after += [{"job": job, "when": WHEN[kind]} for job in jobs]
    text = "; ".join(f"{each['job']} {each['when']}" for each in after)
    out.keep("--dependency", "after", after, f"after: {text}; IDs or names of jobs in Seaway")


def _signal(text: str, out: Converted) -> None:
    name, _, seconds = text.rpartition(":")[2].partition("@")
    numbers = {"10": "SIGUSR1", "12": "SIGUSR2", "15": "SIGTERM", "2": "SIGINT", "1": "SIGHUP", "3": "SIGQUIT"}
    signal = numbers.get(name, f"SIG{name.upper().removeprefix('SIG')}")
    if signal not in numbers.values():
        out.refuse("--signal", f"{name!r} is not one of {', '.join(numbers.values())}")
        return
    if out.get("time_limit"):
        warning = {"signal": signal, "before": f"{seconds or 60}s"}
        out.change("--signal", "time_limit_warning", warning, "the script gets the signal, not its children")
        return
    grace = {"signal": signal, "grace": f"{seconds or 60}s"}
    out.change("--signal", "checkpoint", grace, "the signal is sent when the job is stopped")


def _export(text: str, out: Converted) -> None:
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if equals:
            out.keep("--export", f"run.env.{name}", value)
        elif part == "ALL":
            out.drop("--export", "variables of this shell are not sent: give --env NAME=VALUE")
        elif part not in ("NONE", "NIL"):
            out.refuse(f"--export {part}", f"is a variable of the shell: submit with --env {part}=VALUE")


def _shell(text: str, out: Converted) -> list[str]:
    """Return the shell that runs the script."""
    line = text.partition("\n")[0]
    words = line[2:].split() if line.startswith("#!") else ["bash"]
    if words and PurePath(words[0]).name == "env":
        words = words[1:]
    if not words or PurePath(words[0]).name not in SHELLS:
        out.refuse("script", f"starts with {line!r}: only {', '.join(SHELLS)} run scripts without a file")
        return ["bash"]
    return [PurePath(words[0]).name, *words[1:]]
