"""The way how messages are read."""

from __future__ import annotations

import re

import orjson
import pytest

from seaway.domain.errors import RejectedError
from seaway.wire.job_in import JobIn
from seaway.wire.message import Incoming
from seaway.wire.queues import QueueIn
from seaway.wire.reading import (
    MAX_SUBMITTED,
    read_json,
    read_value,
    read_yaml_message,
    require_few_values,
    require_once,
)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"name": "a", "name": "b"}', "name"),
        ('{"name": "a", "resources": {"gpus": 1, "gpus" : 2}}', "gpus"),
        ('{"name": "a", "resources": {"gpus": 1}, "run": {"image": "x"}, "resources": {}}', "resources"),
        ('{"name": "a", "labels": {"k": "1", "\\u006b": "2"}}', "k"),
        ('{"name": "a", "run": {"image": "x", "env": {":k": "1", ":k": "2"}}}', ":k"),
    ],
)
def test_a_field_is_present_once(body: str, field: str) -> None:
    """Of two values for one field none is meant, and the field is named, however it is written."""
    with pytest.raises(RejectedError) as caught:
        require_once(body)
    assert (caught.value.where, caught.value.message) == (field, "this field is duplicated")


@pytest.mark.parametrize("whole", ["{%s}", '{"labels":{%s}}'])
def test_thousands_of_errors_are_not_described(whole: str) -> None:
    """A message with more errors than anyone reads is rejected without a description of each."""
    body = whole % ",".join(f'"!{number}":1' for number in range(2000))
    with pytest.raises(RejectedError, match=r"has [24],00\d errors, too many to list"):
        read_json(JobIn, body)


@pytest.mark.parametrize(
    ("body", "where", "says"),
    [
        ({"gpus": 4}, "gpus", "it belongs in 'limit.gpus' or 'guarantee.gpus'"),
        ({"level": "node"}, "level", "it belongs in 'policy.options.level'"),
        ({"policy": {"name": "fgd", "level": "node"}}, "policy.level", "it belongs in 'policy.options.level'"),
        ({"policy": {"options": {}}}, "policy.name", "is missing"),
        ({"policy": "A"}, "policy", "'A' is not valid"),
        ({"policy": 5, "policy_options": 5}, "policy", "must be a text"),
    ],
)
def test_a_field_of_several_forms_has_one_error(body: dict[str, object], where: str, says: str) -> None:
    """The error is that of the given form, and its place has no names of forms."""
    with pytest.raises(RejectedError) as caught:
        read_value(QueueIn, body)
    errors = {each.where: each.message for each in (caught.value, *caught.value.also)}
    assert says in errors.pop(where)
    assert not {each for each in errors if each.startswith("policy.")}


@pytest.mark.parametrize("model", [JobIn, QueueIn])
def test_names_of_other_systems_lead_to_fields(model: type[Incoming]) -> None:
    """Each name that an error translates is unknown, and its translations are known fields."""
    for name, places in model.FOREIGN.items():
        with pytest.raises(RejectedError, match=f"unknown field '{re.escape(name)}'; it belongs in '{places[0]}'"):
            read_value(model, {**({"name": "a"} if model is JobIn else {}), name: {}})
        for path in places:
            value: object = {}
            for step in reversed(path.split(".")):
                value = {step: value}
            errors: list[RejectedError] = []
            try:
                read_value(model, value)
            except RejectedError as error:
                errors = [error, *error.also]
            assert not [each for each in errors if "unknown field" in each.message]


def test_a_name_may_are_in_several_places() -> None:
    """Anything that looks like a name twice, in other objects or in texts, is taken."""
    body = (
        '{"name": "name", "network": {"max_latency": "1ms"}, "between_replicas": {"max_latency": "2ms"},'
        ' "run": {"image": "x", "args": ["a", ":a", "\\"name\\":"]}, "labels": {"name": "x"}}'
    )
    assert read_json(JobIn, body).name == "name"
    with pytest.raises(RejectedError, match="duplicated"):
        read_json(JobIn, '{"name": "a", "name": "b"}')


def numbers(count: int) -> bytes:
    """Return a list in JSON of so many values, itself included."""
    return b"[" + b",".join([b"1"] * (count - 1)) + b"]"


@pytest.mark.parametrize(
    "body",
    [
        numbers(MAX_SUBMITTED),
        numbers(MAX_SUBMITTED - 1).replace(b"1", b"[ ]", 1),
        b'{"a":"%b"}' % (b",:[" * MAX_SUBMITTED),
        rb'{"\\\\": "%b"}' % (rb"\"\\,:[" * MAX_SUBMITTED),
    ],
    ids=["as many as allowed", "one of them empty", "separators in a text", "escaped quotes in a text"],
)
def test_values_are_counted_and_not_separators_in_texts(body: bytes) -> None:
    """At most so many values are accepted."""
    orjson.loads(body)
    require_few_values(body)


@pytest.mark.parametrize(
    "body",
    [
        numbers(MAX_SUBMITTED + 1),
        b'{"a":%b}' % numbers(MAX_SUBMITTED),
        b"{%b}" % b",".join(b'"%d":1' % number for number in range(MAX_SUBMITTED // 2)),
        b"[%b]" % b",".join([b"[]"] * MAX_SUBMITTED),
        b"[" * MAX_SUBMITTED * 2,
    ],
    ids=["list", "list in a field", "fields", "lists", "not JSON"],
)
def test_body_with_more_values_is_rejected(body: bytes) -> None:
    """Fields count twice: their names, and their values."""
    with pytest.raises(RejectedError, match="more than 10000 values"):
        require_few_values(body)


def test_plain_numbers_in_yaml_are_texts_where_a_text_is_expected() -> None:
    """A number, date or truth value of a text is the text as written; a wrong type elsewhere remains an error."""
    text = "name: 7\nresources: {gpus: 1, gpu_model: 4090}\nrun: {env: {A: 010, B: yes, D: 2026-11-21}, args: [1.10]}\n"
    job = read_yaml_message(JobIn, text)
    assert (job.name, job.resources.gpu_model, job.run.args) == ("7", ["4090"], ["1.10"])
    assert job.run.env == {"A": "010", "B": "yes", "D": "2026-11-21"}
    with pytest.raises(RejectedError, match="replicas: must be a whole number"):
        read_yaml_message(JobIn, f"{text}replicas: two\n")
    with pytest.raises(RejectedError, match=r"run.env.A: must be a text"):
        read_yaml_message(JobIn, "name: a\nrun: {env: {A: {}}}\n")


@pytest.mark.parametrize(("text", "seconds"), [("60", 60), (60, 60), (1.5, 2), ("90s", 90), ("1h", 3600)])
def test_durations_without_a_unit_are_seconds(text: str | float, seconds: int) -> None:
    """A number without a unit is a number of seconds, rounded up."""
    job = read_json(JobIn, orjson.dumps({"name": "a", "expected_duration": text, "time_limit": text}))
    assert (job.spec().expected_duration_s, job.spec().time_limit_s) == (seconds, seconds)
