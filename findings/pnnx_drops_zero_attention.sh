#!/usr/bin/env bash
# pnnx, ncnn: attention with add_zero_attn, PyTorch's way to let a token attend to nothing, is converted without it. The
# converter reports nothing, and the model gives other numbers, most of all where attention should be small: what was near 0 is
# a mean again.
#
# Versions: pnnx 20261020, ncnn 1.0.20261020, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     queries and keys that point away from each other: the largest output is 0.000 in PyTorch and 0.518 in ncnn, as
#           without the option; not a line about it. With the zero key and value appended by hand ncnn differs by 0.0000.
# Source:   tools/pnnx/src/pass_ncnn/nn_MultiheadAttention.cpp of ncnn does not read add_zero_attn; ncnn's layer has no such
#           parameter. add_bias_kv is dropped, too, but named as not supported.
# Advice:   append the zero key and value by torch.cat and call scaled_dot_product_attention, which is converted rightly;
#           compare outputs after every conversion.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 pnnx==20261020 ncnn==1.0.20261020
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2> "$folder/log" <<'END' || { cat "$folder/log" >&2; exit 1; }
import pathlib
import subprocess
import sys
from importlib.metadata import version

import ncnn
import numpy
import torch

print("versions:", *(f"{name} {version(name)}" for name in ("pnnx", "ncnn", "torch", "numpy")))
TOKENS, WIDTH, HEADS = 6, 16, 4
pnnx = str(pathlib.Path(sys.executable).with_name("pnnx"))


class Attention(torch.nn.Module):
    def __init__(self, zero):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, add_zero_attn=zero)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class ByHand(torch.nn.Module):
    """The same with the zero key and value appended to the others."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, x):
        parts = torch.nn.functional.linear(x, self.attention.in_proj_weight, self.attention.in_proj_bias).chunk(3, -1)
        query, key, value = (part.view(1, TOKENS, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
        nothing = torch.zeros(1, HEADS, 1, WIDTH // HEADS)
        key, value = (torch.cat([part, nothing], 2) for part in (key, value))
        found = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        return self.attention.out_proj(found.transpose(1, 2).reshape(1, TOKENS, WIDTH))


def converted(name, model, x):
    """Output of ncnn, and the converter's lines about attention."""
    torch.jit.trace(model, x, check_trace=False).save(name + ".pt")
    told = subprocess.run([pnnx, name + ".pt", f"inputshape=[1,{TOKENS},{WIDTH}]f32", "fp16=0"], capture_output=True, text=True,
                          check=True)
    net = ncnn.Net()
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.load_param(name + ".ncnn.param")
    net.load_model(name + ".ncnn.bin")
    extractor = net.create_extractor()
    extractor.input("in0", ncnn.Mat(numpy.ascontiguousarray(x[0].numpy())).clone())
    lines = [line for line in (told.stdout + told.stderr).splitlines() if "zero_attn" in line or "not supported" in line]
    return torch.from_numpy(numpy.array(extractor.extract("out0")[1])).reshape(x.shape), lines


torch.manual_seed(0)
model, plain, x = Attention(True).eval(), Attention(False).eval(), torch.randn(1, TOKENS, WIDTH)
with torch.no_grad():
    model.attention.in_proj_bias[:WIDTH] = 3  # queries and keys that point away from each other: attend to nothing
    model.attention.in_proj_bias[WIDTH:2 * WIDTH] = -3
    plain.load_state_dict(model.state_dict())
    right, without, by_hand = model(x), plain(x), ByHand(model.attention)
    sizes = [round(float(output.abs().max()), 3) for output in (right, without)]
    (seen, told), (hand, _) = converted("option", model, x), converted("by_hand", by_hand, x)
errors = [round(float((left - other).abs().max()), 4) for left, other in ((hand, right), (seen, right), (seen, without))]
print("expected: ncnn's output is PyTorch's; differences near 0, as with the zeros appended by hand:", errors[0])
print("seen: difference", errors[1], "; from the same without add_zero_attn", errors[2], "; said by the converter:", told)
print("seen: largest output with add_zero_attn", sizes[0], "and without", sizes[1])
if not (errors[0] < 1e-3 and errors[1] > 0.1 and errors[2] < 1e-3 and told == []):
    sys.exit("the behaviour has changed")
END
