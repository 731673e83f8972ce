"""Syntax trees of shell scripts, and the values of words and variables that are known without running a script.

References
----------
tree-sitter-bash 0.25: its grammar names the types of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

REDIRECTS = ("file_redirect", "heredoc_redirect", "herestring_redirect")

PREFIXES = frozenset({
    "time", "command", "exec", "nohup", "env", "nice", "ionice", "timeout", "stdbuf", "setsid", "numactl", "taskset",
})  # fmt: skip
"""Commands that start the program in their arguments."""

SHELLS = frozenset(
    {"bash", "sh", "dash", "zsh", "ksh", "eval", "ssh", "trap", "xargs", "parallel", "watch", "su", "sudo"}
)
"""Commands that run the commands in their arguments or input."""

ASSIGNING = frozenset({"read", "mapfile", "readarray", "getopts", "unset", "let", "printf"})
"""Commands that may set the variables that they name."""

PATHS = frozenset({"HOME", "PWD", "OLDPWD", "TMPDIR", "SHELL", "SLURM_SUBMIT_DIR", "CONDA_PREFIX", "VIRTUAL_ENV"})
"""Variables with the absolute path of a folder or program."""

_PRINTS_PATH = re.compile(r"(which|command\s+-v|type\s+-p|pwd|realpath|dirname)\b")

_ESCAPED_NAME = re.compile(rb"(?<=\n)\\(?=[\w./])")
"""Backslash before the name of a command at the begin of a line, which the grammar takes for a continued line."""

DEEPEST = 8
"""Maximum number of variables that refer to each other."""


@cache
def _parser() -> Parser:
    from tree_sitter import Language, Parser
    from tree_sitter_bash import language

    return Parser(Language(language()))


@dataclass(frozen=True, slots=True)
class Assignment:
    """Assignment of a variable.

    Attributes
    ----------
    value
        Node of the value; None if it is empty or unknown.
    known
        False if another command than an assignment sets the variable.
    always
        True if it is in the outermost level of the script.
    appends
        True if it keeps the value before it.
    """

    value: Node | None
    known: bool = True
    always: bool = False
    appends: bool = False


class Script:
    """Syntax tree of a script.

    Parameters
    ----------
    text
        Text of the script, which the tree refers to by bytes of its UTF-8 form.
    """

    def __init__(self, text: str) -> None:
        self.raw = text.encode("utf-8", "surrogatepass")
        self._tree = _parser().parse(_ESCAPED_NAME.sub(b" ", self.raw))
        self.root = self._tree.root_node
        self.nodes = tuple(_walk(self.root))
        self._assigned = self._assignments()

    @property
    def broken_line(self) -> int:
        """Line of the first part that is no valid syntax, from 1; 0 if there is none."""
        if not self.root.has_error:
            return 0
        return next((line_of(each) for each in self.nodes if each.type == "ERROR" or each.is_missing), 1)

    def line(self, at: int) -> int:
        """Return the line of a byte, from 1."""
        return self.raw.count(b"\n", 0, at) + 1

    def source(self, node: Node) -> str:
        """Return the text of a node."""
        return self.raw[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def of_type(self, *types: str) -> Iterator[Node]:
        """Yield the nodes of some types in order."""
        return (each for each in self.nodes if each.type in types)

    def without(self, *types: str) -> str:
        """Return the text with blanks for the nodes of some types."""
        raw = bytearray(self.raw)
        for each in self.of_type(*types):
            raw[each.start_byte : each.end_byte] = re.sub(rb"[^\n]", b" ", raw[each.start_byte : each.end_byte])
        return raw.decode("utf-8", "replace")

    def edited(self, edits: list[tuple[int, int, str]]) -> str:
        """Return the text with other text for ranges of bytes. Ranges may be inside others, which take precedence."""
        parts, at = [], 0
        for start, end, text in sorted(edits, key=lambda each: (each[0], -each[1])):
            if start >= at:
                parts += [self.raw[at:start], text.encode()]
                at = end
        return b"".join([*parts, self.raw[at:]]).decode("utf-8", "surrogatepass")

    def literal(self, node: Node) -> str | None:
        """Return the value of a word without quotes; None if only a running shell knows it."""
        text, whole = self._leading(node, 0)
        return text if whole else None

    def begins(self, node: Node, deepest: int = DEEPEST) -> str:
        """Return the known begin of a word's value, which may come from variables; empty if nothing is known."""
        return self._leading(node, deepest)[0].lstrip()

    def assigns(self, name: str) -> bool:
        """Report whether the script sets a variable."""
        return name in self._assigned

    def words(self, node: Node) -> list[str] | None:
        """Return the words that a word becomes if each of its variables is set once and literally; else None."""
        if (text := self.literal(node)) is not None:
            return [text]
        name, subscript = self._variable(node)
        value = self._only_value(name) if name else None
        if value is None or (value.type == "array") != (subscript == "@"):
            return None
        if subscript:
            found = [self.literal(each) for each in value.named_children]
            return None if None in found else [each for each in found if each is not None]
        text = self.literal(value)
        if text is None or node.type == "string":
            return None if text is None else [text]
        return None if re.search(r"[*?\[\\]", text) else text.split()

    def _variable(self, node: Node) -> tuple[str, str]:
        """Return the name and the subscript of the variable that a word consists of."""
        if node.type == "string":
            inner = node.named_children
            if len(inner) != 1 or inner[0].end_byte - inner[0].start_byte != node.end_byte - node.start_byte - 2:
                return "", ""
            node = inner[0]
        match = re.fullmatch(r"\$(?:(\w+)|\{(\w+)(?:\[([@*])\])?\})", self.source(node))
        return (match[1] or match[2], (match[3] or "").replace("*", "@")) if match else ("", "")

    def _only_value(self, name: str) -> Node | None:
        found = self._assigned.get(name, [])
        return found[0].value if len(found) == 1 and found[0].always and not found[0].appends else None

    def _leading(self, node: Node, deepest: int) -> tuple[str, bool]:
        """Return the known begin of a value, and whether it is all of it."""
        kind, text = node.type, self.source(node)
        if kind == "word":
            found, whole = re.sub(r"\\(\n|.)", lambda match: match[1].strip("\n"), text), True
        elif kind == "raw_string":
            found, whole = text[1:-1], True
        elif kind == "number" and not node.named_children:
            found, whole = text, True
        elif kind == "string":
            found, whole = self._string(node, deepest)
        elif kind == "concatenation":
            found, whole = self._joined(node.children, deepest)
        elif kind == "array" and deepest and node.named_children:
            found, whole = self._leading(node.named_children[0], deepest)[0], False
        else:
            found, whole = self._of_variables(node, deepest) if deepest else "", False
        return found, whole

    def _string(self, node: Node, deepest: int) -> tuple[str, bool]:
        """Return the begin of a text in double quotes. The tree has no nodes for some of its blanks."""
        at, text = node.start_byte + 1, ""
        for each in node.named_children:
            if each.type == "string_content":
                continue
            text += self.raw[at : each.start_byte].decode("utf-8", "replace")
            inner, _ = self._leading(each, deepest)
            return _unescaped(text) + inner, False
        return _unescaped(self.raw[at : node.end_byte - 1].decode("utf-8", "replace")), True

    def _joined(self, parts: list[Node], deepest: int) -> tuple[str, bool]:
        text = ""
        for at, each in enumerate(parts):
            inner, whole = self._leading(each, deepest)
            text += inner
            if not whole:
                if not text and at + 1 < len(parts) and self.source(parts[at + 1]).startswith("/"):
                    text = "/"  # a folder in a variable, as in $BIN/tool
                return text, False
        return text, True

    def _of_variables(self, node: Node, deepest: int) -> str:
        """Return the known begin of an expansion."""
        if node.type == "command_substitution":
            return "/" if _PRINTS_PATH.match(self.source(node).lstrip("$`( \t")) else ""
        match = re.match(r"\$(?:(\w+)|\{(\w+)(?:\[[@*0]\])?(?:\}|:?-(.*)\}))", self.source(node), re.DOTALL)
        if match is None:
            return ""
        name = match[1] or match[2]
        found = self._assigned.get(name)
        if not found:
            return "/" if name in PATHS else (match[3] or "").strip("\"'")
        begins = set()
        for each in found:
            if each.appends:
                continue
            if not each.known or each.value is None:
                return ""
            begins.add(self._leading(each.value, deepest - 1)[0].lstrip())
        dashes = {each[:1] in ("", "-") for each in begins}
        return begins.pop() if len(dashes) == 1 else ""

    def _assignments(self) -> dict[str, list[Assignment]]:
        found: dict[str, list[Assignment]] = {}
        for node in self.nodes:
            for name, assignment in self._assignments_of(node):
                found.setdefault(name, []).append(assignment)
        return found

    def _assignments_of(self, node: Node) -> Iterator[tuple[str, Assignment]]:
        """Yield the variables that a node sets."""
        kind, unknown = node.type, Assignment(None, known=False)
        if kind == "variable_assignment":
            yield from self._assignment(node)
        elif kind in ("for_statement", "select_statement"):
            if name := node.child_by_field_name("variable"):
                yield self.source(name), unknown
        elif kind == "command":
            words = [self.source(each) for each in node.named_children]
            for word in words[1:] if words[0] in ASSIGNING else ():
                if match := re.match(r"[A-Za-z_]\w*", word):
                    yield match[0], unknown
        elif kind in ("postfix_expression", "unary_expression", "binary_expression"):
            if re.search(r"\+\+|--|[^=!<>]=(?!=)", self.source(node)):
                yield from ((self.source(each), unknown) for each in node.children if each.type == "variable_name")
        elif kind == "expansion" and (match := re.match(r"\$\{(\w+):?=", self.source(node))):
            yield match[1], unknown

    def _assignment(self, node: Node) -> Iterator[tuple[str, Assignment]]:
        parent, name = node.parent, node.child_by_field_name("name")
        if name is None or parent is None or parent.type == "command":  # the latter is for this command only
            return
        value = node.child_by_field_name("value")
        outer = parent.parent if parent.type == "declaration_command" else parent
        if name.type == "subscript" or any(each.type == "+=" for each in node.children):
            array = name.named_children[0] if name.type == "subscript" and name.named_children else name
            yield self.source(array), Assignment(value, appends=True)
        else:
            yield self.source(name), Assignment(value, always=outer is not None and outer.type == "program")


def line_of(node: Node) -> int:
    """Return the line of a node, from 1."""
    return node.start_point[0] + 1


def _unescaped(text: str) -> str:
    """Remove the escapes of a text in double quotes."""
    return re.sub(r'\\([$`"\\\n])', lambda match: match[1].strip("\n"), text)


def _walk(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)
