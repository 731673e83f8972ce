"""`seaway tenant`: owners of jobs, with their quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli.admin.queue_change import Seen, based_on_newest
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import Body, connect, currency_of
from seaway.domain.amounts import split_amounts
from seaway.domain.errors import RejectedError
from seaway.domain.numbers import whole_number
from seaway.domain.tenancy import DEFAULT

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.client.call import Call

app = typer.Typer(rich_markup_mode="rich")

QUOTA = "Quota in a pool"
AMOUNTS_METAVAR = "RESOURCE=AMOUNT,..."
Name = Annotated[str, typer.Argument(help="Name of the tenant.")]


@app.callback(invoke_without_command=True)
def tenants(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List, set and remove tenants, the owners of jobs. Viewers and users see only their own tenant.

    A row is a tenant in a pool, with the GPUs that its jobs hold and its quota.

    [bold]Examples[/bold]

      [cyan]seaway tenant[/cyan]
      [cyan]seaway tenant set vision --description "the vision team" --weight 2[/cyan]
      [cyan]seaway tenant set vision --limit gpus=32,jobs=100 --guarantee gpus=8 --max-waiting 500[/cyan]
      [cyan]seaway tenant set vision --pool gold --user-limit gpus=8[/cyan]
    """
    if context.invoked_subcommand:
        return
    from seaway.client.calls.queues import queue_usage
    from seaway.client.calls.tenancy import tenants as call
    from seaway.terminal.queues import TENANTS, tenant_rows
    from seaway.terminal.tables import Rows

    with connect(context) as client:
        body = client.body(call())
        plain = output in (Output.TABLE, Output.WIDE)
        totals = client.body(queue_usage()).get("tenants", []) if plain else []
        currency = currency_of(client, output)
    rows = tenant_rows(body["tenants"], totals)
    names = (each["name"] for each in body["tenants"])
    show(output, body, lambda wide: Rows(TENANTS, rows, wide=wide), lambda: names, currency)


@app.command("show")
def show_tenant(context: typer.Context, name: Name, output: OutputOption = Output.TABLE) -> None:
    """Show a tenant: its weight, and in each pool the amounts that its jobs hold with its quota.

    JSON and YAML add `totals` to the fields of the tenant.
    """
    from seaway.client.calls.queues import queue_usage
    from seaway.client.calls.tenancy import tenant
    from seaway.terminal.queues import tenant_detail

    with connect(context) as client:
        body = client.body(tenant(name))
        totals = [each for each in client.body(queue_usage()).get("tenants", []) if each["tenant"] == name]

    def picture(_: bool) -> RenderableType:
        from rich.console import Group

        return Group(*tenant_detail(body, totals))

    show(output, {**body, "totals": totals}, picture, lambda: [name])


@app.command("set")
def set_tenant(
    context: typer.Context,
    name: Name,
    description: Annotated[str | None, typer.Option(help="Description.")] = None,
    weight: Annotated[int | None, typer.Option(help="Share of a fair queue; 0 for no more than its guarantee.")] = None,
    secrets: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...", help="Secrets that its jobs may use; * stands for any text, and '' for none of them."
        ),
    ] = None,
    pool: Annotated[str, typer.Option(help="Pool that the quota applies to.", rich_help_panel=QUOTA)] = DEFAULT,
    guarantee: Annotated[
        str | None,
        typer.Option(
            metavar=AMOUNTS_METAVAR, help="Amounts that go before those of other tenants.", rich_help_panel=QUOTA
        ),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(
            metavar=AMOUNTS_METAVAR,
            help="Maximum amounts: gpus, gpus/MODEL, gpu_cores, gpu_memory, cpu, memory, jobs; '' for no limit.",
            rich_help_panel=QUOTA,
        ),
    ] = None,
    max_waiting: Annotated[
        str | None,
        typer.Option(metavar="N", help="Maximum number of waiting jobs; '' for no limit.", rich_help_panel=QUOTA),
    ] = None,
    user_limit: Annotated[
        str | None,
        typer.Option(metavar=AMOUNTS_METAVAR, help="Maximum amounts of each user.", rich_help_panel=QUOTA),
    ] = None,
    user_max_waiting: Annotated[
        str | None,
        typer.Option(metavar="N", help="Maximum number of waiting jobs of each user.", rich_help_panel=QUOTA),
    ] = None,
) -> None:
    """Create or change a tenant. Omitted options keep their value.

    A user is a token. The quota limits the jobs of the tenant in all queues of the pool together.

    [bold]Examples[/bold]

      [cyan]seaway tenant set vision --weight 2[/cyan]
      [cyan]seaway tenant set vision --limit gpus=32,gpus/A100=8,jobs=100 --max-waiting 500[/cyan]
      [cyan]seaway tenant set vision --pool gold --guarantee gpus=8 --user-limit gpus=4,jobs=10[/cyan]
      [cyan]seaway tenant set vision --limit '' --max-waiting ''[/cyan]
      [cyan]seaway tenant set vision --secrets hf,wandb-*[/cyan]
    """
    from seaway.cli.errors import warn_of

    quota: dict[str, Any] = {
        key: split_amounts(text, where=option)
        for key, option, text in (
            ("guarantee", "--guarantee", guarantee),
            ("limit", "--limit", limit),
            ("user_limit", "--user-limit", user_limit),
        )
        if text is not None
    }
    for key, option, text in (
        ("max_waiting", "--max-waiting", max_waiting),
        ("user_max_waiting", "--user-max-waiting", user_max_waiting),
    ):
        if text is not None:
            quota[key] = _number(text, option)

    def put(there: Body, seen: Seen | None) -> Call[Any]:
        from seaway.client.calls.tenancy import put_tenant

        quotas = dict(there.get("quotas", {}))
        if quota:
            quotas[pool] = {**quotas.get(pool, {}), **quota}
            if not any(value not in (None, {}) for value in quotas[pool].values()):
                del quotas[pool]
        return put_tenant(
            name,
            there.get("description", "") if description is None else description,
            weight=there.get("weight", 1) if weight is None else weight,
            quotas=quotas,
            secrets=there.get("secrets", ()) if secrets is None else list(filter(None, secrets.split(","))),
            seen=seen,
        )

    from seaway.client.calls.tenancy import tenant

    with connect(context) as client:
        existed, stored = based_on_newest(client, tenant(name), put)
    warn_of(stored)
    hint = "" if existed else f"; next: seaway token create --role user --tenant {name} NAME"
    typer.echo(f"tenant {name} is {'changed' if existed else 'created'}{hint}")


def _number(text: str, option: str) -> int | None:
    number = whole_number(text)
    if text and number is None:
        raise RejectedError(f"{text[:80]!r} is not a whole number; '' clears it", where=option)
    return number


@app.command()
def delete(context: typer.Context, name: Name) -> None:
    """Remove a tenant without queues and without unfinished jobs."""
    from seaway.client.calls.tenancy import delete_tenant

    with connect(context) as client:
        client.send(delete_tenant(name))
    typer.echo(f"tenant {name} is removed")
