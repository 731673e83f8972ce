"""Shell scripts as commands of containers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Mapping, Sequence
from pathlib import PurePath

from seaway.wire.fields import LONGEST_TEXT
from seaway.wire.job_imports.bash_syntax import PREFIXES, SHELLS, Script
from seaway.wire.job_imports.converted import Converted

LONG_LINE = 110
"""Length of a line of variables, characters."""

MAX_PARTS = 200
"""Maximum number of parts of a long script."""


_MPI = (
    "starts processes on other nodes by ssh, which pods do not run: start the program in each replica with torchrun, "
    "or its ranks by RANK and WORLD_SIZE; if the image runs sshd, give mpirun $SEAWAY_HOSTFILE, and add --ignore {name}"
)

HOSTS = "$(cut -d' ' -f1 \"$SEAWAY_HOSTFILE\")"
"""Names of the hosts of a gang in its shell, one per line."""


def script_command(script: str, name: str, shell: Sequence[str] = ("bash",)) -> list[str]:
    """Return the command that runs a script in a container.

    Kubernetes replaces ``$(NAME)`` and ``$$`` in commands, so both are escaped. A script that is longer than one word
    of a command may be is split.

    Raises
    ------
    ValueError
        If the script is too long.
    """
    text = re.sub(r"\$([$(])", lambda match: "$$$$" if match[1] == "$" else "$$(", script)
    if len(text) <= LONGEST_TEXT:
        return [*shell, "-c", text, name]
    parts = _parts(text)
    if len(parts) > MAX_PARTS:
        raise ValueError
    joined = "".join(f"${{{at}}}" for at in range(1, len(parts) + 1))
    again = f'exec {shlex.join(shell)} -c "$script" "$0" "$@"'
    return [*shell, "-c", f'script="{joined}"; shift {len(parts)}; {again}', name, *parts]


def _parts(text: str) -> list[str]:
    """Split a text, but not between two ``$`` of an escape."""
    parts: list[str] = []
    while text:
        end = LONGEST_TEXT
        while len(text) > end and text[end - 1] == "$":
            end -= 1
        parts.append(text[:end])
        text = text[end:]
    return parts


def put_script(out: Converted, field: str, script: str, name: str, shell: Sequence[str] = ("bash",)) -> None:
    """Set the command of the job to a script."""
    try:
        command = script_command(script, name, shell)
    except ValueError:
        out.refuse(field, f"is too long: at most {MAX_PARTS * LONGEST_TEXT // 1000:,} KB; put it in the image")
        return
    out.keep(field, "run.command", command, f"run.command: {shlex.join(shell)} -c with the commands")


def exports(known: Mapping[str, str]) -> str:
    """Return commands that set the variables of another scheduler; empty for none. Values may have variables."""
    lines: list[str] = []
    for name, value in known.items():
        text = f'{name}="{value}"' if "$" in value else f"{name}={shlex.quote(value)}"
        if lines and len(lines[-1]) + len(text) < LONG_LINE:
            lines[-1] += f" {text}"
        else:
            lines.append(f"export {text}")
    return "\n".join(lines)


def mentions(script: str, name: str) -> bool:
    """Report whether a script contains a variable or command."""
    return bool(re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", script))


def unknown(script: str, prefix: str, known: Container[str]) -> list[str]:
    """Return the variables with a prefix in a script that are not known."""
    found = re.findall(rf"(?<![A-Za-z0-9_]){prefix}[A-Z0-9_]+", script)
    return [name for name in dict.fromkeys(found) if name not in known]


def command_names(script: Script) -> set[str]:
    """Return the names of the commands of a script, without their folders; also those that other commands start."""
    found: set[str] = set()
    for node in script.of_type("command"):
        name = node.child_by_field_name("name")
        text = script.begins(name.named_children[0]).split() if name and name.named_children else []
        command = PurePath(text[0]).name if text else ""
        found.add(command)
        arguments = node.children_by_field_name("argument")
        if command in PREFIXES | SHELLS:
            words = (script.literal(each) or "" for each in arguments)
            found |= {PurePath(each).name for each in words if each and not each.startswith("-")}
        if command in SHELLS:
            for each in arguments:
                if each.type in ("string", "raw_string"):
                    found |= command_names(Script(script.source(each)[1:-1]))
    return found


def refuse_commands(out: Converted, names: set[str], nodes: int) -> bool:
    """Refuse commands that start containers, and on several nodes those of MPI. Report whether there are the latter."""
    for name in ("docker", "podman"):
        if name in names:
            out.refuse(name, "a container cannot start containers: submit with its image")
    found = [name for name in ("mpirun", "mpiexec") if nodes > 1 and name in names]
    for name in found:
        out.refuse(name, _MPI.format(name=name))
    return bool(found)
