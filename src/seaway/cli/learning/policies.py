"""`seaway policy`: available policies, and trained policies from import to activation."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli import arguments
from seaway.cli.learning.policy_store import shown_file, store_of
from seaway.cli.output import Output, OutputOption, console, show
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from seaway.cli.remote import Body
    from seaway.learning.policies.file import PolicyFile

policies = typer.Typer(rich_markup_mode="rich")

ONNX = ".onnx"

Remote = Annotated[bool, typer.Option("--remote", "-r", help="Use the server instead of this machine.")]
Name = Annotated[str, typer.Argument(help="Name of the policy.", autocompletion=arguments.policies)]
NewName = Annotated[
    str,
    typer.Option("--name", help="Name instead of that in the file. It invalidates the signature: sign the file again."),
]
File = Annotated[Path, typer.Argument(help="Policy file.", show_default=False)]


@policies.callback(invoke_without_command=True)
def list_when_alone(
    context: typer.Context,
    remote: Annotated[
        bool, typer.Option("--remote", "-r", help="List the policies of the server instead of this machine.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""List the policies and the plugins for profile files.

    The list includes policies of other packages and trained ones. Compare policies with
    [bold]seaway replay --policy[/bold]; set the policy of a queue with [bold]seaway queue set --policy[/bold].

      [cyan]seaway policy --remote -o wide[/cyan]

    Import a trained policy and run it as a shadow policy first:

      [cyan]seaway policy show runs/mine/best.policy[/cyan]
      [cyan]seaway policy import runs/mine/best.policy --name mine --remote[/cyan]
      [cyan]seaway policy activate mine --queue batch --shadow[/cyan]

    A profile file is TOML: a name, and a [bold]\[\[plugin]][/bold] with name, weight and settings for each
    plugin. [bold]seaway replay --policy[/bold] accepts it:

      name = "near-and-tight"

      \[\[plugin]]
      name = "ClusterScore"
      weight = 3
      settings = { location = 4, price = 0 }

      \[\[plugin]]
      name = "BestFit"
    """
    if not context.invoked_subcommand:
        _list(context, remote, output)


@policies.command("list")
def list_policies(context: typer.Context, remote: Remote = False, output: OutputOption = Output.TABLE) -> None:
    """List the policies. Same as without a subcommand."""
    _list(context, remote, output)


@policies.command("show")
def show_policy(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help="Name of a policy, or policy file.", autocompletion=arguments.policies)],
    remote: Remote = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a policy: for a trained one, its description, training and signature.

    With [bold]--remote[/bold], operators also see its results as a shadow policy: the jobs that it decided, and those
    that the fallback decided.
    """
    compared: list[Body] = []
    if not remote and what.endswith(".policy"):
        body = shown_file(_read(Path(what), untried=True))
    else:
        with store_of(context, remote=remote) as store:
            body = store.shown(what)
            if body["trained"] and output in (Output.TABLE, Output.WIDE):
                compared = store.compared(body)
    show(output, body, lambda _: _picture(body, compared), lambda: [body["name"]])


@policies.command("import")
def import_policy(context: typer.Context, file: File, name: NewName = "", remote: Remote = False) -> None:
    """Check a policy file and store it, on this machine or on the server, under its own or another name.

    A file is rejected if it is damaged, has more than a plain network, or fails its recorded test questions.
    """
    read = _read(file)
    if name and name != read.manifest.name:
        read = _renamed(read, name)
    with store_of(context, remote=remote) as store:
        where = store.import_policy(read)
    typer.echo(f"policy {read.manifest.name} is stored {where}; digest {read.digest}")


@policies.command("export")
def export_policy(
    context: typer.Context,
    name: Name,
    to: Annotated[
        Path | None, typer.Argument(help="Output file: .policy, or .onnx for its model only.", show_default=False)
    ] = None,
    remote: Remote = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a trained policy to a file, by default NAME.policy; with .onnx, only its network."""
    from seaway.learning.policies.file import SUFFIX, unpack

    path = to or Path(f"{name}{SUFFIX}")
    if path.suffix not in (SUFFIX, ONNX):
        raise RejectedError(f"has to end with {SUFFIX} or {ONNX}", where=str(path))
    if path.exists() and not force:
        raise RejectedError("exists already; overwrite it with --force", where=str(path))
    with store_of(context, remote=remote) as store:
        content = store.content(name)
    _write(path, unpack(content).model if path.suffix == ONNX else content)
    typer.echo(f"policy {name} is written to {path}")


