"""The reference of commands, from the command line itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import typer.main
from typer.cli import get_docs_for_click

from seaway.cli.main import COMMANDS, make_app

BOLD = re.compile(r"\[/?bold\]")
MARKUP = re.compile(r"\[/?(?:cyan|dim|green|italic|red|yellow)\]")


def commands_page() -> str:
    """Return the page: every command with its help, arguments and options."""
    app: Any = typer.main.get_command(make_app())
    app.list_commands = lambda _: [each.name for each in COMMANDS if each.panel]  # the others are in groups
    context = typer.Context(app, info_name="seaway")
    for command in _all(app, context):
        command.short_help = (command.help or "").partition("\n\n")[0].replace("\n", " ")  # else it is cut short
    described = get_docs_for_click(obj=app, ctx=context, name="seaway", title="Commands")
    return _as_markdown(described)


def _all(command: Any, context: typer.Context) -> Iterator[Any]:  # noqa: ANN401  # typer names no public class for both kinds
    """Yield a command and everything below it."""
    yield command
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from _all(command.get_command(context, name), context)


def _as_markdown(described: str) -> str:
    """Turn the terminal's markup into Markdown: paragraphs of indented lines become blocks of code."""
    blocks = []
    for block in described.split("\n\n"):
        text = block
        if not block.startswith("```"):
            text = MARKUP.sub("", block).replace("\\[", "[")
        if text.startswith("  "):
            blocks.append(f"```\n{BOLD.sub('', dedent(text))}\n```")
        else:
            blocks.append(BOLD.sub("**", text))
    return "\n\n".join(blocks) + "\n"
