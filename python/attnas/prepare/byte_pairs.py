"""Byte-level byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909; on bytes: Radford et al.
2019), learned or published; what is no such encoding goes by the package tokenizers."""

from __future__ import annotations

import heapq
import json
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from attnas.errors import InputError
from attnas.model_tokens import PATTERNS, RULES, byte_characters, in_ascii, rule_of

from .encodings import blocks, first_foreign_byte
from .files import read_file
from .tokenizer import Ids, Tokenizer

CHARACTERS = byte_characters()
BYTE_OF = {character: byte for byte, character in CHARACTERS.items()}
_CUT = re.compile(rb"[!-~](?= )")  # no rule joins what is before a blank to it
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
Pair = tuple[int, int]


class _Classes(dict):
    """Characters of ASCII that stand for the class of others, for str.translate."""

    def __missing__(self, code: int) -> str:
        self[code] = in_ascii(chr(code))
        return self[code]


_CLASSES = _Classes()


def pretokens(text: bytes, rule: str) -> Iterator[list[str]]:
    """A text cut as GPT-2 ("gpt2") or tiktoken's cl100k does, in lists; bytes that are no UTF-8 are
    lone surrogates, neither letter, number nor white space."""
    pattern = re.compile(RULES[rule], re.ASCII)
    for block in blocks(text, _CUT):
        read = block.decode(errors="surrogateescape")
        if read.isascii():
            yield pattern.findall(read)
            continue
        plain = _FOREIGN.sub(lambda match: match[0].translate(_CLASSES), read)
        yield [read[match.start():match.end()] for match in pattern.finditer(plain)]


class _Trainer:
    """Joins the most frequent pair again and again. Each pair has the words that it is in; those of
    one that appears again are another list, whose merge is another step of the same pair."""

    def __init__(self, words: Iterable[tuple[list[int], int]]):
        given = list(words)
        self.words = [word for word, _ in given]
        self.number = [number for _, number in given]
        self.counts: dict[Pair, int] = defaultdict(int)
        self.heap: list[tuple[int, Pair, int]] = []
        self.lists: list[dict[int, None]] = []
        changed: dict[Pair, dict[int, None]] = defaultdict(dict)
        for index, (word, number) in enumerate(zip(self.words, self.number)):
            for pair in zip(word, word[1:]):
                self.counts[pair] += number
                changed[pair][index] = None
        self._push(changed)

    def _push(self, changed: dict[Pair, dict[int, None]]) -> None:
        for pair, words in changed.items():
            if self.counts[pair] > 0:
                heapq.heappush(self.heap, (-self.counts[pair], pair, len(self.lists)))
                self.lists.append(words)

    def best(self) -> tuple[Pair, int] | None:
        """The pair of the highest count, of equal ones the lowest ids, and the list of its words;
        nothing where none is there twice."""
        while self.heap:
            count, pair, words = heapq.heappop(self.heap)
            if -count == self.counts[pair]:
                return (pair, words) if -count >= 2 else None
            heapq.heappush(self.heap, (-self.counts[pair], pair, words))
        return None

    def join(self, pair: Pair, words: int, joined: int) -> None:
        """Puts the id `joined` in place of a pair in the words of a list."""
        changed: dict[Pair, dict[int, None]] = defaultdict(dict)
        for index in self.lists[words]:
            self._join(index, pair, joined, changed)
        self.lists[words] = {}
        self._push(changed)

    def _join(self, index: int, pair: Pair, joined: int,
              changed: dict[Pair, dict[int, None]]) -> None:
        word, number, counts = self.words[index], self.number[index], self.counts
        written: list[int] = []
        at, last = 0, len(word) - 1
        while at <= last:
            if at == last or word[at] != pair[0] or word[at + 1] != pair[1]:
                written.append(word[at])
                at += 1
                continue
            if written:
                counts[written[-1], pair[0]] -= number
                counts[written[-1], joined] += number
                changed[written[-1], joined][index] = None
            if at + 2 <= last:
                behind = word[at + 2]
                counts[pair[1], behind] -= number
                counts[joined, behind] += number
                changed[joined, behind][index] = None
            written.append(joined)
            at += 2
        self.words[index] = written


