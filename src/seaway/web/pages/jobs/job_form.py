"""Job form: controls for common fields. All other fields stay as in the YAML."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement
from nicegui.events import GenericEventArguments, ValueChangeEventArguments

from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import ServiceType
from seaway.domain.runtime import RestartPolicy
from seaway.domain.scaling import Metric
from seaway.web.job_document import (
    AMOUNT,
    CHOICE,
    COMMAND,
    LARGEST,
    LINES,
    MAPPING,
    NAMES,
    NUMBERS,
    PAIRS,
    RANGE,
    RECEIVERS,
    TEXT,
    VOLUMES,
    WARNING,
    Document,
    Kind,
    changed,
    field_of,
    lines_of,
    read_document,
    shown,
    typed,
    value_at,
    written,
)
from seaway.web.latest import Turn
from seaway.web.words import Words

Typed = Callable[[str, Any], Awaitable[None]]
"""Function that receives the path of a field and its value; the value is None for an empty field."""

TEMPLATES = ("job", "deployment", "torchrun", "pytorchjob", "raycluster", "rayjob", "volcanojob", "kueue")
"""Workload templates in the list. The user can type others."""


_RUN = {"image": "pytorch:2.9", "command": ["python", "train.py"]}

PRESETS: Mapping[str, Document] = {
    "Training on one GPU": {"name": "train", "resources": {"gpus": 1, "cpu": 4, "memory": "16GB"}, "run": _RUN},
    "Training on a share of a GPU": {
        "name": "train-small",
        "resources": {"gpus": 1, "gpu_memory": "8GB", "cpu": 2, "memory": "8GB"},
        "run": _RUN,
    },
    "Training on several nodes": {
        "name": "train-large",
        "replicas": 4,
        "template": "torchrun",
        "resources": {"gpus": 4, "cpu": 16, "memory": "64GB"},
        "run": {"image": "pytorch:2.9", "command": ["train.py"]},
    },
    "Sweep over parameters": {
        "name": "sweep",
        "array": "0-5",
        "matrix": {"LEARNING_RATE": [0.1, 0.01, 0.001], "SEED": [1, 2]},
        "resources": {"gpus": 1, "cpu": 2, "memory": "8GB"},
        "run": _RUN,
    },
    "Service": {
        "name": "serve",
        "template": "deployment",
        "resources": {"gpus": 1, "cpu": 4, "memory": "16GB"},
        "run": {"image": "server:1", "command": ["python", "serve.py"], "ports": [8000]},
    },
}
"""Jobs to begin with, by their titles in English."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Names to choose from."""

    queues: Sequence[str]
    gateways: Sequence[str]
    tenants: Sequence[str]
    models: Mapping[str, str] = field(default_factory=dict)
    """Titles of the GPU models, by name."""


@dataclass(frozen=True, slots=True)
class Field:
    """Field of the form.

    Attributes
    ----------
    path
        Path in a job.
    label
        Title of the field.
    hint
        Example of a value, or the default.
    options
        Values to choose from.
    titles
        Titles of options that are not shown as they are.
    wide
        True if it has its own row.
    on
        For a switch, the value of the job's field when it is on; None for other controls.
    """

    path: str
    label: str
    kind: Kind = TEXT
    hint: str = ""
    options: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    wide: bool = False
    on: object = None