@policies.command()
def sign(
    file: File,
    key_file: Annotated[
        Path,
        typer.Option(
            "--key-file", "-k", help="Private Ed25519 key; create one with ssh-keygen -t ed25519 -N '' -f KEY."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Output file. Default: overwrite the input.")] = None,
) -> None:
    """Sign a policy file for servers that trust the key.

    The command prints the line for [bold]trusted_keys[/bold] of the servers. Each policy file includes its SHA-256
    digest, with or without a signature.
    """
    from seaway.cli.errors import note
    from seaway.learning.policies.file import pack
    from seaway.learning.policies.signature import public_key
    from seaway.learning.policies.signature import sign as signed

    try:
        key = key_file.read_bytes()
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}", where=str(key_file)) from None
    try:
        read = signed(_read(file), key)
    except RejectedError as error:
        raise RejectedError(error.message, where=error.where or str(key_file)) from None
    _write(out or file, pack(read))
    public = public_key(key)
    note(f"{out or file} is signed by {public.fingerprint}; digest {read.digest}")
    typer.echo(public.line)


@policies.command()
def activate(
    context: typer.Context,
    name: Name,
    queue: Annotated[
        str,
        typer.Option("--queue", "-q", help="Queue of the policy.", autocompletion=arguments.queues, show_default=False),
    ],
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Run it as a shadow policy; the queue keeps its policy.")
    ] = False,
) -> None:
    """Set the policy of a queue. A trained policy must have been the shadow policy of the queue for a while."""
    from seaway.cli.errors import warn
    from seaway.cli.remote import connect
    from seaway.client.calls.policies import activate_policy

    with connect(context) as client:
        body = client.body(activate_policy(name, queue, shadow=shadow))
    if warning := body["warning"]:
        warn(warning["message"])
    if body["queue"]["policy"] == name:
        typer.echo(f"policy {name} decides for queue {queue} now")
    else:
        left = body["left"] or "it may decide"
        typer.echo(f"policy {name} is compared in the shadow of queue {queue}: {left}")


@policies.command("delete")
def remove(context: typer.Context, name: Name, remote: Remote = False) -> None:
    """Remove an imported policy that no queue uses."""
    with store_of(context, remote=remote) as store:
        store.remove(name)
    typer.echo(f"policy {name} is removed")


def _list(context: typer.Context, remote: bool, output: Output) -> None:
    from seaway.terminal.tables import Column, Rows

    with store_of(context, remote=remote) as store:
        body = store.listed()
    rows = body["policies"]
    columns = (
        Column("POLICY", lambda each: each["name"]),
        Column("HOW IT PLACES", lambda each: each["description"], cut=True),
        Column("FROM", lambda each: each["source"], drop=2),
        Column("QUEUES", lambda each: ", ".join(each.get("queues", [])), wide=True, drop=1),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["name"] for each in rows))
    if not remote and output in (Output.TABLE, Output.WIDE):
        from seaway.bootstrap.trained_policies import TRAINED
        from seaway.scheduling.registry import plugin_names

        console().print(f"\nplugins for profile files: {', '.join([*plugin_names(), TRAINED])}", markup=False)


def _picture(body: Body, compared: Sequence[Body]) -> RenderableType:
    from rich.console import Group

    from seaway.terminal.tables import details

    manifest = body["trained"]
    about = {"policy": body["name"], "does": body["description"], "from": body["source"]}
    if body.get("warning"):
        about["warning"] = body["warning"]["message"]
    if body.get("queues"):
        about["queues"] = ", ".join(body["queues"])
    if manifest is None:
        return details(about.items())
    about |= {
        "level": manifest["level"] + (f", for {manifest['clusters']} clusters" if manifest["clusters"] else ""),
        "network": "uses links" if manifest["network"] else "ignores links",
        "trained by": manifest["algo"],
        "made by": manifest["made_by"],
        "created": manifest["created"],
        "imported": f"{manifest['at']} by {manifest['imported_by']}" if manifest["at"] else "",
        "as a shadow": _as_shadow(compared),
        "signed by": manifest["signed_by"] or "unsigned",
        "digest": manifest["digest"],
        "size": f"{manifest['size_bytes']:,} bytes",
    }
    figures = {name: f"{value:g}" for name, value in manifest["figures"].items()}
    parts: list[RenderableType] = [details(about.items())]
    if figures:
        parts += ["", details(figures.items())]
    if manifest["config"]:
        parts += ["", "settings", details((name, _written(value)) for name, value in manifest["config"].items())]
    return Group(*parts)


def _as_shadow(compared: Sequence[Body]) -> str:
    sums: dict[str, Counter[str]] = {}
    for row in compared:
        counts = {name: row[name] for name in ("jobs", "answered", "fallbacks")}
        sums.setdefault(row["queue"], Counter()).update(counts)
    return "\n".join(
        f"queue {queue}: decided {of['answered']:,} of {of['jobs']:,} jobs, the fallback {of['fallbacks']:,}"
        for queue, of in sorted(sums.items())
    )


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _read(path: Path, *, untried: bool = False) -> PolicyFile:
    """Read a user's policy file, after a test run in a subprocess.

    With `untried`, omit the test run if networks cannot run on this machine.
    """
    from seaway.cli.learning.policy_store import can_try, not_tried
    from seaway.learning.policies.check import read_policy, try_in_subprocess
    from seaway.learning.policies.file import read_content, unpack

    try:
        content = read_content(path)
        file = unpack(content)
        if untried and not can_try():
            return not_tried(file)
        try_in_subprocess(content)
        return read_policy(content)
    except RejectedError as error:
        raise RejectedError(error.message, where=str(path)) from None


def _renamed(file: PolicyFile, name: str) -> PolicyFile:
    """Return the policy under another name, without a signature."""
    from msgspec.structs import replace

    from seaway.learning.policies.file import PolicyFile, check_manifest

    manifest = replace(file.manifest, name=name)
    check_manifest(manifest)
    return PolicyFile(manifest, file.model, file.trials)


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically. Readers see the old or the new content."""
    from seaway.learning.policies.file import write_beside

    try:
        write_beside(path, content)
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror}", where=str(path)) from None
