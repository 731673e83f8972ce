from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Pool, Tenant


@pytest.mark.parametrize("name", ["a", "team-a", "v1.2", "0", "a" * 63])
def test_names_fit_into_labels(name: str) -> None:
    """Letters, digits, hyphens and dots, up to 63."""
    assert Tenant(name).name == Pool(name).name == Queue(name).name == name


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a_b", "a b", "a" * 64, "é", "a\n", "../etc"])
def test_other_names_are_refused(name: str) -> None:
    """Whatever could not are in a label is refused, for every kind of thing."""
    for kind in (Tenant, Pool, Queue):
        with pytest.raises(RejectedError) as error:
            kind(name)
        assert error.value.where == "name"
