"""A job as YAML and in the fields of a form."""

from __future__ import annotations

from typing import Any

import pytest

from seaway.domain.errors import RejectedError
from seaway.web import job_document as documents
from seaway.web.job_document import (
    AMOUNT,
    COMMAND,
    NAMES,
    NUMBERS,
    PAIRS,
    RANGE,
    RECEIVERS,
    TEXT,
    VOLUMES,
    Kind,
    field_of,
    line_of,
    lines_of,
    path_of,
    shown,
    typed,
    value_at,
)
from seaway.wire.job_in import JobIn
from seaway.wire.reading import read_yaml_message


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (TEXT, "train", "train"),
        (AMOUNT, "4", 4),
        (AMOUNT, "0.5", 0.5),
        (AMOUNT, "24GB", "24GB"),
        (NAMES, "a, b", ["a", "b"]),
        (NUMBERS, "8080, 9090", [8080, 9090]),
        (COMMAND, "python train.py 'two words'", ["python", "train.py", "two words"]),
        (PAIRS, "A=1\nB=x=y", {"A": "1", "B": "x=y"}),
        (RECEIVERS, "ops\nada@example.com=failed,finished", ["ops", "ada@example.com=failed,finished"]),
        (VOLUMES, "claim=a:/d\n{path: /s, csi: {driver: d}}", ["claim=a:/d", {"path": "/s", "csi": {"driver": "d"}}]),
    ],
)
def test_what_is_typed_into_a_field_is_shown_there_again(kind: Kind, text: str, value: object) -> None:
    """A field makes a value of its kind, and the value the same text; nothing typed is no value."""
    assert typed(f" {text} ", kind) == value
    assert shown({"a": {"b": value}}, "a.b", kind) == text
    assert typed("  ", kind) is None
    assert shown({}, "a.b", kind) == ""


@pytest.mark.parametrize("kind", [NAMES, NUMBERS, COMMAND, PAIRS, VOLUMES, RECEIVERS])
def test_what_is_of_another_kind_is_shown_as_it_is(kind: Kind) -> None:
    """A field shows a value that it could not have made, so that the message about it has something to are at."""
    assert shown({"a": 7}, "a", kind) == "7"


def test_receivers_of_a_stored_job_are_shown_in_their_short_form() -> None:
    """A job that the API returns has mappings, which the field shows as a user types them."""
    value = [{"to": "ops"}, {"to": "ada@example.com", "when": ["failed", "finished"]}]
    assert shown({"notify": value}, "notify", RECEIVERS) == "ops\nada@example.com=failed,finished"
    assert shown({"notify": "ops=failed"}, "notify", RECEIVERS) == "ops=failed"
    assert shown({"notify": {"to": "ops", "when": "failed"}}, "notify", RECEIVERS) == "ops=failed"
    assert shown({"notify": [{"when": "failed"}]}, "notify", RECEIVERS) == "[{'when': 'failed'}]"


@pytest.mark.parametrize("text", ["9" * 5000, "9" * 19, "0." + "1" * 5000])
def test_a_number_of_very_many_digits_stays_text(text: str) -> None:
    """It is for the API to say what is wrong with it, at the field; reading it breaks nothing."""
    assert typed(text, AMOUNT) == text
    assert typed(f"80, {text}", NUMBERS) == [80, text]


def test_a_number_that_cannot_be_written_is_no_job() -> None:
    """A form could not show it, nor could it be written again."""
    with pytest.raises(RejectedError, match="is not a valid number"):
        documents.read_document("priority: 0x" + "f" * 5000)


def test_an_open_quote_is_no_fault_while_one_types() -> None:
    """A command that ends in an open quote is taken word by word."""
    assert typed("echo 'hel", COMMAND) == ["echo", "'hel"]


def test_a_change_leaves_all_else_and_no_empty_parts() -> None:
    """Anything that a form has no field for stays; a part whose last field was taken away goes."""
    before: documents.Document = {"name": "a", "resources": {"gpus": 1}, "between_replicas": {"max_latency": "1ms"}}
    after = documents.changed(documents.changed(before, "resources.gpus", None), "run.image", "x")
    assert after == {"name": "a", "between_replicas": {"max_latency": "1ms"}, "run": {"image": "x"}}
    assert before["resources"] == {"gpus": 1}


