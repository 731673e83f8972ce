"""Rules for the words of the project: code, docs and everything that users see.

Run ``.venv/bin/python -m tests.words [PATH ...]``. It prints a row for each finding and a summary per rule, and exits
with 1 if there are findings. With paths, it checks only these files.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

EXEMPT = ("LICENSE", "tests/words.py", "tests/words.toml", "tests/unit/test_words.py")
"""Files that quote banned words, and the text of others."""

TEXT = re.compile(r"(?:^|/)[^.]+$|\.(?:css|html|js|mako|md|po|py|service|sh|toml|tpl|txt|ya?ml)$")
"""Files to read."""

PAGE_LIMIT, PAGE_AVERAGE, DOCSTRING_LIMIT, SUBJECT_LIMIT = 30, 16, 35, 72
"""Words in a sentence of a page; on average in a page; in a sentence of a docstring; characters in a commit subject."""

FIRST_COMMIT = "a746b2190d39599e8ee834f4f085d233d33aba1a"
"""Subjects of later commits are checked."""

VOCABULARY = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
WORDS, NAMES, PARTS = (VOCABULARY[each] for each in ("words", "names", "parts"))
START: Mapping[str, list[str]] = VOCABULARY["docstrings"]

NO_IMPERATIVE = re.compile(
    r"(?!(?:bring|ping|string|embed|feed|need|seed|exceed|proceed|bias|focus)$).*(?:ing|ed|[^s]s)"
)
"""Words that look like no imperative, such as "listing", "listed" and "lists"."""

GAP = r"[\s#*\"']+"
"""Pattern between two words of a phrase."""

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
"""Syntax that can begin with a docstring."""

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Attributes of statements that have statements."""

Rows = Iterator[tuple[int, str]]
"""Lines and findings."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A text that breaks a rule.

    Attributes
    ----------
    where
        File relative to the root, commit, or place of a text that users see.
    line
        Line of the file; 0 for the others.
    rule
        Name of the rule.
    text
        The text and the remedy.
    """

    where: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.rule}: {' '.join(self.text.split())}"


@dataclass(frozen=True)
class Source:
    """A text and the file that it comes from."""

    path: str
    text: str

    @cached_property
    def statements(self) -> list[ast.AST]:
        """Module and statements of a Python file; empty for other files."""
        found: list[ast.AST] = [ast.parse(self.text)] if self.path.endswith(".py") else []
        for node in found:  # it grows
            for block in BLOCKS:
                found += getattr(node, block, ())
        return found

    @cached_property
    def docstrings(self) -> list[tuple[ast.AST, int, str]]:
        """Modules, classes, functions and attributes with the lines and texts of their docstrings."""
        found: list[tuple[ast.AST, int, str]] = []
        for node in self.statements:
            if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node)):
                found.append((node, node.body[0].lineno, docstring))
            for each, below in pairwise(node.body) if isinstance(node, ast.Module | ast.ClassDef) else ():
                match each, below:
                    case ((ast.Assign() | ast.AnnAssign()), ast.Expr(ast.Constant(str(docstring)))):
                        found.append((each, below.lineno, inspect.cleandoc(docstring)))
        return found

    @property
    def of_tests(self) -> bool:
        """True for tests, fakes and conformance suites."""
        return not {"tests", "testing"}.isdisjoint(Path(self.path).parts)


@cache
def compiled(banned: tuple[str, ...], letters: str) -> re.Pattern[str]:
    """Return a pattern for phrases, which may continue on the next line of a comment or literal."""
    found = "|".join(each.replace(" ", GAP) for each in banned)
    return re.compile(rf"(?<![{letters}])(?:{found})(?![{letters}])")


def phrases(text: str, banned: Mapping[str, str], letters: str = r"\w") -> Rows:
    """Find banned phrases; a neighbour in `letters` makes a phrase another word."""
    lower = text.lower()  # faster than a pattern that ignores case
    for match in compiled(tuple(banned), letters).finditer(lower):
        remedy = next(banned[each] for each in banned if compiled((each,), letters).match(lower, match.start()))
        yield text.count("\n", 0, match.start()) + 1, f"'{' '.join(re.split(GAP, match[0]))}': {remedy}"


def words(source: Source) -> Rows:
    """Find banned words and phrases."""
    return phrases(source.text, WORDS)


def former_names(source: Source) -> Rows:
    """Find former names of settings, fields, commands and metrics."""
    return phrases(source.text, NAMES)