class JobForm:
    """Form of a job.

    Parameters
    ----------
    typed
        Receives values that the user types, but not those from `show`.

    Attributes
    ----------
    document
        Current job.
    fields
        Fields that can have errors, by path.
    """

    def __init__(self, words: Words, choices: Choices, typed: Typed) -> None:
        self._typed = typed
        self.document: Mapping[str, Any] = {}
        self.fields: dict[str, Field] = {}
        self._controls: dict[str, ValidationElement[Any]] = {}
        self._there: dict[str, str] = {}  # current text of each control
        self._switches: dict[tuple[str, object], ui.switch] = {}  # by path, and value when it is on
        self._more: dict[str, ui.expansion] = {}
        with ui.element("div").classes("job-form") as self.section:
            for title, fields, folded in _parts(words, choices):
                if folded:
                    with ui.expansion(title).classes("form-more").props("dense") as part:
                        self._group("", fields)
                    self._more |= dict.fromkeys((each.path for each in fields), part)
                else:
                    self._group(title, fields)

    def show(self, document: Mapping[str, Any]) -> None:
        """Show a job."""
        self.document = document
        for path, control in self._controls.items():
            field = self.fields[path]
            there = value_at(document, path)
            if typed(str(control.value or ""), field.kind) != there:
                text = shown(document, path, field.kind)
                self._there[path] = text
                if isinstance(control, ui.select):
                    _choose(control, text)
                else:
                    control.set_value(text)
        for (path, on), switch in self._switches.items():
            switch.set_value(value_at(document, path) == on)

    def mark(self, errors: Sequence[RejectedError]) -> None:
        """Show errors at their fields."""
        wrong: dict[str, str] = {}
        for each in errors:
            wrong.setdefault(field_of(each.where, self.fields), each.message)
        for path, control in self._controls.items():
            control.error = wrong.get(path)
            if path in wrong and path in self._more:
                self._more[path].open()

    def lead(self, path: str) -> None:
        """Move the focus to a field."""
        if (control := self._controls.get(field_of(path, self.fields))) is not None:
            control.run_method("focus")

    def enable(self, on: bool) -> None:
        """Enable or disable input."""
        for control in (*self._controls.values(), *self._switches.values()):
            control.set_enabled(on)  # type: ignore[attr-defined]  # all controls have it

    def _group(self, title: str, fields: Sequence[Field]) -> None:
        with ui.element("fieldset").classes("form-part"):
            if title:
                with ui.element("legend"):
                    ui.label(title)
            for field in fields:
                if field.on is None:
                    self.fields[field.path] = field
                    self._controls[field.path] = self._control(field)
                else:
                    self._switch(field)

    def _control(self, field: Field) -> ValidationElement[Any]:
        async def changed(value: str | None) -> None:
            text = value or ""
            if text != self._there.get(field.path, ""):  # the user typed it, and `show` did not
                self._there[field.path] = text
                await self._typed(field.path, typed(text, field.kind))

        control: ValidationElement[Any]
        if field.options:
            control = _chooser(field, changed)
        elif field.kind in (LINES, MAPPING, PAIRS, VOLUMES, RECEIVERS):
            control = ui.textarea(field.label, on_change=lambda event: changed(event.value)).props("autogrow rows=1")
        else:
            control = ui.input(field.label, on_change=lambda event: changed(event.value))
            control.props("autocomplete=off spellcheck=false")
        control.without_auto_validation()
        control.props("outlined dense stack-label hide-bottom-space").classes(
            "form-wide" if field.wide else "form-field"
        )
        control.props["placeholder"] = field.hint
        return control

    def _switch(self, field: Field) -> None:
        async def changed(on: bool) -> None:
            if on != (value_at(self.document, field.path) == field.on):
                await self._typed(field.path, field.on if on else None)

        switch = (
            ui.switch(field.label, on_change=lambda event: changed(event.value)).props("dense").classes("form-wide")
        )
        self._switches[field.path, field.on] = switch


def _chooser(field: Field, changed: Callable[[str | None], Awaitable[None]]) -> ui.select:
    """Return a field with options that also accepts other text when the user leaves the field."""
    typed_text = ""

    def note(event: GenericEventArguments) -> None:
        nonlocal typed_text
        typed_text = str(event.args or "")

    def left() -> None:
        if typed_text and typed_text != select.value:
            _choose(select, typed_text)

    async def chosen(event: ValueChangeEventArguments[str | None]) -> None:
        nonlocal typed_text
        typed_text = ""
        await changed(event.value)

    select = ui.select(
        {each: field.titles.get(each, each) for each in field.options}, label=field.label, with_input=True,
        new_value_mode="add-unique", key_generator=str, clearable=True, on_change=chosen,
    )  # fmt: skip
    return select.on("input-value", note).on("blur", left)


def _choose(select: ui.select, text: str) -> None:
    """Select an option, and add it if it is missing. An empty text clears the selection."""
    if text and text not in select.options:
        select.set_options({**dict(select.options), text: text})
    select.set_value(text or None)


