#!/usr/bin/env python3
"""byte_pairs_beside.py PROGRAM TEXT [VOCABULARY]: byte pairs of attnas beside those of Hugging Face's tokenizers.

PROGRAM is bin/byte_pairs_time of a build. Both learn from the whole text, with ByteLevel pre-tokens, without prefix space and
special tokens, on one core; merges, ids, and what the one reads of the other are compared. Ends with 77, naming it, where the
package tokenizers is missing, and with 1 where anything differs."""
import array
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ.update(RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
try:
    import tokenizers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
except ImportError:
    print("skipped: no Python package tokenizers")
    sys.exit(77)


def learned(text, vocabulary):
    own = Tokenizer(models.BPE())
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = decoders.ByteLevel()
    own.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=2, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return own


def merges(tokenizer_json):
    pairs = tokenizer_json["model"]["merges"]
    return [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in pairs]


def main():
    program, file, vocabulary = sys.argv[1], sys.argv[2], int((sys.argv[3:] or [8256])[0])
    with tempfile.TemporaryDirectory() as folder:
        ours = json.loads(subprocess.run([program, file, str(vocabulary), folder], check=True, capture_output=True).stdout)
        with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as stream:
            written = stream.read()
        ids = array.array("i")
        with open(os.path.join(folder, "ids.bin"), "rb") as stream:
            ids.frombytes(stream.read())
    with open(file, encoding="utf-8", newline="") as stream:
        text = stream.read()
    times = [time.monotonic()]
    theirs = learned(text, vocabulary)
    times.append(time.monotonic())
    their_ids = theirs.encode(text).ids
    times.append(time.monotonic())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"text of {ours['bytes']:,} bytes, vocabulary {ours['vocabulary']:,}; tokenizers {tokenizers.__version__}")
    print(f"{'':12} {'learn, s':>9} {'encode, s':>9} {'tokens/byte':>11} {'peak, MiB':>9}")
    for name, train, encode, tokens, memory in (
            ("attnas", ours["train_seconds"], ours["encode_seconds"], ours["tokens"], ours["peak_bytes"]),
            ("tokenizers", times[1] - times[0], times[2] - times[1], len(their_ids), peak)):
        print(f"{name:12} {train:9.2f} {encode:9.2f} {tokens / ours['bytes']:11.4f} {memory / 2**20:9.0f}")
    same = {
        "merges": merges(json.loads(written)) == merges(json.loads(theirs.to_str())),
        "ids": their_ids == ids.tolist(),
        "ids, of our tokenizer.json read by tokenizers": Tokenizer.from_str(written).encode(text).ids == ids.tolist(),
    }
    for what, equal in same.items():
        print(f"{what}: {'equal' if equal else 'DIFFERENT'}")
    sys.exit(0 if all(same.values()) else 1)


main()
