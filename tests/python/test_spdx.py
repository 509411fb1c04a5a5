"""packaging/spdx.py: what the built libraries load, and licences as Debian writes them."""

import importlib.util
import json
import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = Path(os.environ["NAS_RUN"]).parents[1] / "lib"
HEAD = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n"


def spdx_module():
    spec = importlib.util.spec_from_file_location("spdx", ROOT / "packaging" / "spdx.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Spdx(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.spdx = spdx_module()

    @unittest.skipUnless(shutil.which("dpkg-query"), "no Debian")
    def test_it_lists_what_is_loaded_and_what_is_named(self):
        said = self.spdx.write(["attnas", "1.2", self.folder / "it.json", "--linked", LIBRARIES, "--licences", self.folder])
        made = json.loads((self.folder / "it.json").read_text())
        packages = {one["name"]: one for one in made["packages"]}
        kinds = {one["relatedSpdxElement"]: one["relationshipType"] for one in made["relationships"]}
        self.assertIn(f": {len(packages) - 1} packages, ", said)
        self.assertEqual(kinds["SPDXRef-it"], "DESCRIBES")
        self.assertEqual(kinds[packages["libc6"]["SPDXID"]], "DYNAMIC_LINK")
        self.assertEqual(packages["libc6"]["externalRefs"][0]["referenceType"], "purl")
        if torch := packages.get("libtorch1.13"):  # Debian's, which loads OpenCV and this FFmpeg
            self.assertEqual(kinds[torch["SPDXID"]], "DYNAMIC_LINK")
            self.assertEqual(kinds[packages["libx264-164"]["SPDXID"]], "DEPENDS_ON")
            self.assertIn("GPL-2.0-or-later", packages["libx264-164"]["licenseDeclared"])
            self.assertIn("GPL in part or whole: ", said)
            self.assertIn(" libx264-164 ", said)
        # What SPDX has no name for has its text there.
        references = set(re.findall(r"LicenseRef-[\w.-]+", json.dumps(made["packages"])))
        self.assertEqual({one["licenseId"] for one in made["hasExtractedLicensingInfos"]}, references)
        self.assertTrue((self.folder / "libyaml-cpp0.7").exists() or "libyaml-cpp0.7" not in packages)
        self.assertFalse((self.folder / "libc6").exists(), "the host's own")

    def test_licences_of_debian_in_spdx_s_words(self):
        for given, wanted in (("GPL-2+", "GPL-2.0-or-later"), ("LGPL-2.1", "LGPL-2.1-only"), ("Expat", "MIT"),
                              ("GPL-3+ or LGPL-3+, and BSD-3-clause", "(GPL-3.0-or-later OR LGPL-3.0-or-later) AND BSD-3-Clause"),
                              ("Boost-1.0 and zlib", "BSL-1.0 AND Zlib")):
            stanzas = f"Files: *\nLicense: {given}\n\nFiles: debian/*\nLicense: ISC\n"
            self.assertEqual(self.spdx.declared(HEAD + stanzas), (wanted, {}))
        several = "Files: *\nLicense: GPL-2 or MIT\n\nFiles: a\nLicense: ISC\n"
        self.assertEqual(self.spdx.declared(HEAD + several)[0], "(GPL-2.0-only OR MIT) AND ISC")
        found, texts = self.spdx.declared(HEAD + "Files: *\nLicense: LGPL-1.1 or mine\n\nLicense: mine\n Do\n .\n good.\n")
        self.assertRegex(found, r"^LicenseRef-LGPL-1\.1-\w{8} OR LicenseRef-mine-\w{8}$")
        self.assertIn("Do\n\ngood.", texts.values())
        self.assertEqual(self.spdx.declared("It is free."), ("NOASSERTION", {}))

    def test_a_file_of_no_package_has_its_digest_and_one_of_pypi_that_package(self):
        site = self.folder / "site-packages"
        (site / "torch-9.dist-info").mkdir(parents=True)
        (site / "torch-9.dist-info" / "RECORD").write_text("torch/lib/libtorch.so,,\n")
        (site / "torch-9.dist-info" / "METADATA").write_text("Name: Torch\nVersion: 9\nLicense-Expression: BSD-3-Clause\n\n")
        (site / "torch" / "lib").mkdir(parents=True)
        libraries = {site / "torch" / "lib" / "libtorch.so": True, site / "torch" / "lib" / "libother.so": False}
        for library in libraries:
            library.write_bytes(b"abc")
        torch, other = self.spdx.owners(libraries)
        self.assertEqual((torch["purl"], torch["licenseDeclared"], torch["direct"]), ("pkg:pypi/torch@9", "BSD-3-Clause", True))
        self.assertEqual(other["checksums"][0]["checksumValue"][:8], "ba7816bf")

    def test_what_is_no_installation_is_bad_input(self):
        for words, said in ((["a", "1", "f", "--linked", self.folder], "holds neither a program nor a library"),
                            (["a", "1", "f"], "usage: spdx.py NAME VERSION FILE"),
                            (["a", "1", "f", "--linked", self.folder, "--licences"], "usage: ")):
            with self.assertRaisesRegex(self.spdx.BadInput, said):
                self.spdx.write(words)
