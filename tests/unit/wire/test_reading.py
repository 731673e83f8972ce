"""The way how messages are read."""

from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.wire.job_in import JobIn
from seaway.wire.reading import read_json, require_once


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


def test_a_name_may_are_in_several_places() -> None:
    """Anything that looks like a name twice, in other objects or in texts, is taken."""
    body = (
        '{"name": "name", "network": {"max_latency": "1ms"}, "between_replicas": {"max_latency": "2ms"},'
        ' "run": {"image": "x", "args": ["a", ":a", "\\"name\\":"]}, "labels": {"name": "x"}}'
    )
    assert read_json(JobIn, body).name == "name"
    with pytest.raises(RejectedError, match="duplicated"):
        read_json(JobIn, '{"name": "a", "name": "b"}')
