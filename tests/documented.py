"""The token in the shipped configuration of Prometheus."""

from __future__ import annotations

import re
from pathlib import Path

from seaway.application.records import Role

DEPLOY = Path(__file__).parents[1] / "deploy"
COMMAND = re.compile(r"seaway token create prometheus --role (\w+)(.*?)(?= > token|`|$)", re.MULTILINE)


def token_commands(text: str) -> set[tuple[str, str]]:
    """Return the roles of Prometheus' token in a text, with the other arguments of the command."""
    return {(role, more.strip()) for role, more in COMMAND.findall(text)}


def scraper_role() -> Role:
    """Return the role of Prometheus' token from its configuration."""
    ((role, _),) = token_commands((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    return Role(role)
