"""Texts become token ids: attnas prepare, and the known data sets.

    attnas prepare TEXT... --tokenizer word|char|byte|residue|bpe|FILE -o FOLDER
    python3 -m attnas.prepare corpus NAME --settings JSON --context L [--data FOLDER] [-o KEPT]

The first writes FOLDER. The second is what programs call: NAME is a known corpus or text_file,
JSON its settings (defaults where one is not there), the data folder holds data sets. The result is
kept as KEPT/HASH (KEPT is .prepared of the data folder by default) by all that it depends on, is
made once, and the one line of standard output is its path. Errors are "attnas: TEXT" on standard
error with exit code 2 where something was given wrongly (nothing is written), 75 where the machine
failed, as by a full disk, and 130 after a signal. Warnings of `corpus` are in the card alone.

A folder (format 1) appears complete or not at all. It holds

card.json      {
  "format": 1, "name": key of the corpus, "description": what the text is, such as its path,
  "unit": key of the tokenizer, empty of pictures, "many": what its tokens are called ("bytes"),
  "vocabulary": V, ids are 0 .. V - 1,
  "special": {"pad": id, "unknown": id, "end_of_sentence": id}, -1 for none,
  "first": id that a stream begins with, input only (layout standard); else -1,
  "layout": "standard" | "published" | "examples",
  "context": L of layouts published and examples, else null,
  "settings": {...} of the corpus, all of them,
  "bytes": {"train", "valid", "test"} of the texts, "tokens": {...} of the files FILE.bin,
  "unknown_share": {...} of <unk> among the tokens of a file, without the first; {} if none can be,
  "keeps": {"valid", "test"} whether ids give the text back byte by byte, as bits per byte need;
    {} if they do,
  "tokenizer_file": name of the tokenizer beside the card, "vocabulary.txt" or "tokenizer.json", or
    null,
  "sha256": {"train.bin": hexadecimal, ...} of every file beside the card,
  "source_sha256": of the bytes of train, valid and test, one after the other,
  "warnings": [sentences for people],
  "task": "next_token" | "classification", "labels": C, 0 of next_token,
  "least_nll": of the best answers that there are, 0 if not known }
train.bin, valid.bin, test.bin    ids, int32, little-endian, without a head
  standard    the first id, then the text; of words <eos> behind each line
  published   the words of all lines of more than L words, one line after the other
  examples    examples of equal length, one after the other: L ids, or L + 1 where each is asked
train.lines.bin, ...    of layout published: where each line begins, int64 indices into FILE.bin
train.labels.bin, ...   of task classification: of each example the label, int32, the target of its
  last id; nothing else is scored

From Python: known() says which data sets there are, get() puts one into a data folder, find() and
provenance() say where it is and where it came from, prepare_corpus() is the second command,
write_ids() writes a folder of ids that a program of yours has made.
"""

from .data_sets import default_folder, find, get, known, provenance, read, sha256_of
from .folders import prepare, prepare_corpus, write_ids

__all__ = ["default_folder", "find", "get", "known", "prepare", "prepare_corpus", "provenance",
           "read", "sha256_of", "write_ids"]
