"""`seaway notification`: messages about jobs to webhooks, Slack and e-mail addresses."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from seaway.cli import arguments
from seaway.cli.errors import note
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import Body, connect, whole
from seaway.domain.errors import RejectedError, UnknownError

app = typer.Typer(rich_markup_mode="rich")

Name = Annotated[str, typer.Argument(help="Name of the notification.")]
Tenant = Annotated[
    str, typer.Option(help="Tenant that owns it. Default: your own; for operators the one for all tenants.")
]


@app.callback(invoke_without_command=True)
def notifications(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Send messages when jobs start, fail, are preempted, wait too long or finish.

    [bold]Examples[/bold]

      [cyan]seaway notification[/cyan]
      [cyan]seaway notification set ops --webhook https://example.com/hook --on failed,waits_too_long[/cyan]
      [cyan]seaway notification set team --slack - --queue vision < slack-url[/cyan]
      [cyan]seaway notification set mail --email ada@example.com --on finished --job train-17[/cyan]
      [cyan]seaway notification test ops[/cyan]
      [cyan]seaway notification dead ops[/cyan]
      [cyan]seaway notification resend ops[/cyan]
    """
    if context.invoked_subcommand:
        return
    from seaway.client.calls.notifications import notifications as call
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import NONE

    with connect(context) as client:
        body = client.body(call())
    rows = body["notifications"]
    columns = (
        Column("NOTIFICATION", lambda each: each["name"]),
        Column("TENANT", lambda each: each["tenant"] or "all"),
        Column("CHANNEL", lambda each: each["channel"]),
        Column("TO", _target, cut=True),
        Column("ON", _occasions, cut=True),
        Column("QUEUE", lambda each: each["queue"] or NONE, drop=1),
        Column("JOB", lambda each: each["job"] or NONE, drop=1),
        Column("WAITING", lambda each: str(each["waiting"])),
        Column("DEAD", lambda each: str(each["dead"])),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["name"] for each in rows))


def _target(row: Body) -> str:
    return ", ".join(row["addresses"]) or str(row["url"])


def _occasions(row: Body) -> str:
    return ", ".join(row["on"]) or "jobs that name it"


@app.command("show")
def show_notification(
    context: typer.Context, name: Name, tenant: Tenant = "", output: OutputOption = Output.TABLE
) -> None:
    """Show a notification: receiver, occasions, and numbers of undelivered messages."""
    from seaway.client.calls.notifications import notification as call
    from seaway.terminal.tables import details
    from seaway.terminal.words import day

    with connect(context) as client:
        body = client.body(call(name, tenant=tenant))
    facts = (
        ("notification", name),
        ("tenant", body["tenant"] or "all tenants"),
        ("channel", body["channel"]),
        ("to", _target(body)),
        ("on", _occasions(body)),
        ("queue", body["queue"]),
        ("job", body["job"]),
        ("wait limit", body["wait_limit"]),
        ("waiting", str(body["waiting"])),
        ("dead letters", str(body["dead"])),
        ("changed", f"{day(body['changed_at'])} by {body['changed_by']}"),
    )
    show(output, body, lambda _: details(facts), lambda: [name])


