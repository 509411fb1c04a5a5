#!/usr/bin/env python3
"""Writes what a package or image is made of as SPDX 2.3 (JSON), on Python's own library alone.

    spdx.py NAME VERSION FILE --linked PREFIX [--licences FOLDER]
    spdx.py NAME VERSION FILE --installed

--linked: the programs and libraries under PREFIX and all that they load when they start, by ldd;
which of it they name themselves, by readelf. A library belongs to the Debian package that dpkg
finds it in, to the package of PyPI that lists it, or stands for itself, with its SHA-256.
--licences: copies their files of licences there, but for the C and C++ libraries', which are the
host's. --installed: all Debian packages that are installed, as in an image. Licences are those that
machine-readable files of Debian (copyright-format 1.0) and metadata of PyPI declare, else
NOASSERTION.
"""

from __future__ import annotations

import email
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

_KNOWN = {name.lower(): name for name in (
    "Apache-2.0 BSD-2-Clause BSD-3-Clause BSL-1.0 CC0-1.0 FTL ISC MIT MPL-1.1 MPL-2.0 OFL-1.1 "
    "OpenSSL PSF-2.0 Unlicense Zlib curl libtiff").split()}
_KNOWN |= {"expat": "MIT", "apache-2": "Apache-2.0", "boost-1.0": "BSL-1.0", "bsl-1": "BSL-1.0"}
_GNU = re.compile(r"(A?GPL|LGPL)-?v?(\d)(\.\d)?(\+)?")
_OF_GNU = "GPL-1.0 GPL-2.0 GPL-3.0 LGPL-2.0 LGPL-2.1 LGPL-3.0 AGPL-1.0 AGPL-3.0".split()
_NOT_SAID = {"copyrightText": "NOASSERTION", "licenseConcluded": "NOASSERTION",
             "downloadLocation": "NOASSERTION", "filesAnalyzed": False}
_SAID = ("name", "versionInfo", "supplier", "licenseDeclared", "checksums")
_OF_HOST = ("libc6", "libgcc-s1", "libstdc++6", "zlib1g")


class BadInput(Exception):
    """What was given is no command line, or no folder of programs."""


def output_of(*command: str) -> str:
    """What a command says in English, whatever its exit status."""
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def own_files(prefix: Path) -> list[Path]:
    """Programs and libraries under a folder. Raises BadInput if there is none."""
    files = [file for file in sorted(prefix.rglob("*")) if file.is_file()
             and not file.is_symlink() and file.read_bytes()[:4] == b"\x7fELF"]
    if not files:
        raise BadInput(f"{prefix}: holds neither a program nor a library")
    return files


def loaded(files: list[Path], prefix: Path) -> dict[Path, bool]:
    """Libraries outside a folder that its files load, and whether one of these names them."""
    found = {}
    for file in files:
        read = output_of("readelf", "--dynamic", str(file))
        named = set(re.findall(r"\(NEEDED\).*\[(.*)\]", read))
        said = output_of("ldd", str(file))
        if missing := re.search(r"\s(\S+) => not found", said):
            raise BadInput(f"{file}: loads {missing[1]}, which is not there")
        for name, place in re.findall(r"^\s*(?:(\S+) => )?(/\S+) \(", said, re.MULTILINE):
            library = Path(place).resolve()
            if not library.is_relative_to(prefix.resolve()):
                found[library] = found.get(library, False) or name in named
    return found


def atom(name: str, texts: dict[str, str]) -> str:
    """The SPDX name of one licence; of others a reference to its text."""
    gnu = _GNU.fullmatch(name)
    if gnu and (plain := f"{gnu[1]}-{gnu[2]}{gnu[3] or '.0'}") in _OF_GNU:
        return f"{plain}-{'or-later' if gnu[4] else 'only'}"
    if known := _KNOWN.get(name.lower()):
        return known
    text = texts.get(name) or name
    words = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")
    reference = f"LicenseRef-{words}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    texts[reference] = text
    return reference


