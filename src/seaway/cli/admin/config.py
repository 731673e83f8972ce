"""`seaway config` and `seaway login`: server and token of commands, and settings of the server."""

from __future__ import annotations

import os
import re
import sys
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import target
from seaway.domain.errors import RejectedError, UnavailableError

if TYPE_CHECKING:
    from rich.console import RenderableType


SECRETS = ("oidc.client_secret", "notifications.encryption_key", "notifications.smtp_password")
"""Settings that are never shown."""

PASSWORD = re.compile(r"(://[^:/@\s]*:).*@")
"""Pattern of a password in a URL, up to the last @, because users may not escape an @ in it as %40."""
PASSWORD_PARAMETER = re.compile(r"((?:password|passwd|secret|token)=)[^&\s]*", re.IGNORECASE)


def show_server_settings(output: Output, config: Path | None, data: Path | None) -> None:
    """Print every setting with its value and source: default, file or environment.

    Raises
    ------
    RejectedError
        When settings are invalid. The messages are those of `seaway up`.
    """
    from seaway.bootstrap.settings import KINDS, trace_settings
    from seaway.client.config import data_folder

    settings, sources = trace_settings(config, os.environ, {})
    folder = (data or data_folder()).absolute()
    rows: list[dict[str, Any]] = []
    for section, names in KINDS.items():
        for name in names:
            value = attrgetter(f"{section}.{name}")(settings)
            source = sources.get((section, name), "default")
            shown = "***" if value and f"{section}.{name}" in SECRETS else without_passwords(value)
            rows.append({"name": f"{section}.{name}", "value": shown, "from": source})
    for row in rows:
        if row["name"] == "database.url" and not row["value"]:
            row["value"] = f"sqlite:///{folder / 'seaway.db'}"
    body = {"data": str(folder), "settings": rows}
    show(output, body, lambda _: _picture(rows), lambda: [row["name"] for row in rows])


def without_passwords(value: object) -> object:
    """Mask passwords in URLs.

    Examples
    --------
    >>> without_passwords("postgresql://seaway:s3cret@db/seaway?sslpassword=x")
    'postgresql://seaway:***@db/seaway?sslpassword=***'
    """
    if not isinstance(value, str):
        return value
    return PASSWORD_PARAMETER.sub(r"\1***", PASSWORD.sub(r"\1***@", value))


def _picture(rows: list[dict[str, Any]]) -> RenderableType:
    from seaway.terminal.tables import Column, Rows

    columns = (
        Column("SETTING", lambda each: each["name"]),
        Column("VALUE", lambda each: _written(each["value"])),
        Column("FROM", lambda each: each["from"], cut=True),
    )
    return Rows(columns, rows)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "–" if value in ("", {}) else str(value)


app = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)

PROFILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
OURS = re.compile(r"(sw_[^_]+)_.+")
"""Pattern of Seaway's own tokens. The part before the secret identifies the token, and is not secret."""


@app.callback()
def config() -> None:
    """Show each setting of the client or the server, and its source.

    [bold]Example[/bold]

      [cyan]seaway config show[/cyan]
    """


