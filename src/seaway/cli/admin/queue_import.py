"""`seaway queue import`: queues of other schedulers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli.admin.queue_change import change
from seaway.cli.jobs.file import Kind, read_jobs
from seaway.cli.output import console
from seaway.cli.remote import Body, connect
from seaway.domain.errors import ConflictError, RejectedError

if TYPE_CHECKING:
    from seaway.client.sync import Client
    from seaway.domain.queues import Queue
    from seaway.wire.queue_imports.found import Found, FoundQueue

MAX_VALUES = 200_000
"""Maximum number of values in a document."""


def import_queues(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="File in YAML; - reads standard input.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and print the queues without storing them.")
    ] = False,
) -> None:
    """Import queues of Kueue, Volcano, or a scheduler-queues file.

    Prints the queues, and each field that cannot be imported with the reason. Parents are set before children. Tenant,
    pool and policy of existing queues stay.

    [bold]Examples[/bold]

      [cyan]seaway queue import scheduler-queues.yaml --dry-run[/cyan]
      [cyan]kubectl get clusterqueues,cohorts,resourceflavors,localqueues -A -o yaml | seaway queue import -[/cyan]
    """
    from seaway.client.calls.fleet import clusters, models
    from seaway.client.calls.queues import queues
    from seaway.wire.queue_imports.files import read_queues

    documents = read_jobs(file, Kind("queue", "queues: []", MAX_VALUES))
    with connect(context) as client:
        gpus = sum(each["gpus"] for each in client.body(clusters())["clusters"])
        try:
            found = read_queues([each.fields for each in documents], gpus)
        except RejectedError as error:
            raise RejectedError(error.message, where=file) from None
        _print(found)
        _check(found, client.body(queues())["queues"])
        if dry_run:
            _warn_of_models(found, [each["model"] for each in client.body(models())["models"]])
            typer.echo(f"{len(found.queues)} queues can be imported; nothing is changed")
            return
        _store(client, list(found.parents_first()))


def _warn_of_models(found: Found, products: Sequence[str]) -> None:
    """Warn of models of no GPU, as the server does when a queue is stored."""
    from seaway.cli.errors import warn
    from seaway.domain.amounts import unknown_models

    for queue in found.queues:
        for why in unknown_models({"guarantee": queue.guarantee, "limit": queue.limit}, products):
            warn(f"queue {queue.name}: {why}")


def _print(found: Found) -> None:
    from seaway.domain.amounts import amounts_text
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import NONE

    columns = (
        Column("FROM", lambda each: each["from"]),
        Column("QUEUE", lambda each: each["name"]),
        Column("PARENT", lambda each: each["parent"] or NONE),
        Column("WEIGHT", lambda each: str(each["weight"]), right=True),
        Column("PRIORITY", lambda each: str(each["priority"]), right=True, drop=4),
        Column("GUARANTEE", lambda each: each["guarantee"], cut=True),
        Column("LIMIT", lambda each: each["limit"], cut=True),
        Column("ORDER", lambda each: each["order"] or NONE, drop=3),
        Column("BACKFILL", lambda each: each["backfill"] or NONE, drop=2),
        Column("OPEN", lambda each: "no" if each["open"] is False else "yes", drop=1),
    )
    rows = [
        {
            **each.fields(),
            "from": each.source,
            "name": each.name,
            "guarantee": amounts_text(each.guarantee) if each.guarantee else NONE,
            "limit": amounts_text(each.limit) if each.limit else NONE,
        }
        for each in found.parents_first()
    ]
    console().print(Rows(columns, rows))
    if found.left:
        left = (
            Column("SOURCE", lambda each: each["source"]),
            Column("FIELD", lambda each: each["field"]),
            Column("NOT IMPORTED, OR CHANGED", lambda each: each["reason"], cut=True),
        )
        console().print("")
        console().print(Rows(left, [_row(each) for each in found.left]))
    console().print("")


def _row(left: Any) -> Body:  # noqa: ANN401  # a field of a file
    return {"source": left.source, "field": left.field, "reason": left.reason}


def _check(found: Found, there: list[Body]) -> None:
    """Check the tree as it will be.

    Raises
    ------
    RejectedError
        If it would be invalid.
    """
    from seaway.domain.queues import check_tree

    known = {each["name"]: each for each in there}
    after = {name: _queue(name, body, {}) for name, body in known.items()}
    for each in found.queues:
        with _naming(each):
            after[each.name] = _queue(each.name, known.get(each.name, {}), each.fields())
    for each in found.queues:
        with _naming(each):
            check_tree(after[each.name], after.values())


@contextmanager
def _naming(queue: FoundQueue) -> Iterator[None]:
    """Name the queue of the file in errors."""
    try:
        yield
    except RejectedError as error:
        raise RejectedError(error.message, where=": ".join(filter(None, (queue.source, error.where)))) from None


def _queue(name: str, body: Mapping[str, Any], changed: Mapping[str, Any]) -> Queue:
    from seaway.wire.queues import QueueIn

    fields = {key: value for key, value in body.items() if key in QueueIn.model_fields}
    fields |= {key: value for key, value in changed.items() if value is not None}
    return QueueIn(**fields).queue(name)


def _store(client: Client, queues: list[FoundQueue]) -> None:
    """Set the queues. One that is rejected is tried again after the others, whose guarantees may make room for it."""
    from seaway.cli.errors import naming, warn_of

    waiting, done = queues, list[str]()
    with naming(done):
        while waiting:
            later: list[tuple[FoundQueue, ConflictError | RejectedError]] = []
            for each in waiting:
                try:
                    there, stored = change(client, each.name, each.fields())
                    done.append(each.name)
                    warn_of(stored)
                    typer.echo(f"queue {each.name} is {'changed' if there else 'made'}")
                except (ConflictError, RejectedError) as error:
                    later.append((each, error))
            if len(later) == len(waiting):
                raise _first(later)
            waiting = [each for each, _ in later]


def _first(failed: list[tuple[FoundQueue, ConflictError | RejectedError]]) -> ConflictError | RejectedError:
    queue, error = failed[0]
    names = ", ".join(each.name for each, _ in failed)
    text = f"{error.message if isinstance(error, RejectedError) else error}; not stored: {names}"
    return RejectedError(text, where=f"queue {queue.name}") if isinstance(error, RejectedError) else ConflictError(text)
