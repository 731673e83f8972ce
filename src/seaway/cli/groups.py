"""Commands and groups of commands, imported when they run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Any

import typer
import typer.core
import typer.main
from typer.core import TyperGroup

from seaway.cli import INTERRUPTED
from seaway.cli.errors import note

ALIASES = {
    "ls": "list",
    "get": "show",
    "describe": "show",
    "rm": "delete",
    "remove": "delete",
    "revoke": "delete",
}
"""Other names of commands in groups."""


@dataclass(frozen=True, slots=True)
class Command:
    """Command, or group of commands.

    Attributes
    ----------
    name
        Name on the command line.
    panel
        Section of the help; empty to leave it out.
    module
        Module in `seaway.cli`; empty for a group that consists of other commands.
    what
        Function or group in the module; empty if it has the command's name.
    summary
        Line of the help; empty for the first one of its own help.
    group
        Group that also has it, with its name there if that differs, such as ``job list``.
    aliases
        Other names.
    kind
        Class of the command in the module; empty for the default.
    """

    name: str
    panel: str
    module: str
    what: str = ""
    summary: str = ""
    group: str = ""
    aliases: tuple[str, ...] = ()
    kind: str = ""

    @property
    def is_kind(self) -> bool:
        """True if it is a kind of objects, which `get` lists."""
        return self.panel in (GROUPS, FLEET) or (not self.panel and self.name.endswith("s"))

    @property
    def inside(self) -> str:
        """Name in its group."""
        return self.group.partition(" ")[2] or self.name


# Typer has no public names for the classes of commands and contexts.
AnyCommand = Any
AnyParameter = Any
AnyDescriptor = Any
Context = Any


@cache
def load(entry: Command, entries: tuple[Command, ...]) -> AnyCommand:
    """Import a command. A group gets those of `entries` that belong to it."""
    app = typer.Typer(add_completion=False, rich_markup_mode="rich", help=entry.summary, no_args_is_help=True)
    if entry.module:
        module = import_module(f"seaway.cli.{entry.module}")
        found = getattr(module, entry.what or entry.name)
        if not isinstance(found, typer.Typer):
            app.command(entry.name, cls=getattr(module, entry.kind) if entry.kind else None)(found)
            return typer.main.get_command(app)
        app = found
    app.info.cls = Group
    group: AnyCommand = typer.main.get_group(app)
    group.name = entry.name
    group.more = {
        each.inside: replace(each, name=each.inside, what=each.what or each.name)
        for each in entries
        if each.group.partition(" ")[0] == entry.name
    }
    return group


class LightConversion:
    """Conversion of the common values of a parameter without pydantic, which Typer would import for each command.

    Parameters
    ----------
    descriptor
        Type of the parameter in Typer.
    """

    def __init__(self, descriptor: AnyDescriptor) -> None:
        self._descriptor = descriptor

    def coerce(self, value: Any, param: AnyParameter, ctx: Context) -> Any:  # noqa: ANN401  # as in Typer
        """Convert a value. Typer converts those that are neither absent, the default, a text nor a choice."""
        kind, plain = self._descriptor.annotation, self._descriptor.parameter_info.parser is None
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if plain and kind == list[str]:
            return list(value)
        if plain and (kind is str or (type(value) is kind and value == param.default)):
            return value
        if plain and isinstance(kind, type) and issubclass(kind, StrEnum) and value in [*kind]:
            return kind(value)
        return BUILD(self._descriptor).coerce(value, param, ctx)


BUILD: Any = getattr(typer.core, "build_runtime_param", None)
"""Makes the conversion of a parameter in Typer; None in versions of Typer without pydantic."""

if BUILD is not None:
    setattr(typer.core, "build_runtime_param", LightConversion)  # noqa: B010  # a name that Typer does not export


class Group(TyperGroup):
    """Group with commands that are imported when they run, other names for them, and suggestions."""

    more: Mapping[str, Command] = {}
    """Further commands by name."""

    def names(self) -> dict[str, str]:
        """Return the command of each other name."""
        known = {*self.commands, *self.more}
        return {alias: name for alias, name in ALIASES.items() if alias not in known and name in known}

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names of the commands in the help."""
        return [*super().list_commands(ctx), *self.more]

    def get_command(self, ctx: Context, cmd_name: str) -> AnyCommand | None:
        """Return a command by name; None if there is none."""
        name = self.names().get(cmd_name, cmd_name)
        if name in self.more:
            return load(self.more[name], ())
        return super().get_command(ctx, name)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments. `list` is the group itself if that lists, and `help` its help."""
        if args[:1] in (["list"], ["ls"]) and self.invoke_without_command and self.get_command(ctx, args[0]) is None:
            args = args[1:]
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, AnyCommand | None, list[str]]:
        """Return the command of the arguments, or fail with suggestions."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            ctx.fail(f"No such command {name!r}. {self.suggestion(name, ctx.command_path)}")
        return super().resolve_command(ctx, args)

    def suggestion(self, name: str, path: str) -> str:
        """Return a hint for an unknown command."""
        near = list(dict.fromkeys(self.names().get(each, each) for each in self._near(name)))
        if near:
            return f"Did you mean {' or '.join(f'`{path} {each}`' for each in near)}?"
        return f"See `{path} --help`."

    def _near(self, name: str) -> list[str]:
        return get_close_matches(name, [*self.commands, *self.more, *self.names()], cutoff=0.7)


JOBS, FLEET, GROUPS, SERVER, TRYING = "Jobs", "Fleet", "Everything about one resource", "Server", "Try out"
"""Sections of the help."""