def learn(text: bytes, size: int, rule: str) -> tuple[list[bytes], list[Pair]]:
    """Tokens (the bytes in GPT-2's order, then what pairs make) and merges by rank, as tokenizers'
    BpeTrainer learns them with the alphabet of ByteLevel, min_frequency 2 and no special tokens.

    @param size  number of tokens; 0: until no pair is there twice.
    """
    tokens = [bytes([byte]) for byte in sorted(CHARACTERS, key=CHARACTERS.__getitem__)]
    ids = {token: i for i, token in enumerate(tokens)}
    counts: Counter[str] = Counter()
    for cut in pretokens(text, rule):
        counts.update(cut)
    of_byte = [ids[bytes([byte])] for byte in range(256)]
    trainer = _Trainer(([of_byte[byte] for byte in word.encode(errors="surrogateescape")], number)
                       for word, number in counts.items())
    order: dict[Pair, None] = {}
    while (size == 0 or len(tokens) < size) and (best := trainer.best()):
        pair, words = best
        joined = tokens[pair[0]] + tokens[pair[1]]
        if joined not in ids:
            ids[joined] = len(tokens)
            tokens.append(joined)
        order.pop(pair, None)  # one that was merged twice counts by its last time
        order[pair] = None
        trainer.join(pair, words, ids[joined])
    return tokens, list(order)


class Pairs:
    """Encodes by tokens and ranks of pairs: of each pre-token the pair of the lowest rank is joined
    first, of equal ones the leftmost.

    @throws InputError  unless every byte is a token, and what each pair makes.
    """

    def __init__(self, tokens: list[bytes], merges: list[tuple[Pair, int]], rule: str):
        self.tokens, self.rule = tokens, rule
        ids: dict[bytes, int] = {}
        for token in tokens:
            if token in ids:
                raise InputError(f"token {len(ids)} is there already")
            ids[token] = len(ids)
        for byte in range(256):
            if bytes([byte]) not in ids:
                raise InputError(f"has no token of byte {byte}")
        self.bytes = [ids[bytes([byte])] for byte in range(256)]
        self.joined: dict[Pair, tuple[int, int]] = {}
        for (left, right), rank in sorted(merges, key=lambda merge: merge[1]):
            made = ids.get(tokens[left] + tokens[right])
            if made is None:
                raise InputError(f"merge {len(self.joined)} makes no token")
            self.joined.setdefault((left, right), (rank, made))

    def encode(self, text: bytes) -> Ids:
        """The ids of any bytes."""
        ids, known = array("i"), {}
        for cut in pretokens(text, self.rule):
            for word in cut:
                if word not in known:
                    known[word] = self._join(word.encode(errors="surrogateescape"))
                ids.extend(known[word])
        return ids

    def _join(self, word: bytes) -> Ids:
        ids = [self.bytes[byte] for byte in word]
        before, behind = list(range(-1, len(ids) - 1)), [*range(1, len(ids)), -1]
        offers: list[tuple[int, int, int, Pair]] = []

        def offer(left: int) -> None:
            if left >= 0 and behind[left] >= 0:
                pair = ids[left], ids[behind[left]]
                if pair in self.joined:
                    rank, made = self.joined[pair]
                    heapq.heappush(offers, (rank, left, made, pair))
        for place in range(len(ids) - 1):
            offer(place)
        while offers:
            _, left, made, pair = heapq.heappop(offers)
            right = behind[left]
            if right < 0 or (ids[left], ids[right]) != pair:
                continue  # one was joined to another meanwhile
            ids[left], ids[right] = made, -1
            behind[left] = behind[right]
            if behind[left] >= 0:
                before[behind[left]] = left
            offer(before[left])
            offer(left)
        return array("i", [i for i in ids if i >= 0])

    def file(self) -> bytes:
        """tokenizer.json, as Hugging Face's tokenizers reads it."""
        names = ["".join(CHARACTERS[byte] for byte in token) for token in self.tokens]

        def byte_level(cuts: bool) -> dict[str, Any]:
            return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                    "use_regex": cuts}
        rule = byte_level(True)
        if self.rule != "gpt2":
            split = {"type": "Split", "pattern": {"Regex": PATTERNS[self.rule]},
                     "behavior": "Isolated", "invert": False}
            rule = {"type": "Sequence", "pretokenizers": [split, byte_level(False)]}
        model = {"type": "BPE", "dropout": None, "unk_token": None,
                 "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                 "byte_fallback": False, "ignore_merges": False,
                 "vocab": {name: i for i, name in enumerate(names)},
                 "merges": [[names[left], names[right]] for left, right in self.joined]}
        json_ = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
                 "normalizer": None, "pre_tokenizer": rule, "post_processor": None,
                 "decoder": byte_level(True), "model": model}
        return json.dumps(json_, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def tokenizer(self) -> Tokenizer:
        return Tokenizer(len(self.tokens), self.bytes[10], self.encode, self.file())


def train(text: bytes, size: int, rule: str) -> Tokenizer:
    """See learn()."""
    tokens, merges = learn(text, size, rule)
    return Pairs(tokens, [(pair, rank) for rank, pair in enumerate(merges)], rule).tokenizer()


class _NotUnderstood(InputError):
    """A tokenizer.json that is no byte-level BPE."""


class _Table:
    """Tokens by id, from pairs of text and id that have each of 0 .. n - 1 once."""

    def __init__(self) -> None:
        self.tokens: dict[int, bytes] = {}
        self.ids: dict[bytes, int] = {}

    @staticmethod
    def bytes_of(token: str) -> bytes:
        """One with characters that stand for no byte is special, written as it is."""
        if all(character in BYTE_OF for character in token):
            return bytes(BYTE_OF[character] for character in token)
        return token.encode()

    def add(self, token: str, number: Any) -> None:
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise InputError(f"id {_shown(number)} of token '{token}', must be an integer >= 0")
        if number > 1 << 26:
            raise InputError(f"id {number}, must be <= 2^26")
        made = self.bytes_of(token)
        if self.tokens.setdefault(number, made) != made:
            raise InputError(f"id {number} is of two tokens, '{token}' the second")
        self.ids.setdefault(made, number)

    def pair(self, left: str, right: str) -> Pair:
        for token in (left, right):
            if self.bytes_of(token) not in self.ids:
                raise InputError(f"merge of '{token}', which is no token")
        return self.ids[self.bytes_of(left)], self.ids[self.bytes_of(right)]

    def line(self, line: str) -> Pair:
        if line.count(" ") != 1:
            raise InputError(f"merge '{line}', must be two tokens with a blank between them")
        return self.pair(*line.split(" "))

    def pairs(self, merges: list[Pair], rule: str) -> Pairs:
        size = max(self.tokens, default=-1) + 1
        for number in range(size):
            if number not in self.tokens:
                raise InputError(f"has no token of id {number}")
        return Pairs([self.tokens[number] for number in range(size)],
                     [(pair, rank) for rank, pair in enumerate(merges)], rule)


def _shown(value: Any) -> str:
    kind = {dict: "an object", list: "an array"}.get(type(value))
    return kind or json.dumps(value, ensure_ascii=False)


def _read_json(text: bytes) -> Pairs:
    found = json.loads(text)
    try:
        rule = rule_of(found)
    except ValueError as error:
        raise _NotUnderstood(str(error)) from error
    model = found["model"]
    if not rule:
        raise _NotUnderstood(f"model.type = {model['type']}, must be BPE")
    table = _Table()
    for token, number in model["vocab"].items():
        table.add(token, number)
    for added in found.get("added_tokens") or []:
        table.add(added["content"], added["id"])
    merges = [table.line(merge) if isinstance(merge, str) else table.pair(*merge)
              for merge in model["merges"]]
    return table.pairs(merges, rule)


def read(file: str, cuts: str = "gpt2") -> Tokenizer:
    """A published tokenizer.json. Special tokens are never made from a text.

    @param cuts  data.pretokens, which must be its default: the file has its own.
    @throws InputError  naming the file and what is wrong with it; of one that only the package
        tokenizers reads, how to install that.
    """
    text = read_file(Path(file))
    try:
        if cuts != "gpt2":
            raise InputError(f"data.pretokens = {cuts}, must be left out: it is cut as it says")
        try:
            return _read_json(text).tokenizer()
        except _NotUnderstood as error:
            return _by_package(text, str(error))
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"{file}: is no JSON of a tokenizer: {error!r}") from error