@app.command("show")
def show_config(
    context: typer.Context,
    server: Annotated[
        bool, typer.Option("--server", help="Show the settings that `seaway up` would use instead.")
    ] = False,
    config: Annotated[Path | None, typer.Option(help="With --server: the settings file, as for `seaway up`.")] = None,
    data: Annotated[Path | None, typer.Option(help="With --server: the data folder, as for `seaway up`.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the server and the token that commands use, with their sources. Secrets are masked.

    The server comes from --server, SEAWAY_SERVER, the profile (--profile, SEAWAY_PROFILE, or the default of the
    file), or this machine's own server. The token comes from SEAWAY_TOKEN, the profile, or this machine's own server.

    [bold]Examples[/bold]

      [cyan]SEAWAY_PROFILE=berlin seaway config show[/cyan]

    The settings of `seaway up --config seaway.toml`:

      [cyan]seaway config show --server --config seaway.toml[/cyan]
    """
    if server:
        from seaway.cli.admin.config import show_server_settings

        show_server_settings(output, config, data)
        return
    if config or data:
        raise RejectedError("requires --server", where="--config" if config else "--data")
    from seaway.client.config import data_folder, profiles_file, read_profiles

    try:
        used = target(context)
    except UnavailableError:
        used = None
    profiles = read_profiles().get("profiles", {})
    ca_file = used.ca_file if used else ""
    settings = {
        "server": {"value": used.server if used else "", "from": used.server_from if used else "nowhere"},
        "token": {"value": masked(used.token) if used else "", "from": (used and used.token_from) or "nowhere"},
        "ca_file": {"value": ca_file, "from": "SEAWAY_CA_FILE or profile" if ca_file else "the system's"},
        "profile": {"value": used.profile if used else "", "from": str(profiles_file())},
        "data": {"value": str(data_folder()), "from": "SEAWAY_DATA" if os.environ.get("SEAWAY_DATA") else "default"},
    }
    body: dict[str, Any] = {"settings": settings, "profiles": sorted(profiles)}
    show(output, body, lambda _: _settings_picture(body), lambda: settings)


def login(
    context: typer.Context,
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the profile.")] = "default",
    ca_file: Annotated[
        Path | None,
        typer.Option(help="CA certificates in PEM format, if those of the system do not verify the server."),
    ] = None,
) -> None:
    """Check a server and a token, and store them as the default profile.

    Set the server with --server before the command. Type the token at the prompt, or pipe it to standard input.

    [bold]Examples[/bold]

      [cyan]seaway --server https://seaway.example login --name work[/cyan]
      [cyan]seaway --server https://seaway.example login < token[/cyan]
    """
    from seaway.client.config import profiles_file
    from seaway.client.sync import Client

    if not PROFILE_NAME.fullmatch(name):
        raise RejectedError("use letters, digits, '-' and '_'", where="--name")
    server = target(context).server
    token = typer.prompt("Token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    profile = {"server": server, "token": token.strip(), **({"ca_file": str(ca_file.resolve())} if ca_file else {})}
    if ca_file:
        os.environ["SEAWAY_CA_FILE"] = profile["ca_file"]
    with Client(server, profile["token"]) as client:
        who = client.me()
    write_profile(name, profile)
    typer.echo(f"signed in to {server} as {who.name} ({who.role}); profile {name} is in {profiles_file()}")


def whoami(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Show your name, role and tenant at the server, and the server.

    [bold]Example[/bold]

      [cyan]seaway whoami[/cyan]
    """
    from seaway.cli.remote import connect
    from seaway.client.calls.service import me
    from seaway.terminal.tables import Column, Rows

    with connect(context) as client:
        server = client.target.server
        body = client.body(me())
    columns = (
        Column("NAME", lambda each: each["name"]),
        Column("ROLE", lambda each: each["role"]),
        Column("TENANT", lambda each: each["tenant"] or "all"),
        Column("SERVER", lambda _: server),
    )
    show(output, body, lambda wide: Rows(columns, [body], wide=wide), lambda: [body["name"]])


def masked(token: str) -> str:
    """Return the public part of a token, or a note that a token is set."""
    if not token:
        return ""
    ours = OURS.fullmatch(token)
    return f"{ours[1]}_…" if ours else "set, not shown"


def write_profile(name: str, profile: dict[str, str]) -> None:
    """Write a profile to the file and make it the default. Only the owner can read the file.

    Raises
    ------
    RejectedError
        When the file cannot be written.
    """
    from seaway.client.config import profiles_file, read_profiles

    path, read = profiles_file(), read_profiles()
    profiles = {**read.get("profiles", {}), name: profile}
    lines = [f"default = {_quoted(name)}"]
    for each, fields in profiles.items():
        lines += ["", f"[profiles.{_quoted(each)}]"]
        lines += [f"{key} = {_quoted(value)}" for key, value in fields.items() if isinstance(value, str)]
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write("\n".join(lines) + "\n")
        fresh.replace(path)
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror}", where=str(path)) from None


def _quoted(text: str) -> str:
    """Quote a text for TOML. JSON strings are valid in TOML."""
    import json

    return json.dumps(text, ensure_ascii=False)


def _settings_picture(body: dict[str, Any]) -> Any:  # noqa: ANN401  # a renderable of rich
    from seaway.terminal.tables import Column, Rows

    rows = [{"name": name, **setting} for name, setting in body["settings"].items()]
    columns = (
        Column("SETTING", lambda each: each["name"]),
        Column("VALUE", lambda each: each["value"] or "–"),
        Column("FROM", lambda each: each["from"], cut=True),
    )
    return Rows(columns, rows)
