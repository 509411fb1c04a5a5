"""tokenizer.json of a model folder: characters, or byte pairs, as attnas writes it for Hugging
Face's tokenizers.
"""
import json
import re
import unicodedata

# Texts are cut where the classes of their characters say; each is written as one of ASCII of its
# class.
RULES = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{1,3}| "
              r"?[^\sA-Za-z0-9]+[\r\n]*|\s+\Z|\s*[\r\n]|\s+(?!\S)|\s",
}
SPACES = {
    *map(chr, range(9, 14)), " ", "\x85", "\xa0", "\u1680", *map(chr, range(0x2000, 0x200B)),
    "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"
}


def in_ascii(character):
    """A character of ASCII of the same class: letter, number, white space, other."""
    if character < "\x80":
        return character
    if character == "\u017f":  # a small s, for contractions in capitals
        return "S"
    kind = unicodedata.category(character)[0]
    return "z" if kind == "L" else "0" if kind == "N" else "\t" if character in SPACES else "!"


def byte_characters():
    """The character that stands for each byte (GPT-2's table)."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {byte: chr(byte) for byte in own} | {byte: chr(256 + i) for i, byte in enumerate(others)}


class Tokens:
    """ids(bytes) and text(ids) of a tokenizer.json; `first` begins a text, `size` ids in all."""

    def __init__(self, data):
        self.tokenizer = json.loads(data)
        model = self.tokenizer["model"]
        if model["type"] not in ("WordLevel", "BPE"):
            raise ValueError(f"model.type = {model['type']}, must be WordLevel or BPE")
        self.vocabulary = {
            **model["vocab"],
            **{t["content"]: t["id"] for t in self.tokenizer.get("added_tokens", [])}
        }
        self.size = len(self.vocabulary)
        if sorted(self.vocabulary.values()) != list(range(self.size)):
            raise ValueError(f"ids of tokens, must be 0 to {self.size - 1}, each once")
        if model["type"] == "BPE":
            self.read_pairs(model)
        else:
            self.unknown = self.vocabulary[model["unk_token"]]
            self.ids, self.first = self.ids_of_characters, self.vocabulary.get("\n", self.unknown)
            self.bytes = {i: token.encode() for token, i in self.vocabulary.items()}

    def ids_of_characters(self, text):
        text = text.decode(errors="surrogateescape")
        if (self.tokenizer.get("normalizer") or {}).get("type") == "NFC":
            text = unicodedata.normalize("NFC", text)
        return [self.vocabulary.get(c, self.unknown) for c in text]

    def read_pairs(self, model):
        characters = byte_characters()
        byte_of = {c: byte for byte, c in characters.items()}
        self.byte_ids = [self.vocabulary[characters[byte]] for byte in range(256)]
        self.bytes = {
            i: bytes(byte_of[c] for c in token) if all(c in byte_of
                                                       for c in token) else token.encode()
            for token, i in self.vocabulary.items()
        }
        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        self.ranks = {}
        for rank, (left, right) in enumerate(pairs):
            self.ranks.setdefault((self.vocabulary[left], self.vocabulary[right]),
                                  (rank, self.vocabulary[left + right]))
        rule = self.tokenizer["pre_tokenizer"]["type"]
        if rule not in ("ByteLevel", "Sequence"):
            raise ValueError(f"pre_tokenizer.type = {rule}, must be ByteLevel or Sequence")
        self.rule = re.compile(RULES["gpt2" if rule == "ByteLevel" else "cl100k"], re.ASCII)
        self.known, self.ids, self.first = {}, self.ids_of_pairs, self.byte_ids[ord("\n")]

    def ids_of_pairs(self, text):
        text = text.decode(errors="surrogateescape")
        ids = []
        for match in self.rule.finditer("".join(map(in_ascii, text))):
            part = text[match.start():match.end()]
            if part not in self.known:
                self.known[part] = self.joined(
                    [self.byte_ids[byte] for byte in part.encode(errors="surrogateescape")])
            ids += self.known[part]
        return ids

    def joined(self, ids):
        """Pair by pair, that of the lowest rank first, of equal ones the leftmost."""
        while len(ids) > 1:
            found = [(self.ranks[pair][0], i) for i, pair in enumerate(zip(ids, ids[1:]))
                     if pair in self.ranks]
            if not found:
                break
            _, i = min(found)
            ids = [*ids[:i], self.ranks[ids[i], ids[i + 1]][1], *ids[i + 2:]]
        return ids

    def text(self, ids):
        return b"".join(self.bytes[i] for i in ids)