def expression(licence: str, texts: dict[str, str]) -> str:
    """Debian's "A or B, and C" as "(A OR B) AND C"."""
    made = ""
    for joint, part in re.findall(r"(?:^|,)\s*(?:(and|or)\s+)?([^,]+)", licence, re.IGNORECASE):
        words = re.split(r"\s+(and|or)\s+", part.strip().replace("and/or", "or"),
                         flags=re.IGNORECASE)
        group = " ".join([word.upper() if number % 2 else atom(word, texts)
                          for number, word in enumerate(words)])
        made += f" {joint.upper() or 'AND'} " if made else ""
        made += f"({group})" if len(words) > 1 and "," in licence else group
    return made


def stanzas(text: str):
    """Those of a file of Debian's fields."""
    for block in re.split(r"\n(?:[ \t]*\n)+", text):
        fields = re.findall(r"^([A-Za-z-]+):[ \t]*(.*(?:\n[ \t].*)*)", block, re.MULTILINE)
        yield {name.lower(): value for name, value in fields}


def declared(text: str) -> tuple[str, dict[str, str]]:
    """The licences of a machine-readable file, all of its files together, with the texts of those
    that SPDX has no name for; NOASSERTION of another file."""
    if not re.match(r"\s*Format:.*copyright-format/1\.0", text):
        return "NOASSERTION", {}
    read, texts = list(stanzas(text)), {}
    for stanza in read:
        name, _, body = stanza.get("license", "").partition("\n")
        if body.strip():
            texts.setdefault(name.strip(), re.sub(r"^ (\.$)?", "", body, flags=re.MULTILINE))
    names = {stanza["license"].partition("\n")[0].strip() for stanza in read
             if "license" in stanza and not stanza.get("files", "debian/").startswith("debian/")}
    made = sorted({expression(name, texts) for name in names if name})
    joined = " AND ".join(f"({one})" if " OR " in one and made[1:] else one for one in made)
    return joined or "NOASSERTION", {name: body for name, body in texts.items()
                                     if name.startswith("LicenseRef-") and name in joined}


@cache
def distributions(site: Path) -> dict[str, Path]:
    """The folder of metadata by each file below a folder of Python packages."""
    return {line.split(",")[0]: record.parent for record in site.glob("*.dist-info/RECORD")
            for line in record.read_text(encoding="utf-8").splitlines()}


def from_pypi(library: Path) -> dict | None:
    """The package of PyPI that lists a file, or none."""
    for site in library.parents:
        if site.name in ("site-packages", "dist-packages"):
            info = distributions(site).get(str(library.relative_to(site)))
            if info is None:
                return None
            meta = email.message_from_string((info / "METADATA").read_text(encoding="utf-8"))
            return {"name": meta["Name"], "versionInfo": meta["Version"],
                    "licenseDeclared": meta["License-Expression"] or "NOASSERTION",
                    "purl": f"pkg:pypi/{meta['Name'].lower()}@{meta['Version']}"}
    return None


def of_debian(names: list[str]) -> list[dict]:
    """Installed packages, each with its file of licences; all of them where no name is given."""
    form = "${binary:Package}\t${Version}\t${Architecture}\t${Maintainer}\t${db:Status-Abbrev}\n"
    packages = []
    for line in output_of("dpkg-query", "--show", f"--showformat={form}", *names).splitlines():
        name, version, machine, maintainer, status = line.split("\t")
        if not status.startswith("ii"):
            continue
        name = name.partition(":")[0]
        file = Path("/usr/share/doc", name, "copyright")
        text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
        licence, texts = declared(text)
        packages.append({"name": name, "versionInfo": version, "licenseDeclared": licence,
                         "supplier": f"Organization: {maintainer}", "texts": texts, "file": file,
                         "purl": f"pkg:deb/debian/{name}@{version}?arch={machine}"})
    return packages


