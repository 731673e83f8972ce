"""Facts of a cluster: where it is, its special hardware and prices, and a form for operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seaway.client.calls import fleet
from seaway.web.fragment import Fragment
from seaway.web.parts.cordon import on_act
from seaway.web.parts.form import Field, Form, notify
from seaway.web.visit import Visit
from seaway.wire.facts import NO_HARDWARE, patch_of

if TYPE_CHECKING:
    from seaway.wire.facts import FactsOut
    from seaway.wire.fleet import ClusterOut

PAIRS = ("label", "price-per-gpu-hour", "spot-price-per-gpu-hour")
"""Fields with values by key."""

SEVERAL = frozenset({"zone", "hardware", *PAIRS})
"""Fields with several values, separated by commas."""


class ClusterFacts:
    """Line with the facts of a cluster, and a button for operators that changes them."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._cluster: ClusterOut | None = None
        self._line = Fragment("facts", visit.words)
        on_act(self._line, lambda *_: self._ask())

    def show(self, cluster: ClusterOut | None) -> None:
        """Show the facts of a cluster; None hides the line."""
        self._cluster = cluster
        self._line.element.set_visibility(cluster is not None)
        if cluster is not None:
            self._line.show(cluster=cluster, may=self._visit.may("operator"))

    def _ask(self) -> None:
        """Open the form with the facts that operators set. An empty field returns to what the cluster reports."""
        if self._cluster is None:
            return
        words, name, before = self._visit.words, self._cluster.name, written_facts(self._cluster.own_facts)
        price, spot = words.priced(words("Price per GPU hour")), words.priced(words("Spot price per GPU hour"))
        titles = {
            "price-per-gpu-hour": (price, words("by model, like A100=2.5, T4=0.4")),
            "spot-price-per-gpu-hour": (spot, words("of spot nodes, by model")),
            "region": (words("Region"), ""),
            "zone": (words("Zones"), words("separated by commas")),
            "provider": (words("Provider"), ""),
            "location": (words("Geographic location"), words("latitude and longitude, like 52.52,13.40")),
            "hardware": (words("Special hardware"), words("for example nvlink, rdma; none if it has none")),
            "label": (words("Labels"), words("for example team=a, site=b")),
        }
        fields = [Field(key, title, before[key], hint=hint) for key, (title, hint) in titles.items()]

        async def send(given: dict[str, Any]) -> None:
            if patch := changes_of(before, given):
                await self._visit.ask(fleet.set_cluster(name, patch))
            notify(words("The facts of {name} are set.", name=name))

        Form(words, words("Facts of {name}", name=name), fields, words("Set"), send)


def changes_of(before: Mapping[str, str], given: Mapping[str, str]) -> dict[str, Any]:
    """Return a merge patch from the former and the new texts of the form; raises as `patch_of`."""
    unset = [key for key, text in before.items() if text and key not in PAIRS]
    unset += [f"{key}={each.rpartition('=')[0]}" for key in PAIRS for each in parts_of(before[key])]
    return patch_of({key: parts_of(text) if key in SEVERAL else [text] for key, text in given.items() if text}, unset)


def parts_of(text: str) -> list[str]:
    """Return the parts of a text that are separated by commas."""
    return [part for each in text.split(",") if (part := each.strip())]


def written_facts(facts: FactsOut | None) -> dict[str, str]:
    """Return facts as texts by the names of `patch_of`; empty for unknown ones."""
    if facts is None:
        return dict.fromkeys((*SEVERAL, "region", "provider", "location"), "")
    where = facts.location
    return {
        "price-per-gpu-hour": _pairs(facts.price_per_gpu_hour),
        "spot-price-per-gpu-hour": _pairs(facts.spot_price_per_gpu_hour),
        "region": facts.region or "",
        "zone": ", ".join(facts.zones),
        "provider": facts.provider or "",
        "location": f"{where.latitude},{where.longitude}" if where else "",
        "hardware": "" if facts.hardware is None else ", ".join(facts.hardware) or NO_HARDWARE,
        "label": _pairs(facts.labels),
    }


def _pairs(values: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())
