"""`seaway token` and `seaway audit`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli import arguments
from seaway.cli.errors import note
from seaway.cli.output import Output, OutputOption, as_json, as_yaml, show
from seaway.cli.remote import Body, connect, each_of, whole
from seaway.domain.errors import UnknownError

if TYPE_CHECKING:
    from rich.text import Text

app = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)


class Role(StrEnum):
    """Permissions of a token."""

    AGENT = "agent"
    VIEWER = "viewer"
    MONITOR = "monitor"
    USER = "user"
    OPERATOR = "operator"
    ADMIN = "admin"


@app.callback()
def token() -> None:
    """Manage API tokens (requires the admin role).

    [bold]Examples[/bold]

      [cyan]seaway token create ada --tenant vision[/cyan]
      [cyan]seaway token list[/cyan]
      [cyan]seaway token delete 1a2b3c4d5e6f[/cyan]
    """


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the user or program. It is recorded with all its actions.")],
    role: Annotated[
        Role,
        typer.Option(
            help=(
                "agent: report for a gateway. viewer: read. monitor: read, of all tenants. user: submit jobs. "
                "operator: cordon nodes, set up queues. admin: all."
            )
        ),
    ] = Role.USER,
    tenant: Annotated[str, typer.Option(help="Tenant of the token; required for viewers and users.")] = "",
    gateway: Annotated[str, typer.Option(help="Gateway of an agent; required for agents.")] = "",
    expires_in: Annotated[
        str | None, typer.Option(metavar="TIME", help="Lifetime, like 30d. Default: unlimited.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a token, and print it to standard output. It is shown only once.

    [bold]Examples[/bold]

      [cyan]seaway token create ada --tenant vision[/cyan]
      [cyan]seaway token create ci --role operator --expires-in 90d > token[/cyan]
      [cyan]seaway token create prometheus --role monitor > token[/cyan]
      [cyan]seaway token create gw-1 --role agent --gateway gw-1 > token[/cyan]
    """
    from seaway.client.calls.service import create_token

    with connect(context) as client:
        body = client.body(create_token(name, role=role.value, tenant=tenant, gateway=gateway, expires_in=expires_in))
    if output is Output.JSON:
        typer.echo(as_json(body))
    elif output is Output.YAML:
        typer.echo(as_yaml(body), nl=False)
    else:
        note(f"token {body['name']} ({body['id']}), role {body['role']}; it is shown this once:")
        typer.echo(body["secret"])


@app.command("list")
def list_tokens(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List all tokens, including revoked ones. Secrets are not stored."""
    from seaway.client.calls.service import tokens as call
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import NONE, day

    with connect(context) as client:
        body = client.body(call())
    rows = body["tokens"]
    columns = (
        Column("ID", lambda each: each["id"]),
        Column("NAME", lambda each: each["name"]),
        Column("ROLE", lambda each: each["role"]),
        Column("TENANT", lambda each: each["tenant"] or NONE),
        Column("GATEWAY", lambda each: each.get("gateway") or NONE, drop=1),
        Column("HOLDS", _holds),
        Column("USED", lambda each: day(each["last_used_at"]) if each.get("last_used_at") else NONE, drop=1),
        Column("MADE", lambda each: day(each["created_at"]), drop=1),
        Column("BY", lambda each: each["created_by"], drop=2),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["id"] for each in rows))


@app.command("show")
def show_token(
    context: typer.Context,
    token: Annotated[str, typer.Argument(help="ID of the token, from `seaway token list`.", metavar="ID")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a token: role, tenant and lifetime. Its secret is not stored."""
    from seaway.client.calls.service import tokens as call
    from seaway.terminal.tables import details
    from seaway.terminal.words import day

    with connect(context) as client:
        body = next((each for each in client.body(call())["tokens"] if each["id"] == token), None)
    if body is None:
        raise UnknownError(f"token {token!r} not found")
    facts = (
        ("id", body["id"]),
        ("name", body["name"]),
        ("role", body["role"]),
        ("tenant", body["tenant"]),
        ("gateway", body.get("gateway") or ""),
        ("holds", _holds(body)),
        ("made", f"{day(body['created_at'])} by {body['created_by']}"),
    )
    show(output, body, lambda _: details(facts), lambda: [token])


@app.command("delete")
def revoke(
    context: typer.Context,
    tokens: Annotated[list[str], typer.Argument(help="IDs of the tokens, from `seaway token list`.", metavar="ID...")],
    force: Annotated[bool, typer.Option("--force", help="Revoke even the last admin token.")] = False,
) -> None:
    """Revoke tokens. They stop working immediately."""
    from seaway.client.calls.service import revoke_token

    with connect(context) as client:

        def take(token: str) -> None:
            typer.echo(f"token {client.body(revoke_token(token, force=force))['name']} ({token}) is revoked")

        each_of(tokens, take)


def audit(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number, newest first.")] = 50,
    actor: Annotated[str, typer.Option(help="Filter by caller.")] = "",
    contains: Annotated[
        str, typer.Option(metavar="TEXT", help="Filter by a part of the operation, the object or the changes.")
    ] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="Earliest time: an age like 2h, a date or a time.")] = "",
    until: Annotated[str, typer.Option(metavar="TIME", help="Latest time; as with --since.")] = "",
    questions: Annotated[
        bool, typer.Option("--questions", help="Include what-if questions, which change nothing.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the audit log of all requests, with the values that they changed (requires the admin role).

    [bold]Examples[/bold]

      [cyan]seaway audit --contains quotas --since 7d[/cyan]
      [cyan]seaway audit --limit 1000 -o json | jq '.entries[] | select(.status >= 400)'[/cyan]
    """
    from seaway.client.calls.service import audit as call
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import day

    with connect(context) as client:
        body = whole(
            client,
            call(
                limit=limit,
                actor=actor,
                contains=contains,
                since=arguments.moment(since, "--since") if since else "",
                until=arguments.moment(until, "--until") if until else "",
                questions=questions,
            ),
        )
    rows = body["entries"]
    columns = (
        Column("AT", lambda each: day(each["at"])),
        Column("WHO", lambda each: each["actor"] or "unknown"),
        Column("ROLE", lambda each: each["role"], drop=2),
        Column("DID", lambda each: each["verb"], cut=True),
        Column("TO", lambda each: each["target"], cut=True, drop=1),
        Column("CHANGES", _changes, cut=True),
        Column("STATUS", _status),
        Column("FROM", lambda each: each["address"], drop=3),
        Column("REQUESTS", lambda each: str(each["requests"]), drop=4),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (str(each["id"]) for each in rows))


def _holds(token: Body) -> Text:
    from datetime import UTC, datetime

    from rich.text import Text

    from seaway.terminal.words import day, moment

    if token["revoked_at"]:
        return Text(f"revoked {day(token['revoked_at'])}", "red")
    if not token["expires_at"]:
        return Text("for ever", "green")
    over = moment(token["expires_at"]) <= datetime.now(UTC)
    return Text(f"{'expired' if over else 'until'} {day(token['expires_at'])}", "red" if over else "green")


def _changes(entry: Body) -> str:
    return ", ".join(f"{each['field']} {each['before'] or '-'} -> {each['after'] or '-'}" for each in entry["changes"])


def _status(entry: Body) -> Text:
    from rich.text import Text

    return Text(str(entry["status"]), "green" if entry["status"] < 400 else "red")
