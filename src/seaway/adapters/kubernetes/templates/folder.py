"""Reader of a folder of custom templates: the only module here that reads files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from seaway.adapters.kubernetes.templates.registry import Template
from seaway.adapters.kubernetes.templates.safety import MAX_BYTES, Rules
from seaway.adapters.kubernetes.templates.user import read_template
from seaway.domain.errors import RejectedError

MAX_FILES = 200


def read_folder(folder: Path, rules: Rules, taken: Mapping[str, Template]) -> dict[str, Template]:
    """Read a folder of templates; the name of each is that of its file.

    Parameters
    ----------
    taken
        Templates whose names are reserved.

    Raises
    ------
    RejectedError
        With all errors of all files, or when the folder cannot be read.
    """
    templates: dict[str, Template] = {}
    errors: list[RejectedError] = []
    try:
        files = sorted(each for each in folder.iterdir() if each.suffix in (".yaml", ".yml"))
        if len(files) > MAX_FILES:
            raise RejectedError(f"has {len(files)} templates, but {MAX_FILES} are the most", where=str(folder))
        for file in files:
            try:
                if file.stem in taken or file.stem in templates:
                    raise RejectedError("a template of this name exists already")
                if file.stat().st_size > MAX_BYTES:
                    raise RejectedError(f"is larger than {MAX_BYTES // 1024} KiB")
                templates[file.stem] = read_template(file.stem, file.read_text("utf-8"), rules)
            except (RejectedError, UnicodeDecodeError) as error:
                errors += _named(file.name, error)
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}", where=str(error.filename or folder)) from None
    if errors:
        raise RejectedError(errors[0].message, where=errors[0].where, also=tuple(errors[1:]))
    return templates


def _named(file: str, error: RejectedError | UnicodeDecodeError) -> list[RejectedError]:
    """Add the file's name to errors."""
    if isinstance(error, UnicodeDecodeError):
        return [RejectedError("is not UTF-8 text", where=file)]
    return [
        RejectedError(each.message, where=f"{file}: {each.where}" if each.where else file)
        for each in (error, *error.also)
    ]
