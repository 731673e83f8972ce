"""The reference of settings, from the settings themselves."""

from __future__ import annotations

import inspect
import json
from dataclasses import is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, get_type_hints

import griffe

from seaway.bootstrap.settings import KINDS, SECTIONS
from tools.docs.markdown import code, table

INTRODUCTION = """# Settings

[Settings](../docs/settings.md) explains where settings are read from.

The environment variable of a setting has the section and the name in capitals, with `_` for each dot:
`SEAWAY_SERVER_PORT` sets `port` of `[server]`.
"""


def settings_page() -> str:
    """Return the page: every setting by section, with its default and its description."""
    parts = [INTRODUCTION]
    for section, kind in SECTIONS.items():
        described, defaults = descriptions(kind), kind()
        rows = [
            [code(name), code(json.dumps(attrgetter(name)(defaults))), described.get(name, "")]
            for name in KINDS[section]
        ]
        parts += [f"## [{section}]\n", f"{(kind.__doc__ or '').partition(chr(10))[0]}\n"]
        parts.append(table(["setting", "default", "description"], rows))
    return "\n".join(parts)


def descriptions(kind: type[Any]) -> dict[str, str]:
    """Return the description of each setting of a section by its name, as the source has it."""
    source = Path(inspect.getfile(kind))
    module = griffe.visit(source.stem, source, source.read_text(encoding="utf-8"), docstring_parser=griffe.Parser.numpy)
    found = module[kind.__qualname__]
    texts: dict[str, str] = {}
    for section in found.docstring.parse() if found.docstring else ():
        if isinstance(section, griffe.DocstringSectionAttributes):
            texts |= {name: each.description for each in section.value for name in each.name.split(", ")}
    texts |= {name: each.docstring.value for name, each in found.attributes.items() if each.docstring}
    for name, of in get_type_hints(kind).items():
        if isinstance(of, type) and is_dataclass(of):
            texts |= {f"{name}.{each}": text for each, text in descriptions(of).items()}
    return texts
