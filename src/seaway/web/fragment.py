"""Page fragments: templates that the server renders again when their variables change.

They are HTML, which is fast and requires no element for each cell. All names are escaped. The browser changes only
differences (`static/piece.js`).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from nicegui.elements.mixins.content_element import ContentElement

from seaway.domain.queues import options_text
from seaway.web import words as figures
from seaway.web.link_figures import milliseconds, rate
from seaway.web.words import Words

T = TypeVar("T")

STORED_S = 5.0
"""Lifetime in seconds of rendered fragments that several visitors share.

Visitors get a change at about the same time.
"""


@dataclass(slots=True)
class _Made:
    """Rendered value with its answers. It references the answers, because the id of a deleted object can be reused."""

    answers: tuple[object, ...]
    what: Any
    used_s: float


_known: OrderedDict[tuple[object, ...], _Made] = OrderedDict()
"""Rendered values by content, in order of their last use."""


class _Piece(ContentElement, component="static/piece.js"):
    """Element of a fragment."""


class Fragment:
    """Part of a page that renders a template.

    An element with a `data-key` in the template is preserved while the key exists among its siblings.

    Parameters
    ----------
    template
        File of `seaway.web.templates` without its extension.
    words
        Language of the visitor; the template calls it as ``_``.
    """

    def __init__(self, template: str, words: Words) -> None:
        self._name, self._words = template, words
        self.element = _Piece(content="").classes(f"fragment fragment-{template.replace('_', '-')}")

    def show(self, **figures_: object) -> None:
        """Render the template, and send it if it has changed."""
        self.put(written(self._name, self._words, **figures_))

    def show_of(self, answers: Sequence[object], make: Callable[[], Mapping[str, object]], *choices: Hashable) -> None:
        """Render the template from answers and choices, once for all visitors with the same answers and choices.

        Parameters
        ----------
        answers
            Source objects from `QueryCache`, which returns the same objects to all visitors.
        make
            Computes the template's variables.
        choices
            Other inputs of the variables.
        """
        language = self._words.language
        self.put(once((self._name, language, *choices), answers, lambda: written(self._name, self._words, **make())))

    def put(self, html: str) -> None:
        """Show HTML from `written`."""
        self.element.set_content(html)


def once(of: tuple[Hashable, ...], answers: Sequence[object], make: Callable[[], T]) -> T:
    """Return a value computed from answers. Visitors with the same answers share it.

    Parameters
    ----------
    of
        Key of the value, with the choices that it depends on.
    answers
        As in `Fragment.show_of`.
    """
    key, now_s = (*of, *map(id, answers)), time.monotonic()
    made = _known.pop(key, None) or _Made(tuple(answers), make(), now_s)
    made.used_s, _known[key] = now_s, made
    while next(iter(_known.values())).used_s < now_s - STORED_S:
        _known.popitem(last=False)
    what: T = made.what
    return what


def written(template: str, words: Words, **figures_: object) -> str:
    """Render a template with variables."""
    return environment().get_template(f"{template}.html").render(_=words, locale=words.locale, **figures_)


@cache
def environment() -> Environment:
    """Return the template environment. Undefined names are errors, and all values are escaped."""
    made = Environment(
        loader=PackageLoader("seaway.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {name: getattr(figures, name) for name in figures.FILTERS}
    made.filters |= {each.__name__: each for each in (milliseconds, rate, options_text)}
    made.globals["Markup"] = Markup
    return made
