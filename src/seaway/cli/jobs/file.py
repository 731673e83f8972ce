"""Job files: YAML with one or more jobs, and the lines of their fields."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seaway.domain.errors import RejectedError
from seaway.wire.yaml import Document, YamlError, yaml_documents

if TYPE_CHECKING:
    from seaway.wire.job_imports.converted import Converted

STDIN = "-"
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Kind:
    """Type of the documents of a file.

    Attributes
    ----------
    name
        Its name in error messages.
    example
        Example of a line.
    most
        Maximum number of fields, including expanded aliases.
    texts
        Pattern of the paths of texts. Numbers there are read as the text that was written.
    """

    name: str
    example: str
    most: int
    texts: re.Pattern[str] = re.compile("")


TEXTS = re.compile(
    r"(name|tenant|queue|gateway|spread|template|labels\..+|network\.on_violation|checkpoint\.signal|data\.location"
    r"|expose\.(type|host)|standby(\.mode)?|scale(\[\d+\])?\.(metric|query|start|end|timezone)|after(\[\d+\])?(\.(job|when))?|array|matrix\..+\[\d+\]"
    r"|resources\.(mig|gpu_topology|gpu_(model|vendor|mode|(use|avoid)_types|(avoid_)?uuids)(\[\d+\])?)"
    r"|placement\.((clusters|regions|hardware)\[\d+\]|(node|cluster)_labels\..+|tolerations\[\d+\]\.(key|value|effect))"
    r"|run\.(image|(command|args)\[\d+\]|env(_from_(secret|config_map))?\..+)"
    r"|notify(\[\d+\])?(\.(to|when(\[\d+\])?))?"
    r"|restart_policy|workdir|setup(\[\d+\])?|time_limit_warning(\.signal)?"
    r"|(init_)?containers\[\d+\]\.(name|image|restart_policy|(command|args)\[\d+\]|env(_from_(secret|config_map))?\..+)"
    r"|volumes\[\d+\](\.(path|claim|secret|config_map|sub_path|csi\.(driver|secret|attributes\..+)))?)",
    re.DOTALL,
)
"""Paths of the texts of a job."""

JOB = Kind("job", "name: train", 50_000, TEXTS)


@dataclass(frozen=True, slots=True)
class Written:
    """Job from a file or from options.

    Attributes
    ----------
    fields
        The job as it is sent.
    source
        Name of the file; empty for options.
    lines
        Line of each field, from 1, by path like ``resources.gpus``.
    options
        Option of each field, by path.
    converted
        Conversion from the file of another scheduler; None for a job of Seaway.
    """

    fields: dict[str, Any]
    source: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    converted: Converted | None = None

    def placed(self, error: RejectedError) -> RejectedError:
        """Return an error with its position in the file or options."""
        others = tuple(self.placed(each) for each in error.also)
        return type(error)(error.message, where=self._place(error.where), also=others)

    def changed(self, fields: Mapping[str, Any], options: Mapping[str, str]) -> Written:
        """Return the job with fields from options."""
        if self.converted and self.converted.script and "command" in (run := fields.get("run", {})):
            others = {name: value for name, value in run.items() if name != "command"}
            fields = {**fields, "run": {**others, "args": run["command"]}}
        return replace(self, fields=merged(self.fields, fields), options=options)

    def _place(self, path: str) -> str:
        near = path
        while near and near not in self.lines and near not in self.options:
            near = near[: max(near.rfind("."), near.rfind("["), 0)]
        if near in self.options:
            return self.options[near]
        if not self.source:
            return path
        return ":".join(filter(None, (self.source, str(self.lines.get(near, "")), path)))


def read_jobs(file: str, kind: Kind = JOB) -> list[Written]:
    """Read all documents of a file; ``-`` is standard input.

    Raises
    ------
    RejectedError
        When the file cannot be read, is not YAML, or a document has the wrong type. The error contains the line.
    """
    source = "stdin" if file == STDIN else file
    return _jobs(_text(file, source), source, kind)


def _jobs(text: str, source: str, kind: Kind) -> list[Written]:
    try:
        jobs = [_written(each, source, kind) for each in yaml_documents(text, kind.most)]
    except YamlError as error:
        raise error.of_file(source) from None
    if not jobs:
        raise RejectedError(f"no {kind.name} found in it", where=source)
    return jobs


def read_any_jobs(file: str, ignored: Iterable[str] = ()) -> list[Written]:
    """Read a job file of Seaway or of another scheduler, and convert it.

    Parameters
    ----------
    ignored
        Fields of the other scheduler to leave out instead of refusing the file.

    Raises
    ------
    RejectedError
        When the file cannot be read, or a field cannot be converted.
    """
    from seaway.wire.job_imports.files import TEXTS as FOREIGN
    from seaway.wire.job_imports.files import convert_documents, convert_script, is_foreign

    source = "stdin" if file == STDIN else file
    text, left_out = _text(file, source), frozenset(ignored)
    if script := convert_script(text, source, left_out):
        return [_of(script, source)]
    jobs = _jobs(text, source, JOB)
    if not any(is_foreign(each.fields) for each in jobs):
        return jobs
    foreign = _jobs(text, source, replace(JOB, texts=FOREIGN))
    found = convert_documents([(each.fields, each.lines) for each in foreign], source, left_out)
    if not found:
        raise RejectedError("has no job that can be converted", where=source)
    natives = iter([each for each in jobs if not is_foreign(each.fields)])
    return [_of(each, source) if each else next(natives) for each in found]


def is_script(path: str) -> bool:
    """Report whether a path is a batch script of Slurm: by its name, or by its options for sbatch."""
    if path.endswith((".sbatch", ".slurm")):
        return True
    try:
        with Path(path).open("rb") as file:
            return bool(re.search(rb"(?m)^#SBATCH\s", file.read(1 << 16)))
    except (OSError, ValueError):
        return False


def _of(converted: Converted, source: str) -> Written:
    return Written(converted.fields, source, converted.lines, converted=converted)


def merged(base: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two objects field by field. Lists are replaced."""
    result = dict(base)
    for name, value in above.items():
        there = result.get(name)
        result[name] = merged(there, value) if isinstance(there, Mapping) and isinstance(value, Mapping) else value
    return result