def names(source: Source) -> Rows:
    """Find modules, classes, functions, arguments and attributes with a banned part in their names."""
    defined = [(name, line) for node in source.statements for name, line in _defined(node)]
    if source.statements:
        path = Path(source.path)
        defined.append((path.stem if path.stem != "__init__" else path.parent.name, 1))
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", "\n".join(name for name, _ in defined))
    of_code = re.sub(r"^test_\w*", "", snake, flags=re.MULTILINE)
    of_tests = re.sub(r"^(?!test_).*", "", snake, flags=re.MULTILINE).replace("_", " ")  # their names are sentences
    for at, finding in chain(phrases(of_code, PARTS, letters="a-z"), phrases(of_tests, WORDS)):
        yield defined[at - 1][1], f"{finding} in {defined[at - 1][0]}"


def _defined(node: ast.AST) -> Iterator[tuple[str, int]]:
    match node:
        case ast.FunctionDef(name=name, args=args) | ast.AsyncFunctionDef(name=name, args=args):
            every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            yield from [(name, node.lineno), *((each.arg, each.lineno) for each in every if each)]
        case ast.ClassDef(name=name):
            yield name, node.lineno
        case ast.Assign() | ast.AnnAssign():
            yield from ((each.attr, node.lineno) for each in _targets(node) if isinstance(each, ast.Attribute))
    if isinstance(node, ast.Module | ast.ClassDef):
        for statement in node.body:
            yield from ((each.id, statement.lineno) for each in _targets(statement) if isinstance(each, ast.Name))


def _targets(node: ast.stmt) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []


def first_lines(source: Source) -> Rows:
    """Find docstrings that begin with a clause, functions that begin without a verb, modules and classes with one."""
    for node, line, docstring in source.docstrings:
        start = docstring.split("\n", 1)[0]
        first = re.split(r"[\s,.:;]", start, maxsplit=1)[0].lower()
        if first in START["asking"] or (not source.of_tests and first in START["clauses"]):
            yield line, f"begins with a clause: {start}"
        elif not source.of_tests and (wrong := _wrong_kind(node, first)):
            yield line, f"{wrong}: {start}"


def _wrong_kind(node: ast.AST, first: str) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        is_value = any("property" in ast.unparse(each) for each in node.decorator_list)
        is_verb = first not in START["no_verbs"] and imperative(first)
        return "" if is_value or is_verb else "begins without a verb"
    return "begins with a verb" if isinstance(node, DOCUMENTED) and first in START["no_nouns"] else ""


def imperative(word: str) -> bool:
    """Return whether a word can be a verb in the imperative."""
    return word.isalpha() and not NO_IMPERATIVE.fullmatch(word)


def sentences(paragraphs: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, int]]:
    """Yield the sentences of paragraphs: the line of the paragraph, the sentence and its length in words."""
    for line, paragraph in paragraphs:
        plain = re.sub(r"``?[^`]+``?", "`code`", paragraph)  # a term is one word
        plain = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", plain)
        plain = re.sub(r"<?https?://\S+", "URL", plain)
        plain = re.sub(r"\b(e\.g|i\.e|vs|cf|etc|Fig|Sec|Eq|No)\.", r"\1", plain)
        for each in re.split(r"(?<=[.!?])[)\"*_]*\s+(?=\W*[A-Z`])", plain):
            yield line, each, len(re.findall(r"[^\s–—|/]*\w[^\s–—|/]*", each))


