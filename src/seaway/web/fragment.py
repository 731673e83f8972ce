"""Pieces of a page that are text with figures in it: templates, filled in again when figures change.

They are made on the server as HTML, which is quick and takes no element for each cell; names of all kinds are escaped.
The browser changes what has changed and leaves the rest (`static/piece.js`).
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

from seaway.web import figures
from seaway.web.link_figures import milliseconds, rate
from seaway.web.words import Words

T = TypeVar("T")

KEPT_S = 5.0
"""How long a piece is kept that others may be shown, too: who looks at the same hears of it within a moment."""


@dataclass(slots=True)
class _Made:
    """What was made of answers, with these themselves: an id is another object's once its own is gone."""

    answers: tuple[object, ...]
    what: Any
    used_s: float


_known: OrderedDict[tuple[object, ...], _Made] = OrderedDict()
"""Pieces by what they are of, the one that was shown last at the end."""


class _Piece(ContentElement, component="static/piece.js"):
    """The element of a piece."""


class Fragment:
    """A piece of a page.

    What has a `data-key` in the template stays the same element for as long as its key is among those beside it.

    Parameters
    ----------
    template
        A file of `seaway.web.templates`, without its ending.
    words
        In whose language; the template has it as ``_``.
    """

    def __init__(self, template: str, words: Words) -> None:
        self._name, self._words = template, words
        self.element = _Piece(content="").classes(f"fragment fragment-{template.replace('_', '-')}")

    def show(self, **figures_: object) -> None:
        """Fill it in; nothing is sent where nothing has changed."""
        self.put(written(self._name, self._words, **figures_))

    def show_of(self, answers: Sequence[object], make: Callable[[], Mapping[str, object]], *choices: Hashable) -> None:
        """Fill it in with what follows from answers and choices alone, once for all who heard and chose the same.

        Parameters
        ----------
        answers
            What it follows from, as `QueryCache` hands it out: the same objects to all.
        make
            Makes the figures.
        choices
            What besides they follow from.
        """
        language = self._words.language
        self.put(once((self._name, language, *choices), answers, lambda: written(self._name, self._words, **make())))

    def put(self, html: str) -> None:
        """Fill it in with what was `written`."""
        self.element.set_content(html)


def once(of: tuple[Hashable, ...], answers: Sequence[object], make: Callable[[], T]) -> T:
    """Return what is made of answers, the same for all who heard the same.

    Parameters
    ----------
    of
        What is made, and by which choices.
    answers
        As in `Fragment.show_of`.
    """
    key, now_s = (*of, *map(id, answers)), time.monotonic()
    made = _known.pop(key, None) or _Made(tuple(answers), make(), now_s)
    made.used_s, _known[key] = now_s, made
    while next(iter(_known.values())).used_s < now_s - KEPT_S:
        _known.popitem(last=False)
    what: T = made.what
    return what


def written(template: str, words: Words, **figures_: object) -> str:
    """Return a template with figures filled in."""
    return environment().get_template(f"{template}.html").render(_=words, locale=words.locale, **figures_)


@cache
def environment() -> Environment:
    """Return how templates are read: strictly, and with everything escaped."""
    made = Environment(
        loader=PackageLoader("seaway.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {name: getattr(figures, name) for name in figures.FILTERS}
    made.filters |= {each.__name__: each for each in (milliseconds, rate)}
    made.globals["Markup"] = Markup
    return made
