"""Pictures of pages for the README."""

from __future__ import annotations

from playwright.sync_api import Browser

from benchmarks.pictures import WHOLE

CARD = (
    "<div style='height:200px; margin-bottom:10px; box-sizing:border-box; border:1px solid; border-radius:4px'></div>"
)
PAGE = "<body style='margin:0'><main>{}</main></body>"


def test_a_picture_ends_with_a_whole_card(browser: Browser) -> None:
    """A picture ends below a whole card: not in the middle, without the edge of the next, and without empty space.

    Cards that are larger than the window are cut.
    """
    with browser.new_context() as context:
        page = context.new_page()
        page.set_content(PAGE.format(3 * CARD))
        assert [page.evaluate(WHOLE, [window, 20]) for window in (900, 625, 619, 250, 190)] == [640, 625, 415, 205, 190]
