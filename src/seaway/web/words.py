"""Texts of pages in English and Chinese, and the format of figures.

The English text in the code is the key of the catalogues in `locale/zh`, one file for each page.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Protocol, TypeVar

from babel.core import Locale, negotiate_locale
from babel.dates import format_timedelta
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.units import format_unit
from markupsafe import Markup
from starlette.requests import Request

from seaway.domain.errors import RejectedError, SeawayError
from seaway.domain.reasons import TEXTS, Count, Marks, Params, Reason, reason_of, text
from seaway.web import cookies
from seaway.wire.message import CodedOut, CodeOut

LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}
"""Languages by code, with their native names."""

FIRST = "en"

Failed = TypeVar("Failed", bound=SeawayError)


MARKS: Marks = (Markup("\u3001"), Markup("\uff1a"), Markup("\uff1b"))
"""Chinese separators of lists, reasons and clauses."""


def _params(shown: Mapping[str, Any]) -> Params:
    """Return parameters of the API with reasons as in the domain."""
    known = {name: tuple(map(_param, each)) if isinstance(each, list) else _param(each) for name, each in shown.items()}
    if "job_id" in known and not isinstance(known["job"], Markup):
        known["job"] = Markup('<a href="/jobs/{}">{}</a>').format(known["job_id"], known["job"])
    return known


def _links(shown: Mapping[str, Any]) -> bool:
    """Report whether parameters of the API, or those of reasons among them, have a link to a job."""
    if "job_id" in shown:
        return True
    values = [each for value in shown.values() for each in (value if isinstance(value, list | tuple) else [value])]
    return any(_links(each.params) for each in values if isinstance(each, CodedOut | Reason))


def _param(shown: Any) -> Any:  # noqa: ANN401  # any parameter
    return Reason.stored(shown.message, shown.code, _params(shown.params)) if isinstance(shown, CodedOut) else shown


class Explained(Protocol):
    """An object of the API with a reason."""

    @property
    def reason(self) -> CodeOut:
        """The reason for programs."""

    @property
    def message(self) -> str:
        """The reason in English."""


@dataclass(frozen=True, slots=True)
class Words:
    """Texts of a language.

    Attributes
    ----------
    language
        Code of the language.
    known
        Translations by English text. Texts without a translation stay English.
    currency
        Code of the currency of prices, by ISO 4217; empty if unknown.
    """

    language: str = FIRST
    known: Mapping[str, str] = field(default_factory=dict)
    currency: str = ""

    def __call__(self, english: str, /, **parts: object) -> str:
        """Translate a text, and fill in names in braces; ``{n:job}`` is a number with its word, as in reasons."""
        said = self.known.get(english) or english
        counted = ((name, each) for name, each in parts.items() if isinstance(each, int) and f"{{{name}:" in english)
        parts |= {name: Count(each) for name, each in counted}
        if any(isinstance(each, Markup) for each in parts.values()):
            said = Markup(said)  # texts of this package; it escapes the other parts
        return said.format(**parts) if parts else said

    def translated(self, english: str) -> str:
        """Translate a text of the API. Mark it as English if there is no translation."""
        if self.language == FIRST or not english:
            return english
        known = self.known.get(english)
        return known or Markup('<span lang="{}">{}</span>').format(FIRST, english)

    def reason(self, code: str, params: Mapping[str, Any], english: str) -> str:
        """Translate a reason of the API by its code; as `translated` for one that the catalogue does not have.

        Jobs whose IDs it has become links.
        """
        if self.language == FIRST:
            linked = code in TEXTS and _links(params)
            return text(code, _params(params), Markup(TEXTS[code]), self._said) if linked else english
        template = self.known.get(TEXTS.get(code, ""), "")
        return (
            text(code, _params(params), Markup(template), self._said, MARKS) if template else self.translated(english)
        )

    def coded(self, shown: Explained | CodedOut | None) -> str:
        """Translate a reason, or that of an object with a `reason` and a `message`; empty without one."""
        if shown is None:
            return ""
        by = shown if isinstance(shown, CodedOut) else shown.reason
        return self.reason(by.code, by.params, shown.message)

    def plain(self, shown: Explained | CodedOut | None) -> str:
        """Return the result of `coded` without markup, such as for attributes."""
        said = self.coded(shown)
        return said.striptags() if isinstance(said, Markup) else said

    def error(self, error: Failed) -> Failed:
        """Return an error with its texts in the language of the page; those without a code stay English."""
        made = copy(error)
        if isinstance(made, RejectedError):
            made.message = self._plain(made.message)
            made.also = tuple(map(self.error, made.also))
            made.args = (f"{made.where}: {made.message}" if made.where else made.message,)
        else:
            made.args = (self._plain(reason_of(made)),)
        return made

    def _plain(self, english: str) -> str:
        said = self._said(english)
        return said.striptags() if isinstance(said, Markup) else said

    def param(self, shown: object) -> str:
        """Translate a parameter of a reason of the API, which can be a reason itself."""
        return self._said(_param(shown))

    def _said(self, english: str) -> str:
        """Translate a reason or a state among parameters. Texts of users and clusters stay as they are."""
        if isinstance(english, Reason) and english.code in TEXTS:
            return self.reason(english.code, english.params, english)
        return self.known.get(english, english)

    def money(self, amount: str | float, *, exact: bool = False) -> str:
        """Format a price or cost with its currency.

        Parameters
        ----------
        exact
            True for all decimals of a price; False for two.
        """
        number = str(amount) if exact else _decimal(float(amount), "#,##0.00", self.locale)
        return f"{number} {self.currency}".strip()

    def priced(self, title: str) -> str:
        """Add the currency to the title of a field for prices."""
        return f"{title} ({self.currency})" if self.currency else title

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


FILTERS = ("count", "gib", "whole", "share", "percent", "ago", "coming", "duration", "clock", "zulu", "span", "exact")
"""Functions that templates use as filters."""

MIB_PER_GIB = 1024
GIB_PER_TIB = 1024

UNITS = (
    (86_400, "duration-day", "d"),
    (3600, "duration-hour", "h"),
    (60, "duration-minute", "min"),
    (1, "duration-second", "s"),
)
"""Units of time: seconds, the name in Babel, and the English short form. Babel's short form is too wide for columns."""


