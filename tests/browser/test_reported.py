"""Messages of pages about missing or invalid input."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, expect

from seaway.learning.policies.file import LARGEST_FILE
from seaway.web.parts.form import AROUND
from tests.browser.conftest import Look

pytestmark = pytest.mark.slow


def test_what_an_address_requests_for_and_is_not_there_is_reported(look: Look) -> None:
    """A missing queue, state or policy in an address shows a message instead of another one; a new choice ends it."""
    with look("operator") as looker:
        page = looker.open("/queues?queue=zz")
        expect(page.get_by_role("alert").filter(has_text="Queue zz not found")).to_be_visible()
        expect(page.get_by_text("Select a queue to see its waiting jobs.")).to_be_visible()
        looker.go(page, "/jobs?state=bogus")
        expect(page.get_by_role("alert").filter(has_text="State bogus not found")).to_be_visible()
        looker.go(page, "/policies?policy=zz")
        expect(page.get_by_role("alert").filter(has_text="Policy zz not found.")).to_be_visible()
        page.locator("table a[data-act=look]").first.click()
        expect(page.get_by_role("alert").filter(has_text="Policy zz not found.")).to_be_hidden()


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(look: Look) -> None:
    """The server's limit applies; the message stays when the button is pressed, until another file is chosen."""
    with look("operator") as looker:
        page = looker.open("/policies")
        page.get_by_role("button", name="Import a policy file").click()
        dialog = page.get_by_role("dialog", name="Import a policy file")
        large = FilePayload(name="large.policy", mimeType="", buffer=b"P" * LARGEST_FILE)
        dialog.locator("input[type=file]").set_input_files(large)
        said = dialog.get_by_role("alert").filter(has_text=f"The maximum file size is {LARGEST_FILE - AROUND:,} bytes.")
        expect(said).to_be_visible()
        dialog.get_by_role("button", name="Import it").click()
        expect(said).to_be_visible()
        dialog.locator("input[type=file]").set_input_files({"name": "a.policy", "mimeType": "", "buffer": b"PK\x03"})
        expect(dialog.get_by_text("a.policy, 3 bytes")).to_be_visible()
        expect(said).to_be_hidden()


def test_an_empty_form_is_promised_no_figures(look: Look) -> None:
    """Without any request, neither room nor a price is shown."""
    with look("user") as looker:
        page = looker.open("/submit")
        trial = page.locator(".submit-trial")
        expect(trial).to_contain_text("Fill in the form")
        expect(trial.locator("table.choices")).to_have_count(0)
        expect(trial).not_to_contain_text("0.00")
