from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Pool, Quota, Tenant


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


@pytest.mark.parametrize(
    ("quota", "said"),
    [
        (Quota({"gpus": 8000, "gpus/a100": 6000, "gpus/l4": 4000}), "10 gpus of single models, more than its guara"),
        (Quota({"gpus/a100": 16_000}, {"gpus": 8000}), "16 gpus of single models, more than its limit of 8 gpus"),
    ],
)
def test_guaranteed_gpus_of_models_are_gpus(quota: Quota, said: str) -> None:
    """A quota cannot guarantee more GPUs of single models than GPUs, nor than its limit of them."""
    tenant = Tenant("vision", quotas={"default": quota})
    with pytest.raises(RejectedError, match=said) as refused:
        tenant.require_models()
    assert refused.value.where == "quotas.default.guarantee.gpus"
