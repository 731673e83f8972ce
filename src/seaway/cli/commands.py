"""Which commands there are, and where: a command is imported when it is asked for, so that each starts fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import typer

JOBS, FLEET, SETUP, TRYING = "Jobs", "The fleet", "Set up", "Try out"


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group of them.

    Attributes
    ----------
    name
        What the user types.
    panel
        Where the help lists it.
    module
        Its module in `seaway.cli`.
    what
        The function or the group there; empty for the command's name.
    """

    name: str
    panel: str
    module: str
    what: str = ""

    def join(self, app: typer.Typer) -> None:
        """Import it and put it into the command line."""
        found = getattr(import_module(f"seaway.cli.{self.module}"), self.what or self.name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=self.name, rich_help_panel=self.panel)
        else:
            app.command(self.name, rich_help_panel=self.panel)(found)


COMMANDS = (
    Command("submit", JOBS, "submit"),
    Command("jobs", JOBS, "jobs"),
    Command("show", JOBS, "show", "show_job"),
    Command("explain", JOBS, "explain"),
    Command("events", JOBS, "events"),
    Command("logs", JOBS, "logs"),
    Command("manifest", JOBS, "logs"),
    Command("cancel", JOBS, "steps"),
    Command("suspend", JOBS, "steps"),
    Command("resume", JOBS, "steps"),
    Command("reprioritize", JOBS, "steps"),
    Command("change", JOBS, "change"),
    Command("delete", JOBS, "steps"),
    Command("top", FLEET, "top"),
    Command("fleet", FLEET, "fleet", "app"),
    Command("metrics", FLEET, "metrics"),
    Command("links", FLEET, "links", "app"),
    Command("gateways", FLEET, "links"),
    Command("cordon", FLEET, "cordons"),
    Command("uncordon", FLEET, "cordons"),
    Command("drain", FLEET, "cordons"),
    Command("forget", FLEET, "forget"),
    Command("strays", FLEET, "strays", "app"),
    Command("whatif", FLEET, "whatif"),
    Command("network", SETUP, "network", "app"),
    Command("queues", SETUP, "queues", "app"),
    Command("pools", SETUP, "pools", "app"),
    Command("tenants", SETUP, "tenants", "app"),
    Command("token", SETUP, "tokens", "app"),
    Command("audit", SETUP, "tokens"),
    Command("login", SETUP, "config"),
    Command("config", SETUP, "config", "app"),
    Command("cluster", SETUP, "cluster", "app"),
    Command("gateway", SETUP, "gateway", "app"),
    Command("agent", SETUP, "agent"),
    Command("db", SETUP, "db", "app"),
    Command("grafana", SETUP, "grafana"),
    Command("up", SETUP, "up"),
    Command("train", TRYING, "train"),
    Command("replay", TRYING, "replay"),
    Command("evaluate", TRYING, "evaluate"),
    Command("policies", TRYING, "policies"),
    Command("simulate", TRYING, "simulate", "app"),
    Command("lab", TRYING, "lab", "app"),
)

WITH_VALUE = ("--server", "--profile")
"""Options before the command that take a value."""


def wanted(arguments: Sequence[str]) -> tuple[Command, ...]:
    """Return the commands that arguments need: the one that is asked for, or all where that is not clear."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in WITH_VALUE else 1 :]
    return tuple(each for each in COMMANDS if rest and each.name == rest[0]) or COMMANDS
