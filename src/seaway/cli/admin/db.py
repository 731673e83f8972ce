"""`seaway db`: the database, without a running server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from seaway.client.config import TOKEN_FILE, data_folder, found_by_commands

app = typer.Typer(
    help="Manage the database: prune, back up, restore, check, migrate, create an admin token.",
    epilog="All commands use the database of the data folder, unless --database or SEAWAY_DATABASE_URL names another.",
    no_args_is_help=True,
)


@app.callback()
def db(context: typer.Context) -> None:
    """Back up, restore, check and migrate the database. Only its owner can read the files."""
    from seaway.bootstrap.data import private

    context.with_resource(private())


Progress = Callable[[int, int], None]

MAX_NAMED = 20
"""Maximum number of tokens that are listed after a restore."""

Database = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="URL", envvar="SEAWAY_DATABASE_URL", help="sqlite:///, mysql:// or postgresql://."
    ),
]
Data = Annotated[Path | None, typer.Option("--data", help="Data folder.", show_default="~/.local/share/seaway")]


def url_of(database: str | None, data: Path | None) -> str:
    """Return the URL of the database.

    Raises
    ------
    RejectedError
        When the data folder has no database, or the SQLite file of the URL does not exist. Neither is created.
    """
    from seaway.domain.errors import RejectedError

    if database:
        from seaway.adapters.sqlalchemy.engines import read_url

        url = read_url(database)
        file = url.database or ""
        if url.get_backend_name() == "sqlite" and not file.startswith("file:") and not Path(file).exists():
            raise RejectedError(
                "this SQLite file does not exist; an absolute path starts with four slashes", where=file
            )
        return database
    path = (data or data_folder()).absolute() / "seaway.db"
    if not path.exists():
        raise RejectedError("no database yet; start `seaway up` first, or name one with --database", where=str(path))
    return f"sqlite:///{path}"


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Show the progress of long work on a terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    out = Console(stderr=True)
    with Bar(console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
    database: Database = None,
    data: Data = None,
) -> None:
    """Write a backup of the database to one file, without folders that jobs sent. The server can continue to run.

    The file can be restored to any kind of database: seaway db restore FILE --database postgresql://...
    """
    from seaway.adapters.sqlalchemy.backups import backup as write
    from seaway.domain.errors import RejectedError

    if file.exists():
        raise RejectedError("exists already; choose another name or remove it", where=str(file))
    with progress_bar("Backing up") as progress:
        rows = write(url_of(database, data), file, time.time_ns(), progress)
    typer.echo(f"{sum(rows.values()):,} rows of {len(rows)} tables are in {file} ({file.stat().st_size:,} bytes).")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="Backup file.", exists=True, dir_okay=False)],
    database: Database = None,
    data: Data = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the contents of the database.")] = False,
    revoke_tokens: Annotated[bool, typer.Option("--revoke-tokens", help="Revoke all tokens of the backup.")] = False,
) -> None:
    """Restore a backup completely, or change nothing. A server that still writes to the database is stopped.

    Tokens that were revoked in this database stay revoked. In another database, tokens that were revoked after the
    backup become valid again.
    """
    from seaway.adapters.sqlalchemy.backups import restore as read

    folder = (data or data_folder()).absolute()
    url = database or f"sqlite:///{folder / 'seaway.db'}"
    create = f"seaway db new-admin-token{f' --data {quote(str(data))}' if data else ''}"
    if not database:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with progress_bar("Restoring") as progress:
        restored = read(url, file, force=force, revoke_ns=time.time_ns() if revoke_tokens else None, progress=progress)
    typer.echo(f"{sum(restored.rows.values()):,} rows of {len(restored.rows)} tables are restored.")
    if restored.retained_revoked:
        typer.echo(f"Tokens that were revoked since the backup, and stay revoked: {restored.retained_revoked:,}.")
    if restored.holding:
        named = ", ".join(f"{name} ({token})" for name, token in restored.holding[:MAX_NAMED])
        more = f" and {len(restored.holding) - MAX_NAMED:,} more" if len(restored.holding) > MAX_NAMED else ""
        typer.echo(f"Valid tokens: {named}{more}.")
        typer.echo("Were some revoked elsewhere since? seaway token delete ID, or restore again with --revoke-tokens.")
        if not (folder / TOKEN_FILE).exists():
            typer.echo(f"None of them is in {folder}. Sign in with one (seaway login), or before the start: {create}")
    elif restored.rows.get("tokens"):
        typer.echo(f"No token is valid. Create one for an admin: {create}")


@app.command()
def check(database: Database = None, data: Data = None) -> None:
    """Check the integrity of the database; exit with 1 if it is damaged."""
    from seaway.adapters.sqlalchemy.maintenance import check as look

    with progress_bar("Checking") as progress:
        findings = look(url_of(database, data), progress)
    for finding in findings:
        typer.echo(finding)
    if findings:
        raise typer.Exit(1)
    typer.echo("The database is intact.")


@app.command()
def migrate(database: Database = None, data: Data = None) -> None:
    """Migrate the tables to this version of Seaway, after a backup. `seaway up` does both automatically."""
    from seaway.adapters.sqlalchemy.backups import back_up_before
    from seaway.adapters.sqlalchemy.schema import current
    from seaway.adapters.sqlalchemy.schema import migrate as bring_up

    url = url_of(database, data)
    if file := back_up_before(url, (data or data_folder()) / "backups", time.time_ns()):
        typer.echo(f"A backup from before the migration is {file}.")
    before = bring_up(url)
    now = current(url)
    typer.echo(
        f"The tables are at {now}." if before == now else f"The tables went from {before or 'nothing'} to {now}."
    )


@app.command()
def prune(
    database: Database = None,
    data: Data = None,
    jobs_days: Annotated[int, typer.Option(min=0, help="Retention of finished jobs.")] = 30,
    audit_days: Annotated[int, typer.Option(min=0, help="Retention of the audit log.")] = 365,
    samples_days: Annotated[int, typer.Option(min=0, help="Retention of samples of the fleet.")] = 30,
    keys_days: Annotated[int, typer.Option(min=0, help="Retention of idempotency keys.")] = 2,
    force: Annotated[bool, typer.Option("--force", help="Prune although the clock may have jumped forward.")] = False,
) -> None:
    """Remove old records. The server does this automatically, see its [database] settings."""
    from seaway.adapters.sqlalchemy.store import open_store
    from seaway.application.maintenance import prune as remove_old
    from seaway.bootstrap.scheduled_tasks import retention
    from seaway.bootstrap.settings import DatabaseSettings

    keep = DatabaseSettings(
        job_retention_days=jobs_days,
        audit_retention_days=audit_days,
        sample_retention_days=samples_days,
        idempotency_key_retention_days=keys_days,
    )
    store = open_store(url_of(database, data))
    try:
        removed = (store.prune if force else partial(remove_old, store))(retention(keep), time.time_ns())
    finally:
        store.close()
    for table, rows in removed.items():
        if rows:
            typer.echo(f"{table}: {rows:,}")
    typer.echo(f"{sum(removed.values()):,} rows removed.")


@app.command("new-admin-token")
def new_admin_token(database: Database = None, data: Data = None) -> None:
    """Create an admin token in the data folder after all others were lost. Stop the server first.

    Commands on this machine find it there. A server that still writes to the database is stopped.
    """
    from random import SystemRandom

    from seaway.adapters.sqlalchemy.store import open_store
    from seaway.application.access import Access
    from seaway.application.ports.clock import SystemClock
    from seaway.application.writer import Writer
    from seaway.bootstrap.data import DataFolder

    url = url_of(database, data)
    folder = DataFolder(data or data_folder())
    try:
        store = open_store(url)
        try:
            store.lead(f"{SystemRandom().getrandbits(64):016x}")
            access = Access(store, Writer(store), SystemClock())
            secret = access.new_admin_token("seaway db")
            holding = [token for token in access.tokens() if token.revoked_ns is None]
        finally:
            store.close()
        folder.write_token(secret)
    finally:
        folder.close()
    typer.echo(f"A new admin token is in {folder.admin_token}{found_by_commands(folder.path)}")
    if len(holding) > 1:
        typer.echo("Lost tokens are still valid: `seaway token list`, then `seaway token delete ID`.")
