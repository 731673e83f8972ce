"""The words of the project: rules and examples; `tests/words.py` has the rules."""

from __future__ import annotations

import pytest

from tests.user_texts import check_texts
from tests.words import FIRST_COMMIT, RULES, Finding, Source, check, check_subjects, read, wrong_subject


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    """Return the findings in the whole tree."""
    return [*check(read()), *check_texts()]


def rows(findings: list[Finding], rule: str) -> str:
    """Return the findings of a rule, a row for each."""
    return "\n".join(str(each) for each in findings if each.rule == rule)


@pytest.mark.slow
def test_texts_have_the_words_of_the_field(findings: list[Finding]) -> None:
    """Code, pages and texts that users see have no word of `[words]` in `tests/words.toml`."""
    assert rows(findings, "words") == ""


@pytest.mark.slow
def test_texts_have_the_present_names_of_settings_commands_and_metrics(findings: list[Finding]) -> None:
    """No text has a name of `[names]` in `tests/words.toml`."""
    assert rows(findings, "former-names") == ""


@pytest.mark.slow
def test_names_have_the_words_of_the_field(findings: list[Finding]) -> None:
    """No module, class, function, argument or attribute has a part of `[parts]` in `tests/words.toml` in its name."""
    assert rows(findings, "names") == ""


@pytest.mark.slow
def test_docstrings_begin_with_a_verb_or_a_noun(findings: list[Finding]) -> None:
    """Functions begin with a verb, modules, classes and attributes with a noun, and none with a clause."""
    assert rows(findings, "first-lines") == ""


@pytest.mark.slow
def test_sentences_of_pages_are_short(findings: list[Finding]) -> None:
    """A sentence of a page has at most 30 words, and at most 16 on average."""
    assert rows(findings, "page-sentences") == ""


@pytest.mark.slow
def test_sentences_of_docstrings_are_short(findings: list[Finding]) -> None:
    """A sentence of a docstring has at most 35 words."""
    assert rows(findings, "docstring-sentences") == ""


@pytest.mark.slow
def test_sentences_that_users_see_are_short(findings: list[Finding]) -> None:
    """A sentence of help, the API's description, alerts or pages has at most 30 words."""
    assert rows(findings, "text-sentences") == ""


def test_subjects_of_commits_name_an_area_and_begin_with_a_verb() -> None:
    """A subject is `area: verb phrase` of at most 72 characters, without a semicolon."""
    found = check_subjects()
    if found is None:
        pytest.skip(f"a shallow clone without {FIRST_COMMIT[:8]}")
    assert rows(found, "subjects") == ""


@pytest.mark.parametrize(
    ("subject", "good"),
    [
        ("queues: order jobs by a plugin", True),
        ("api, web: rename strays to orphans", True),
        ("Order jobs by a plugin", False),
        ("queues: Order jobs", False),
        ("queues: ordered jobs by a plugin", False),
        ("queues: orders jobs by a plugin", False),
        ("queues: order jobs; fix pools", False),
        ("queues: order jobs.", False),
        (f"queues: order {'x' * 60}", False),
    ],
)
def test_a_subject_is_good_or_bad(subject: str, good: bool) -> None:
    """Area, verb, length and one change count."""
    assert (not wrong_subject(subject)) is good


W = " word"

EXAMPLES = [
    ("words", "docs/a.md", "The user is told that it failed.", "Seaway reports the failure."),
    ("words", "a.py", "# Pods that stand\n# in the way.", '# "Retold" and "untold" are other words.'),
    ("words", "a.yaml", 'summary: "It comes\n  back"', 'summary: "It returns"'),
    ("former-names", "a.yaml", "expected: 1\nruns: 10m", "expected_duration: 10m"),
    ("former-names", "docs/a.md", "Run `seaway strays`.", "Run `seaway orphans`."),
    ("names", "src/a.py", "class HeldBack: ...", "class Held: ..."),
    ("names", "src/a.py", "def f(*, on_breach: str) -> None: ...", "def f(*, on_violation: str) -> None: ..."),
    ("names", "src/a.py", "class A:\n    def f(self):\n        self._told = 1", "def f():\n    told = 1"),
    ("names", "tests/test_a.py", "def test_nobody_waits(): ...", "def test_a_book_is_open(): ..."),
    ("first-lines", "src/a.py", '"""What a node holds."""', '"""Allocations of a node."""'),
    ("first-lines", "src/a.py", 'class A:\n    """Make a node."""', 'class A:\n    """Factory of nodes."""'),
    ("first-lines", "src/a.py", 'def f():\n    """The nodes."""', 'def f():\n    """Return the nodes."""'),
    ("first-lines", "src/a.py", 'def f():\n    """Listing of nodes."""', '@property\ndef f():\n    """Nodes."""'),
    ("first-lines", "src/a.py", 'A = 1\n"""How many."""', 'A = 1\n"""Number of nodes."""'),
    ("first-lines", "tests/test_a.py", 'def f():\n    """Who asks gets."""', 'def f():\n    """A node is full."""'),
    ("page-sentences", "docs/a.md", f"A{W * 30}.\n\n{'A. ' * 9}", f"A{W * 29}.\n\n{'A. ' * 9}"),
    ("page-sentences", "docs/a.md", f"- A{W * 16}.\n- B{W * 16}.", f"- A{W * 16}.\n- B."),
    (
        "page-sentences",
        "docs/a.md",
        f"A{W * 16}",
        f"# A{W * 16}\n\n| A{W * 16} |\n\n```\nA{W * 16}\n```\n\n`A{W * 16}`",
    ),
    ("docstring-sentences", "src/a.py", f'"""A.\n\nB{W * 35}.\n"""', f'"""A{W * 34}. B."""'),
    (
        "docstring-sentences",
        "src/a.py",
        f'"""A.\n\n- B{W * 30}\n  {W * 5}"""',
        f'"""A:\n\n  B{W * 35}\n\n- C{W * 34}"""',
    ),
]
"""Rule, path, a text that breaks the rule once, a text that does not break it."""


@pytest.mark.parametrize(("rule", "path", "bad", "good"), EXAMPLES)
def test_a_rule_finds_the_bad_example_only(rule: str, path: str, bad: str, good: str) -> None:
    """A rule finds the bad example once and nothing in the good one."""
    assert len(list(RULES[rule](Source(path, bad)))) == 1
    assert list(RULES[rule](Source(path, good))) == []


def test_names_of_modules_count() -> None:
    """A module has a name like a class; a package has that of its folder."""
    paths = ("src/strays.py", "src/strays/__init__.py", "src/strays/held.py", "src/strays.toml")
    assert [len(list(RULES["names"](Source(each, "")))) for each in paths] == [1, 1, 0, 0]
