"""One self-contained page: its frame, its sections and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nas_analysis.html import Html, element, join

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Section:
    """A part of the page, found under #key."""

    key: str
    title: str
    body: Html


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what it shows, and what it is sorted by."""

    shown: object
    key: float | str | None = None
    left: bool = False  # aligned to the left: a text


def paragraph(*children: object, class_: str | None = None) -> Html:
    """A paragraph."""
    return element("p", *children, class_=class_)


def note(*children: object, screen: bool = False) -> Html:
    """A remark on how to read something, or on what is missing; screen: not printed."""
    return paragraph(*children, class_="note screen" if screen else "note")


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]], sortable: bool = False,
          marked: Sequence[int | None] = (), **attributes: object) -> Html:
    """A table that scrolls sideways where it must.

    marked: for each row the number of the mechanism that it is about, which lights up with the
    mechanism's dots.
    """
    left = [bool(rows) and rows[0][i].left for i in range(len(header))]
    heads = [
        element("th", element("button", name, type="button") if sortable and name else name,
                scope="col", class_="left" if left[i] else None)
        for i, name in enumerate(header)
    ]
    body = [
        element("tr", *(
            element("td", cell.shown, class_="left" if cell.left else None,
                    data_v=cell.key if sortable else None)
            for cell in row
        ), data_m=marked[i] if i < len(marked) else None)
        for i, row in enumerate(rows)
    ]
    return element(
        "div",
        element("table", element("thead", element("tr", *heads)), element("tbody", *body),
                class_="sortable" if sortable else None),
        class_="scroll", tabindex=0 if sortable else None, **attributes,
    )


def heading(*children: object) -> Html:
    """A heading within a section."""
    return element("h3", *children)


def folded(summary: object, *children: object) -> Html:
    """What is shown on demand."""
    return element("details", element("summary", summary), *children)


def copyable(words: str) -> Html:
    """A text in a box, with a button that copies it."""
    return element("div", element("button", "copy", type="button", class_="copy"),
                   element("pre", words), class_="copyable")


def page(title: str, below: str, sections: Sequence[Section]) -> str:
    """The whole page. Nothing in it is loaded from elsewhere."""
    links = [element("a", section.key, href="#" + section.key) for section in sections]
    parts = [
        element("section", element("h2", section.title), section.body, id=section.key)
        for section in sections
    ]
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    head = element(
        "head", element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy",
                content="default-src 'none'; style-src 'unsafe-inline'; "
                        "script-src 'unsafe-inline'"),
        element("title", title), element("style", Html(style)),
    )
    body = element(
        "body",
        element("header", element("h1", title), paragraph(below, class_="below"),
                note("Point at, tap or (with the arrow keys) step through the marks of a picture: "
                     "they say what they are, and a mechanism lights up wherever it is drawn.",
                     screen=True)),
        element("nav", *links, aria_label="sections"),
        element("main", join(*parts, separator="\n")),
        element("div", id="tip", role="status", hidden=True),
        element("script", Html(script)),
    )
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"
