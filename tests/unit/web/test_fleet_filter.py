"""Anything that a page's address asks of the fleet, and colours of a user who holds what."""

from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.web.pages.fleet.filter import is_meant, wanted_of
from seaway.web.parts.slices import COLOURS, colours_of
from seaway.wire.fleet import AmountOut, DeviceOut
from seaway.wire.message import with_message


def device(**figures: object) -> DeviceOut:
    """Make a device of which some memory and cores are free."""
    fields = {"cluster": "a", "node": "n", "uuid": "GPU-Ab", "index": 0, "model": "NVIDIA A100", "vendor": "NVIDIA"}
    free = AmountOut(total=1000, used=400, free=600)
    more = {"mode": "hami-core", "healthy": True, **with_message(""), "share_limit": 10, "slices": [], "used": None}
    return DeviceOut.model_validate({**fields, **more, "memory_mib": free, "core_milli": free, **figures})


def test_amounts_are_written_as_people_do_and_asked_for_as_the_api_counts() -> None:
    """Memory in GiB, cores in percent; what is not given does not filter."""
    wanted = wanted_of({"memory": "1.5", "cores": "30", "ready": "yes", "name": "n-1", "view": "cards"})
    assert (wanted["free_memory_mib"], wanted["free_core_milli"], wanted["ready"], wanted["name"]) == (
        1536,
        300,
        True,
        "n-1",
    )
    none = wanted_of({})
    assert (none["free_memory_mib"], none["cluster"], none["ready"]) == (0, "", None)


@pytest.mark.parametrize("text", ["many", "-1", "nan", "inf", "1e300", "4GB"])
def test_what_is_no_amount_is_refused_with_its_field(text: str) -> None:
    """An address may have anything in it; the page says at which field it is wrong."""
    with pytest.raises(RejectedError) as caught:
        wanted_of({"cores": text})
    assert caught.value.where == "cores"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({}, True),
        ({"name": "elsewhere"}, True),
        ({"model": "a100"}, True),
        ({"model": "H100"}, False),
        ({"device": "gpu-aB"}, True),
        ({"cores": "60"}, True),
        ({"cores": "61"}, False),
    ],
)
def test_cards_that_are_not_meant_are_reported_from_those_that_are(given: dict[str, str], meant: bool) -> None:
    """A node is shown with all its cards; those that do not match are drawn faintly."""
    assert is_meant(wanted_of(given))(device()) == meant


def test_names_keep_their_colours_and_do_not_share_them() -> None:
    """As many names as there are colours have one each; a name alone has the one it has among others, if it is free."""
    names = [f"tenant-{at}" for at in range(COLOURS)]
    assert sorted(colours_of(names).values()) == list(range(COLOURS))
    assert colours_of(names) == colours_of(reversed(names))
    assert set(colours_of(f"job-{at}" for at in range(100)).values()) == set(range(COLOURS))
    assert colours_of(["b", "a"])["a"] == colours_of(["a"])["a"]