def _by_package(text: bytes, reason: str) -> Tokenizer:
    """What Hugging Face's tokenizers makes of a tokenizer.json."""
    try:
        import tokenizers
    except ImportError as error:
        raise InputError(f"{reason}; others go by the package tokenizers, which is not installed: "
                         "python3 -m pip install tokenizers") from error
    try:
        made = tokenizers.Tokenizer.from_str(text.decode())
    except Exception as error:  # it raises nothing finer
        raise InputError(f"is no tokenizer.json: {error}") from error
    made.encode_special_tokens = True  # as text
    made.no_truncation()
    made.no_padding()

    def encode(given: bytes) -> Ids:
        if first_foreign_byte(given) is not None:
            raise InputError("takes texts of UTF-8 alone")
        ids = array("i")
        for block in blocks(given, _CUT):
            ids.extend(made.encode(block.decode(errors="ignore"), add_special_tokens=False).ids)
        return ids

    def keeps(given: bytes) -> bool:
        return made.decode(encode(given), skip_special_tokens=False).encode() == given
    unknown = made.token_to_id(getattr(made.model, "unk_token", None) or "")
    unknown = -1 if unknown is None else unknown
    ends = encode(b"\n")
    return Tokenizer(1 + max(made.get_vocab().values()), ends[-1] if ends else max(unknown, 0),
                     encode, text, unknown=unknown, many="tokens", keeps=keeps)
