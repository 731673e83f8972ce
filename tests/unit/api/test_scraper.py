"""Metrics for Prometheus' token, as its configuration defines it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from dashboards.every import DASHBOARDS
from dashboards.language import Language
from seaway.learning.policies.monitor import Reason
from tests.documented import DEPLOY, scraper_role, token_commands
from tests.unit.api.rig import Rig
from tests.unit.dashboards.asked import asked

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[3] / "docs"
FAMILIES = re.compile(r'__name__=~"([^"]+)"')
NAMES = re.compile(r"\b(?:seaway_|v?GPU|ClusterGPU|UserToCluster|ClusterToCluster)\w+")
INFORMED_OF = ("_bucket", "_count", "_total")
"""Suffixes of series after the name of their metric."""


def queries() -> list[str]:
    """Return the queries of rules and dashboards."""
    rules = [
        rule["expr"]
        for path in (DEPLOY / "prometheus" / "rules").glob("*.yml")
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    ]
    return rules + [each.query for name, frame in DASHBOARDS.items() for each in asked(name, frame(Language.ENGLISH))]


async def test_the_documented_token_is_reported_every_metric_that_is_asked_for(rig: Rig) -> None:
    """The token gets all metrics of rules and dashboards; a viewer's does not."""
    rig.plane.policies.counts.decided("pilot", 200_000)
    rig.plane.policies.counts.fell_back("pilot", Reason.SLOW, "slower than 5 ms")
    texts = {}
    for role in (scraper_role().value, "viewer"):
        async with rig.client(role) as client:
            texts[role] = (await client.get("/metrics")).text
    reported, little = ({each.name for each in text_string_to_metric_families(text)} for text in texts.values())
    wanted = {name for query in queries() for name in NAMES.findall(re.sub('"[^"]*"', "", query))}
    families = {pattern for query in queries() for pattern in FAMILIES.findall(query)}
    assert len(wanted) > 40
    assert families

    def family(name: str) -> str:
        return next((name.removesuffix(end) for end in INFORMED_OF if name.endswith(end)), name)

    assert {name for name in wanted if family(name) not in reported} == set()
    assert [pattern for pattern in families if not any(re.fullmatch(pattern, name) for name in reported)] == []
    assert "seaway_ready" in wanted - little


def test_every_document_has_the_same_token_made() -> None:
    """The chart and the guide agree with the configuration."""
    texts = [
        DOCS / "metrics.md",
        DEPLOY / "helm" / "seaway" / "values.yaml",
        DEPLOY / "prometheus" / "rules" / "plane.yml",
    ]
    expected = {(scraper_role().value, "")}
    assert [token_commands(path.read_text(encoding="utf-8")) for path in texts] == [expected] * len(texts)
