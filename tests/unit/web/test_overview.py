"""What the first page says of clusters, and of what is wrong."""

from __future__ import annotations

import pytest

from seaway.application.alerts import RULES, Alert
from seaway.web.fragment import written
from seaway.web.pages.overview import Seen, alerts
from seaway.web.words import Words, words_of
from seaway.wire.alerts import AlertList, AlertOut, alert_fields
from seaway.wire.fleet import AmountOut, ClusterOut


def cluster(**fields: object) -> ClusterOut:
    """Make a cluster of one device, half of which is taken."""
    amount = AmountOut(total=1000, used=500, free=500)
    amounts = dict.fromkeys(("cpu_milli", "memory_mib", "gpu_milli", "gpu_memory_mib"), amount)
    usual = {"name": "berlin", "state": "up", "silent_s": 0, "silence": "", "gateway": "", "region": "", "hardware": []}
    more: dict[str, object] = {
        "price_per_gpu_hour": "0",
        "cordon": None,
        "nodes": 1,
        "gpus": 1,
        "jobs": 0,
        "strays": [],
    }
    return ClusterOut.model_validate({**usual, **more, **amounts, **fields})


def all_wrong() -> AlertList:
    """Make an alert of each rule."""
    fields = [alert_fields(Alert(rule, "batch", rule.bound + 1, 0)) for rule in RULES]
    return AlertList(alerts=[AlertOut.model_validate(each) for each in fields])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_wrong_is_said_in_words_the_worst_first(language: str) -> None:
    """Each rule has its own, in each language; a lost cluster comes before all, one that stands idle after."""
    words = words_of(language)
    seen = Seen([cluster(state="lost"), cluster(cordon=None)], {}, wrong=all_wrong())
    said = list(alerts(seen, words))
    assert [each["level"] for each in said] == ["bad", "bad", "warn", "warn", "warn", "warn", "note"]
    assert not any("Seaway" in each["what"] for each in said)
    assert [each["href"] for each in said[-3:]] == [
        "/jobs?cluster=batch",
        "/queues?queue=batch",
        "/fleet?cluster=batch",
    ]


def test_what_nobody_knows_of_a_cluster_is_no_zero() -> None:
    """One that was never heard is unknown; one that went silent keeps its last figures; one without GPUs has none."""
    none = AmountOut(total=0, used=0, free=0)
    never = cluster(state="stale", nodes=0, cpu_milli=none, memory_mib=none, gpu_milli=none, gpu_memory_mib=none)
    shown = written("clusters", Words(), clusters=[never])
    assert (shown.count("unknown"), " free" in shown) == (4, False)
    shown = written("clusters", Words(), clusters=[cluster(state="stale")])
    assert ("unknown" in shown, shown.count("0.5 free")) == (False, 2)
    assert "0 free" in written("clusters", Words(), clusters=[cluster(gpu_milli=none)])
