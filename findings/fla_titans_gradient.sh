#!/usr/bin/env bash
# fla (flash-linear-attention): the memory of Titans is not updated by the gradient of its loss. The step is larger by about D x std (D: size
# of a head, std: that of the memory's answer), so that the same learning rate is another one for each size of head.
#
# Versions: fla-core 0.6.0, torch 2.15.0, einops 0.8.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     one token, random memory, learning rate 0.01: the step has 9 times the norm of 0.01 x gradient (autograd) with 16 channels, 42
#           times with 64, 185 times with 256; both in chunks and token by token. With the bracket below, the ratio is 1.
# Source:   fla/ops/titans/naive.py, titans_linear() and chunk_titans_linear(): the backward pass of the layer norm lacks a bracket, so
#           that only the mean is divided by D x std, and not D x grad, too. fla/ops/ttt/naive.py has the bracket.
# Advice:   check the inner gradient with autograd. Both forms agree with each other, so a test of one against the other finds nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 einops==0.8.2
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps fla-core==0.6.0
"$folder/venv/bin/python" -W ignore - <<'END'
import importlib.util
import sys
import types
from importlib.metadata import distribution, version

import torch
from torch.nn.functional import layer_norm, normalize

print("versions:", *(f"{name} {version(name)}" for name in ("fla-core", "torch", "einops", "numpy")))


def load(name):
    """A file of fla.ops.titans, without the package around it, which needs Triton."""
    path = distribution("fla-core").locate_file(f"fla/ops/titans/{name}.py")
    spec = importlib.util.spec_from_file_location(f"fla.ops.titans.{name}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


for package in ("fla", "fla.ops", "fla.ops.titans"):
    sys.modules[package] = types.ModuleType(package)
load("log_impl")
titans = load("naive").chunk_titans_linear_ref
seen, rate = {}, 0.01
for size in (16, 64, 256):
    torch.manual_seed(0)
    shape = (1, 1, 1, size)
    q, v, k = torch.randn(shape), torch.randn(shape), normalize(torch.randn(shape), dim=-1)
    weight, bias, memory = torch.ones(1, size), torch.zeros(1, size), torch.randn(1, 1, size, size) * 0.5
    trained = memory.clone().requires_grad_()
    loss = (layer_norm(k[0, 0] @ trained[0, 0], (size,), eps=1e-6) - (v - k)[0, 0]).square().sum()
    right = -rate * torch.autograd.grad(loss, trained)[0]
    for chunked in (True, False):
        each = torch.full((1, 1, 1, 1), 0.5)
        after = titans(q, k, v, weight, bias, each * 2 * rate, torch.zeros_like(each), each, chunk_size=1,
                       initial_state=memory.clone(), output_final_state=True, use_chunk=chunked)[1]
        seen[size, chunked] = float((after - memory).norm() / right.norm())
print("expected: the step is the learning rate times the gradient of the loss: a ratio of norms of 1")
print("seen (channels, chunked): ratio:", {key: round(value, 2) for key, value in seen.items()})
if not all(value > size / 4 for (size, _), value in seen.items()):
    sys.exit("the behaviour has changed")
END
