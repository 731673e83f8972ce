"""Jobs as options write them, alone or over what a file says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from seaway.cli.job_file import Written


OPTIONS = {
    "run.command": "COMMAND",
    "placement.clusters": "--cluster",
    "labels": "--label",
    "data.location": "--data",
    "data.size": "--data-size",
}
"""Options that are not called as their fields are."""


def written_jobs(files: list[str], given: dict[str, Any]) -> list[Written]:
    """Return the jobs of all files, with options in place of their fields; or the one that options make.

    Parameters
    ----------
    given
        By path, like ``resources.gpus``.
    """
    from seaway.cli.job_file import Written, merged, read_jobs

    if not files and not given:
        raise RejectedError("say what to run: -f job.yaml, or options like --name and --gpus; see --help")
    fields: dict[str, Any] = {}
    for path, value in given.items():
        outer, _, inner = path.rpartition(".")
        fields = merged(fields, {outer: {inner: value}} if outer else {inner: value})
    options = {path: option_of(path) for path in given}
    if not files:
        return [Written(fields, options=options)]
    return [each.changed(fields, options) for file in files for each in read_jobs(file)]


def option_of(path: str) -> str:
    """Name the option that a field comes from."""
    name = path.rpartition(".")[2]
    return OPTIONS.get(path, f"--{name.replace('_', '-')}")


def pairs(texts: list[str] | None, option: str) -> dict[str, str] | None:
    """Take ``NAME=VALUE`` apart.

    Raises
    ------
    RejectedError
        When there is no ``=``.
    """
    if not texts:
        return None
    for text in texts:
        if "=" not in text:
            raise RejectedError(f"{text!r} has no '='; write NAME=VALUE", where=option)
    return {text.partition("=")[0]: text.partition("=")[2] for text in texts}
