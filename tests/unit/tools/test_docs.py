"""The documentation site."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs.commands import commands_page
from tools.docs.links import site_problems
from tools.docs.markdown import table
from tools.docs.pages import gather, navigation_problems
from tools.docs.rest import type_of

PAGE = '<h1 id="top">Top</h1>{}'


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files into a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        ('<a href="b.html#top">b</a> <a href="#top">up</a> <a href="sub/">sub</a> <img src="a.png">', []),
        ('<a href="https://seaway.example/">elsewhere</a> <link rel="canonical" href="https://seaway.example/">', []),
        ('<a href="c.html">c</a>', ["a.html: c.html does not exist"]),
        ('<a href="empty/">empty</a>', ["a.html: empty/ does not exist"]),
        ('<a href="b.html#no">b</a>', ["a.html: b.html#no has no such anchor"]),
        ('<a href="#no">here</a>', ["a.html: #no has no such anchor"]),
        ('<img src="b.png">', ["a.html: b.png does not exist"]),
        (
            '<script src="https://cdn.example/x.js"></script>',
            ["a.html: loads https://cdn.example/x.js from another host"],
        ),
        ('<script src="//cdn.example/x.js"></script>', ["a.html: loads //cdn.example/x.js from another host"]),
    ],
)
def test_a_broken_link_of_the_site_is_reported(tmp_path: Path, body: str, problems: list[str]) -> None:
    """Links, anchors and images lead somewhere, and no page loads anything from another host."""
    site = write(tmp_path, {"b.html": PAGE.format(""), "sub/index.html": PAGE.format(""), "a.png": ""})
    (site / "empty").mkdir()
    write(site, {"a.html": PAGE.format(body)})
    assert site_problems(site) == problems


def repository(folder: Path) -> Path:
    """Make a repository with a few pages."""
    pages = dict.fromkeys(("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"), "# A page\n")
    guide = (
        "# Guide\n\n[Rules](../deploy/rules.yml) [All](../deploy/) `[no](../link.md)` [Far](https://seaway.example)\n"
    )
    files = {"docs/guide.md": guide, "docs/adr/0001-first.md": "# 1. First\n", "deploy/rules.yml": "a: 1\n"}
    return write(folder, {**pages, **files, "src/seaway/secret.py": ""})


def test_pages_are_gathered_with_what_they_link_to(tmp_path: Path) -> None:
    """The layout is that of the repository; a folder that a page links to gets a page that lists its files."""
    target = tmp_path / "pages"
    names = gather(repository(tmp_path / "repository"), target)
    assert "docs/guide.md" in names
    assert (target / "deploy" / "rules.yml").read_text(encoding="utf-8") == "a: 1\n"
    assert "[rules.yml](rules.yml)" in (target / "deploy" / "index.md").read_text(encoding="utf-8")
    assert "[1. First](0001-first.md)" in (target / "docs" / "adr" / "index.md").read_text(encoding="utf-8")
    assert not (target / "src").exists()


def test_the_navigation_has_every_page_once(tmp_path: Path) -> None:
    """A page that it lacks, a name without a page, and a page named twice are reported; decisions have a list."""
    pages = write(tmp_path / "pages", {"a.md": "", "b.md": "", "docs/adr/0001-first.md": ""})
    config = tmp_path / "zensical.toml"
    config.write_text('[project]\nnav = ["a.md", {"More" = ["a.md", "gone.md"]}]\n', encoding="utf-8")
    assert navigation_problems(config, pages, {"a.md", "b.md", "docs/adr/0001-first.md"}) == [
        "b.md is not in the navigation: add it to zensical.toml",
        "gone.md does not exist: remove it from zensical.toml",
        "a.md is in zensical.toml twice",
    ]


def test_commands_are_listed_without_the_markup_of_the_terminal() -> None:
    """Every command has a heading, and examples are blocks of code."""
    page = commands_page()
    assert "\n## `seaway submit`\n" in page
    assert "\n### `seaway fleet nodes`\n" in page
    assert "[bold]" not in page
    assert "[cyan]" not in page
    assert "\n```\nseaway submit --name hello" in page


def test_a_table_has_no_empty_columns_and_no_broken_cells() -> None:
    """A column that no row fills is left out, and bars and line breaks stay inside a cell."""
    assert table(["a", "b", "c"], [["1|2", "", "x\ny"]]) == "| a | c |\n| --- | --- |\n| 1\\|2 | x y |\n"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"$ref": "#/components/schemas/JobOut"}, "[JobOut](#jobout)"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer or null"),
        ({"enum": ["a", "b"]}, "`a`, `b`"),
        ({"type": "integer", "minimum": 1, "maximum": 10_000}, "integer (1–10,000)"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "object of number"),
        ({}, "anything"),
    ],
)
def test_types_of_the_rest_api_are_written_in_words(schema: dict[str, object], text: str) -> None:
    """A reader needs no JSON Schema to know what a field takes."""
    assert type_of(schema) == text


@pytest.mark.slow
def test_the_site_is_built_without_problems() -> None:
    """All pages are in the navigation, the reference is generated, and every link leads somewhere."""
    from tools.docs.__main__ import SITE, build

    assert build() == []
    for name, text in (
        ("commands", "seaway cluster join"),
        ("rest", "/api/v1/jobs/{job}/explain"),
        ("metrics", "seaway_queue_wait_seconds"),
        ("python/client", "cancel"),
        ("python/plugins", "PostBind"),
        ("python/testing", "check_plugin"),
    ):
        assert text in (SITE / "reference" / f"{name}.html").read_text(encoding="utf-8"), name
    assert "Folder of kubeconfigs" in (SITE / "docs" / "settings.html").read_text(encoding="utf-8")
