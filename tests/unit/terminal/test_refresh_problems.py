"""Anything that is reported of a server that does not answer as it should."""

from __future__ import annotations

from seaway.client.errors import ForbiddenError, UnauthenticatedError, UnavailableError
from seaway.terminal.refresh import SLOW_S, Contact
from tests.unit.terminal.test_refresh import Clock


def test_nothing_is_reported_while_all_is_well() -> None:
    """An answer that comes in time is no news."""
    contact = Contact("http://here", Clock())
    contact.asked()
    assert not contact.trouble()
    contact.answered()
    assert not contact.trouble()


def test_a_unreachable_server_is_named_with_how_old_the_screen_is() -> None:
    """And it is all forgotten with its next answer."""
    clock = Clock()
    contact = Contact("http://here", clock)
    clock.now_s += 42
    contact.failed(UnavailableError("http://here cannot be reached"))
    assert contact.trouble() == "no answer for 42s; the figures are old: http://here cannot be reached"
    contact.answered()
    assert not contact.trouble()


def test_an_answer_that_takes_long_is_reported() -> None:
    """A waiting user knows that it is not the keyboard."""
    clock = Clock()
    contact = Contact("http://here", clock)
    contact.asked()
    clock.now_s += SLOW_S + 2
    assert contact.trouble() == "http://here has not answered for 5s; still waiting"


def test_a_refused_token_says_how_to_get_another() -> None:
    """Asking again would not help, so it is not silence."""
    contact = Contact("http://here", Clock())
    contact.failed(UnauthenticatedError("it was revoked"))
    assert not contact.lost
    assert "it was revoked" in contact.trouble()
    assert "seaway login" in contact.trouble()


def test_what_the_server_has_against_a_question_is_reported_in_its_words() -> None:
    """It answers, so nothing is old."""
    contact = Contact("http://here", Clock())
    contact.failed(ForbiddenError("not yours"))
    assert contact.trouble() == "not yours"
    assert not contact.lost
