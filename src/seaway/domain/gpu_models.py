"""Names of GPU models: whether a name covers a product.

Users, schedulers and node labels write models in many ways: ``A100``, ``a100-80gb-pcie``, ``RTX2080TI``,
``nvidia-tesla-t4``. Products are what a vendor's library reports, such as ``NVIDIA A100-SXM4-80GB``. A name covers a
product if it consists of whole words of the product, in any order. Case, blanks, dashes, underscores and the names of
vendors and brands do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher
from functools import lru_cache

from seaway.domain.reasons import Reason, also, either

NVIDIA = "NVIDIA"
AMD = "AMD"

BRANDS = frozenset(
    [
        "nvidia",
        "tesla",
        "geforce",
        "quadro",
        "grid",
        "amd",
        "ati",
        "instinct",
        "radeon",
        "intel",
        "corporation",
        "google",
        "huawei",
        "hygon",
        "biren",
        "vastai",
        "metax",
        "enflame",
        "iluvatar",
        "kunlunxin",
        "cambricon",
        "mthreads",
        "gpu",
        "gpus",
        "generation",
        "graphics",
        "accelerator",
    ]
)
"""Words of vendors, brands and kinds. They matter only in names that have no other words."""

_SERIES = re.compile(r"(rtx|gtx|gt|rx)([a-z]?\d.*)")
"""Series in one word with a number, as in ``RTX2080Ti``."""

_OF_ANOTHER_CARD = frozenset(["ti", "super", "d", "xt", "xtx", "sff", "ada"])
"""Words after a number that make it the number of another card: an RTX 2080 is not an RTX 2080 Ti."""

_SIZE = re.compile(r"(\d+)(?:g|gib)")
_SOCKET = re.compile(r"sxm\d")
_MARKS = re.compile(r"\((?:r|tm|c)\)|[®™©]", re.IGNORECASE)
_SEPARATORS = re.compile(r"[^\w.+]+|_+")

_MACHINE = frozenset({"mega", "megagpu", "shared"})
"""Words of node labels that name a form of the machine, or that cards are shared."""

_ONE_SIZE = {"141gb": ("h200",), "180gb": ("b200",), "186gb": ("gb200",), "24gb": ("l4", "a10g"), "16gb": ("t4",)}
"""Sizes in node labels of models, whose product names have no size."""

_MAKERS = (
    (AMD, re.compile(r"\b(?:amd|instinct|radeon|mi ?\d+|rx ?\d)")),
    (
        NVIDIA,
        re.compile(r"\b(?:nvidia|tesla|geforce|quadro|titan|rtx|gtx|g?[hb] ?\d+|[alptk] ?\d+|v ?\d{3}|\d{4} ?ti\b)"),
    ),
)
"""Vendors with the forms of their names, of which the first that matches applies."""

MAX_WORDS = 12
"""Number of words of a name or a product that count."""

MAX_NAMED = 12
"""Maximum number of products in a message."""

MAX_NEAR = 3
"""Maximum number of suggested products."""

NEAR = 0.5
"""Minimum similarity of a name to a product that is suggested."""

WITHIN = 0.1
"""Maximum difference of the similarity of a suggested product from the best one."""


@lru_cache(maxsize=1 << 16)  # names and products of a server are few, and each pair is asked for often
def covers(name: str, product: str) -> bool:
    """Report whether a name of a model covers a product: ``A100`` covers ``NVIDIA A100-SXM4-80GB``, not an A1000.

    No number is cut, so ``A10`` covers no A100. A product and its form as a label cover themselves.
    """
    text, ends = _joined(name)
    words = _product_words(product)
    if not text or not words:
        return False
    seen: set[tuple[int, frozenset[str]]] = set()

    def rest(at: int, used: frozenset[str]) -> bool:
        if at == len(text):
            return True
        if (at, used) in seen:
            return False
        seen.add((at, used))
        return any(
            text.startswith(form, at)
            and _may_end(text, at, at + len(form), ends)
            and rest(at + len(form), used | {word})
            for word in words
            if word not in used
            for form in _forms(word)
        )

    return rest(0, frozenset())


def covered(names: Iterable[str], products: Iterable[str]) -> frozenset[str]:
    """Return the products that any of some names covers."""
    names = tuple(names)
    return frozenset(product for product in products if any(covers(name, product) for name in names))


def most_specific(names: Iterable[str], product: str) -> str | None:
    """Return the longest of the names that cover a product, the first one in alphabetical order; None without any."""
    found = sorted(name for name in names if covers(name, product))
    return max(found, key=lambda name: len(_joined(name)[0]), default=None)


def nearest(name: str, products: Collection[str]) -> list[str]:
    """Return the products whose names are most similar to a name that covers none, the most similar one first."""
    text, _ = _joined(name)

    def likeness(product: str) -> float:
        words = "".join(each for each in _product_words(product) if each not in BRANDS)
        parts = (*_product_words(product), words)
        return max(SequenceMatcher(None, text, each).ratio() for each in parts) if text else 0.0

    rated = sorted((-likeness(each), each) for each in sorted(set(products)))
    return [each for ratio, each in rated if -ratio >= max(NEAR, -rated[0][0] - WITHIN)]


def label_model(label: str) -> str:
    """Return the name of the model in a node label, such as ``nvidia.com/gpu.product`` or GKE's accelerator.

    Without words that no product has: GKE's names of machines, and the memory of models that have one size only.
    """
    words = label.replace("_", "-").split("-")
    known = [each.casefold() for each in words]
    return "-".join(
        each
        for each, word in zip(words, known, strict=True)
        if word not in _MACHINE and not any(one in known for one in _ONE_SIZE.get(word, ()))
    )


def maker(names: Iterable[str]) -> str:
    """Return the vendor of the models that names mean, `NVIDIA` or `AMD`; empty if it is unknown, or not one."""
    found = {next((vendor for vendor, form in _MAKERS if form.search(" ".join(_words(name)))), "") for name in names}
    return found.pop() if len(found) == 1 else ""


def unknown_model(name: str, products: Collection[str]) -> Reason:
    """Return the reason against a name that covers none of some products, with the nearest ones and with all."""
    listed = sorted(set(products))
    more = (Reason("more_models", count=len(listed) - MAX_NAMED),) if listed[MAX_NAMED:] else ()
    here = Reason("models_here", names=(*listed[:MAX_NAMED], *more)) if listed else Reason("no_gpus_here")
    near = [repr(each) for each in nearest(name, products)[:MAX_NEAR]]
    return also(Reason("no_such_model", name=name), here, Reason("did_you_mean", names=either(near)) if near else "")


def _words(text: str) -> list[str]:
    found = filter(None, _SEPARATORS.split(_MARKS.sub(" ", text).casefold()))
    return [_SIZE.sub(r"\1gb", each) if _SIZE.fullmatch(each) else each for each in found]


@lru_cache(maxsize=4096)
def _joined(name: str) -> tuple[str, frozenset[int]]:
    """Return a name without separators and brands, and the positions where words of it end."""
    words = list(dict.fromkeys(_words(name)))
    words = ([each for each in words if each not in BRANDS] or words)[:MAX_WORDS]
    ends, at = set(), 0
    for each in words:
        at += len(each)
        ends.add(at)
    return "".join(words), frozenset(ends)


@lru_cache(maxsize=4096)
def _product_words(product: str) -> tuple[str, ...]:
    """Return the words of a product, with those that make it another card attached to its number.

    An H100 with HBM3 has the socket SXM5, which its name does not say.
    """
    words: list[str] = []
    for each in _words(product):
        series = _SERIES.fullmatch(each)
        words += series.groups() if series else (each,)
    found: list[str] = []
    for each in words:
        if (found and each in _OF_ANOTHER_CARD and any(letter.isdigit() for letter in found[-1])) or (
            found[-2:] == ["rtx", "pro"] and each.isdigit()
        ):
            found[-1] += each
        else:
            found.append(each)
    if {"h100", "hbm3"} <= {*found}:
        found.append("sxm5")
    return tuple(dict.fromkeys(found))[:MAX_WORDS]


def _forms(word: str) -> tuple[str, ...]:
    """Return a word of a product as names have it: a socket also without its version."""
    return (word, word[:3]) if _SOCKET.fullmatch(word) else (word,)


def _may_end(text: str, begin: int, end: int, ends: Collection[int]) -> bool:
    """Report whether a word of a product may be a part of a name: it neither cuts a number nor joins two."""
    if end < len(text) and end not in ends and text[end - 1].isdigit() and text[end].isdigit():
        return False
    return not any(begin < at < end and text[at - 1].isdigit() and text[at].isdigit() for at in ends)