def _parts(words: Words, choices: Choices) -> Iterator[tuple[str, tuple[Field, ...], bool]]:
    """Yield the parts of the form: title, fields, and True if it is collapsed at first."""

    def like(example: str) -> str:
        return words("for example {example}", example=example)

    tenant = (
        (Field("tenant", words("Tenant"), hint="default", options=tuple(choices.tenants)),) if choices.tenants else ()
    )
    yield (
        words("Job"),
        (
            Field("name", words("Name"), hint=like("train")),
            Field(
                "gateway",
                words("Your gateway"),
                hint=words("the gateway of your site"),
                options=tuple(choices.gateways),
            ),
            Field("queue", words("Queue"), hint="default", options=tuple(choices.queues)),
            Field("priority", words("Priority"), AMOUNT, hint="0"),
            Field("template", words("Template"), hint="job", options=TEMPLATES),
            *tenant,
        ),
        False,
    )
    yield (
        words("Program"),
        (
            Field("run.image", words("Image"), hint=like("pytorch:2.9"), wide=True),
            Field("run.command", words("Command"), COMMAND, hint=like("python train.py"), wide=True),
            Field("setup", words("Setup commands"), LINES, hint=like("pip install -r requirements.txt"), wide=True),
        ),
        False,
    )
    yield (
        words("Resources of each replica"),
        (
            Field("replicas", words("Replicas"), RANGE, hint=like("4, 2-16")),
            Field("resources.gpus", words("GPUs"), AMOUNT, hint="0"),
            Field("resources.gpu_memory", words("Memory of each GPU"), AMOUNT, hint=like("24GB, 50%")),
            Field("resources.gpu_cores", words("Cores of each GPU"), AMOUNT, hint=like("30%")),
            Field("resources.mig", words("MIG profile"), hint=like("3g.40gb")),
            Field(
                "resources.gpu_model",
                words("GPU models"),
                NAMES,
                hint=like("A100, NVIDIA L4"),
                options=tuple(choices.models),
                titles=choices.models,
            ),
            Field(
                "resources.gpu_topology",
                words("Connection between GPUs"),
                hint=words("any"),
                options=("same-island", "best-effort"),
            ),
            Field("resources.cpu", words("CPU cores"), AMOUNT, hint=like("4, 500m")),
            Field("resources.memory", words("Memory"), AMOUNT, hint=like("16GB")),
            Field("resources.shm_size", words("Shared memory"), AMOUNT, hint=like("16GB")),
            Field(
                "gang",
                words("Start of the replicas"),
                CHOICE,
                hint=words("as the template needs"),
                options=("true", "false"),
                titles={"true": words("All together, or none"), "false": words("One by one, as room is found")},
            ),
            Field("spread", words("Replicas may form a ring over several clusters"), on="clusters"),
            Field("between_replicas.min_bandwidth", words("Bandwidth between clusters"), AMOUNT, hint=like("1Gbps")),
        ),
        False,
    )
    yield (
        words("Elastic replicas"),
        (
            Field("replicas.min", words("Minimum"), AMOUNT, hint=like("2")),
            Field("replicas.max", words("Maximum"), AMOUNT, hint=like("16")),
            Field("scale.metric", words("Scaled by"), hint=words("room in the fleet"), options=tuple(Metric)),
            Field("scale.target", words("Target"), AMOUNT, hint=like("20, 200ms, 70%")),
            Field("scale.query", words("Query"), hint=like('sum(queue_length{pod=~"{pods}"})'), wide=True),
            Field("scale.start", words("Time window begins"), hint=like("0 8 * * 1-5")),
            Field("scale.end", words("Time window ends"), hint=like("0 18 * * 1-5")),
            Field("scale.timezone", words("Time zone"), hint="UTC"),
            Field("scale.replicas", words("Replicas in the time window"), AMOUNT, hint=like("4")),
        ),
        True,
    )
    yield (
        words("Network from your gateway"),
        (
            Field("network.max_latency", words("Maximum latency"), AMOUNT, hint=like("20ms")),
            Field("network.max_jitter", words("Maximum jitter"), AMOUNT, hint=like("5ms")),
            Field("network.max_loss", words("Maximum loss"), AMOUNT, hint=like("0.1%")),
            Field("network.min_bandwidth", words("Bandwidth"), AMOUNT, hint=like("1Gbps")),
            Field("network.on_violation", words("Move the job if its links violate these bounds"), on="move"),
        ),
        False,
    )
    yield (
        words("Placement and time limits"),
        (
            Field("placement.clusters", words("Clusters"), NAMES, hint=words("any")),
            Field("placement.regions", words("Regions"), NAMES, hint=words("any")),
            Field(
                "placement.max_price_per_gpu_hour",
                words.priced(words("Maximum price of a GPU hour")),
                AMOUNT,
                hint=like("2.50"),
            ),
            Field("data.location", words("Data location"), hint=words("a cluster, gateway or region")),
            Field("data.size", words("Data size"), AMOUNT, hint=like("200GB")),
            Field("expected_duration", words("Expected duration"), hint=like("10m, 2h")),
            Field("time_limit", words("Time limit"), hint=like("1d")),
            Field("lease", words("Lease"), hint=like("2h")),
            Field("time_limit_warning", words("Signal before the time limit"), WARNING, hint=like("USR1@300")),
            Field("retries", words("Retries"), AMOUNT, hint="0"),
            Field("restart_policy", words("Restart in place"), hint="Never", options=tuple(RestartPolicy)),
            Field("max_restarts", words("Maximum restarts in place"), AMOUNT, hint=words("no maximum")),
            Field("run.ports", words("Ports"), NUMBERS, hint=like("8080")),
            Field("expose.type", words("Exposed as"), hint="ClusterIP", options=tuple(ServiceType)),
            Field("expose.node_ports", words("Ports of nodes"), NUMBERS, hint=words("any")),
            Field("expose.host", words("Host"), hint=like("chat.example.com")),
            Field("standby.mode", words("Standby in another cluster"), hint=words("none"), options=("warm", "cold")),
            Field("run.env", words("Environment"), PAIRS, hint="NAME=VALUE", wide=True),
            Field(
                "run.env_from_secret",
                words("Environment from Secrets"),
                PAIRS,
                hint=like("HF_TOKEN=hf/token"),
                wide=True,
            ),
            Field(
                "run.env_from_config_map",
                words("Environment from ConfigMaps"),
                PAIRS,
                hint=like("LEVEL=settings/log"),
                wide=True,
            ),
            Field(
                "run.pod",
                words("Own pod spec"),
                MAPPING,
                hint="containers: [{name: main, workingDir: /src}]",
                wide=True,
            ),
            Field(
                "volumes",
                words("Volumes"),
                VOLUMES,
                hint=like("claim=imagenet:/data:ro"),
                wide=True,
            ),
            Field("notify", words("Messages to"), RECEIVERS, hint=like("ops=started,failed"), wide=True),
            Field("labels", words("Labels"), PAIRS, hint=like("team=a"), wide=True),
            Field("placement.cluster_labels", words("Labels of the cluster"), PAIRS, hint=like("team=a"), wide=True),
        ),
        True,
    )


