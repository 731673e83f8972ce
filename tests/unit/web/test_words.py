"""Anything that pages say, in every language."""

from __future__ import annotations

import ast
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import httpx
import pytest
from babel.messages.pofile import read_po
from jinja2 import nodes

from seaway.api.http.replies import answer
from seaway.application.control.scheduler.waiting_reasons import DELAYS, NO_PLACE
from seaway.application.policies import CHOOSES_CLUSTERS
from seaway.application.transitions import ACCEPTED, TAKEN_IN
from seaway.client.connection import error_of
from seaway.domain import errors, units
from seaway.domain.dependencies import When
from seaway.domain.errors import RejectedError, UnavailableError, UnknownError
from seaway.domain.job_state import JobState
from seaway.domain.reasons import TEXTS, Reason
from seaway.learning.policies.library import ShippedLibrary
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.policies.registry import BUILT_IN
from seaway.scheduling.policies.volcano import MostFreeCluster
from seaway.web.fragment import environment
from seaway.web.link_figures import FIGURES
from seaway.web.pages.jobs.columns import COLUMNS
from seaway.web.pages.jobs.job_form import PRESETS
from seaway.web.words import language_of, words_of
from seaway.wire.job_in import JobIn
from seaway.wire.reading import read_json

WEB = Path(str(files("seaway.web")))
SOURCE = WEB.parent
SPEAKING = {"words", "_"}
"""Anything that code and templates call to say something."""

NAMED = {
    *(each.value for each in JobState),
    "up",
    "stale",
    "lost",
    "gone",
    "reported",
    "measured",
    "unknown",
    "reporting",
    "silent",
    "never",
    "warm",
    "cold",
    "verified",
    "no place",
    "viewer",
    "user",
    "operator",
    "admin",
    *("updated", "resized", "lease", "blocked", "slo_violated", "slo_recovered", "endpoint", "failover", "drift"),
    *("job", "queue", "pool", "tenant", "reservation", "cluster", "node", "gateway", "token", "notification"),
    *("policy", "trained policy", "evaluation", "saved filter", "dead letter", "agent", "monitor"),
    *("template", "metric", "link", "site", "number", "truth value", "date", "plain value"),
    *When,
    *COLUMNS.values(),
    *(each.title for each in FIGURES.values()),
    *PRESETS,
} - {"deleted"}
"""Anything that the API says in one word, and pages say as a word of theirs."""

CLAUSES = {
    *(offer.description for offer in BUILT_IN.values()),
    *(offer.warning for offer in BUILT_IN.values() if offer.warning),
    CHOOSES_CLUSTERS,
    *(reason for plugin in (*rules_of_fit(), MostFreeCluster()) for reason in getattr(plugin, "reasons", ())),
    ACCEPTED,
    TAKEN_IN,
    NO_PLACE,
    DELAYS,
    *TEXTS.values(),
    *(form for name, form in vars(units).items() if name.endswith("_FORM")),
    *(ShippedLibrary().load(name).manifest.says for name in ShippedLibrary().names()),
}
"""Anything that the API says in a clause that is always the same.

What policies do, why rules refuse, how jobs begin.
"""


def said_in_code() -> Iterator[str]:
    """List what Python says: literals given to `words(...)`, `visit.words(...)`, and titles of pages."""
    for file in WEB.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            at = 1 if name == "Page" else 0 if name in SPEAKING else None
            if at is not None and isinstance(said := node.args[at], ast.Constant):
                yield str(said.value)


def said_in_templates() -> Iterator[str]:
    """List what templates say: literals given to `_(...)`."""
    for file in (WEB / "templates").glob("*.html"):
        for call in environment().parse(file.read_text(encoding="utf-8")).find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name == "_" and isinstance(call.args[0], nodes.Const):
                yield str(call.args[0].value)


def names_in(text: str) -> set[str]:
    """Return what is filled in."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_all_that_is_reported_is_reported_in_chinese_and_fills_in_the_same() -> None:
    """No English shows through in Chinese, and no name in braces is lost or new."""
    said, known = {*said_in_code(), *said_in_templates(), *NAMED, *CLAUSES}, words_of("zh").known
    assert sorted(said - set(known)) == []
    assert [each for each in said if names_in(each) != names_in(known[each])] == []


def test_examples_in_fields_are_named_as_such() -> None:
    """A hint in a field says that it is an example: "like train" reads as a wish."""
    assert [each for each in (*said_in_code(), *said_in_templates()) if each.startswith("like ")] == []


def test_catalogues_hold_nothing_else_and_nothing_twice() -> None:
    """Anything that no one says any more is not in the catalogues, and no two of them differ on a word."""
    said = {*said_in_code(), *said_in_templates(), *NAMED, *CLAUSES}
    found: Counter[str] = Counter()
    for file in (WEB / "locale" / "zh").glob("*.po"):
        with file.open("rb") as opened:
            found.update(str(each.id) for each in read_po(opened, locale="zh") if each.id)
    assert sorted(set(found) - said) == []
    assert [each for each, times in found.items() if times > 1] == []


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
    [
        ("zh", "en", "zh"),
        ("", "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("", "de-DE,de;q=0.9,en;q=0.5", "en"),
        ("xx", "", "en"),
        ("", "fr", "en"),
    ],
)
def test_the_language_is_what_was_chosen_or_else_what_the_browser_accepts(
    chosen: str, accepted: str, language: str
) -> None:
    """A choice counts first, then the browser's order, then English."""
    assert language_of(chosen, accepted) == language