@lru_cache(maxsize=8192)
def _decimal(number: float, pattern: str, locale: Locale) -> str:
    """Format a number. The cache speeds up large pages, which contain the same numbers many times."""
    return format_decimal(number, format=pattern, locale=locale)


def count(number: float, locale: Locale) -> str:
    """Format a number with thousands separators."""
    return _decimal(number, "#,##0", locale)


def gib(mib: float, locale: Locale) -> str:
    """Format an amount of memory, given in MiB, as GiB or TiB."""
    amount = mib / MIB_PER_GIB
    if amount >= 10 * GIB_PER_TIB:
        return f"{_decimal(amount / GIB_PER_TIB, '#,##0.0', locale)} TiB"
    return f"{_decimal(amount, '#,##0' if amount >= 10 else '#,##0.#', locale)} GiB"


def whole(milli: float, locale: Locale) -> str:
    """Format an amount given in thousandths, with at most one decimal."""
    return _decimal(milli / 1000, "#,##0.#", locale)


def share(part: float, total: float) -> float:
    """Return a part of a total in percent, 0 to 100; 0 for an empty total."""
    return min(100.0, 100.0 * part / total) if total else 0.0


def percent(number: float, locale: Locale) -> str:
    """Format a percentage given as 0 to 100. Other values are never rounded to 0 or 100."""
    if 0 < number < 0.1:
        return f"<{_decimal(0.1, '0.#', locale)} %"
    if 99.9 < number < 100:
        return f">{_decimal(99.9, '0.#', locale)} %"
    return f"{_decimal(number, '0' if 10 <= number < 99.5 or number >= 100 else '0.#', locale)} %"


def ago(moment: str, locale: Locale) -> Markup:
    """Format the time since a moment, which is given as RFC 3339. The tooltip has the moment."""
    since = datetime.now(UTC) - datetime.fromisoformat(moment)
    return _time(moment, format_timedelta(-since, add_direction=True, locale=locale), "ago")


def coming(moment: str, locale: Locale) -> Markup:
    """Format the time until an expected moment, as `ago`. An estimate that has passed is due at once."""
    left = max(datetime.fromisoformat(moment) - datetime.now(UTC), timedelta(seconds=1))
    return _time(moment, format_timedelta(left, add_direction=True, locale=locale), "ago")


def duration(seconds: float, locale: Locale) -> str:
    """Format a duration in words."""
    return format_timedelta(timedelta(seconds=seconds), locale=locale)


def clock(moment: str, form: str = "second") -> Markup:
    """Format a moment given as RFC 3339. The script of fragments writes it in local time, with UTC in the tooltip.

    Parameters
    ----------
    form
        ``second``, ``minute`` for the time of day (at midnight the date), or ``day`` for the date.
    """
    return _time(moment, f"{zulu(moment)[:-1]} UTC", form)


def zulu(moment: str) -> str:
    """Format a moment given as RFC 3339 to the second, for attributes; the script writes it in local time, too."""
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _time(moment: str, text: str, form: str) -> Markup:
    return Markup('<time datetime="{}" data-form="{}">{}</time>').format(zulu(moment).replace(" ", "T"), form, text)


def span(seconds: float, locale: Locale) -> str:
    """Format a duration with its two largest units."""
    whole, parts = max(int(seconds), 0), list[str]()
    for size, unit, short in UNITS:
        count, whole = divmod(whole, size)
        if count or (not parts and size == 1):
            parts.append(
                f"{count} {short}" if locale.language == "en" else format_unit(count, unit, "short", locale=locale)
            )
    return " ".join(parts[:2])


def exact(number: float, digits: int, locale: Locale) -> str:
    """Format a number with a fixed number of decimals."""
    return _decimal(number, f"#,##0.{'0' * digits}" if digits else "#,##0", locale)
