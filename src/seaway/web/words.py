"""Texts of pages in English and Chinese, and the format of figures.

The English text in the code is the key of the catalogues in `locale/zh`, one file for each page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files

from babel.core import Locale, negotiate_locale
from babel.dates import format_timedelta
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.units import format_unit
from markupsafe import Markup
from starlette.requests import Request

from seaway.domain.reasons import TEXTS, Params, text
from seaway.web import cookies

LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}
"""Languages by code, with their native names."""

FIRST = "en"


FULL_WIDTH_SEMICOLON = "\uff1b"

PLACEMENT_CLAUSES = (
    "{policy} chose {place} in place of {other}",
    "{policy} chose {place}",
    "for its first replica, {clause}",
    "{term} decided: {score} against {lower} of {place}, the next best (in total {total} against {less})",
    "{term} decided: {score} against {lower} of {place}, the next best",
    "its data is closer than to {place}, the next best",
    "the first in order of {count} nodes with equal scores",
    "no other node fits",
    "{place} has a better score, but {cluster} has room for {count} of {replicas} replicas",
    "its data is at {place}",
    "{size} take {clauses}",
    "the transfer time is unknown to {place}",
    "expected to run for {time}, learned from 1 run",
    "expected to run for {time}, learned from {count} runs",
    "{rate} each way between {gateways}",
    "{time} to {place}",
    "{policy} considers only {place}, the cluster with the most free GPU",
    "It was trained for {trained} clusters, and the fleet has {count}: the fallback decides.",
)
"""Clauses of the reason of a placement or of a warning about a policy, with their names in braces.

`{clause}` is another clause, and `{clauses}` are several, with commas between them.
"""

EVENT_CLAUSES = (
    "{place} is active instead of {other}, {seconds} s after the last report of {cluster}: {clause}",
    "{place} is active instead of {other}: {clause}",
    "{place} has room for a standby",
    "no cluster has room for a standby: {clause}",
    "it was placed again",
    "the service has changed",
    "requested by {who}: {clause}",
    "requested by {who}",
    "{place} is drained",
    "{place} does not answer",
    "{place} is not in the fleet any more",
    "{place} does not run it yet",
    "{place} answers (it was stale)",
    "{place} answers (it was lost)",
    "{place} has not answered for {seconds} s and gets no new work",
    "{place} has not answered for {seconds} s and is given up",
    "{place} accepts new jobs again",
    "the agent of {gateway} has not reported for {seconds} s",
    "the agent of {gateway} reports again",
    "the agent of {gateway} reports for the first time",
    "queue {name} removed",
    "pool {name} removed",
    "tenant {name}",
)
"""Texts of the events of standbys and of the fleet, and of the reasons for a switch, as `PLACEMENT_CLAUSES`."""


CHECK_CLAUSES = (
    "context '{context}' of {server}",
    "{count} nodes, no GPUs found",
    "1 node, no GPUs found",
    "{count} nodes, {gpus}",
    "1 node, {gpus}",
    "check the kubeconfig, its token and the network to the server",
    "cannot be checked: {reason}",
    "Kubernetes {version}, which answers in {time}; admission policies need 1.30",
    "Kubernetes {version}, which answers in {time}",
    "create the namespaces of tenants as in deploy/kubernetes/tenant.yaml, without namespaces.yaml",
    "complete",
    "Seaway may not {rights}",
    "apply deploy/kubernetes/member.yaml and namespaces.yaml there",
    "no device plugin reports any",
    "install HAMi, or the device plugin of the vendor, on its GPU nodes",
    "{count} of {devices} can be shared between replicas; {broken} unhealthy",
    "{count} of {devices} can be shared between replicas: jobs get whole GPUs",
    "{count} of {devices} can be shared between replicas",
    "seaway fleet devices names them",
    "install HAMi there for slices of GPUs",
    "{count} more problems of nodes",
    "valid until {time}",
    "create one that is valid for longer; later, join again to replace it",
    "it has been joined as '{name}' before, and keeps that name",
    "to replace its kubeconfig, say so when you complete the join",
    "its gateway is {gateway}",
    "no gateway belongs to it: jobs with bounds on the network do not run there",
    "seaway network put FILE; see docs/network.md",
    "the checks failed by a bug; see the server's log",
)
"""Results of the checks of a cluster, and their remedies, as `PLACEMENT_CLAUSES`."""


Clauses = tuple[tuple[str, re.Pattern[str]], ...]
"""Clauses with their patterns."""


def _patterns(clauses: Iterable[str]) -> Clauses:
    return tuple((each, re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(each)))) for each in clauses)


_OF_PLACEMENTS, _OF_EVENTS, _OF_CHECKS = map(_patterns, (PLACEMENT_CLAUSES, EVENT_CLAUSES, CHECK_CLAUSES))


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
        if any(isinstance(each, Markup) for each in parts.values()):
            said = Markup(said)  # texts of this package; it escapes the other parts
        return said.format(**parts) if parts else said

    def translated(self, english: str) -> str:
        """Translate a text of the API. Mark it as English if there is no translation."""
        if self.language == FIRST or not english:
            return english
        known = self.known.get(english)
        return known or Markup('<span lang="{}">{}</span>').format(FIRST, english)

    def reason(self, code: str, params: Params, english: str) -> str:
        """Translate a reason of the API by its code; as `translated` for one that the catalogue does not have."""
        template = self.known.get(TEXTS.get(code, ""), "")
        return text(code, params, template) if template else self.translated(english)

    def sentence(self, english: str) -> str:
        """Translate the reason of a placement, whose clauses contain names; as `translated` if a clause is unknown."""
        clauses = [self._clause(each) for each in english.split("; ")] if self.language != FIRST else []
        return FULL_WIDTH_SEMICOLON.join(clauses) if clauses and all(clauses) else self.translated(english)

    def event(self, english: str) -> str:
        """Translate the text of an event that has clauses; as `translated` for others."""
        return (self.language != FIRST and self._clause(english, _OF_EVENTS)) or self.translated(english)

    def check(self, english: str) -> str:
        """Translate the result of a check of a cluster, or its remedy; as `translated` for others."""
        return (self.language != FIRST and self._clause(english, _OF_CHECKS)) or self.translated(english)

    def plain(self, english: str) -> str:
        """Translate the reason of a placement or a warning, without markup; English if a clause is unknown."""
        return self._clause(english) or english

    def _clause(self, english: str, known: Clauses = _OF_PLACEMENTS) -> str:
        """Translate a clause; empty for an unknown one."""
        if english in self.known:
            return self.known[english]
        for clause, pattern in known:
            if (found := pattern.fullmatch(english)) and clause in self.known:
                names = found.groupdict()
                for name in names.keys() & {"clause", "clauses"}:
                    parts = names[name].split(", ") if name == "clauses" else [names[name]]
                    names[name] = ", ".join(self._clause(each, known) or each for each in parts)
                return self(clause, **names)
        return ""

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


FILTERS = ("count", "gib", "whole", "share", "percent", "ago", "duration", "clock", "zulu", "span", "exact")
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
