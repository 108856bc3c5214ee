"""Reads the report page as a browser would: a strict little tree of elements, and ways to ask it."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

VOID = {"meta", "link", "img", "input", "br"}


class Element:
    """One element: its tag, attributes, children and text."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag, self.attributes = tag, attributes
        self.children: list[Element | str] = []

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    @property
    def text(self) -> str:
        """All text inside, blanks folded."""
        parts = [child if isinstance(child, str) else child.text for child in self.children]
        return " ".join(" ".join(parts).split())

    def walk(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.walk()

    def all(self, tag: str, css: str = "", **attributes: str) -> list[Element]:
        """The elements inside of that tag that have the class and the attributes (``data_x`` is ``data-x``)."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            e
            for e in self.walk()
            if e.tag == tag
            and (not css or css in e.attributes.get("class", "").split())
            and all(e.attributes.get(name) == value for name, value in wanted.items())
        ]

    def only(self, tag: str, css: str = "", **attributes: str) -> Element:
        result = self.all(tag, css, **attributes)
        assert len(result) == 1, f"{len(result)} of {tag}.{css} {attributes}"
        return result[0]


class Page(HTMLParser):
    """A parsed page; unbalanced tags are an error."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self._open == [self.root], f"never closed: {[e.tag for e in self._open[1:]]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        assert len(attrs) == len(element.attributes), f"an attribute twice in {self.get_starttag_text()}"
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}> at line {self.getpos()[0]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def cell(self, anchor: str) -> Element:
        return self.root.only("section", "cell", id=anchor)

    def rows(self) -> dict[tuple[str, str], Element]:
        """The rows of the list of all numbers that have a cell, by cell and metric."""
        rows = self.root.only("table", id="all").only("tbody").all("tr")
        cells = {id(row): row.only("th").all("a") for row in rows}
        return {
            (unquote(cells[id(row)][0]["href"][1:]), row.all("td")[3].text): row
            for row in rows
            if cells[id(row)]
        }