def test_errors_of_the_api_are_in_the_language_of_the_page() -> None:
    """Each problem of a request keeps its field and its code on the way to the page; texts without a code stay."""
    body = b'{"name": "A b", "resources": {"gpus": "x", "gpu_memory": "8"}, "between_replicas": 1}'
    with pytest.raises(RejectedError) as caught:
        read_json(JobIn, body)
    answered = answer(caught.value, "/api/v1/jobs")
    received = error_of(httpx.Response(answered.status_code, content=bytes(answered.body)))
    assert isinstance(received, RejectedError)
    assert [str(each) for each in (received, *received.also)] == [
        str(each) for each in (caught.value, *caught.value.also)
    ]
    said = words_of("zh").error(received)
    assert [(each.where, each.message[:6]) for each in (said, *said.also)] == [
        ("name", "'A b' "),
        ("resources.gpus", "必须是整数"),
        ("resources.gpu_memory", "'8' 无效"),
        ("between_replicas", "必须是名称到"),
    ]
    assert str(received) == str(caught.value)  # visitors of other languages share it
    missing = answer(UnknownError(Reason("not_found", kind="queue", name="batch")), "/api/v1/queues/batch")
    lost = error_of(httpx.Response(missing.status_code, content=bytes(missing.body)))
    assert (str(lost), str(words_of("zh").error(lost))) == ("queue 'batch' not found", "未找到队列 'batch'")
    plain = UnavailableError("it is busy", retry_after_s=3)
    assert (str(words_of("zh").error(plain)), words_of("zh").error(plain).retry_after_s) == ("it is busy", 3)


ERROR_NAMES = {name for name in vars(errors) if name.endswith("Error")} - {"InvariantError"}
"""Classes of errors that answers of the API report."""


OF_COMMANDS = {"job_imports", "queue_imports", "fleet_yaml.py"}
"""Readers of files that only commands use."""


def plain_texts(node: ast.expr | None, assigned: Mapping[str, Sequence[ast.expr]]) -> Iterator[ast.expr]:
    """List the texts without a code that an expression can be, also by a variable."""
    match node:
        case ast.Constant(value=str(text)) if text:
            yield node
        case ast.JoinedStr() | ast.BinOp():
            yield node
        case ast.IfExp():
            yield from plain_texts(node.body, assigned)
            yield from plain_texts(node.orelse, assigned)
        case ast.BoolOp():
            for each in node.values:
                yield from plain_texts(each, assigned)
        case ast.Name():
            for each in assigned.get(node.id, ()):
                yield from plain_texts(each, {})


def assigned_in(nodes: Iterable[ast.AST]) -> Mapping[str, Sequence[ast.expr]]:
    """Return the values that are assigned to each variable."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.NamedExpr | ast.AnnAssign) and node.value:
            for to in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(to, ast.Name):
                    found.setdefault(to.id, []).append(node.value)
    return found


def errors_without_code(file: Path) -> Iterator[str]:
    """List the places of a module that raise an error of the API with a plain text."""
    module = ast.parse(file.read_text(encoding="utf-8"))
    constants = assigned_in(module.body)
    for scope in ast.walk(module):
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        assigned = {**constants, **assigned_in(ast.walk(scope))}
        for call in ast.walk(scope):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args:
                given = call.args[0] if call.func.id in ERROR_NAMES else None
                if call.func.id == "PydanticCustomError" and "'why': " not in ast.unparse(call):
                    given = call.args[1]
                for text in plain_texts(given, assigned):
                    yield f"{file.relative_to(SOURCE)}:{text.lineno}"


@pytest.mark.parametrize("package", ["api", "application", "domain", "wire", "scheduling/policies"])
def test_errors_of_the_api_have_a_code(package: str) -> None:
    """Anything that an answer of the API can report has a code, so that pages can show it in Chinese."""
    files = [file for file in sorted((SOURCE / package).rglob("*.py")) if not OF_COMMANDS & {*file.parts, file.name}]
    assert sorted({place for file in files for place in errors_without_code(file)}) == []
