"""`seaway cancel`, `suspend`, `resume`, `failover`, `renew`, `reprioritize`, `scale`, `delete`: actions on jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli.arguments import Job, Jobs, Reason
from seaway.cli.remote import Body, connect, each_of

if TYPE_CHECKING:
    from seaway.client.call import Call


def cancel(context: typer.Context, jobs: Jobs, reason: Reason = "") -> None:
    """Cancel jobs. Their records remain.

    [bold]Examples[/bold]

      [cyan]seaway cancel train[/cyan]
      [cyan]seaway cancel $(seaway jobs -q batch -o name) --reason "new data"[/cyan]
    """
    from seaway.client.calls.jobs import cancel as call

    _step(context, jobs, lambda job: call(job, reason))


def suspend(context: typer.Context, jobs: Jobs, reason: Reason = "") -> None:
    """Suspend jobs until a user resumes them. They release their resources.

    [bold]Example[/bold]

      [cyan]seaway suspend train --reason "until Monday"[/cyan]
    """
    from seaway.client.calls.jobs import suspend as call

    _step(context, jobs, lambda job: call(job, reason))


def resume(context: typer.Context, jobs: Jobs, reason: Reason = "") -> None:
    """Resume suspended jobs: return them to their queues.

    [bold]Example[/bold]

      [cyan]seaway resume train[/cyan]
    """
    from seaway.client.calls.jobs import resume as call

    _step(context, jobs, lambda job: call(job, reason))


def failover(context: typer.Context, jobs: Jobs, reason: Reason = "") -> None:
    """Switch services to their standby in another cluster.

    Both copies of a warm standby run on and change roles. A service with a cold standby stops, and starts elsewhere.

    [bold]Example[/bold]

      [cyan]seaway failover chat --reason "maintenance of gpu-east"[/cyan]
    """
    from seaway.client.calls.jobs import failover as call

    def said(after: Body) -> str:
        return f"is active in {', '.join(after['clusters'])}" if after["standby"]["other"] else "moves elsewhere"

    _step(context, jobs, lambda job: call(job, reason), said)


def renew(context: typer.Context, jobs: Jobs, reason: Reason = "") -> None:
    """Renew the leases of running jobs. Each counts from now again.

    [bold]Example[/bold]

      [cyan]seaway renew notebook[/cyan]
    """
    from seaway.client.calls.jobs import renew as call
    from seaway.terminal.words import day

    def said(after: Body) -> str:
        return f"holds its devices until {day(after['expires_at'])}"

    _step(context, jobs, lambda job: call(job, reason), said)


def retry(context: typer.Context, jobs: Jobs, reason: Reason = "") -> None:
    """Run failed, cancelled or skipped jobs again, or the failed tasks of arrays.

    [bold]Examples[/bold]

      [cyan]seaway retry train[/cyan]
      [cyan]seaway retry sweep_7 sweep_9[/cyan]
    """
    from seaway.client.calls.jobs import retry as call

    _step(context, jobs, lambda job: call(job, reason))


def reprioritize(
    context: typer.Context,
    job: Job,
    priority: Annotated[int, typer.Argument(help="Priority; higher goes first. Jobs have 0 by default.", metavar="N")],
) -> None:
    """Change the priority of a job. A running job continues.

    [bold]Example[/bold]

      [cyan]seaway reprioritize train 100[/cyan]      (for less than 0: seaway reprioritize train -- -5)
    """
    from seaway.client.calls.jobs import update

    _step(
        context,
        [job],
        lambda each: update(each, {"priority": priority}),
        lambda after: f"has priority {after['priority']}",
    )


def scale(
    context: typer.Context,
    job: Job,
    replicas: Annotated[int, typer.Argument(help="Number of replicas.", metavar="N", min=1)],
) -> None:
    """Change the number of replicas of a job.

    Services, elastic jobs and jobs of independent replicas continue: replicas are added as room is found, and removed
    where whole nodes become free. Other jobs restart.

    [bold]Example[/bold]

      [cyan]seaway scale chat 4[/cyan]
    """
    from seaway.client.calls.jobs import job as show
    from seaway.client.calls.jobs import update

    with connect(context) as client:
        before = client.body(show(job))
    elastic, held = isinstance(before["spec"].get("replicas"), dict), before["held_replicas"] or before["replicas"]
    patch = {"replicas": {"wanted": replicas} if elastic else replicas}
    said = f"and gets {replicas} replica{'s' * (replicas != 1)}{' if there is room' * (elastic and replicas > held)}"
    _step(context, [job], lambda each: update(each, patch), lambda after: f"is {after['state']}, {said}")


def delete(context: typer.Context, jobs: Jobs) -> None:
    """Delete jobs: cancel them if they run, and hide their records.

    [bold]Example[/bold]

      [cyan]seaway delete $(seaway jobs -s failed -o name)[/cyan]
    """
    from seaway.client.calls.jobs import delete as call

    with connect(context) as client:

        def take(job: str) -> None:
            client.send(call(job))
            typer.echo(f"{job} is deleted")

        each_of(jobs, take)


def _step(
    context: typer.Context,
    jobs: list[str],
    call: Callable[[str], Call[Any]],
    said: Callable[[Body], str] = lambda after: f"is {after['state']}",
) -> None:
    with connect(context) as client:

        def take(job: str) -> None:
            after = client.body(call(job))
            typer.echo(f"{after['name']} ({after['id']}) {said(after)}")

        each_of(jobs, take)
