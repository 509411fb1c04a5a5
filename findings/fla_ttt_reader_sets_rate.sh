#!/usr/bin/env bash
# fla (flash-linear-attention): in TTT-Linear a token's learning rate scales the gradients of all tokens of its mini-batch before it, and
# not its own gradient. A learned rate, which should say how much of a token is stored, says how much of the past is read.
#
# Versions: fla-core 0.6.0, torch 2.15.0, einops 0.8.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     16 tokens in mini-batches of 4: with one rate for all tokens, outputs and the state are those of autograd; with random rates
#           outputs differ by 29%, the state by 9%. If only the last of each 4 tokens has the rate 0, nothing is stored at all.
# Source:   fla/ops/ttt/naive.py, ttt_linear(): rates multiply the rows (queries) of q @ k.T in place of the columns, and the state is
#           updated with the last rate of the mini-batch; so do the kernels in chunk.py (b_eta, b_eta_last: read, not run). In the
#           paper (arXiv 2407.04620) the rate belongs to the token that is learnt. Asked in fla's issue 185 (2025), which is closed.
# Advice:   with learned rates, use mini-batches of one token, where both are alike, or put the rates on the columns.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 einops==0.8.2
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps fla-core==0.6.0
"$folder/venv/bin/python" -W ignore - <<'END'
import importlib.util
import sys
from importlib.metadata import distribution, version

import torch
from torch.nn.functional import layer_norm, normalize

print("versions:", *(f"{name} {version(name)}" for name in ("fla-core", "torch", "einops", "numpy")))
spec = importlib.util.spec_from_file_location("ttt", distribution("fla-core").locate_file("fla/ops/ttt/naive.py"))
ttt = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ttt)
torch.manual_seed(0)
tokens, size, batch = 16, 16, 4
q, v, k = torch.randn(tokens, size), torch.randn(tokens, size), normalize(torch.randn(tokens, size), dim=-1)
start = torch.randn(size, size) * 0.5


def by_autograd(rates):
    """Outputs, and the state at the end: each token's gradient is taken at the start of its mini-batch, and has its own rate."""
    state, bias, outs = start.clone(), torch.zeros(size), []
    for first in range(0, tokens, batch):
        at = state.clone().requires_grad_(), bias.clone().requires_grad_()
        for t in range(first, first + batch):
            loss = (layer_norm(k[t] @ at[0] + at[1], (size,), eps=1e-6) - (v - k)[t]).square().sum() / 2
            gradient = torch.autograd.grad(loss, at)
            state, bias = state - rates[t] * gradient[0], bias - rates[t] * gradient[1]
            out = q[t] * size ** -0.5 @ state + bias
            outs.append(out + layer_norm(out, (size,), eps=1e-6))
    return torch.stack(outs), state


def by_fla(rates):
    out, state, _ = ttt.chunk_ttt_linear_ref(
        *(x[None, :, None].clone() for x in (q, k, v)), torch.ones(1, size), torch.zeros(1, size),
        rates.view(1, tokens, 1, 1).clone(), mini_batch_size=batch,
        initial_state=start[None, None].clone(), output_final_state=True)
    return out[0, :, 0], state[0, 0]


def difference(rates):
    return tuple(round(float((a - b).norm() / a.norm()), 4) for a, b in zip(by_autograd(rates), by_fla(rates)))


same, learned = torch.full((tokens,), 0.05), torch.rand(tokens, generator=torch.Generator().manual_seed(1)) * 0.1
last_is_zero = torch.where(torch.arange(tokens) % batch == batch - 1, 0.0, 0.05)
unchanged = [float((form(last_is_zero)[1] - start).norm() / start.norm()) for form in (by_autograd, by_fla)]
seen = difference(same), difference(learned)
print("expected: outputs and final states of autograd, whatever the rates: relative differences of 0")
print("seen (outputs, state), one rate for all tokens:", seen[0], "rates from 0 to 0.1:", seen[1])
print("relative change of the state if only the last of each 4 tokens has the rate 0: autograd %.3f, fla %.3f" % tuple(unchanged))
if not (max(seen[0]) < 1e-3 and min(seen[1]) > 0.02 and unchanged[0] > 0.1 and unchanged[1] == 0):
    sys.exit("the behaviour has changed")
END
