"""Pages and reports.

A page is one self-contained file: its frame, its sections and its tables. A report is written once,
in parts, and rendered as such a page and as Markdown with its pictures beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnas.analysis import files, svg
from attnas.errors import unwritable
from attnas.analysis.html import Html, element, join
from attnas.analysis.words import counted

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
    heads = [element("th", element("button", name, type="button") if sortable and name else name,
                     scope="col", class_="left" if left[i] else None)
             for i, name in enumerate(header)]
    body = [element("tr", *(element("td", cell.shown, class_="left" if cell.left else None,
                                    data_v=cell.key if sortable else None)
                            for cell in row), data_m=marked[i] if i < len(marked) else None)
            for i, row in enumerate(rows)]
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


def page(title: str, below: str, sections: Sequence[Section], broad: bool = False) -> str:
    """The whole page. Nothing in it is loaded from elsewhere.

    broad: with room for two pictures side by side.
    """
    links = [element("a", section.key, href="#" + section.key) for section in sections]
    parts = [element("section", element("h2", section.title), section.body, id=section.key)
             for section in sections]
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    style = "".join(file.read_text(encoding="utf-8") for file in (svg.STYLE, _HERE / "page.css"))
    head = element("head", element("meta", charset="utf-8"),
                   element("meta", name="viewport", content="width=device-width, initial-scale=1"),
                   element("meta", http_equiv="Content-Security-Policy",
                           content="default-src 'none'; style-src 'unsafe-inline'; "
                           "script-src 'unsafe-inline'"),
                   element("title", title), element("style", Html(style)))
    body = element(
        "body",
        element("header", element("h1", title),
                paragraph(below, class_="below") if below else None),
        element("nav", *links, aria_label="sections"),
        element("main", join(*parts, separator="\n"), note(
            "Marks of a picture say what they are when you point at them, tap them or reach them "
            "with the arrow keys."
            + ("" if broad else " A mechanism lights up wherever it is drawn."), screen=True)),
        element("div", id="tip", role="status", hidden=True),
        element("script", Html(script)),
        class_="broad" if broad else None,
    )
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"


class Part:
    """A part of a report."""

    def html(self) -> Html:
        """As a part of a page."""
        raise NotImplementedError

    def markdown(self) -> str:
        """The same in Markdown; empty where it is left out there."""
        raise NotImplementedError


@dataclass(frozen=True)
class Paragraph(Part):
    """Words."""

    text: str

    def html(self) -> Html:
        return paragraph(self.text)

    def markdown(self) -> str:
        return self.text


@dataclass(frozen=True)
class Bullets(Part):
    """A list of sentences."""

    items: list[str]

    def html(self) -> Html:
        return element("ul", *(element("li", item) for item in self.items))

    def markdown(self) -> str:
        return "\n".join(f"- {item}" for item in self.items)


@dataclass(frozen=True)
class Folded(Part):
    """Sentences that are shown on demand; in Markdown they are all there."""

    title: str
    items: list[str]

    def html(self) -> Html:
        return folded(self.title, Bullets(self.items).html())

    def markdown(self) -> str:
        return Bullets(self.items).markdown()


@dataclass(frozen=True)
class Code(Part):
    """A command or another text that is meant literally."""

    text: str

    def html(self) -> Html:
        return copyable(self.text)

    def markdown(self) -> str:
        return f"```\n{self.text}\n```"


@dataclass(frozen=True)
class Columns(Part):
    """Texts in columns; the first column names the rows. With a title it is one to look things up
    in: folded away on the page, left out of Markdown."""

    head: list[str]
    rows: list[list[str]]
    title: str = ""

    def html(self) -> Html:
        found = table(self.head, [[Cell(text, left=i == 0) for i, text in enumerate(row)]
                                  for row in self.rows])
        return folded(self.title, found) if self.title else found

    def markdown(self) -> str:
        def row(cells):
            return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

        rule = "|" + "---|" + "---:|" * (len(self.head) - 1)
        return "" if self.title else "\n".join([row(self.head), rule, *map(row, self.rows)])


@dataclass(frozen=True)
class Pictures(Part):
    """Pictures side by side, each with the name of its file."""

    figures: dict[str, svg.Figure]

    def html(self) -> Html:
        return element("div", *(each.html() for each in self.figures.values()), class_="pictures")

    def markdown(self) -> str:
        return "\n".join(f"![{name.removesuffix('.svg').replace('_', ' ')}]({name})"
                         for name in self.figures)


@dataclass(frozen=True)
class Chapter:
    """A heading and what stands below it, found under #key."""

    key: str
    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Report:
    """What a page and Markdown are made from. Chapters without parts are left out."""

    title: str
    chapters: Sequence[Chapter]

    @staticmethod
    def of_findings(title: str, sentences: list[str], chapters: Sequence[Chapter],
                    command: str) -> Report:
        """Chapters between a verdict in sentences and the command that makes it all."""
        return Report(title, [Chapter("verdict", "Verdict", [Bullets(sentences)]), *chapters,
                              Chapter("making", "How this was made", [Code(command)])])

    def html(self) -> str:
        """The page."""
        return page(self.title, "", [
            Section(each.key, each.title, join(*(part.html() for part in each.parts)))
            for each in self.chapters if each.parts], broad=True)

    def markdown(self) -> str:
        """The text with links to the pictures' files, which must lie beside it."""
        body = [f"# {self.title}"]
        for each in self.chapters:
            if each.parts:
                body += [f"## {each.title}",
                         *filter(None, (part.markdown() for part in each.parts))]
        return "\n\n".join(body) + "\n"

    def pictures(self) -> dict[str, str]:
        """All pictures: file name -> SVG."""
        return {name: each.file() for chapter in self.chapters for part in chapter.parts
                if isinstance(part, Pictures) for name, each in part.figures.items()}

    def write(self, folder: Path, stem: str, beside: Mapping[str, str] | None = None) -> str:
        """Writes STEM.html, STEM.md, what else belongs beside them and the pictures; says so in a
        sentence.

        @throws BadInput  where the folder cannot be written; MachineError  where the disk is full.
        """
        texts = {f"{stem}.html": self.html(), f"{stem}.md": self.markdown(), **(beside or {})}
        pictures = self.pictures()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in {**texts, **pictures}.items():
                files.write_whole(folder / name, text.encode())
        except OSError as error:
            raise unwritable(folder, error) from error
        return f"written to {folder}: {', '.join(texts)}, {counted(len(pictures), 'picture')}"
