#!/usr/bin/env bash
# nvidia-cuda-nvcc, the CUDA compiler from PyPI: a pinned nvcc comes with the newest of the package that compiles a kernel to PTX,
# whose PTX its own assembler does not know, and then compiles no kernel at all.
#
# Versions: nvidia-cuda-nvcc 13.0.88, nvidia-nvvm and nvidia-cuda-crt 13.5.37 taken by pip, cuda-toolkit 13.0.2; as of 2026-11-27.
# Seen:     ptxas: "fatal   : Unsupported .version 9.5; current version is '9.0'"; with nvidia-nvvm 13.0.88 it compiles.
# Needs:    g++.
# Source:   the wheel's metadata: Requires-Dist: nvidia-nvvm, nvidia-cuda-runtime and nvidia-cuda-crt, none with a version. PyTorch's
#           wheels pin cuda-toolkit, but ask it for no nvcc.
# Advice:   install the meta package cuda-toolkit[nvcc,nvvm,crt]==13.0.2, which pins all of them, and never nvidia-cuda-nvcc by itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"

# compiled PACKAGE: what a kernel's compilation says with it and what it needs, nothing where it succeeds.
compiled() {
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$1"
  echo "versions:" "$("$folder/venv/bin/pip" freeze --disable-pip-version-check | grep nvidia | paste -sd ' ')" >&2
  printf '__global__ void twice(float* x) { x[threadIdx.x] *= 2; }\n' >"$folder/kernel.cu"
  "$(find "$folder/venv" -path '*/bin/nvcc')" -arch=sm_90 -c "$folder/kernel.cu" -o "$folder/kernel.o" 2>&1 | sed -n '1s/.*; fatal/fatal/p' || true
}

echo "expected: nvcc 13.0 compiles a kernel, whatever else PyPI has"
alone=$(compiled nvidia-cuda-nvcc==13.0.88)
pinned=$(compiled 'cuda-toolkit[nvcc,nvvm,crt]==13.0.2')
printf 'seen: nvidia-cuda-nvcc==13.0.88: %s; cuda-toolkit[nvcc,nvvm,crt]==13.0.2: %s\n' "${alone:-compiled}" "${pinned:-compiled}"
if [[ $alone != *"Unsupported .version"* || -n $pinned ]]; then
  echo "the behaviour has changed"
  exit 1
fi
