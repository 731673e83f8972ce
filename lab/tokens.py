"""Tokens of a lab's agents, created and revoked with the lab."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seaway.domain.errors import SeawayError

if TYPE_CHECKING:
    import typer

    from lab.lab import Lab
    from seaway.client.sync import Client

FILE = "tokens.json"
"""File in the lab's folder."""
LAST = "30d"
"""Lifetime of tokens that are not revoked."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Record of a lab's tokens.

    Attributes
    ----------
    server
        URL of their server.
    ids
        Their IDs, without secrets.
    """

    server: str
    ids: list[str]


def make(client: Client, server: str, lab: Lab) -> dict[str, str]:
    """Create a token for each gateway of a lab, revoke those of a previous lab of that name, and return the secrets."""
    from seaway.client.calls.service import create_token, tokens

    names = {spot.gateway: f"lab-{lab.plan.name}-{spot.gateway}" for spot in lab.plan.spots}
    own = re.compile(rf"lab-{re.escape(lab.plan.name)}-gw-[0-9]+")
    there = client.body(tokens())["tokens"]
    _revoke(client, (each["id"] for each in there if own.fullmatch(each["name"]) and not each["revoked_at"]))
    secrets, ids = {}, []
    for gateway, name in names.items():
        body = client.body(create_token(name, role="agent", gateway=gateway, expires_in=LAST))
        ids.append(body["id"])
        (lab.folder / FILE).write_text(json.dumps(asdict(Noted(server, ids))))
        secrets[gateway] = body["secret"]
    return secrets


def noted(folder: Path) -> Noted | None:
    """Return the recorded tokens of a lab by its folder; None without a record."""
    try:
        return Noted(**json.loads((folder / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def revoke(context: typer.Context, tokens: Noted | None) -> None:
    """Revoke a lab's tokens; print the command instead if their server is unreachable or another is configured."""
    from seaway.cli.errors import note
    from seaway.cli.remote import connect, target

    if tokens is None:
        return
    try:
        if target(context).server == tokens.server:
            with connect(context) as client:
                _revoke(client, tokens.ids)
            return
        why = "another server is meant"
    except SeawayError as error:
        why = str(error)
    how = f"seaway --server {tokens.server} token delete {' '.join(tokens.ids)}"
    note(f"the tokens of its agents hold on for {LAST} at most ({why}); to revoke them:\n  {how}")


def _revoke(client: Client, ids: Iterable[str]) -> None:
    from seaway.client.calls.service import revoke_token
    from seaway.client.errors import UnknownError

    for each in ids:
        try:
            client.body(revoke_token(each))
        except UnknownError:
            continue  # it was removed since
