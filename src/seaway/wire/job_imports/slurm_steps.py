"""Steps of batch scripts of Slurm: calls of ``srun``, which become processes of a replica.

References
----------
Slurm 25.05: srun(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from seaway.domain.numbers import whole_number
from seaway.wire.job_imports.bash_syntax import PREFIXES, REDIRECTS, SHELLS, Script, line_of
from seaway.wire.job_imports.converted import Converted, Result
from seaway.wire.job_imports.slurm_options import (
    CHANGED,
    DROPPED,
    FLAGS_OF_SRUN,
    OPTIONAL,
    REFUSED,
    SHORT_OF_SRUN,
    STEP_DROPPED,
    STEP_REFUSED,
)  # fmt: skip

if TYPE_CHECKING:
    from tree_sitter import Node
PRINTING = frozenset({
    "echo", "printf", "logger", "which", "type", "man", "hash", "grep", "egrep", "fgrep", "pgrep", "alias", "complete",
})  # fmt: skip
"""Commands to which ``srun`` is a text."""

KEYWORDS = frozenset({
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select", "time",
    "function", "coproc", "{", "}", "!", "[[", "]]",
})  # fmt: skip

_CALL = re.compile(r"(?:^|[;&|(`\n]|\b(?:then|do|else|time|exec|nohup)\b)\s*(?:\w+=\S*\s+)*(?:[\w./-]*/)?srun(?=\s|$)")
"""A call of srun in a text, if the text is a script."""

_FINDS_SRUN = re.compile(r"(\$\(|`)[^)`\n]{0,80}\bsrun\s{0,9}(\)|`|2>)")
"""A substitution that prints the path of srun."""

_SPLIT = "a step uses all of the job"
VARIABLES = {
    "SLURM_NTASKS": "ntasks", "SLURM_NPROCS": "ntasks", "SLURM_NNODES": "nodes", "SLURM_JOB_NUM_NODES": "nodes",
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node", "SLURM_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_GPUS_ON_NODE": "gpus-per-node", "SLURM_GPUS_PER_NODE": "gpus-per-node", "SLURM_GPUS": "gpus",
}  # fmt: skip
"""Options whose numbers variables of Slurm have."""

OWN_JOB = frozenset({"SLURM_JOB_ID", "SLURM_JOBID"})

FUNCTION = """srun_tasks() {{
  gpus=0 rank=0 pids= code=0
  case $1 in --gpus-per-task=*) gpus=${{1#*=}}; shift ;; esac
  for signal in HUP INT QUIT USR1 USR2 TERM; do trap "signalled=1; kill -s $signal \\$pids" "$signal"; done
  while [ "$rank" -lt {count} ]; do
    (
      trap - HUP INT QUIT USR1 USR2 TERM
      export SLURM_LOCALID="$rank" SLURM_PROCID=$(({node} * {count} + rank))
      if [ "$gpus" -gt 0 ]; then
        own=$((rank * gpus + 1))-$(((rank + 1) * gpus))
        CUDA_VISIBLE_DEVICES=$(echo "${{CUDA_VISIBLE_DEVICES:-{gpus}}}" | cut -d, -f "$own")
        export CUDA_VISIBLE_DEVICES
      fi
      exec "$@"
    ) &
    pids="$pids $!" rank=$((rank + 1))
  done
  for pid in $pids; do
    signalled=1
    while [ "$signalled" ]; do signalled= result=0; wait "$pid" || result=$?; done
    [ "$result" = 0 ] || code=$result
  done
  return "$code"
}}
srun() {{
  if [ "$(exec sh -c 'echo $PPID')" = $$ ]; then (srun_tasks "$@"); else srun_tasks "$@"; fi
}}
"""
"""Function that starts the tasks of a step on a node. Its variables and traps are those of a subshell."""


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
    gpus_per_task
        GPUs that each task of a step sees; 0 for those of its node.
    """

    nodes: int
    per_node: int
    cpus: int = 1
    cpus_per_node: int = 1
    gpus: int = 0
    memory_mib: int = 0
    gpus_per_task: int = 0

    @property
    def tasks(self) -> int:
        """Number of all tasks."""
        return self.nodes * self.per_node


@dataclass(slots=True)
class Word:
    """Word after srun.

    Attributes
    ----------
    text
        Its value; None if it is known only when the script runs.
    first
        False if it is not the first of the words in a variable.
    """

    text: str | None
    node: Node
    first: bool = True


@dataclass(slots=True)
class Step:
    """Call of srun.

    Attributes
    ----------
    start, program
        Bytes of the text at which srun and the program begin.
    gpus_per_task
        GPUs that each task sees; 0 for all of its replica.
    redirects
        Redirections of the output in the syntax of a shell.
    by
        Name of the command that starts it; empty for the shell.
    is_syntax
        True if the program without srun before it would be a keyword or an assignment.
    """

    node: Node
    start: int
    program: int = 0
    options: list[tuple[str, str | None, str]] = field(default_factory=list)
    gpus_per_task: int = 0
    redirects: str = ""
    by: str = ""
    is_syntax: bool = False


class Steps:
    """Reader of the steps of a script.

    Attributes
    ----------
    edits
        Changes of the text, by range of bytes.
    count
        Number of steps.
    needs_function
        True if a step starts several tasks, or tasks that see a part of the GPUs.
    """

    def __init__(self, script: Script, layout: Layout, out: Converted) -> None:
        self._script, self._layout, self._out = script, layout, out
        self.edits: list[tuple[int, int, str]] = []
        self.count = 0
        self.needs_function = False
        self._read()

    def _read(self) -> None:
        script = self._script
        if "srun" not in self._out.text:
            return
        if line := script.broken_line:
            self._refuse(None, "cannot be converted, because the syntax of the script is not clear", line)
            return
        found: list[Step] = []
        for node in script.nodes:
            if node.type == "command":
                found += self._of_command(node)
            elif why := self._hidden_call(node):
                self._refuse(node, why)
        for step in found:
            with self._out.at_line(self._script.line(step.start)):
                self._convert(step)
        if any(self._in_background(each) for each in found):
            text = "steps in the background run at the same time, and share CPUs and GPUs"
            self._out.note("srun &", text, Result.CHANGED)

    def _refuse(self, node: Node | None, text: str, line: int = 0) -> None:
        with self._out.at_line(line_of(node) if node else line):
            self._out.refuse("srun", text)

    # Calls.

    def _hidden_call(self, node: Node) -> str:
        """Return the reason to refuse a call that only a running shell makes; empty if a node has none."""
        text = self._script.source(node)
        if "srun" not in text:
            return ""
        if node.type == "function_definition":
            name = node.child_by_field_name("name")
            return "is a function of the script" if name and self._script.source(name) == "srun" else ""
        in_variable = node.type == "variable_assignment" and self._is_assigned(node)
        if in_variable or (node.type == "expansion" and re.search(r"[-=+?]\s*[\"']?(?:\S*/)?srun\b", text)):
            return "is in a variable: write it in the commands"
        values = node.children_by_field_name("value") if node.type == "for_statement" else []
        if any(_is_srun(self._script.literal(each) or "") for each in values):
            return "is in a list: write it in the commands"
        return self._in_input(node, text) if node.type in ("heredoc_body", "herestring_redirect") else ""

    def _is_assigned(self, node: Node) -> bool:
        """Report whether an assignment has a call as its value or as an element."""
        value = node.child_by_field_name("value")
        if value is None:
            return False
        parts = value.named_children if value.type == "array" else [value]
        texts = [self._script.begins(each) for each in parts]
        from_path = any(_FINDS_SRUN.search(self._script.source(each)) for each in parts)
        in_array = value.type == "array" and any(map(_is_srun, texts))
        return from_path or in_array or any(_CALL.match(each) for each in texts)

    def _in_input(self, node: Node, text: str) -> str:
        """Return the reason to refuse a call in a text that a command reads; report it if the text is only stored."""
        if not _CALL.search(text.lstrip("<").strip(" \"'")):
            return ""
        if self._is_run(node):
            return "is in the input of another shell: write it in the commands"
        with self._out.at_line(line_of(node)):
            self._out.note("srun", "is not in the container for a script in a here-document", Result.CHANGED)
        return ""

    def _is_run(self, node: Node) -> bool:
        """Report whether a shell runs the text of a here-document."""
        statement = node.parent
        while statement is not None and statement.type != "redirected_statement":
            statement = statement.parent
        inside = [] if statement is None else [each for each in _below(statement) if each.type == "command_name"]
        return any(_base(self._script.source(each)) in SHELLS | {"srun"} for each in inside)

    def _of_command(self, node: Node) -> Iterator[Step]:
        """Yield the step of a command, or report other uses of srun in it."""
        name = node.child_by_field_name("name")
        if name is None or "srun" not in self._script.source(node):
            return
        arguments = node.children_by_field_name("argument")
        command = _base(self._script.begins(name.named_children[0])) if name.named_children else ""
        if _is_srun(self._script.literal(name.named_children[0]) or "") if name.named_children else False:
            yield self._step(node, name, arguments, "")
            return
        if _FINDS_SRUN.search(self._script.source(name)):
            self._refuse(node, "is the output of another command: write it in the commands")
            return
        texts = [self._script.literal(each) or "" for each in arguments]
        at = next((at for at, each in enumerate(texts) if _is_srun(each)), -1)
        if command in PRINTING or (command == "command" and texts[:1] in (["-v"], ["-V"])):
            if command == "alias" and any(_CALL.match(each.partition("=")[2]) for each in texts):
                self._refuse(node, "is in an alias: write it in the commands")
            return
        if at >= 0 and command in PREFIXES:
            yield self._step(node, arguments[at], arguments[at + 1 :], command)
        elif at >= 0:
            self._refuse(node, f"is an argument of {command or 'another command'}: there is no srun in a container")
        elif command in SHELLS and any(_CALL.search(self._inner(each)) for each in arguments):
            self._refuse(node, f"is in the commands of {command}: write it in the script")

    def _inner(self, node: Node) -> str:
        return self._script.source(node).strip("\"'")

    def _step(self, node: Node, start: Node, words: list[Node], by: str) -> Step:
        at = start.start_byte
        step = Step(node, at - self._script.raw[:at].endswith(b"\\"), by=by)
        self.count += 1
        given = self._words(words)
        for word in given:
            own = self._known(word)
            if not own and "srun" not in self._out.ignored:
                source = self._script.source(word.node)
                self._refuse(node, f"has {source} before its program, which may be options: write them in the commands")
                return step
            if own == "--":
                word = next(given, Word(None, node))  # noqa: PLW2901  # the program follows
            elif own.startswith("-") and own != "-":
                self._option(step, word, own, given)
                continue
            if not word.first:
                self._refuse(node, f"has options and program in {self._script.source(word.node)}: write them apart")
            if word.node != node:
                source = self._script.source(word.node)
                step.program = word.node.start_byte
                step.is_syntax = source in KEYWORDS or bool(re.match(r"\w+(\[.*\])?\+?=", source))
            break
        if not step.program:
            self._refuse(node, "has no program")
        elif any(self._script.literal(each) == ":" for each in words):
            self._refuse(node, "has several programs, with ':' between: all replicas run one program")
        return step

    def _known(self, word: Word) -> str:
        """Return the begin of a word as far as it tells an option from a program; empty if it is unknown."""
        if word.text is not None:
            return word.text
        if own := self._script.begins(word.node, deepest=0):
            return own
        begin = self._script.begins(word.node)
        return "" if begin.startswith("-") else begin

    def _words(self, nodes: list[Node]) -> Iterator[Word]:
        for node in nodes:
            texts = self._script.words(node)
            if texts is None:
                yield Word(None, node)
            for at, each in enumerate(texts or ()):
                yield Word(each, node, first=not at)

    def _option(self, step: Step, word: Word, own: str, rest: Iterator[Word]) -> None:
        """Add an option, whose value may be the next word."""
        raw = self._script.source(word.node)
        if own.startswith("--"):
            name, equals, value = own[2:].partition("=")
            if word.text is None and not equals:
                step.options.append((raw, None, raw))
            elif equals:
                step.options.append((name, None if word.text is None else value, raw.partition("=")[2]))
            elif name in FLAGS_OF_SRUN or name in OPTIONAL:
                step.options.append((name, "", ""))
            else:
                step.options.append(self._with_value(name, rest))
            return
        letters = own[1:]
        while letters:
            name, letters = SHORT_OF_SRUN.get(letters[0], letters[0]), letters[1:]
            if name in FLAGS_OF_SRUN:
                step.options.append((name, "", ""))
                continue
            if letters or word.text is None:
                step.options.append((name, None if word.text is None else letters, raw[2:]))
            elif name in OPTIONAL:
                step.options.append((name, "", ""))
            else:
                step.options.append(self._with_value(name, rest))
            return

    def _with_value(self, name: str, rest: Iterator[Word]) -> tuple[str, str | None, str]:
        word = next(rest, None)
        return (name, "", "") if word is None else (name, word.text, self._script.source(word.node))

    # Conversion.

    def _convert(self, step: Step) -> None:
        given = {name: (value, raw) for name, value, raw in step.options}
        for name, (value, raw) in given.items():
            self._check(step, name, value, raw)
        self._redirect(step, given)
        self._bind(step, given)
        tasks, gpus = self._layout.per_node, self._layout.gpus
        several = tasks > 1 or bool(step.gpus_per_task and step.gpus_per_task != gpus)
        if several and step.by and (step.by != "time" or re.match(rb"#!.*/(da)?sh\b", self._script.raw)):
            self._refuse(step.node, f"starts {tasks} processes, which {step.by} cannot: leave out {step.by}")
        if several and self._reads_input(step.node):
            self._refuse(step.node, f"gives its input to {tasks} processes: let the program read a file")
        if any(start in REDIRECTS for start in self._between(step)):
            self._refuse(step.node, "has a redirection before its program: write it at the end")
        call = "srun " if several or (not step.by and step.is_syntax) else ""
        self.needs_function |= bool(call)
        if step.gpus_per_task and several:
            call += f"--gpus-per-task={step.gpus_per_task} "
        self.edits.append((step.start, step.program, step.redirects + call))

    def _between(self, step: Step) -> Iterator[str]:
        return (each.type for each in _below(step.node) if step.start < each.start_byte < step.program)

    def _check(self, step: Step, name: str, value: str | None, raw: str) -> None:
        """Check an option: it must agree with those of the job."""
        layout, where = self._layout, f"srun --{name}"
        numbers = {
            "ntasks": layout.tasks,
            "nodes": layout.nodes,
            "ntasks-per-node": layout.per_node,
            "cpus-per-task": layout.cpus,
            "gpus-per-node": layout.gpus,
            "gpus": layout.gpus * layout.nodes,
        }
        special: dict[str, Callable[[], None]] = {
            "gres": lambda: self._gres(where, value, raw),
            "jobid": lambda: self._jobid(step, where, raw),
            "gpus-per-task": lambda: None,
            "gpu-bind": lambda: None,
            "output": lambda: None,
            "error": lambda: None,
            "open-mode": lambda: None,
            "distribution": lambda: put_distribution(self._out, where, value or raw, layout),
            "kill-on-bad-exit": lambda: self._kill(where, value),
            "wait": lambda: self._wait(where, value),
        }
        if name in numbers:
            self._number(where, name, value, raw, numbers)
        elif name in special:
            special[name]()
        elif name in ("mem", "mem-per-cpu", "mem-per-gpu", "cpus-per-gpu"):
            self._out.note(where, "a step may use all CPUs and memory of its replica", Result.CHANGED)
        elif name == "container-image":
            put_image(self._out, where, raw if value is None else value)
        elif name == "mpi" and (value == "none" or layout.tasks == 1):
            self._out.drop(where, "processes are started without PMI")
        elif name == "export" and value in ("ALL", ""):
            self._out.drop(where, "processes have the variables of the script")
        else:
            self._leave_out(where, name)

    def _leave_out(self, where: str, name: str) -> None:
        """Report an option without a counterpart."""
        if name in STEP_REFUSED:
            self._out.refuse(where, STEP_REFUSED[name])
        elif name in STEP_DROPPED:
            self._out.drop(where, STEP_DROPPED[name])
        elif name in CHANGED:
            self._out.note(where, CHANGED[name], Result.CHANGED)
        elif name in DROPPED:
            self._out.drop(where, DROPPED[name])
        else:
            self._out.refuse(where, REFUSED.get(name, "is unknown, so that its meaning would be lost"))

    def _number(self, where: str, name: str, value: str | None, raw: str, numbers: dict[str, int]) -> None:
        script = self._script
        if value is None:
            variable = re.fullmatch(r"\"?\$(?:(\w+)|\{(\w+)(?::?-\w*)?\})\"?", raw)
            known = VARIABLES.get(variable[1] or variable[2], "") if variable else ""
            if variable and known and not script.assigns(variable[1] or variable[2]):
                given: int | None = numbers[known]
            else:
                self._out.refuse(where, f"is {raw}, which is known only when the script runs: {_SPLIT}")
                return
        else:
            low, dash, high = value.rpartition(":")[2].partition("-")
            given = whole_number(low) if not dash or low == high else None
        if given != numbers[name]:
            self._out.refuse(where, f"is {raw}, but the job has {numbers[name]}: {_SPLIT}")

    def _gres(self, where: str, value: str | None, raw: str) -> None:
        kind, _, count = (value or "").rpartition(":")
        if value == "gpu":
            kind, count = value, "1"
        elif kind and not count.isdecimal():
            kind, count = value or "", "1"
        if not re.fullmatch(r"(gres[/:])?gpu(:[\w.+-]+)?", kind) or whole_number(count) != self._layout.gpus:
            self._out.refuse(where, f"is {raw}, but the job has {self._layout.gpus} GPUs on a node: {_SPLIT}")

    def _jobid(self, step: Step, where: str, raw: str) -> None:
        if raw.strip('"').strip("${}") in OWN_JOB:
            self._out.drop(where, "is that of the job")
        else:
            self._out.refuse(where, f"is {raw}, another job: a step runs in its job")

    def _kill(self, where: str, value: str | None) -> None:
        if value != "0" and self._layout.per_node > 1:
            text = "a process that fails does not end the others of its replica; the step fails when all have ended"
            self._out.note(where, text, Result.CHANGED)
        else:
            others_run = value == "0" and self._layout.tasks > 1
            result = Result.CHANGED if others_run else Result.DROPPED
            self._out.note(where, "the job ends when a replica fails", result)

    def _wait(self, where: str, value: str | None) -> None:
        text = "the other processes of a step run on when the first has ended"
        self._out.note(where, text, Result.DROPPED if value == "0" else Result.CHANGED)

    def _redirect(self, step: Step, given: dict[str, tuple[str | None, str]]) -> None:
        """Set the redirections of the output to files."""
        redirects = ""
        append = given.get("open-mode", ("", ""))[0] in ("append", "a")
        for name in ("output", "error"):
            if name not in given:
                continue
            value, raw = given[name]
            where = f"srun --{name}"
            own = step.node.parent is not None and step.node.parent.type == "redirected_statement"
            if "%" in raw or value == "all":
                self._out.note(where, "the file is not written: seaway logs JOB", Result.CHANGED)
            elif own or not raw:
                self._out.refuse(where, "is given with a redirection: write only the redirection")
            else:
                number = "2" if name == "error" else ""
                redirects += f"{number}>{'>' if append else ''}{'/dev/null' if value == 'none' else raw} "
                if name == "output" and "error" not in given:
                    redirects += "2>&1 "
                self._out.note(where, f"run.command: the output goes to {raw}")
        step.redirects = redirects
        if redirects and step.by:
            self._out.refuse("srun --output", f"is given after {step.by}: write a redirection")

    def _bind(self, step: Step, given: dict[str, tuple[str | None, str]]) -> None:
        """Set the number of GPUs that each task sees."""
        layout, out = self._layout, self._out
        step.gpus_per_task = layout.gpus_per_task
        if "gpus-per-task" in given:
            value, raw = given["gpus-per-task"]
            count = whole_number((value or "").rpartition(":")[2])
            if count is None or count * layout.per_node > layout.gpus:
                has = f"but the job has {layout.gpus} for {layout.per_node} tasks of a node"
                out.refuse("srun --gpus-per-task", f"is {raw}, {has}")
                return
            step.gpus_per_task = count
            if layout.per_node > 1 or count != layout.gpus:
                note_binding(out, "srun --gpus-per-task", count)
        if "gpu-bind" in given:
            step.gpus_per_task = bound_gpus(out, "srun --gpu-bind", given["gpu-bind"][0], layout, step.gpus_per_task)

    def _reads_input(self, node: Node) -> bool:
        """Report whether a command reads a file, a text or the output of another command."""
        parent: Node | None = node.parent
        child = node
        while parent is not None and parent.type in ("redirected_statement", "negated_command", "pipeline"):
            if parent.type == "pipeline":
                before = child.prev_sibling
                if before is not None and before.type in ("|", "|&"):
                    return True
            for each in parent.children if parent.type == "redirected_statement" else ():
                if each.type != "file_redirect" and each.type in REDIRECTS:
                    return True
                if each.type == "file_redirect" and self._script.source(each).lstrip("0").startswith("<"):
                    return "/dev/null" not in self._script.source(each)
            child = parent
            parent = parent.parent
        return False

    def _in_background(self, step: Step) -> bool:
        """Report whether a step runs while the script goes on."""
        if any(name == "overlap" for name, _, _ in step.options):
            return False
        node: Node | None = step.node
        while node is not None and node.type != "program":
            after = node.next_sibling
            if after is not None and after.type == "&":
                return True
            node = node.parent
        return False


def put_distribution(out: Converted, where: str, value: str, layout: Layout) -> None:
    """Report the order of ranks over nodes."""
    if layout.nodes > 1 and layout.per_node > 1 and value.partition(":")[0].partition(",")[0] not in ("block", "*", ""):
        out.note(where, f"is {value}: ranks are numbered node by node", Result.CHANGED)
    else:
        out.drop(where, DROPPED["distribution"])


def note_binding(out: Converted, where: str, count: int) -> None:
    """Report the GPUs of each task."""
    devices = "a GPU" if count == 1 else f"{count} GPUs"
    out.note(where, f"run.command: each process of a step sees {devices} by CUDA_VISIBLE_DEVICES")


def bound_gpus(out: Converted, where: str, value: str | None, layout: Layout, present: int) -> int:
    """Return the number of GPUs that each task sees with ``--gpu-bind``; 0 for all."""
    text = (value or "").lower().removeprefix("verbose,").removeprefix("v,")
    kind, _, number = text.partition(":")
    if kind in ("none", "verbose", "v"):
        if kind == "none":
            out.drop(where, "all processes of a step see the GPUs of their replica")
            return 0
        return present
    count = whole_number(number) if kind == "per_task" else 1 if text == "single:1" else None
    in_order = ",".join(map(str, range(layout.per_node)))
    if kind == "map_gpu" and number == in_order:
        count = 1
    if count and count * layout.per_node <= layout.gpus:
        note_binding(out, where, count)
        return count
    if kind == "closest":
        out.note(where, "all processes of a step see the GPUs of their replica", Result.CHANGED)
        return present
    out.refuse(where, f"is {value or 'known only when the script runs'}: use per_task:N or --gpus-per-task")
    return present


def put_image(out: Converted, name: str, text: str) -> None:
    """Set the image from an address as enroot writes it, like ``nvcr.io#nvidia/pytorch:24.05-py3``."""
    image = text.removeprefix("docker://").replace("#", "/", 1)
    if text.endswith(".sqsh") or text.startswith(("/", ".", "dockerd:", "podman:")):
        out.refuse(name, f"{text} is a local image: push it to a registry, and submit with --image")
    elif "$" in text:
        out.refuse(name, f"{text} has a variable: submit with --image")
    elif out.get("run.image") not in (None, image):
        out.refuse(name, f"is {image}, but another step has {out.get('run.image')}: all steps of a job have one image")
    else:
        out.keep(name, "run.image", image)


def _base(text: str) -> str:
    words = text.split(maxsplit=1)
    return PurePath(words[0]).name if words else ""


def _is_srun(text: str) -> bool:
    return text == "srun" or text.endswith("/srun")


def _below(node: Node) -> Iterator[Node]:
    waiting = list(node.children)
    while waiting:
        each = waiting.pop()
        yield each
        waiting += each.children
