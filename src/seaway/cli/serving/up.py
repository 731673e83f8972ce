"""`seaway up`: the whole control plane in one process."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from seaway.cli.output import Output
from seaway.cli.serving.stopping import StopSignals
from seaway.domain.errors import RejectedError


def up(
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 for any free one.", show_default="8080")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder for database, backups and tokens; SEAWAY_DATA sets it for all commands.",
            show_default="~/.local/share/seaway",
        ),
    ] = None,
    fleet: Annotated[
        str | None, typer.Option(help="Simulated clusters: demo, or a fleet file.", show_default="demo")
    ] = None,
    simulated: Annotated[
        str | None,
        typer.Option(metavar="URL", help="URL of simulated clusters in another process (seaway simulate serve)."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(metavar="URL", help="sqlite:///, mysql:// or postgresql://.", show_default="SQLite in --data"),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings file in TOML: docs/settings.md.")] = None,
    tls_certificate: Annotated[Path | None, typer.Option(help="TLS certificate in PEM format.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Private key in PEM format.")] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Treat all callers as admins. Only on loopback, for tests.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Run a demo workload on a simulated clock until it completes, then exit.")
    ] = False,
    output: Annotated[
        Output | None, typer.Option("--output", "-o", help="Output format of --once.", show_default="table")
    ] = None,
) -> None:
    r"""Start the server: REST API, web pages and control loop, until Ctrl-C or SIGTERM.

    Without options it listens on 127.0.0.1:8080, stores its state in a SQLite database, and uses three small simulated
    clusters. Commands on this machine find the server and its first token automatically.

    Settings come from options, then from variables like SEAWAY_SERVER_PORT, then from the file of --config.
    `seaway config show --server` shows each setting and its source.

    [bold]Examples[/bold]

      [cyan]seaway up --port 9090 --data /var/lib/seaway[/cyan]

    With a settings file:

      [cyan]printf '\[server]\nport = 9090\n\[database]\nbackup_interval_h = 6\n' > seaway.toml[/cyan]

      [cyan]seaway up --config seaway.toml[/cyan]
    """
    flags = {
        ("server", "host"): host,
        ("server", "port"): port,
        ("server", "tls_certificate"): str(tls_certificate) if tls_certificate else None,
        ("server", "tls_key"): str(tls_key) if tls_key else None,
        ("server", "no_auth"): no_auth or None,
        ("database", "url"): database,
        ("clusters", "fleet"): fleet,
        ("clusters", "simulated_url"): simulated,
    }
    if once:
        _require_unused({**flags, ("", "data"): data, ("", "config"): config, ("clusters", "fleet"): None})
        from seaway.cli.serving.once import run_once

        run_once(fleet or "demo", output or Output.TABLE)
        return
    if output:
        raise RejectedError("requires --once", where="--output")
    gc.disable()  # off until the server runs: imports and start-up create almost no garbage
    try:
        with StopSignals() as stop:
            stop.starting("loads its modules")
            from seaway.cli.serving.server import serve

            serve(config, flags, data, stop)
    finally:
        gc.enable()


def _require_unused(flags: Mapping[tuple[str, str], object]) -> None:
    """Check that no option is given that the demo does not use.

    Raises
    ------
    RejectedError
        When such options are given; the error lists all of them.
    """
    words = {("database", "url"): "--database", ("clusters", "simulated_url"): "--simulated"}
    given = [words.get(key, f"--{key[1].replace('_', '-')}") for key, value in flags.items() if value is not None]
    if given:
        raise RejectedError(
            f"{', '.join(given)} cannot be used with --once, which starts no server and stores nothing; "
            "use --fleet and --output only",
            where="--once",
        )
