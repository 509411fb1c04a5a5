#!/usr/bin/env bash
# recurrent-memory-transformer-pytorch: the XL memories, on by default, are used to generate text, but not in training or evaluation. Logits
# of the next token are others than those the loss is computed from.
#
# Versions: recurrent-memory-transformer-pytorch 0.7.0, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     segments of 8, random model: the logits of RecurrentMemoryTransformerWrapper(text) are those without XL memories, and
#           generate()'s are those with them, 4 standard deviations apart for token 20. The same loss with memory_replay_backprop=True
#           is 4.82, not 4.94, with other gradients; with use_xl_memories=False both are 4.94.
# Source:   recurrent_memory_transformer_pytorch/recurrent_memory_transformer.py, RecurrentMemoryTransformerWrapper.forward(): collects XL
#           memories, but does not pass them to the next segment; the replay's second pass and generate() do.
# Advice:   use_xl_memories=False, or write the loop over segments oneself; compare an evaluation's logits with generate()'s.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 recurrent-memory-transformer-pytorch==0.7.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from recurrent_memory_transformer_pytorch import RecurrentMemoryTransformer, RecurrentMemoryTransformerWrapper

print("versions:", *(f"{name} {version(name)}" for name in ("recurrent-memory-transformer-pytorch", "torch", "numpy")))
segment, text = 8, torch.randint(0, 64, (2, 33), generator=torch.Generator().manual_seed(0))


def build(**options):
    torch.manual_seed(0)
    model = RecurrentMemoryTransformer(num_tokens=64, num_memory_tokens=4, dim=32, depth=2, dim_head=16, heads=2, seq_len=segment,
                                       **options)
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    return model.eval(), RecurrentMemoryTransformerWrapper(model).eval()


@torch.no_grad()
def by_segments(model, use_xl):
    """Logits of all tokens, segment by segment, with the XL memories passed on or not."""
    memories, xl, logits = None, None, []
    for part in text[:, :-1].split(segment, 1):
        out, memories, new_xl = model(part, memories, xl_memories=xl)
        xl = new_xl if use_xl else None
        logits.append(out)
    return torch.cat(logits, 1)


model, wrapper = build()
with torch.no_grad():
    evaluated = wrapper(text[:, :-1])[0]
generated = []
hook = model.register_forward_hook(lambda module, inputs, output: generated.append(output[0][:, -1]))
wrapper.generate(text[:, :20], length=21)
hook.remove()
with_xl, without = by_segments(model, True), by_segments(model, False)


def apart(one, two):
    return round(float((one - two).abs().max() / without.std()), 4)


losses = {}
for use_xl in (True, False):
    wrapper = build(use_xl_memories=use_xl)[1]
    losses[use_xl] = tuple(round(float(loss.detach()), 3) for loss in (wrapper(text, return_loss=True)[0],
                                                                       wrapper(text, memory_replay_backprop=True)))
print("expected: evaluation and generate() have the same logits, with XL memories; memory replay has the same loss")
print("seen: evaluation, from logits with XL memories:", apart(evaluated, with_xl), "without:", apart(evaluated, without))
print("      generate() for token 20, from logits with XL memories:", apart(generated[-1], with_xl[:, 19]),
      "without:", apart(generated[-1], without[:, 19]))
print("      loss, and with memory replay, by use_xl_memories:", losses)
if not (apart(evaluated, without) == 0 and apart(generated[-1], with_xl[:, 19]) < 1e-3
        and apart(generated[-1], without[:, 19]) > 0.5 and abs(losses[True][0] - losses[True][1]) > 0.05
        and abs(losses[False][0] - losses[False][1]) < 1e-3):
    sys.exit("the behaviour has changed")
END
