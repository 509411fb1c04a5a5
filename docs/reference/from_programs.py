#!/usr/bin/env python3
"""from_programs.py PROGRAMS COPY: prepares a copy of the documents for mkdocs. Completes the pages of the reference by what the programs
in the folder PROGRAMS say of themselves."""

import json
import pathlib
import re
import subprocess
import sys

PROGRAMS = ["nas-run", "nas-train", "nas-data", "nas-compare", "nas-export", "nas-model", "nas-analyse",
            "nas-watch", "nas-work"]


def escaped(text):
    return re.sub(r"([|*_<])", r"\\\1", text).replace("\\<", "&lt;")


def code(text):
    return f"`{text}`".replace("|", "\\|")


def table(header, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]) + "\n"


def shown(value):
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return code(f"{value:g}" if isinstance(value, float) else str(value)) if value != "" else "empty"


def allowed(schema):
    """What values a setting may have, in words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(filter(None, map(allowed, schema["anyOf"]))))
    if "enum" in schema:
        return ", ".join(map(shown, schema["enum"]))
    if "const" in schema:
        return shown(schema["const"])
    if schema.get("type") == "array":
        return f"a list of {allowed(schema['items'])}" if "items" in schema else "a list"
    if "properties" in schema:
        return "a map of " + ", ".join(map(code, schema["properties"]))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return "text"
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    most, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    bounds = [f"{sign} {bound:g}" for sign, bound in ((">=", least), (">", above), ("<=", most), ("<", below)) if bound is not None]
    return " ".join([{"string": "text"}.get(kind, kind), *(escaped(one) for one in [", ".join(bounds)] if one)])


def settings(properties):
    if not properties:
        return "No settings.\n"
    return table(["setting", "default", "allowed", "effect", "meaning"],
                 [[code(name), shown(one["default"]) if "default" in one else "", allowed(one), one.get("x-effect", ""),
                   escaped("; ".join([one.get("description", ""), *one.get("x-conditions", [])]))] for name, one in properties.items()])


def maps(schema):
    """The alternatives of a schema that are maps, however deep."""
    if "properties" in schema:
        return [schema["properties"]]
    inner = [*schema.get("anyOf", []), *([schema["items"]] if isinstance(schema.get("items"), dict) else [])]
    return [one for alternative in inner for one in maps(alternative)]


class Reference:
    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.schema = json.loads(self.said("nas-run", "schema"))["properties"]

    def said(self, *command):
        return subprocess.run([self.programs / command[0], *command[1:]], capture_output=True, text=True, check=True).stdout

    def add(self, page, *parts):
        with (self.folder / page).open("a", encoding="utf-8") as file:
            file.write("\n" + "\n\n".join(part.strip() for part in parts) + "\n")

    def sections(self):
        """Sections that have settings of their own; plug-ins have pages."""
        top = {key: one for key, one in self.schema.items() if "properties" not in one and not maps(one)}
        self.add("settings.md", "## Without a section", settings(top))
        for key, one in self.schema.items():
            plugins = [item for item in maps(one) if any("const" in value for value in item.values())]
            if key in top or plugins or key == "objectives":
                continue
            properties = dict(maps(one)[0])
            nested = {name: maps(inner)[0] for name, inner in properties.items() if maps(inner) and key != "space"}
            self.add("settings.md", f"## {key}", escaped(one.get("description", "")), settings(properties))
            for name, inner in nested.items():
                self.add("settings.md", f"### {key}.{name}", settings(inner))

    def plugins(self, section, page, title):
        """Plug-ins of a section, by the setting that names them; what all of them have stands first, once."""
        found = {}
        for properties in maps(self.schema[section]):
            for name, one in properties.items():
                if "const" in one:
                    rest = {key: value for key, value in properties.items() if key != name}
                    found.setdefault(one["const"], (one.get("description", ""), rest))
        common = {key: value for key, value in next(iter(found.values()))[1].items()
                  if len(found) > 1 and all(rest.get(key) == value for _, rest in found.values())}
        self.add(page, f"## Settings of every {title}" if common else f"## Each {title}", settings(common) if common else "")
        for key, (summary, rest) in found.items():
            self.add(page, f"### {key}", escaped(summary), settings({name: one for name, one in rest.items() if name not in common}))

    def listed(self, kind):
        """The lines of nas-run list under a heading, in columns."""
        under = self.said("nas-run", "list", kind).splitlines()
        return [re.split(r" {2,}", line.strip()) for line in under if line.startswith("  ")]

    def objectives(self):
        self.add("objectives.md", "## All of them", table(["objective", "what"], [[code(key), escaped(text)] for key, text in
                                                                                  self.listed("objectives")]))
        self.add("objectives.md", "## Their settings", "An objective refuses what it does not have; `nas-run describe NAME` lists its own.",
                 settings(maps(self.schema["objectives"])[0]))

    def components(self):
        genes = {}
        for gene, label, *key, formula in self.listed("components"):
            genes.setdefault(gene, []).append([code(label), code(key[0].strip("()")) if key else "", escaped(formula)])
        for gene, rows in genes.items():
            self.add("components.md", f"## {gene}", table(["option", "key", "what"], rows))

    def help(self):
        for name in PROGRAMS:
            self.add("programs.md", f"## {name}", f"```\n{self.said(name, '--help').strip()}\n```")


def main():
    copy = pathlib.Path(sys.argv[2])
    reference = Reference(pathlib.Path(sys.argv[1]), copy / "docs/reference")
    reference.sections()
    reference.components()
    reference.plugins("algorithm", "algorithms.md", "algorithm")
    reference.objectives()
    reference.plugins("data", "corpora-and-problems.md", "corpus")
    reference.plugins("problem", "corpora-and-problems.md", "problem")
    reference.help()
    for page in copy.rglob("*.md"):  # in the code of a table, repository browsers want an escaped |, mkdocs a plain one
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"(?m)^\|.*", lambda row: re.sub(r"`[^`]+`", lambda one: one[0].replace("\\|", "|"), row[0]), text),
                        encoding="utf-8")


if __name__ == "__main__":
    main()
