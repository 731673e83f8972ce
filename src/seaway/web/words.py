"""Texts of pages in English and Chinese.

The English text in the code is the key of the catalogues in `locale/zh`, one file for each page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from babel.core import Locale, negotiate_locale
from babel.messages.pofile import read_po
from markupsafe import Markup
from starlette.requests import Request

from seaway.web import cookies

LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}
"""Languages by code, with their native names."""

FIRST = "en"


@dataclass(frozen=True, slots=True)
class Words:
    """Texts of a language.

    Attributes
    ----------
    language
        Code of the language.
    known
        Translations by English text. Texts without a translation stay English.
    """

    language: str = FIRST
    known: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, english: str, /, **parts: object) -> str:
        """Translate a text, and fill in names in braces."""
        said = self.known.get(english) or english
        return said.format(**parts) if parts else said

    def translated(self, english: str) -> str:
        """Translate a text of the API. Mark it as English if there is no translation."""
        if self.language == FIRST or not english:
            return english
        known = self.known.get(english)
        return known or Markup('<span lang="{}">{}</span>').format(FIRST, english)

    @property
    def locale(self) -> Locale:
        """Locale for numbers and times."""
        return _locale_of(self.language)


@cache
def _locale_of(language: str) -> Locale:
    return Locale.parse(language)


@cache
def words_of(language: str) -> Words:
    """Return the texts of a language; English for an unknown one."""
    if language == FIRST or language not in LANGUAGES:
        return Words()
    known: dict[str, str] = {}
    for file in (files("seaway.web") / "locale" / language).iterdir():
        with file.open("rb") as opened:
            catalogue = read_po(opened, locale=language)
        known |= {str(each.id): str(each.string) for each in catalogue if each.id and each.string}
    return Words(language, known)


def language_of(chosen: str, accepted: str) -> str:
    """Return the code of the language for a visitor.

    Parameters
    ----------
    chosen
        Stored preference; empty for none.
    accepted
        ``Accept-Language`` header of the browser.
    """
    if chosen in LANGUAGES:
        return chosen
    wanted = [part.partition(";")[0].strip().replace("-", "_") for part in accepted.split(",")]
    found = negotiate_locale(wanted, list(LANGUAGES), sep="_")
    return found if found is not None and found in LANGUAGES else FIRST


def words_for(request: Request) -> Words:
    """Return the texts for a request."""
    accepted = request.headers.get("accept-language", "")
    return words_of(language_of(request.cookies.get(cookies.LANGUAGE, ""), accepted))
