"""A report for people, written once, rendered as a self-contained HTML page and as Markdown."""

import dataclasses
from xml.sax.saxutils import escape

_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1f2933; --muted: #5b6773;
  --rule: #dfe5ea; --band: #f3f6f9; }
@media (prefers-color-scheme: dark) { :root { --paper: #14191f; --ink: #e6ebf0;
  --muted: #a3afbb; --rule: #323c46; --band: #1c232b; } }
body { margin: 0 auto; max-width: 1120px; padding: 12px 16px 48px; background: var(--paper);
  color: var(--ink); font: 16px/1.5 Helvetica, Arial, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5em; } h2 { font-size: 1.2em; margin-top: 2em; }
p, li { max-width: 46em; }
.pictures { display: grid; gap: 16px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); align-items: start; }
.pictures svg { width: 100%; height: auto; max-width: 620px; }
.scroll { overflow-x: auto; margin: 1em 0; }
table { border-collapse: collapse; font-size: 0.88em; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--rule); }
th { color: var(--muted); font-weight: normal; vertical-align: bottom; white-space: normal;
  max-width: 9em; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--paper); }
code { overflow-wrap: anywhere; background: var(--band); padding: 1px 4px; }
summary { cursor: pointer; color: var(--muted); }
"""


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """Words."""

    text: str


@dataclasses.dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: list[str]


@dataclasses.dataclass(frozen=True)
class Code:
    """A command or another text that is meant literally."""

    text: str


@dataclasses.dataclass(frozen=True)
class Table:
    """Texts in columns; the first column names the rows. With a title it is one to look things up
    in: folded away in HTML, left out of Markdown."""

    head: list[str]
    rows: list[list[str]]
    title: str = ""


@dataclasses.dataclass(frozen=True)
class Pictures:
    """SVG pictures side by side, each with the name of its file."""

    svgs: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    parts: list


@dataclasses.dataclass(frozen=True)
class Page:
    """A whole report. Sections without parts are left out."""

    title: str
    sections: list[Section]

    def pictures(self) -> dict[str, str]:
        """All pictures: file name -> SVG."""
        return {name: svg for section in self.sections for part in section.parts
                if isinstance(part, Pictures) for name, svg in part.svgs.items()}

    def html(self) -> str:
        """One file with everything in it, in light and dark."""
        body = [f"<h1>{escape(self.title)}</h1>"]
        for section in self.sections:
            if section.parts:
                body += [f"<h2>{escape(section.title)}</h2>", *map(_html, section.parts)]
        return ('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
                '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
                f"<title>{escape(self.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
                + "\n".join(body) + "\n</body>\n</html>\n")

    def markdown(self) -> str:
        """The text with links to the pictures' files, which must lie beside it."""
        body = [f"# {self.title}"]
        for section in self.sections:
            if section.parts:
                body += [f"## {section.title}", *filter(None, map(_markdown, section.parts))]
        return "\n\n".join(body) + "\n"


def _html(part) -> str:
    if isinstance(part, Paragraph):
        return f"<p>{escape(part.text)}</p>"
    if isinstance(part, Bullets):
        return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in part.items) + "</ul>"
    if isinstance(part, Code):
        return f"<p><code>{escape(part.text)}</code></p>"
    if isinstance(part, Pictures):
        return '<div class="pictures">' + "".join(part.svgs.values()) + "</div>"

    def row(cells, kind):
        return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells) + "</tr>"

    table = ('<div class="scroll"><table>' + row(part.head, "th")
             + "\n".join(row(cells, "td") for cells in part.rows) + "</table></div>")
    if not part.title:
        return table
    return f"<details><summary>{escape(part.title)}</summary>{table}</details>"


def _markdown(part) -> str:
    if isinstance(part, Paragraph):
        return part.text
    if isinstance(part, Bullets):
        return "\n".join(f"- {item}" for item in part.items)
    if isinstance(part, Code):
        return f"```\n{part.text}\n```"
    if isinstance(part, Pictures):
        return "\n".join(f"![{name.removesuffix('.svg').replace('_', ' ')}]({name})"
                         for name in part.svgs)
    if part.title:
        return ""

    def row(cells):
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|" + "---|" + "---:|" * (len(part.head) - 1)
    return "\n".join([row(part.head), rule, *map(row, part.rows)])
