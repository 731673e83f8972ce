"""What the shipped configuration of Prometheus says of its token."""

from __future__ import annotations

import re
from pathlib import Path

from seaway.application.records import Role

DEPLOY = Path(__file__).parents[1] / "deploy"
COMMAND = re.compile(r"seaway token create prometheus --role (\w+)(.*?)(?= > token|`|$)", re.MULTILINE)


def token_commands(text: str) -> set[tuple[str, str]]:
    """Return the roles that a text has Prometheus' token made with, and what else is said to the command."""
    return {(role, more.strip()) for role, more in COMMAND.findall(text)}


def scraper_role() -> Role:
    """Return the role of Prometheus' token, as its configuration says."""
    ((role, _),) = token_commands((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    return Role(role)
