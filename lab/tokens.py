"""The tokens of a lab's agents: made for it alone, and revoked with it."""

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
"""In the lab's folder."""
LAST = "30d"
"""For how long they hold, should no one revoke them."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Which tokens a lab has.

    Attributes
    ----------
    server
        Whose they are.
    ids
        Not their secrets.
    """

    server: str
    ids: list[str]


def make(client: Client, server: str, lab: Lab) -> dict[str, str]:
    """Make a token for each gateway of a lab; return their secrets. Those of a lab of that name before are revoked."""
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
    """Return which tokens a lab has, by its folder; None when it has none."""
    try:
        return Noted(**json.loads((folder / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def revoke(context: typer.Context, tokens: Noted | None) -> None:
    """Revoke a lab's tokens, or say how, where their server does not answer or the user means another."""
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
    how = f"seaway --server {tokens.server} token revoke {' '.join(tokens.ids)}"
    note(f"the tokens of its agents hold on for {LAST} at most ({why}); to revoke them:\n  {how}")


def _revoke(client: Client, ids: Iterable[str]) -> None:
    from seaway.client.calls.service import revoke_token
    from seaway.client.errors import UnknownError

    for each in ids:
        try:
            client.body(revoke_token(each))
        except UnknownError:
            continue  # it was cleared away meanwhile