def _text(file: str, source: str) -> str:
    try:
        raw = sys.stdin.buffer.read(MAX_BYTES + 1) if file == STDIN else Path(file).read_bytes()
        if len(raw) > MAX_BYTES:
            raise RejectedError("is too large", where=source)
        return raw.decode()
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}", where=source) from None
    except UnicodeDecodeError:
        raise RejectedError("is not text in UTF-8", where=source) from None


def _written(document: Document, source: str, kind: Kind) -> Written:
    if not isinstance(document.value, dict):
        where = f"{source}:{document.line}"
        raise RejectedError(f"must be a mapping of names to values, like `{kind.example}`", where=where)
    value = document.with_texts(lambda path: bool(kind.texts.fullmatch(path)))
    return Written(_plain(value, source, document.line), source, {"": document.line, **document.lines()})


def _plain(value: Any, source: str, line: int) -> Any:  # noqa: ANN401  # any value of YAML
    """Convert a value to JSON types. Dates become text."""
    if isinstance(value, dict):
        return {str(key): _plain(each, source, line) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, source, line) for each in value]
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float):
        return value
    raise RejectedError(f"holds a {type(value).__name__}, which is not allowed here", where=f"{source}:{line}")


OPTIONS = {
    "run.command": "COMMAND",
    "placement.clusters": "--cluster",
    "placement.cluster_labels": "--cluster-label",
    "labels": "--label",
    "data.location": "--data",
    "data.size": "--data-size",
    "run.ports": "--port",
    "expose.type": "--expose",
    "expose.node_ports": "--node-port",
    "volumes": "--volume",
    "time_limit_warning": "--signal",
}
"""Options whose names differ from their fields."""


def written_jobs(files: list[str], given: dict[str, Any], ignored: Iterable[str] = ()) -> list[Written]:
    """Return the jobs of all files, with fields from options; or one job from options.

    Parameters
    ----------
    given
        Values by path, like ``resources.gpus``.
    ignored
        Fields of other schedulers to leave out.
    """
    if not files and not given:
        raise RejectedError("no job given: use -f job.yaml, or options like --name and --gpus; see --help")
    fields: dict[str, Any] = {}
    for path, value in given.items():
        outer, _, inner = path.rpartition(".")
        fields = merged(fields, {outer: {inner: value}} if outer else {inner: value})
    options = {path: option_of(path) for path in given}
    if not files:
        return [Written(fields, options=options)]
    sources = ("run.env", "run.env_from_secret", "run.env_from_config_map")
    given_elsewhere = {*ignored, *(name for path in sources for name in given.get(path, ()))}
    return [each.changed(fields, options) for file in files for each in read_any_jobs(file, given_elsewhere)]


def option_of(path: str) -> str:
    """Return the option of a field."""
    name = path.rpartition(".")[2]
    return OPTIONS.get(path, f"--{name.replace('_', '-')}")


def pairs(texts: list[str] | None, option: str) -> dict[str, str] | None:
    """Parse texts of the form ``NAME=VALUE``.

    Raises
    ------
    RejectedError
        When a text has no ``=``.
    """
    if not texts:
        return None
    for text in texts:
        if "=" not in text:
            raise RejectedError(f"{text!r} has no '='; write NAME=VALUE", where=option)
    return {text.partition("=")[0]: text.partition("=")[2] for text in texts}
