"""Job files of other schedulers: recognition of each document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath

from seaway.domain.errors import RejectedError
from seaway.wire.job_imports import dstack, kubernetes, skypilot
from seaway.wire.job_imports.converted import Converted, Fields, Note
from seaway.wire.job_imports.sbatch import is_sbatch, read_sbatch

TEXTS = re.compile(
    r"((.*\.)?(labels|annotations|nodeSelector|envs|env|secrets|tags)\..+|.*\.env\[\d+\]\.value"
    r"|.*\.tolerations\[\d+\]\.value|env\[\d+\]|.*\.(command|args)\[\d+\]|name|metadata\.name|run|setup|commands\[\d+\])",
    re.DOTALL,
)
"""Paths of texts, at which numbers are read as the text that was written."""

Lines = Mapping[str, int]
Read = Callable[[Fields, Converted, str], None]


def unpacked(document: Fields, lines: Lines) -> Iterator[tuple[Fields, Lines]]:
    """Yield the objects of a list of Kubernetes, each with the lines of its fields; or else the document."""
    items = document.get("items")
    if document.get("kind") != "List" or not isinstance(items, list):
        yield document, lines
        return
    for at, each in enumerate(items):
        if isinstance(each, dict):
            prefix = f"items[{at}]"
            own = {name[len(prefix) :].lstrip("."): line for name, line in lines.items() if name.startswith(prefix)}
            yield each, own


def is_foreign(document: Fields) -> bool:
    """Report whether a document is a job of another scheduler."""
    return _reader(document) is not None


def _reader(document: Fields) -> tuple[str, Read] | None:
    if kubernetes.is_manifest(document):
        return f"Kubernetes {kubernetes.kind_of(document)}", kubernetes.read_manifest
    if dstack.is_dstack(document):
        return dstack.KIND, dstack.read_dstack
    if skypilot.is_skypilot(document):
        return skypilot.KIND, skypilot.read_skypilot
    return None


def convert_script(text: str, source: str, ignored: frozenset[str] = frozenset()) -> Converted | None:
    """Convert a batch script; return None if the text is not one.

    Raises
    ------
    RejectedError
        If it cannot be converted; `also` has all other reasons.
    """
    if not is_sbatch(text):
        return None
    out = read_sbatch(text, source, ignored)
    _check(out, source)
    return out


def convert_documents(
    documents: Iterable[tuple[Fields, Lines]], source: str, ignored: frozenset[str] = frozenset()
) -> list[Converted | None]:
    """Convert the documents of a file; None for a document that is a job of Seaway.

    Parameters
    ----------
    documents
        Documents, each with the line of each of its fields.

    Raises
    ------
    RejectedError
        If a document cannot be converted; `also` has all other reasons.
    """
    found: list[Converted | None] = []
    left: list[Note] = []
    stem = PurePath(source).name.partition(".")[0] or "job"
    documents = [part for each in documents for part in unpacked(*each)]
    objects = kubernetes.keys_of(document for document, _ in documents)
    heads = []
    if len(documents) > 1 and skypilot.is_header(documents[0][0]):
        heads = [Converted(skypilot.KIND, documents[0][1], ignored)]
        skypilot.check_header(documents[0][0], heads[0])
        documents = documents[1:]
    for document, lines in documents:
        kind = _reader(document)
        if kind is None:
            found.append(None)
            continue
        out = Converted(kind[0], lines, ignored, objects=objects)
        kind[1](document, out, f"{stem}-{len(found) + 1}" if len(documents) > 1 else stem)
        if not out.fields and not out.refused:
            left += out.notes
            continue
        before = found[-1] if found else None
        if before and kind[0] == before.kind == skypilot.KIND:
            out.keep("", "after", [{"job": before.fields["name"]}], f"after: {before.fields['name']}, as in a pipeline")
        found.append(out)
    if first := next((out for out in found if out), None):
        first.notes += left
    errors = [error for out in (*heads, *found) if out for error in out.errors(source)]
    if errors:
        raise RejectedError.together(errors)
    return found


def _check(out: Converted, source: str) -> None:
    if errors := list(out.errors(source)):
        raise RejectedError.together(errors)