MEANT = {
    "apply": "submit",
    "create": "submit",
    "launch": "submit",
    "run": "submit",
    "sbatch": "submit",
    "srun": "submit",
    "kill": "cancel",
    "scancel": "cancel",
    "stop": "cancel",
    "requeue": "retry",
    "ssh": "exec",
    "shell": "exec",
    "tail": "logs -f",
    "sacct": "jobs --finished",
    "squeue": "jobs --waiting",
    "sinfo": "fleet",
    "sprio": "priority",
    "sreport": "history",
    "sshare": "share",
    "usage": "history",
    "quota": "tenant",
    "quotas": "tenant",
    "nodes": "fleet nodes",
    "node": "fleet nodes",
    "device": "fleet devices",
    "devices": "fleet devices",
    "gpus": "fleet devices",
    "slices": "fleet slices",
    "pause": "suspend",
    "hold": "suspend",
    "release": "resume",
    "edit": "update",
    "demo": "up",
    "start": "up",
    "server": "up",
    "users": "token",
    "version": "--version",
}
"""Commands of other tools, and ours for them."""


BEFORE_NAME: Mapping[str, list[str]] = {"nodes": [], "devices": ["--device"], "slices": ["--device"]}
"""Words between a kind and a name in our commands, if they are not `show`."""


UsageError: Any = typer.BadParameter.__base__
"""Error of the arguments of a command, which Typer does not export."""

PLAIN_ERRORS = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "must be a whole number",
    "Input should be a valid number, unable to parse string as a number": "must be a number",
    "Input should be": "must be",
}
"""Texts of Typer about the value of an option, and ours."""


def clarify(error: Any) -> None:  # noqa: ANN401  # no public class
    """Write an error about an option plainly, and suggest the options that begin like an unknown one."""
    for text, plain in PLAIN_ERRORS.items():
        error.message = error.message.replace(text, plain)
    given = getattr(error, "option_name", "")
    options = [name for each in (error.ctx.command.params if error.ctx else ()) for name in each.opts]
    if hasattr(error, "possibilities") and (begins := [name for name in options if name.startswith(given)]):
        error.possibilities = begins


class Top(Group):
    """The commands of `seaway`."""

    entries: tuple[Command, ...] = ()

    def names(self) -> dict[str, str]:
        """Return the command of each other name."""
        return {alias: each.name for each in self.entries for alias in each.aliases}

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names of all commands, for completion."""
        return [each.name for each in self.entries]

    def get_command(self, ctx: Context, cmd_name: str) -> AnyCommand | None:
        """Return a command by name; None if there is none."""
        name = self.names().get(cmd_name, cmd_name)
        entry = next((each for each in self.entries if each.name == name), None)
        return load(entry, self.entries) if entry else super().get_command(ctx, name)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, AnyCommand | None, list[str]]:
        """Return the command of the arguments. `get` and `describe` also take a kind before a name, as in kubectl."""
        if args[0] in ("get", "describe", "list", "ls") and len(args) > 1:
            _, kind, *rest = args
            known = MEANT.get(kind, self.names().get(kind, kind)).split()
            one = bool(rest) and not rest[0].startswith("-")
            if kind in ("job", "jobs"):
                args = ["show" if one else "jobs", *rest]
            elif any(each.name == known[0] and each.is_kind for each in self.entries):
                args = [*known, *(BEFORE_NAME.get(known[-1], ["show"]) if one else []), *rest]
        return super().resolve_command(ctx, args)

    def suggestion(self, name: str, path: str) -> str:
        """Return a hint for an unknown command."""
        return f"Did you mean `{path} {MEANT[name]}`?" if name in MEANT else super().suggestion(name, path)

    def _near(self, name: str) -> list[str]:
        return get_close_matches(name, [*(each.name for each in self.entries), *self.names()], cutoff=0.7)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments; none means the help."""
        return super().parse_args(ctx, args or ["--help"])

    def invoke(self, ctx: Context) -> Any:  # noqa: ANN401  # result of any command
        """Run the command. Ctrl-C ends it with a line and its usual exit code."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            clarify(error)
            raise
        except (KeyboardInterrupt, typer.Abort):
            note("\ninterrupted")
            raise typer.Exit(INTERRUPTED) from None

    def format_help(self, ctx: Context, formatter: Any) -> None:  # noqa: ANN401  # no public class
        """Write the help without importing any command, nor the library that draws."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        for panel in dict.fromkeys(each.panel for each in self.entries if each.panel):
            with formatter.section(typer.style(panel, bold=True)):
                formatter.write_dl(
                    [(typer.style(each.name, fg="cyan"), _line(each)) for each in self.entries if each.panel == panel]
                )
        options = [each.get_help_record(ctx) for each in self.get_params(ctx)]
        with formatter.section(typer.style("Options", bold=True)):
            formatter.write_dl([each for each in options if each])
        self.format_epilog(ctx, formatter)


def _line(entry: Command) -> str:
    return entry.summary or load(entry, ()).get_short_help_str(200)


def make_top(entries: Iterable[Command], callback: Any, **texts: str) -> typer.Typer:  # noqa: ANN401  # any function
    """Return the command line with some commands.

    Parameters
    ----------
    callback
        Reads the options before the command.
    texts
        Texts of the help.
    """
    kind = type("Seaway", (Top,), {"entries": tuple(entries)})
    app = typer.Typer(cls=kind, rich_markup_mode="rich", pretty_exceptions_enable=False, **texts)  # type: ignore[arg-type]
    app.callback()(callback)
    return app
