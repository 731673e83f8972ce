"""Evaluations of policies, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seaway.learning.evaluation.summary import COLUMNS, Row
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

PATH = "/api/v1/evaluations/night"
CSV = {"content-type": "text/csv"}


def rows(**placed: tuple[int, ...]) -> list[Row]:
    """Create rows of policies from the jobs that each placed on each instance."""
    return [
        Row(policy, "node", f"seed{at}", 0, jobs=10, placed=count, fragmentation=1.5)
        for policy, counts in placed.items()
        for at, count in enumerate(counts)
    ]


def as_json(found: list[Row]) -> list[dict[str, Any]]:
    """Write rows as the command does."""
    return [each.record() for each in found]


def as_csv(found: list[Row]) -> str:
    """Write rows as the command does."""
    return "\n".join([",".join(COLUMNS), *(",".join(each.cells().values()) for each in found)]) + "\n"


async def test_what_the_command_wrote_is_stored_and_summed_up(rig: Rig) -> None:
    """The best comes first, each with its interval; JSON and CSV are equal, and a repetition changes nothing."""
    found = rows(greedy=(5, 5), fgd=(6, 8))
    async with rig.client("operator") as client:
        first = await client.put(PATH, json=as_json(found))
        again = await client.put(PATH, content=as_csv(found), headers=CSV)
        other = await client.put(PATH, json=as_json(rows(fgd=(1,))))
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    async with rig.client("viewer") as client:
        (listed,) = (await client.get("/api/v1/evaluations")).json()["evaluations"]
        shown = (await client.get(PATH)).json()
        assert (await client.delete(PATH)).status_code == 403
    assert (listed["name"], listed["policies"], listed["instances"]) == ("night", ["fgd", "greedy"], 2)
    best, behind = shown["lines"]
    assert (best["policy"], best["figures"]["placed"]["mean"], best["behind"]) == ("fgd", 7.0, None)
    assert best["figures"]["placed"]["ci95"] == pytest.approx(12.706, abs=0.001)
    assert behind["behind"]["mean"] == 2
    async with rig.client("operator") as client:
        assert (await client.delete(PATH)).status_code == 204
        assert (await client.get(PATH)).status_code == 404
    noted = [(each.verb, each.actor, each.status) for each in rig.store.audit(0, 100)]
    assert ("PUT put_evaluation", "operator", 201) in noted


async def test_only_operators_bring_evaluations(rig: Rig) -> None:
    """Users cannot upload evaluations."""
    async with rig.client("user") as client:
        assert (await client.put(PATH, json=as_json(rows(fgd=(1,))))).status_code == 403


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("[", "not JSON"),
        ("[]", "at least 1"),
        ('{"policy": "fgd"}', "must be a list"),
        (json.dumps([{"policy": "fgd", "level": "node", "instance": "a", "seed": 0, "evil": 1}]), "unknown field"),
        (json.dumps([{"policy": "fgd", "level": "node", "instance": "a", "seed": 0, "placed": -1}]), "at least 0"),
        ('[{"policy": "fgd", "level": "node", "instance": "a", "seed": 0, "ratio": NaN}]', "finite number"),
        ('[{"policy": "fgd", "level": "node", "instance": "a", "seed": 0, "p50_us": 1e300}]', "at most"),
        (json.dumps(as_json(rows(fgd=(11,)))), "more jobs are placed than arrived"),
        (json.dumps(as_json(rows(fgd=(1,)) * 2)), "are duplicated"),
    ],
)
async def test_what_is_no_evaluation_in_json_is_refused(rig: Rig, given: str, says: str) -> None:
    """The error names the place, and nothing is stored."""
    async with rig.client("operator") as client:
        answer = await client.put(PATH, content=given, headers={"content-type": "application/json"})
        assert (answer.status_code, (await client.get(PATH)).status_code) == (422, 404)
    assert says in answer.json()["detail"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (b"", "these are not rows"),
        (b"\xff\xfe", "not a text in UTF-8"),
        (as_csv(rows(fgd=(1, 2))).encode()[:-20], "fewer fields"),
        (as_csv(rows(fgd=(1,))).replace(",1.5,", ",much,").encode(), "[0].fragmentation: is not a figure"),
        (b"policy,level,instances,runs\nfgd,node,1,1\n", "without --summary"),
        (b'policy,"level\n', "not CSV"),
    ],
)
async def test_what_is_no_evaluation_in_csv_is_refused(rig: Rig, given: bytes, says: str) -> None:
    """The error names the place; a truncated file is detected."""
    async with rig.client("operator") as client:
        answer = await client.put(PATH, content=given, headers=CSV)
    assert answer.status_code == 422, answer.text
    assert says in answer.json()["detail"]
