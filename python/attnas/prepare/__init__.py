"""Texts become token ids: attnas prepare, and the known data sets.

    attnas prepare TEXT... --tokenizer word|char|byte|residue|bpe|FILE -o FOLDER
    python3 -m attnas.prepare corpus NAME --settings JSON --context L [--data FOLDER] [-o KEPT]

The first writes FOLDER. The second is what programs call: NAME is a known corpus or text_file,
JSON its settings (defaults where one is not there), the data folder holds data sets. The result is
kept as KEPT/HASH (KEPT is .prepared of the data folder by default) by all that it depends on, is
made once, and the one line of standard output is its path. Errors are "attnas: TEXT" on standard
error with exit code 2 where something was given wrongly (nothing is written), 75 where the machine
failed, as by a full disk, and 130 after a signal. Warnings of `corpus` are in the card alone.

docs/files.md says what such a folder holds.

From Python: known() says which data sets there are, get() puts one into a data folder, find() and
provenance() say where it is and where it came from, prepare_corpus() is the second command,
write_ids() writes a folder of ids that a program of yours has made.
"""

from .data_sets import default_folder, find, get, known, provenance, read, sha256_of
from .folders import prepare, prepare_corpus, write_ids

__all__ = ["default_folder", "find", "get", "known", "prepare", "prepare_corpus", "provenance",
           "read", "sha256_of", "write_ids"]