@app.command("set")
def set_notification(
    context: typer.Context,
    name: Name,
    webhook: Annotated[str, typer.Option(metavar="URL", help="Send signed requests to this URL.")] = "",
    slack: Annotated[
        str, typer.Option(metavar="URL", help="URL of an incoming webhook of Slack; '-' reads standard input.")
    ] = "",
    email: Annotated[list[str] | None, typer.Option("--email", help="E-mail address. Repeatable.")] = None,
    on: Annotated[
        str,
        typer.Option(
            help="Occasions: started, failed, preempted, waits_too_long, lease_expires, finished. "
            "Default: failed,preempted,finished. 'none' for messages only about jobs that name it."
        ),
    ] = "",
    queue: Annotated[
        str | None, typer.Option(help="Queue of the jobs; '' for all.", autocompletion=arguments.queues)
    ] = None,
    job: Annotated[str | None, typer.Option(help="Name or ID of the jobs; '' for all.")] = None,
    wait_limit: Annotated[str, typer.Option(metavar="TIME", help="Wait that is too long, like 2h. Default: 1h.")] = "",
    secret: Annotated[
        str,
        typer.Option(metavar="SECRET", help="Secret for signatures; '-' reads standard input. Default: a new one."),
    ] = "",
    tenant: Tenant = "",
) -> None:
    """Create a notification, or change some fields of one. A new secret is printed to standard output, only once."""
    from seaway.client.calls.notifications import notification, put_notification

    targets = {"webhook": webhook, "slack": slack, "email": email}
    given = [channel for channel, value in targets.items() if value]
    if len(given) > 1:
        raise RejectedError(f"give one of --webhook, --slack and --email, not {' and '.join(given)}")
    with connect(context) as client:
        try:
            before = client.body(notification(name, tenant=tenant))
        except UnknownError:
            if not given:
                raise RejectedError(
                    f"notification {name!r} does not exist; create it with --webhook, --slack or --email"
                ) from None
            before = None
        fields: dict[str, Any] = {
            each: before[each] for each in ("channel", "url", "addresses", "on", "queue", "job", "wait_limit") if before
        }
        if given:
            channel = given[0]
            fields |= {"channel": channel, "url": "", "addresses": email or []}
            if channel != "email":
                fields["url"] = _read(webhook or slack)
        if on:
            fields["on"] = [] if on == "none" else _words(on)
        changes = {"queue": queue, "job": job, "wait_limit": wait_limit, "secret": _read(secret)}
        fields |= {each: value for each, value in changes.items() if value}
        fields |= {each: "" for each, value in (("queue", queue), ("job", job)) if value == ""}
        after = client.body(put_notification(name, tenant=tenant, **fields))
    note(f"notification {name}: {after['channel']} to {_target(after)} on {_occasions(after)}")
    if after["secret"]:
        note("secret for signatures; it is shown this once:")
        typer.echo(after["secret"])


def _read(text: str) -> str:
    """Return an option, or standard input for ``-``."""
    return sys.stdin.read().strip() if text == "-" else text


def _words(text: str) -> list[str]:
    return [word for each in text.split(",") if (word := each.strip())]


@app.command("delete")
def delete(context: typer.Context, name: Name, tenant: Tenant = "") -> None:
    """Remove a notification with its undelivered messages."""
    from seaway.client.calls.notifications import delete_notification

    with connect(context) as client:
        client.send(delete_notification(name, tenant=tenant))
    typer.echo(f"notification {name} is removed")


@app.command("test")
def try_out(context: typer.Context, name: Name, tenant: Tenant = "") -> None:
    """Send a test message, and print whether its receiver accepted it."""
    from seaway.client.calls.notifications import try_notification

    with connect(context) as client:
        body = client.body(try_notification(name, tenant=tenant))
    if not body["delivered"]:
        note(f"not delivered: {body['error']}")
        raise typer.Exit(1)
    typer.echo("delivered")


@app.command("dead")
def dead(
    context: typer.Context,
    name: Name,
    every: Annotated[bool, typer.Option("--all", help="Also delivered messages and those tried again.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number, newest first.")] = 50,
    tenant: Tenant = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List dead letters: messages that are not tried again, with the reasons."""
    from seaway.client.calls.notifications import deliveries
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import day

    with connect(context) as client:
        body = whole(client, deliveries(name, tenant=tenant, state=None if every else "dead", limit=limit))
    rows = body["deliveries"]
    columns = (
        Column("ID", lambda each: each["id"]),
        Column("JOB", lambda each: each["job_name"], cut=True),
        Column("ON", lambda each: each["occasion"]),
        Column("STATE", lambda each: each["state"], drop=1),
        Column("AT", lambda each: day(each["created_at"])),
        Column("TRIES", lambda each: str(each["tries"]), drop=1),
        Column("ERROR", lambda each: each["error"], cut=True),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["id"] for each in rows))


@app.command("resend")
def resend(
    context: typer.Context,
    name: Name,
    ids: Annotated[list[str] | None, typer.Argument(help="IDs of dead letters. Default: all.", metavar="ID...")] = None,
    tenant: Tenant = "",
) -> None:
    """Send dead letters again."""
    from seaway.client.calls.notifications import resend as call

    with connect(context) as client:
        count = client.body(call(name, ids or (), tenant=tenant))["count"]
    typer.echo(f"{count} dead letters are sent again")


@app.command("drop")
def drop(context: typer.Context, name: Name, tenant: Tenant = "") -> None:
    """Remove the dead letters of a notification."""
    from seaway.client.calls.notifications import drop_deliveries

    with connect(context) as client:
        count = client.body(drop_deliveries(name, tenant=tenant))["count"]
    typer.echo(f"{count} dead letters are removed")