def test_a_range_of_replicas_has_a_least_and_a_largest_number() -> None:
    """Both are shown and changed apart, whether they were typed as a range or not."""
    for before, least, most in (("2-16", 2, 16), ({"min": 2, "max": 16, "wanted": 4}, 2, 16), (4, None, None)):
        document: documents.Document = {"replicas": before}
        assert [value_at(document, f"replicas.{name}") for name in ("min", "max")] == [least, most]
    assert documents.changed({"replicas": "2-16"}, "replicas.max", 8) == {"replicas": {"min": 2, "max": 8}}
    assert documents.changed({"replicas": 4}, "replicas.max", 8) == {"replicas": {"min": 4, "max": 8}}
    assert documents.changed({}, "replicas.min", 1) == {"replicas": {"min": 1}}
    assert documents.changed({"replicas": {"min": 1}}, "replicas.min", None) == {}
    assert shown({"replicas": {"min": 1, "max": 3}}, "replicas", RANGE) == "1-3"


def test_the_first_trigger_of_each_kind_has_its_fields() -> None:
    """A metric and a time window are apart, others stay as they are, and an empty trigger goes."""
    metrics = [{"metric": "latency"}, {"metric": "query"}]
    document: documents.Document = {"scale": [{"start": "a", "replicas": 2}, *metrics]}
    assert [value_at(document, f"scale.{name}") for name in ("metric", "start", "target")] == ["latency", "a", None]
    document = documents.changed(document, "scale.target", "200ms")
    assert document["scale"][1:] == [{"metric": "latency", "target": "200ms"}, {"metric": "query"}]
    for name in ("start", "replicas"):
        document = documents.changed(document, f"scale.{name}", None)
    assert [each["metric"] for each in document["scale"]] == ["latency", "query"]
    document = documents.changed(documents.changed({}, "scale.metric", "requests"), "scale.end", "0 18 * * *")
    assert document == {"scale": [{"metric": "requests"}, {"end": "0 18 * * *"}]}
    assert documents.changed({"scale": [{"metric": "requests"}]}, "scale.metric", None) == {}
    fields = dict.fromkeys(("replicas", "replicas.min", "scale.metric", "scale.target"))
    wheres = {"scale[1].target": "scale.target", "scale": "scale.metric", "replicas.wanted": "replicas"}
    assert {each: field_of(each, fields) for each in wheres} == wheres


def test_what_is_written_is_read_as_the_same_job_in_the_usual_order() -> None:
    """YAML of a form begins with the name, and is what the API reads."""
    document: documents.Document = {"resources": {"gpus": 2}, "run": {"command": ["a", "b c"]}, "name": "train"}
    text = documents.written(document)
    assert text == "name: train\nresources:\n  gpus: 2\nrun:\n  command: [a, b c]\n"
    assert documents.read_document(text) == document
    assert read_yaml_message(JobIn, text) == JobIn.model_validate(document)
    assert documents.written({}) == ""


@pytest.mark.parametrize("text", ["- a", "name: [", "7", "1: a", "a: " + "x" * documents.LARGEST, "a: &a [*a]"])
def test_what_is_no_job_is_not_shown_in_a_form(text: str) -> None:
    """Lists, half-written YAML, what is too long and what contains itself are left to the API."""
    with pytest.raises(RejectedError):
        documents.read_document(text)


def test_a_field_has_its_line_or_that_of_what_it_would_be_a_part_of() -> None:
    """Anything that is wrong is marked where it stands; what is missing where it would stand."""
    lines = lines_of("# a job\nname: a\nresources:\n  gpus: 1\nrun:\n  ports:\n    - 80\n    - x\n")
    expected: dict[str, int | None] = {
        "resources.gpus": 4,
        "resources.cpu": 3,
        "run.ports[1]": 8,
        "run.ports[5]": 6,
        "gateway": None,
        "": None,
    }
    assert {path: line_of(lines, path) for path in expected} == expected


def test_an_error_belongs_to_the_nearest_field() -> None:
    """Parts of a field are the field's; what the form has no field for belongs to none."""
    fields: dict[str, Any] = dict.fromkeys(("name", "run.ports", "resources.gpus"))
    wheres = ("name", "run.ports[2]", "run.ports", "resources", "network.max_loss", "")
    assert [field_of(where, fields) for where in wheres] == ["name", "run.ports", "run.ports", "", "", ""]


def test_figures_of_remedies_are_fields_where_an_amount_can_be_set() -> None:
    """Anything that an explanation calls `gpu_memory_mib` is `resources.gpu_memory`; rules have no amount to set."""
    assert path_of("gpu_memory_mib") == "resources.gpu_memory"
    assert path_of("max_latency_ns") == "network.max_latency"
    assert (path_of("replicas"), path_of("time_limit_s")) == ("replicas", "time_limit")
    assert path_of("models") == ""
    assert path_of("unheard-of") == ""
