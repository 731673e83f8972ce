"""Commands of `seaway`. Their modules are imported on use, so that each command starts fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import typer

JOBS, FLEET, SETUP, TRYING = "Jobs", "The fleet", "Set up", "Try out"


@dataclass(frozen=True, slots=True)
class Command:
    """Command, or group of commands.

    Attributes
    ----------
    name
        Name on the command line.
    panel
        Section of the help.
    module
        Module in `seaway.cli`.
    what
        Function or group in the module; empty for the command's name.
    """

    name: str
    panel: str
    module: str
    what: str = ""

    def join(self, app: typer.Typer) -> None:
        """Import it, and add it to the command line."""
        found = getattr(import_module(f"seaway.cli.{self.module}"), self.what or self.name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=self.name, rich_help_panel=self.panel)
        else:
            app.command(self.name, rich_help_panel=self.panel)(found)


COMMANDS = (
    Command("submit", JOBS, "jobs.submit"),
    Command("jobs", JOBS, "jobs.list"),
    Command("show", JOBS, "jobs.show", "show_job"),
    Command("explain", JOBS, "jobs.show"),
    Command("events", JOBS, "jobs.events"),
    Command("logs", JOBS, "jobs.logs"),
    Command("manifest", JOBS, "jobs.logs"),
    Command("cancel", JOBS, "jobs.actions"),
    Command("suspend", JOBS, "jobs.actions"),
    Command("resume", JOBS, "jobs.actions"),
    Command("reprioritize", JOBS, "jobs.actions"),
    Command("update", JOBS, "jobs.update"),
    Command("delete", JOBS, "jobs.actions"),
    Command("top", FLEET, "fleet.top"),
    Command("fleet", FLEET, "fleet.fleet", "app"),
    Command("metrics", FLEET, "fleet.fleet"),
    Command("links", FLEET, "fleet.links", "app"),
    Command("gateways", FLEET, "fleet.links"),
    Command("cordon", FLEET, "fleet.cordons"),
    Command("uncordon", FLEET, "fleet.cordons"),
    Command("drain", FLEET, "fleet.cordons"),
    Command("orphans", FLEET, "fleet.orphans", "app"),
    Command("whatif", FLEET, "fleet.whatif"),
    Command("network", SETUP, "admin.network", "app"),
    Command("queues", SETUP, "admin.queues", "app"),
    Command("pools", SETUP, "admin.pools", "app"),
    Command("tenants", SETUP, "admin.tenants", "app"),
    Command("token", SETUP, "admin.tokens", "app"),
    Command("audit", SETUP, "admin.tokens"),
    Command("login", SETUP, "admin.config"),
    Command("config", SETUP, "admin.config", "app"),
    Command("cluster", SETUP, "fleet.cluster", "app"),
    Command("gateway", SETUP, "admin.gateway", "app"),
    Command("agent", SETUP, "admin.agent"),
    Command("db", SETUP, "admin.db", "app"),
    Command("up", SETUP, "serving.up"),
    Command("train", TRYING, "learning.train"),
    Command("replay", TRYING, "learning.replay"),
    Command("evaluate", TRYING, "learning.evaluate"),
    Command("policies", TRYING, "learning.policies"),
    Command("simulate", TRYING, "serving.simulate", "app"),
)

WITH_VALUE = ("--server", "--profile")
"""Options before the command that take a value."""


def wanted(arguments: Sequence[str]) -> tuple[Command, ...]:
    """Return the commands that arguments name: one, or all if that is unclear."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in WITH_VALUE else 1 :]
    return tuple(each for each in COMMANDS if rest and each.name == rest[0]) or COMMANDS
