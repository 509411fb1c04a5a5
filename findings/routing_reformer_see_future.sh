#!/usr/bin/env bash
# routing-transformer and reformer-pytorch: causal language models of both see later tokens. No token attends to a later one, but
# which earlier ones it attends to, if any, is chosen among all tokens of the text: another end gives other logits at the
# beginning, and a loss that no generation from left to right can have.
#
# Versions: routing-transformer 1.6.1, reformer-pytorch 1.4.4, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     largest change of the logits of the first 37 tokens with the 27 after them, in standard deviations, and tokens of the
#           37 changed: routing 3.15 and 34, Reformer 0.30 and 35; with local heads alone, or full attention, 0 (random models).
# Source:   routing_transformer.py, distribution(): each cluster takes its nearest tokens by topk over the text, and a token that
#           none takes has output 0. reformer_pytorch.py, LSHAttention: tokens are sorted by bucket and cut into chunks of one
#           size, whose borders move with every token of the text.
# Advice:   report no perplexity of such models without this test; training and scoring need selections from earlier tokens alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 routing-transformer==1.6.1 \
    reformer-pytorch==1.4.4
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from reformer_pytorch import ReformerLM
from routing_transformer import RoutingTransformerLM

print("versions:", *(f"{name} {version(name)}" for name in ("routing-transformer", "reformer-pytorch", "torch", "numpy")))
size = {"num_tokens": 64, "max_seq_len": 64, "dim": 32, "depth": 2, "heads": 4, "causal": True}
models = {
    "routing": lambda: RoutingTransformerLM(**size, dim_head=8, window_size=16),
    "routing, local heads only": lambda: RoutingTransformerLM(**size, dim_head=8, n_local_attn_heads=4,
                                                              local_attn_window_size=16),
    "reformer": lambda: ReformerLM(**size, bucket_size=8, n_hashes=2),
    "reformer, full attention": lambda: ReformerLM(**size, use_full_attn=True),
}
torch.manual_seed(1)
first, second = torch.randint(64, (2, 1, 64))
second[:, :37] = first[:, :37]


def change(make):
    """Of the logits of the common beginning, in standard deviations, and the number of tokens whose logits change."""
    torch.manual_seed(0)
    model = make().eval()
    logits = []
    with torch.no_grad():
        model(first)
        for text in (first, second):
            torch.manual_seed(2)
            result = model(text)
            logits.append(result[0] if isinstance(result, tuple) else result)
    changes = (logits[0] - logits[1])[0, :37].abs().amax(1) / logits[0].std()
    return round(float(changes.max()), 2), int((changes > 0.001).sum())


seen = {name: change(make) for name, make in models.items()}
print("expected: logits of a causal model do not change with later tokens: (0.0, 0)")
print("seen (largest change, tokens changed of 37):", seen)
if not all((largest > 0.1 and count > 5) if "," not in name else (largest, count) == (0.0, 0)
           for name, (largest, count) in seen.items()):
    sys.exit("the behaviour has changed")
END
