"""tokenizer.json of a model folder: characters, or byte pairs, as attnas writes it for Hugging
Face's tokenizers. What it says besides is refused, since ids would be others.
"""
import base64
import bisect
import json
import re
import unicodedata
import zlib

# Texts are cut where the classes of their characters say; each is written as one of ASCII of its
# class.
RULES = {"gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+",
         "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{1,3}| "
         r"?[^\sA-Za-z0-9]+[\r\n]*|\s+\Z|\s*[\r\n]|\s+(?!\S)|\s",
         "gpt4": r"'(?i:[sdmt]|ll|ve|re)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{1,3}| "
         r"?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"}
# Where they are written: tiktoken's cl100k, but for the possessive bound, which Oniguruma has not,
# and how GPT-4 and Llama 3 have it.
PATTERNS = {"cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
            "gpt4": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"}
SPACES = {*map(chr, range(9, 14)), " ", "\x85", "\xa0", "\u1680", *map(chr, range(0x2000, 0x200B)),
          "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"}
# Lengths of runs of other characters (0), letters (1) and numbers (2) of Unicode 16.0, whatever
# Python has: 4 length + kind, 7 bits a byte, the lowest first.
RUNS = zlib.decompress(base64.b85decode(
    "c-mD}Z)hCV7U$eKXT7t|#F=y^%!JvnTQ_C*veAuf$_m@Eku7YXks9KAM!M2MBMn$dz(`jT+0_P8XrT)!ZXO9dp#cjnB+#f"
    "8<4Zmio?@j10}1Gdf)NYq2k}e551!dnq1@d&%$;-3pWpf2-`xZiOn4Jt00mJbBSP4L6`aMJ9aewd4G8HHx~NMV$s;t8@Fl"
    "z}u!ZqO!bOnet-zAFVA;2z1*6K+@v4SY&;wnWl8S`YxAsJa@@fu}x<$^IMM*N~^mx$coJGHM6MlwWFsMvH+EO@ZC8RFLFv"
    "hvq2Jg@5Xj)2_-IC(Ib?`|K#|&o_C}|dZIje(JH*{0bEtRCq-)`Eg7u!ydx-*2nVWMs5T!?PyhH3P_LZe5^33gJ!L4(e7)"
    "{<SsdyuSy)pY1$hC{Loy%dI9fv_~k#2(Xn5q)RKIE%eVGB%@1TY!2tmQ+g+#&Gd0&uP??BweJWl6DPfW+a=y2E5^ZqqX1^"
    "DbKgKSVIp?YamOgyhT8ANVWjiqi9P;gXb0CX%7B*KZbkZ%T<vdF$RmfLi)zqA$bBPoR%;;62VYzI6sshK(lZkt^iqNC{Mk"
    "jygd=P@^TnqQKV*<KvkuiSp#drdu9PD$!+);*f2+bhz%$u40QvlIbE&6`36iX!&D8BeNGFcc>`?p8AfvIk($_*(wEE#UnV"
    "%caLmeWXm`@Ym|;ub8eqs`-)Iq%-40hhu%K~PGR+pQcd*6AK509yMffe~T{~UB!)M~vokQ=eK7IWOkK2}v$Vb>bfPjjXWD"
    "Fl0n}WXU&?D!LaETqdwJSUm9}2WNU)&c)XQ~dHFjxb1@h~3e#}XW`MeE-}O|0LdE8;fDb!iML{nQ2&XXT<`gI>9;F~~A(X"
    "JT}a+iznf*PXf#`L7s|Grqx8LN%4DoSP0dV3G@SF|Ax?$!QZ4mhvjx+pjolLzk}PD$kg*FEFz{L*=&%;N+h7?rJ&ZHGUA;"
    "iggFB&5PSl%9~mfVp-P-88pCLqBix{v`f%>vRoH(7yb+V_cRxm@nriLXZD2Ab}P**(2o;1%=X9R^Yielmi+{>KS3#a?}=&"
    "S4iw+C>d={dDUygdi;$|y1~A>bK7xIeoCa9@`w-&yA=`(?+UMxe)8M5a^yFA7amL4+fV~UC=c3jiB!aBS!xh;x8$YrM9NO"
    "s`>$WDE;sIDu{RR0sP{C&Wrc*~wPe*aOqXr3_^16z<kQ$SRhn>Sir+YTViufMxLhddE-3`bx6{nJwpCj*bFi$U<zreJj_*"
    "ka%jiJxr<(^ZO>^7W#hZTx)>rjL7KqVVcP|PceUu9v*Zb9D8D2Ck{$qeE6N&Qb~pC2wK&HXB=$F-tNS@$ASQik$|bdEQ!!"
    "Zws`M>*!jEjYzIh^r=T0Mq{(@B(F2lf^H`a^#InUKoAOiv37ya8Ij?7qbbLlLUJ{TVO|d)f5T23@nQ@NvRK+!lRVA4JWC*"
    "B9<a^oVVAD*P%p(x1H*y7N)caqbwU9pEImOo@4Cj!|ZDSFEjae1Qq`EF+2>K+Lv0X5m_CX(+XROl7H^k8E3ik$8D&VRrBb"
    "c9n7+-YzUsJ<t-@MS%p3LvNODCu7jbPk-B*8hSm}e&5MDW;1VYv{14*0M{YoR=>uW6!MUmz=q;AVyd7UNu9aJwGhp-v>7D"
    "mLHJ=&Dj;w00FX6VpWf68mhId9k10BOTK7b5D45t`%X0Z{&`%yWL<9yFN{!hrSp_ZTZ`~|rW|HpMm#U!`#QnXrTfl@miQ#"
    "?hglGMUeF?Pn}#_JKuY-@;sEcLzj8}J3zxhg&ZJU$<>@dDd~y-c$;g?E^BAT;Kq^}k2>7M5wZ?b3LHrOL$<*E)}0`L}Au>"
    "z_tz@URZveneir1^GJ<p>X@q{P4at|7`0&;MCuTzX0VyT*C"))


def classes():
    """Where runs begin, and their kinds."""
    begins, kinds, end, number, shift = [0], [0], 0, 0, 0
    for byte in RUNS:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            kinds[-1] = number & 3
            end, number, shift = end + (number >> 2), 0, 0
            begins.append(end)
            kinds.append(0)
    return begins, kinds


BEGINS, KINDS = classes()


def in_ascii(character):
    """A character of ASCII of the same class: letter, number, white space, other."""
    if character < "\x80":
        return character
    if character == "\u017f":  # a small s, for contractions in capitals
        return "S"
    if character in SPACES:
        return "\t"
    return "!z0"[KINDS[bisect.bisect(BEGINS, ord(character)) - 1]]


def byte_characters():
    """The character that stands for each byte (GPT-2's table)."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {byte: chr(byte) for byte in own} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def is_byte_level(part, cuts):
    return (part["type"] == "ByteLevel" and not part.get("add_prefix_space", True)
            and part.get("use_regex", True) == cuts)


def rule_of_cuts(found):
    """The key in RULES of a pre_tokenizer."""
    if is_byte_level(found, True):
        return "gpt2"
    parts = found.get("pretokenizers") or [found]
    split = parts[0]
    if split["type"] == "Split" and split["behavior"] == "Isolated" and not split.get("invert"):
        for rule, pattern in PATTERNS.items():
            if split["pattern"] == {"Regex": pattern} and len(parts) == 2 and is_byte_level(
                    parts[1], False):
                return rule
    raise ValueError(f"pre_tokenizer = {found['type']}, must be ByteLevel with use_regex and "
                     "without add_prefix_space, or Split by the pattern of cl100k or GPT-4 before "
                     "ByteLevel without use_regex")


def rule_of(tokenizer):
    """The key in RULES of a tokenizer.json of byte pairs, "" of one of characters; ValueError if it
    has anything that would change ids and is not understood."""
    model, cuts = tokenizer["model"], tokenizer["pre_tokenizer"]
    pairs = model["type"] == "BPE"
    if not pairs and model["type"] != "WordLevel":
        raise ValueError(f"model.type = {model['type']}, must be WordLevel or BPE")
    nothing = ["dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
               "byte_fallback", "ignore_merges"] if pairs else []
    given = {name: model.get(name) for name in nothing}
    if pairs or tokenizer.get("normalizer") != {"type": "NFC"}:
        given["normalizer"] = tokenizer.get("normalizer")
    for name, value in given.items():
        if value not in (None, False, ""):
            raise ValueError(f"{name} = {json.dumps(value)[:80]}, must be null: nothing else "
                             "is understood")
    for token in tokenizer.get("added_tokens") or []:
        if not token.get("special"):
            raise ValueError(f"added token {token['content']!r} is not special: it would be made "
                             "from a text")
    if pairs:
        return rule_of_cuts(cuts)
    if (cuts.get("type"), cuts.get("pattern"), cuts.get("behavior"), cuts.get("invert")) != (
            "Split", {"Regex": "(?m:.)"}, "Isolated", False):
        raise ValueError("pre_tokenizer, must be Split into single characters")
    return ""


class Tokens:
    """ids(bytes) and text(ids) of a tokenizer.json; `first` begins a text, `size` ids in all."""

    def __init__(self, data):
        self.tokenizer = json.loads(data)
        rule, model = rule_of(self.tokenizer), self.tokenizer["model"]
        self.vocabulary = {
            **model["vocab"],
            **{t["content"]: t["id"] for t in self.tokenizer.get("added_tokens") or []}
        }
        self.size = len(self.vocabulary)
        if ({type(i) for i in self.vocabulary.values()} != {int}
                or sorted(self.vocabulary.values()) != list(range(self.size))):
            raise ValueError(f"ids of tokens, must be 0 to {self.size - 1}, each once")
        if rule:
            self.read_pairs(model, rule)
        else:
            self.unknown = self.vocabulary[model["unk_token"]]
            self.ids, self.first = self.ids_of_characters, self.vocabulary.get("\n", self.unknown)
            self.bytes = {i: token.encode() for token, i in self.vocabulary.items()}

    def ids_of_characters(self, text):
        text = text.decode(errors="surrogateescape")
        if (self.tokenizer.get("normalizer") or {}).get("type") == "NFC":
            text = unicodedata.normalize("NFC", text)
        return [self.vocabulary.get(c, self.unknown) for c in text]

    def read_pairs(self, model, rule):
        characters = byte_characters()
        byte_of = {c: byte for byte, c in characters.items()}
        self.byte_ids = [self.vocabulary[characters[byte]] for byte in range(256)]
        self.bytes = {i: bytes(byte_of[c] for c in token) if all(c in byte_of
                                                                 for c in token) else token.encode()
                      for token, i in self.vocabulary.items()}
        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        self.ranks = {}
        for rank, (left, right) in enumerate(pairs):
            self.ranks.setdefault((self.vocabulary[left], self.vocabulary[right]),
                                  (rank, self.vocabulary[left + right]))
        self.rule = re.compile(RULES[rule], re.ASCII)
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
