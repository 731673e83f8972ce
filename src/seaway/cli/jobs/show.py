"""`seaway show` and `seaway explain`: one job in detail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.arguments import Job
from seaway.cli.output import Output, OutputOption, as_json, as_yaml, show
from seaway.cli.remote import Body, connect, currency_of, whole
from seaway.domain.usage import UsageSpan

if TYPE_CHECKING:
    from rich.console import RenderableType


def show_job(
    context: typer.Context,
    job: Job,
    spec: Annotated[bool, typer.Option("--spec", help="Print the request as YAML for `seaway submit -f`.")] = False,
    normalised: Annotated[
        bool, typer.Option("--normalised", help="Print the job as the scheduler sees it, as JSON.")
    ] = False,
    span: Annotated[UsageSpan, typer.Option("--span", help="Length of the measured GPU use.")] = UsageSpan.DAY,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a job: state, reason, cost, measured GPU use, request, the addresses of its ports, and all attempts.

    The cost is the price of the held GPUs times the time, so far and per hour. "≥" marks a cost without GPUs whose
    price is unknown.

    [bold]Examples[/bold]

      [cyan]seaway show train[/cyan]

    Submit a changed copy of a job:

      [cyan]seaway show train --spec > job.yaml; seaway submit -f job.yaml --replicas 4[/cyan]
    """
    from seaway.client.call import Paged
    from seaway.client.calls import jobs as calls

    with connect(context) as client:
        if normalised:
            typer.echo(as_json(client.body(calls.normalised(job))))
            return
        body = client.body(calls.job(job))
        if spec:
            typer.echo(as_yaml(body["spec"]), nl=False)
            return
        plain = output in (Output.TABLE, Output.WIDE)
        ran = whole(client, Paged(calls.attempts(body["id"]), "attempts")) if plain else {}
        if plain:
            use = calls.gpu_use(body["id"], limit=1, span=span.value)
            cost = {**client.body(calls.cost(body["id"])), "currency": currency_of(client, output)}
            body |= {"cost": cost, "gpu_use": client.body(use)}
    show(output, body, lambda wide: _picture(body, ran, wide=wide), lambda: [body["id"]])


def _picture(body: Body, ran: Body, *, wide: bool) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from seaway.terminal.tables import ATTEMPT_COLUMNS, ENDPOINT_COLUMNS, Rows, addresses, containers, facts, ring

    attempts, workloads = ran["attempts"], ran["workloads"]
    ends = attempts[-1].get("expected_end") if attempts else None
    shown: list[RenderableType] = [facts({**body, "expected_end": ends})]
    if endpoints := addresses(body) if body.get("standby") else [each for it in workloads for each in it["endpoints"]]:
        shown += ["", Rows(ENDPOINT_COLUMNS, endpoints, wide=wide)]
    drift = [(copy["cluster"], each["message"]) for copy in workloads for each in copy["drift"]]
    shown += [f"[yellow]changed in {cluster}:[/yellow] {change}" for cluster, change in drift]
    if ran.get("ring"):
        shown += ["", ring(ran["ring"], wide=wide)]
    if attempts:
        shown += ["", Rows(ATTEMPT_COLUMNS, attempts, wide=wide)]
    if wide:
        shown += ["", containers(workloads)] if workloads else []
        shown += ["", "[bold]request[/bold]", Text(as_yaml(body["spec"]).rstrip())]
    return Group(*shown)


def explain(
    context: typer.Context,
    job: Job,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            help=(
                "Once: position in the queue, and nodes excluded by each rule. Twice: scores of all "
                "candidates, and changes that would admit the job."
            ),
            show_default=False,
        ),
    ] = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Explain the state and placement of a job: in one sentence, with -v in a few lines, with -vv in full.

    [bold]Examples[/bold]

      [cyan]seaway explain train[/cyan]
      [cyan]seaway explain train -vv[/cyan]
    """
    from seaway.client.calls.jobs import explain as asked
    from seaway.terminal.reasons import picture

    with connect(context) as client:
        body = client.body(asked(job))
    show(output, body, lambda wide: picture(body, verbose + wide), lambda: [body["id"]])


def priority(context: typer.Context, job: Job, output: OutputOption = Output.TABLE) -> None:
    """Show what orders a waiting job: each queue on its path, its tenant, and the job itself, with all factors.

    PLACE is the place among the siblings with waiting jobs. A queue or tenant whose guarantee has room goes first, then
    the higher PRIORITY, then the smaller VALUE: SHARE beyond the guarantee plus PAST share, divided by WEIGHT. Of a
    job, VALUE is its priority with AGEING, and the larger goes first. AHEAD lists the first ones before it.

    [bold]Examples[/bold]

      [cyan]seaway priority train[/cyan]
      [cyan]seaway priority 6hhgq2g019edv -o json[/cyan]
    """
    from seaway.client.calls.queues import priority as asked
    from seaway.terminal.queues import FACTORS
    from seaway.terminal.tables import Rows

    with connect(context) as client:
        body = client.body(asked(job))
    show(output, body, lambda wide: Rows(FACTORS, body["factors"], wide=wide), lambda: [body["id"]])
