"""The network between gateways, and its links."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, hidden_sideways, hindrances, keep_screen

pytestmark = pytest.mark.slow

INK_IN_THE_DARK = "rgb(228, 237, 242)"


def test_what_is_looked_at_is_stored_and_leads_to_a_link_and_back(look: Look) -> None:
    """View, value and owner of links survive a reload; a cell leads to its link, and that to the other direction."""
    with look("viewer") as looker:
        page = looker.open("/network?view=graph")
        expect(page.locator(".links-graph svg text", has_text="gw-4")).to_be_visible()
        keep_screen(page, "network-graph-light-en-1440")
        page.get_by_role("tab", name="Matrix").click()
        page.get_by_label("Coloured by").click()
        page.get_by_role("option", name="Loss").click()
        expect(page).to_have_url(re.compile(r"view=matrix&figure=loss"))
        looker.go(page, page.url.removeprefix(looker.url) + "&cluster=cluster-3")
        expect(page.get_by_role("tab", name="Matrix")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_role("rowheader")).to_have_text(["gw-3", "to gw-3"])
        assert hindrances(page) == []
        expect(page.get_by_text("Agents of gateways")).to_have_count(0)
        page.locator(".matrix a", has_text="0.5").first.click()
        expect(page).to_have_url(re.compile(r"/network/gw-\d/gw-\d$"))
        page.get_by_role("link", name="Opposite direction").click()
        expect(page.get_by_role("heading", name=re.compile("gw-[34].*gw-[34]"))).to_be_visible()
        expect(page.get_by_role("row", name=re.compile("Latency"))).to_contain_text("45 ms")
        keep_screen(page, "link-light-en-1440")
        assert hindrances(page) == []


def test_the_table_says_all_to_everybody(look: Look) -> None:
    """In the dark theme, in Chinese and on a phone: nothing is hidden sideways, and charts have the theme's colours."""
    with look("operator", theme="dark", language="zh", size=NARROW) as looker:
        page = looker.open("/network")
        first = page.locator(".fragment-links tbody tr").first
        expect(first).to_contain_text("45 ms")
        expect(page.get_by_text("网关探针")).to_be_visible()
        keep_screen(page, "network-table-dark-zh-390")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        page.get_by_role("tab", name="拓扑图").click()
        label = page.locator(".links-graph svg text", has_text="gw-4")
        expect(label).to_be_visible()
        assert label.evaluate("label => getComputedStyle(label).fill") == INK_IN_THE_DARK
        looker.go(page, "/network/gw-4/gw-3")
        expect(page.get_by_text("集群自报").first).to_be_visible()
        assert hidden_sideways(page) == []
        assert hindrances(page) == []


def test_names_that_there_are_not_are_reported_at_the_field_and_in_words(look: Look) -> None:
    """A missing gateway leads back to all links; the page of its link reports that, with the typed name."""
    with look("viewer") as looker:
        page = looker.open("/network?view=graph&gateway=<b>gone")
        expect(page.get_by_text("<b>gone not found.")).to_be_visible()
        expect(page.locator(".links-graph svg text", has_text="gw-1")).to_be_visible()
        looker.go(page, "/network/gw-1/<b>gone")
        expect(page.get_by_role("alert")).to_contain_text("Link from gw-1 to <b>gone not found.")
        looker.wrong.clear()  # the browser reports the status as an error
