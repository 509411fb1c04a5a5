"""HTML and SVG elements as text, in which everything that is not markup already is escaped."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any

from attnas.analysis.words import shortened


class Html(str):
    """Text that is markup already."""


def text(child: Any) -> Html:
    """A child as markup: escaped, unless it is markup."""
    if child is None:
        return Html("")
    return child if isinstance(child, Html) else Html(escape(str(child), quote=False))


def join(*children: Any, separator: str = "") -> Html:
    """Children one after the other."""
    return Html(separator.join(text(child) for child in children))


def plain(markup: Html) -> str:
    """The words of markup alone."""
    return unescape(re.sub("<[^>]*>", "", markup))


def element(tag: str, *children: Any, **attributes: Any) -> Html:
    """An element. Attributes: class_ is class, _ is -, None is left out, True has no value."""
    words = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        words.append(name if value is True else f'{name}="{escape(str(value))}"')
    opening = " ".join(words)
    if tag in ("meta", "input", "br", "wbr"):
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{join(*children)}</{tag}>")


def mechanism(label: str, brief: str = "") -> Html:
    """A mechanism's name, which may break after each gene or option.

    @param brief  shown in its place, the whole name being a tooltip; empty: the name itself.
    """
    return element("span", join(*re.split(r"(?<=[|,{+/=])", shortened(brief or label, 160)),
                                separator="<wbr>"), class_="mechanism",
                   title=label if brief not in ("", label) else None)


def prose(words: str) -> Html:
    """Words in which `this` is code."""
    return join(*(element("code", part) if i % 2 else part
                  for i, part in enumerate(words.split("`"))))
