"""A check of the built site: every link and anchor leads somewhere, and nothing is loaded from another host."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "use": "href"}
"""Elements whose address a browser fetches by itself, and the attribute with the address."""


class _Page(HTMLParser):
    """The addresses and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what an element refers to, and its own names."""
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif values.get(LOADING.get(tag, "")) and values.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.add(values[LOADING[tag]])


def site_problems(site: Path) -> list[str]:
    """List broken links and anchors, and what would be loaded from another host, with the page of each."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its addresses begin at the root of the server that shows it
        name = path.relative_to(site)
        found += [f"{name}: loads {each} from another host" for each in sorted(page.loaded) if _is_elsewhere(each)]
        local = sorted(each for each in page.links | page.loaded if not urlsplit(each).scheme and each[:2] != "//")
        found += [f"{name}: {problem}" for each in local if (problem := _problem(path, each, pages))]
    return found


def _is_elsewhere(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in ("http", "https") or (not parts.scheme and bool(parts.netloc))


def _problem(page: Path, address: str, pages: dict[Path, _Page]) -> str:
    """Return what is wrong with an address on a page; nothing for one that leads somewhere."""
    parts = urlsplit(address)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return f"{address} does not exist"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return f"{address} has no such anchor"
    return ""
