"""What messages say of their fields: the text below each, read when the description is asked for.

pydantic can read them too, but as each class is made, which takes a fifth of a second of every start.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from seaway.wire.message import Incoming, Shown


def explain_fields(schemas: dict[str, Any]) -> None:
    """Add what messages say of their fields to the schemas that are made of them, by name, in place."""
    for model in _models(Incoming, Shown):
        fields = schemas.get(model.__name__, {}).get("properties", {})
        for name, text in _texts(model).items():
            if name in fields:
                fields[name].setdefault("description", text)


def _models(*bases: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Return all messages that are known."""
    for base in bases:
        yield base
        yield from _models(*base.__subclasses__())


@cache
def _texts(model: type[BaseModel]) -> dict[str, str]:
    """Return the text below each field of a message and of those that it is made from."""
    texts: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, (Incoming, Shown)):
            texts |= _written(each)
    return texts


@cache
def _written(model: type[BaseModel]) -> dict[str, str]:
    """Return the text below each field that a class has itself."""
    body = _classes(inspect.getsourcefile(model) or "")[model.__qualname__].body
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


@cache
def _classes(file: str) -> dict[str, ast.ClassDef]:
    """Read the classes of a file."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
