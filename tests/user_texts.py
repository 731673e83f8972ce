"""Texts that users see: help of commands, the API's description, help of metrics, alerts and pages.

Run ``.venv/bin/python -m tests.user_texts [PLACE ...]`` to check them, or those of some places, such as ``help``.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import typer
import yaml
from babel.messages.pofile import read_po

from seaway.api.http.openapi import describe
from seaway.cli.main import make_app
from tests.unit.api.rig import Rig, make_rig
from tests.words import NAMES, PAGE_LIMIT, WORDS, Finding, docstring_paragraphs, phrases, report, sentences

ROOT = Path(__file__).resolve().parents[1]

Texts = Iterator[tuple[str, str]]
"""Places and texts."""


def user_texts() -> Texts:
    """Yield every text."""
    rig = make_rig()
    yield from command_texts(typer.main.get_command(make_app()), "help/seaway")
    yield from api_texts(describe(rig.app), "api")
    yield from metric_texts(rig)
    for file in sorted((ROOT / "deploy" / "prometheus" / "rules").iterdir()):
        yield from alert_texts(yaml.safe_load(file.read_text(encoding="utf-8")))
    for catalogue in sorted((Path(str(files("seaway.web"))) / "locale" / "zh").glob("*.po")):
        with catalogue.open("rb") as opened:
            yield from ((f"pages/{catalogue.stem}", str(each.id)) for each in read_po(opened) if each.id)


def command_texts(command: Any, place: str) -> Texts:  # noqa: ANN401  # Typer has a Click of its own
    """Yield the help of a command, of its options and of its subcommands."""
    for text in (command.help, command.epilog, *(getattr(each, "help", None) for each in command.params)):
        if text:
            yield place, text
    for name, each in sorted(getattr(command, "commands", {}).items()):
        yield from command_texts(each, f"{place} {name}")


def api_texts(described: Any, place: str) -> Texts:  # noqa: ANN401  # JSON
    """Yield the summaries and descriptions in a description of the API."""
    if isinstance(described, list):
        for each in described:
            yield from api_texts(each, place)
    for key, each in described.items() if isinstance(described, dict) else ():
        if key in {"summary", "description"} and isinstance(each, str):
            yield place, each
        elif key not in {"example", "examples"}:
            yield from api_texts(each, f"{place}/{key.strip('/')}")


def metric_texts(rig: Rig) -> Texts:
    """Yield the help of metrics."""

    async def scrape() -> str:
        async with rig.client() as client:
            return (await client.get("/metrics")).text

    for name, text in re.findall(r"^# HELP (\S+) (.+)$", asyncio.run(scrape()), re.MULTILINE):
        yield f"metrics/{name}", text


def alert_texts(rules: Any) -> Texts:  # noqa: ANN401  # YAML
    """Yield the annotations of alerts."""
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        for text in rule.get("annotations", {}).values():
            yield f"alerts/{rule['alert']}", text


def check_texts() -> Iterator[Finding]:
    """Check the texts that users see: their words, and the length of their sentences."""
    for place, text in dict.fromkeys(user_texts()):
        for rule, banned in (("words", WORDS), ("former-names", NAMES)):
            yield from (Finding(place, 0, rule, f"{found} in: {text[:100]}") for _, found in phrases(text, banned))
        for _, sentence, length in sentences(docstring_paragraphs(text, 0)):
            if length > PAGE_LIMIT:
                yield Finding(place, 0, "text-sentences", f"{length} words, at most {PAGE_LIMIT}: {sentence[:100]}")


if __name__ == "__main__":
    raise SystemExit(report(each for each in check_texts() if each.where.startswith(tuple(sys.argv[1:]) or "")))
