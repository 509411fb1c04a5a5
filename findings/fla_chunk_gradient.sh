#!/usr/bin/env bash
# fla (flash-linear-attention): the chunked references of KDA and Gated DeltaNet 2 have NaN gradients where a channel decays by more
# than exp(-88) within a chunk, while their outputs are right and the token-by-token references are finite.
#
# Versions: fla-core 0.6.0, torch 2.15.0, einops 0.8.2, numpy 2.4.6; as of 2026-11-27.
# Seen:     one chunk of 64 tokens, log-decay -1 per token: gradients agree; -2: outputs agree, the gradient of the decay is NaN for
#           both chunked forms. That of gated_delta_rule stays finite.
# Source:   fla/ops/kda/naive.py, fla/ops/gdn2/naive.py: exp(g_i - g_j) is computed for later j too, where it overflows, and then
#           masked; the product of the mask's 0 and infinity is NaN. gated_delta_rule/naive.py masks before exp.
# Advice:   compare gradients with the naive_recurrent_ functions, or with a smaller chunk_size. Files are loaded by path: fla itself needs
#           Triton.
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

print("versions:", *(f"{name} {version(name)}" for name in ("fla-core", "torch", "einops", "numpy")))


def reference(name):
    path = distribution("fla-core").locate_file(f"fla/ops/{name}/naive.py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


kda, gdn2, gated = reference("kda"), reference("gdn2"), reference("gated_delta_rule")
torch.manual_seed(0)
shape = (1, 64, 1, 8)
q, v, k = torch.randn(shape), torch.randn(shape), torch.nn.functional.normalize(torch.randn(shape), dim=-1)
beta = torch.rand(shape[:3])
each = beta[..., None].expand(shape)
forms = {"kda": (lambda g: kda.naive_recurrent_kda(q, k, v, g, beta), lambda g: kda.naive_chunk_kda(q, k, v, g, beta)),
         "gdn2": (lambda g: gdn2.naive_recurrent_gdn2(q, k, v, g, each, each), lambda g: gdn2.naive_chunk_gdn2(q, k, v, g, each, each)),
         "gated_delta_rule": (
             lambda g: gated.naive_recurrent_gated_delta_rule(q=q, k=k, v=v, g=g[..., 0], beta=beta),
             lambda g: gated.naive_chunk_gated_delta_rule(q=q, k=k, v=v, g=g[..., 0], beta=beta))}


def agree(name, log_decay):
    """Whether outputs and gradients of both forms are finite and equal."""
    results = []
    for form in forms[name]:
        decay = torch.full(shape, log_decay, requires_grad=True)
        out = form(decay)[0]
        out.sum().backward()
        results.append((out.detach(), decay.grad))
    return tuple(torch.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(*results))


seen = {(name, decay): agree(name, decay) for name in forms for decay in (-1.0, -2.0)}
print("expected: chunked and token by token are one function: equal outputs and gradients")
print("seen (outputs, gradients):", seen)
if not (all(all(equal) for (name, decay), equal in seen.items() if decay == -1.0 or name == "gated_delta_rule")
        and seen["kda", -2.0] == seen["gdn2", -2.0] == (True, False)):
    sys.exit("the behaviour has changed")
END