def page_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs and list items of a page, without front matter, headings, code and tables."""
    left_out = r"\A---\n.*?\n---\n|<!--.*?-->|^[ >]*(```+|~~~+).*?^[ >]*\1\s*$"
    text = re.sub(left_out, lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    start, held = 0, ""
    for line, each in enumerate([*text.split("\n"), ""], 1):
        item = re.match(r"\s*(?:[-*+]|\d+\.)\s+", each)
        other = re.match(r"\s*(?:$|#|\||\[[^\]]+\]: |:?-{3}|!!!|===)", each)
        if held and (item or other):
            yield start, held
            held = ""
        if not other:
            start = start if held else line
            held = f"{held} {each[item.end() if item else 0 :].strip(' >')}".strip()


def page_sentences(source: Source) -> Rows:
    """Find sentences of a page that are too long, and pages whose sentences are too long on average."""
    if not source.path.endswith(".md"):
        return
    lengths = []
    for line, sentence, length in sentences(page_paragraphs(source.text)):
        lengths.append(length)
        if length > PAGE_LIMIT:
            yield line, f"{length} words, at most {PAGE_LIMIT}: {sentence[:100]}"
    if lengths and (average := sum(lengths) / len(lengths)) > PAGE_AVERAGE:
        yield 1, f"{average:.1f} words per sentence on average, at most {PAGE_AVERAGE}"


def docstring_paragraphs(docstring: str, line: int) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a docstring without examples, references and indented blocks before the first section."""
    start, indent, in_item, held, section = 0, 0, False, "", ""
    for at, (each, below) in enumerate(pairwise([*docstring.split("\n"), "", ""]), line):
        title = bool(re.fullmatch(r"\s*-{3,}\s*", below))
        section = each.strip() if title else section
        found = len(each) - len(each.lstrip())
        item = bool(re.match(r"\s*(?:[-*]|\d+\.|\.\.)\s", each))
        no_text = not each.strip() or title or re.match(r"\s*(?:>>>|-{3,})", each)
        left_out = section in {"Examples", "References"} or (found and not section and not item)
        if held and (no_text or item or (found != indent and not (in_item and found > indent))):
            yield start, held
            held = ""
        if held or not (no_text or left_out):
            start, indent, in_item = (start, indent, in_item) if held else (at, found, item)
            held = f"{held} {each.strip()}".strip()


def docstring_sentences(source: Source) -> Rows:
    """Find sentences of docstrings that are too long."""
    for _, line, docstring in source.docstrings if source.path.startswith("src/") else ():
        for at, sentence, length in sentences(docstring_paragraphs(docstring, line)):
            if length > DOCSTRING_LIMIT:
                yield at, f"{length} words, at most {DOCSTRING_LIMIT}: {sentence[:100]}"


RULES: Mapping[str, Callable[[Source], Rows]] = {
    "words": words,
    "former-names": former_names,
    "names": names,
    "first-lines": first_lines,
    "page-sentences": page_sentences,
    "docstring-sentences": docstring_sentences,
}
"""Rules for files."""


def wrong_subject(subject: str) -> str:
    """Return what is wrong with the subject of a commit; empty for a good one."""
    if len(subject) > SUBJECT_LIMIT:
        return f"more than {SUBJECT_LIMIT} characters"
    if ";" in subject:
        return "has ';': commit one change"
    match = re.fullmatch(r"[a-z0-9][\w./, -]*: ([a-z]+) \S.*[^.]", subject)
    return "" if match and imperative(match[1]) else "is not 'area: verb phrase'"


def check_subjects() -> list[Finding] | None:
    """Check the subjects of commits after `FIRST_COMMIT`; None where a shallow clone does not have it."""
    log = ["git", "log", "--no-merges", "--format=%H %s", f"{FIRST_COMMIT}..HEAD"]
    done = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    rows = [line.split(" ", 1) for line in done.stdout.splitlines()]
    wrong = ((commit, it, wrong_subject(it)) for commit, it in rows)
    return [Finding(commit[:8], 0, "subjects", f"{what}: {it}") for commit, it, what in wrong if what]


def read(paths: Iterable[str] = ()) -> Iterator[Source]:
    """Read the files of the project, or those below some paths."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *paths]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for each in sorted(set(found) - set(EXEMPT)):
        path = ROOT / each
        if TEXT.search(each) and path.is_file():
            yield Source(each, path.read_text(encoding="utf-8"))


def check(sources: Iterable[Source]) -> Iterator[Finding]:
    """Check files by all rules."""
    for source in sources:
        for name, rule in RULES.items():
            yield from (Finding(source.path, line, name, text) for line, text in sorted(set(rule(source))))


def report(findings: Iterable[Finding]) -> int:
    """Print findings and a summary, and return the exit status."""
    rules = Counter[str]()
    for each in findings:
        sys.stdout.write(f"{each}\n")
        rules[each.rule] += 1
    sys.stdout.writelines(f"{count:6} {rule}\n" for rule, count in sorted(rules.items()))
    return int(bool(rules))


def main(arguments: list[str]) -> int:
    """Check some paths, or all that is rewritten and the subjects of commits."""
    if arguments:
        return report(check(read(str(Path(each).resolve().relative_to(ROOT)) for each in arguments)))
    subjects = check_subjects()
    if subjects is None:
        sys.stdout.write(f"Commit subjects are not checked: this clone has no commit {FIRST_COMMIT[:8]}.\n")
    return report([*check(read()), *(subjects or ())])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