class Behind(Enum):
    """Views of a draft that can be outdated."""

    NEITHER = 0
    TEXT = 1
    DOCUMENT = 2


class JobDraft:
    """Job that a user edits.

    Attributes
    ----------
    text
        The job as YAML.
    document
        The job as the form shows it; None while the text is invalid.
    lines
        Line of each field in the text, by path.
    behind
        The view that is outdated.
    """

    def __init__(self) -> None:
        self.text = ""
        self.document: Document | None = {}
        self.lines: dict[str, int] = {}
        self.behind = Behind.NEITHER

    @classmethod
    def of(cls, document: Document) -> Self:
        """Create a draft from an existing job."""
        draft = cls()
        draft.document = document
        draft.text, draft.lines = _write(document)
        return draft

    @property
    def is_long(self) -> bool:
        """True if the text is too long to check while the user types."""
        return len(self.text) > LARGEST

    def fill_in(self, path: str, value: object) -> None:
        """Set a field from the form."""
        self.document = changed(self.document or {}, path, value)
        self.behind = Behind.TEXT

    def rewrite(self, text: str) -> None:
        """Replace the YAML."""
        self.text = text
        self.behind = Behind.DOCUMENT

    async def named(self, name: str) -> str:
        """Return the job as YAML with another name, and all other fields unchanged. A thread runs it."""
        return await asyncio.to_thread(written, {**(self.document or {}), "name": name})

    async def settle(self, turn: Turn) -> bool:
        """Update the outdated view in a thread.

        Return False, and discard the result, if the user typed in the meantime.
        """
        if self.behind is Behind.TEXT:
            text, lines = await asyncio.to_thread(_write, self.document or {})
            if turn.counts():
                self.text, self.lines, self.behind = text, lines, Behind.NEITHER
        elif self.behind is Behind.DOCUMENT:
            document, lines = await asyncio.to_thread(_read, self.text)
            if turn.counts():
                self.document, self.lines, self.behind = document, lines, Behind.NEITHER
        return turn.counts()


def _write(document: Document) -> tuple[str, dict[str, int]]:
    text = written(document)
    return text, lines_of(text)


def _read(text: str) -> tuple[Document | None, dict[str, int]]:
    try:
        return read_document(text), lines_of(text)
    except RejectedError:
        return None, {}
