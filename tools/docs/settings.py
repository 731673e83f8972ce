"""Tables of settings, from the settings themselves."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, get_type_hints

import griffe

from seaway.bootstrap.settings import KINDS, SECTIONS
from tools.docs.markdown import code, table

PLACE = re.compile(r"<!-- settings: (\w+) -->")
"""A comment in a page, in the place of the table of a section."""


def fill_in(page: Path) -> None:
    """Put the tables into a page."""
    text = page.read_text(encoding="utf-8")
    page.write_text(PLACE.sub(lambda found: settings_table(found[1]), text), encoding="utf-8")


def settings_table(section: str) -> str:
    """Return the settings of a section with their defaults and descriptions."""
    kind = SECTIONS[section]
    described, defaults = descriptions(kind), kind()
    rows = [
        [code(name), code(json.dumps(attrgetter(name)(defaults))), described.get(name, "")] for name in KINDS[section]
    ]
    return table(["setting", "default", "description"], rows)


def descriptions(kind: type[Any]) -> dict[str, str]:
    """Return the description of each setting of a section by its name, as the source has it."""
    source = Path(inspect.getfile(kind))
    module = griffe.visit(source.stem, source, source.read_text(encoding="utf-8"))
    attributes = module[kind.__qualname__].attributes.items()
    texts = {name: each.docstring.value for name, each in attributes if each.docstring}
    for name, of in get_type_hints(kind).items():
        if isinstance(of, type) and is_dataclass(of):
            texts |= {f"{name}.{each}": text for each, text in descriptions(of).items()}
    return texts