def owners(libraries: dict[Path, bool]) -> list[dict]:
    """The packages that libraries belong to, each once, and whether one is named (loaded())."""
    there = {}
    # A file may be known by the name that it had before /lib was a link.
    searched = [name for file in map(str, libraries) for name in (file, file.removeprefix("/usr"))]
    said = output_of("dpkg-query", "--search", *searched) if shutil.which("dpkg-query") else ""
    for line in said.splitlines():
        package, _, place = line.rpartition(": ")
        there[Path(place).resolve()] = package.split(",")[0]
    found: dict[str, dict] = {}
    named: dict[str, bool] = {}
    for library, direct in sorted(libraries.items()):
        if library in there:
            key = there[library]
        else:
            digest = hashlib.sha256(library.read_bytes()).hexdigest()
            package = from_pypi(library) or {
                "name": library.name, "licenseDeclared": "NOASSERTION",
                "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]}
            key = package["name"]
            found[key] = package
        named[key] = named.get(key, False) or direct
    debian = sorted(key for key in named if key not in found)
    for key, package in zip(debian, of_debian(debian), strict=True) if debian else ():
        found[key] = package
    return [{**found[key], "direct": named[key]} for key in sorted(found)]


def document(name: str, version: str, licence: str, packages: list[dict]) -> dict:
    """SPDX's, of something whose parts are known: what is named is linked, the rest needed."""
    texts: dict[str, str] = {}
    entries = [{"SPDXID": "SPDXRef-it", **_NOT_SAID, "name": name, "versionInfo": version,
                "licenseDeclared": licence}]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-it")]
    for number, package in enumerate(packages, 1):
        texts |= package.get("texts", {})
        entry = {"SPDXID": f"SPDXRef-{number}", **_NOT_SAID}
        entry |= {key: package[key] for key in _SAID if key in package}
        if "purl" in package:
            entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER",
                                      "referenceType": "purl", "referenceLocator": package["purl"]}]
        entries.append(entry)
        kind = {True: "DYNAMIC_LINK", False: "DEPENDS_ON", None: "CONTAINS"}[package.get("direct")]
        relations.append(("SPDXRef-it", kind, entry["SPDXID"]))
    digest = hashlib.sha256(json.dumps(entries).encode()).hexdigest()
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"{name}-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{digest}",
            "creationInfo": {"created": created, "creators": ["Tool: attnas-packaging-spdx"]},
            "packages": entries,
            "hasExtractedLicensingInfos": [{"licenseId": key, "extractedText": text}
                                           for key, text in sorted(texts.items())],
            "relationships": [{"spdxElementId": one, "relationshipType": kind,
                               "relatedSpdxElement": other} for one, kind, other in relations]}


def write(words: list[str]) -> str:
    """Carries out a command line; returns a line of what was found. Raises BadInput."""
    name, version, file, *how = [*words, "", "", ""] if len(words) < 3 else words
    if not (how == ["--installed"] or how[:1] == ["--linked"] and (
            len(how) == 2 or how[2:3] == ["--licences"] and len(how) == 4)):
        raise BadInput("usage: spdx.py NAME VERSION FILE "
                       "--linked PREFIX [--licences FOLDER] | --installed")
    if how == ["--installed"]:
        packages, licence = of_debian([]), "NOASSERTION"
    else:
        packages, licence = owners(loaded(own_files(Path(how[1])), Path(how[1]))), "MIT"
    for package in packages if len(how) == 4 else ():
        if "file" in package and package["file"].exists() and package["name"] not in _OF_HOST:
            shutil.copy(package["file"], Path(how[3], package["name"]))
    text = json.dumps(document(name, version, licence, packages), indent=1, ensure_ascii=False)
    Path(file).write_text(f"{text}\n", encoding="utf-8")
    copyleft = [package["name"] for package in packages
                if re.search(r"\bA?GPL-", package["licenseDeclared"])]
    unknown = sum(package["licenseDeclared"] == "NOASSERTION" for package in packages)
    return (f"{file}: {len(packages)} packages, {unknown} of unknown licence; "
            f"GPL in part or whole: {' '.join(copyleft) or 'none'}")


if __name__ == "__main__":
    try:
        print(write(sys.argv[1:]))
    except BadInput as error:
        print(f"spdx.py: {error}", file=sys.stderr)
        sys.exit(2)
