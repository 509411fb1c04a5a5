#!/usr/bin/env python3
"""Times training steps of the published EvoAttention code, imported from a checkout that the user gives.

    published_step.py --published FOLDER --mechanism 'dot|softmax|none|sqrt_d|bias|0.1' --tokens FILE

The steps are those of its own train_and_evaluate(): its model, optimiser, clipping and two .item()
calls. Only three things around it are ours: the batches come from FILE through a torch DataLoader,
which reads the clock whenever the loop asks for the next batch; the progress bar is silent and
keeps the losses it is shown; nothing is evaluated afterwards. One JSON object on stdout, with the
keys of the program training_step. --wait: prints "ready" before the first step and begins at a line
on stdin, so that copies can start together. --on-request: trains at every line on stdin, as
rivals_torch.py does. --versions: imports everything, prints the versions, trains nothing.

FILE: little-endian int32 tokens, windows of context + 1 tokens; step s takes windows [s * batch, (s
+ 1) * batch), modulo their number. The standard library is all that importing this file needs;
running it needs torch and numpy.
"""

import argparse
import hashlib
import importlib
import json
import os
import resource
import sys
import tempfile
import time
import types
import warnings

sys.dont_write_bytecode = True  # the checkout is the user's

# Our key -> label of the published gene. A key that is not here is something that code does not have.
LABELS = {
    "similarity": {"dot": "dot", "silu_dot": "multiplicative", "additive": "additive", "cosine": "cosine"},
    "normalization": {"softmax": "softmax", "topk_quarter": "sparsemax", "relu_norm": "relu_norm",
                      "sigmoid_norm": "sigmoid"},
    "gating": {"none": "none", "input_gate": "input_gate", "output_gate": "output_gate", "normed_highway": "highway"},
    "temperature_mode": {"sqrt_d": "fixed", "shifted_abs": "learned", "sequence_mean": "adaptive"},
}
MODULES = ("config", "search_space", "attention", "model", "training")
PACKAGE = "evo_attention"


def published_gene(mechanism):
    """The published gene of a mechanism 'similarity|normalization|gating|temperature|bias|dropout'.

    ValueError says which part is malformed, KeyError which one the published code does not have.
    """
    parts = mechanism.split("|")
    if len(parts) != 6 or not all(parts):
        raise ValueError(f"mechanism '{mechanism}' must have six parts, "
                         "similarity|normalization|gating|temperature|bias or no_bias|dropout")
    if parts[4] not in ("bias", "no_bias"):
        raise ValueError(f"mechanism '{mechanism}': '{parts[4]}' must be bias or no_bias")
    try:
        dropout = float(parts[5])
    except ValueError:
        dropout = -1.0
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"mechanism '{mechanism}': attention dropout '{parts[5]}' must be in [0, 1)")
    gene = {"use_bias": parts[4] == "bias", "attention_dropout": dropout}
    for (field, labels), key in zip(LABELS.items(), parts):
        if key not in labels:
            raise KeyError(f"no {field} '{key}' in the published code, which has {', '.join(labels)}")
        gene[field] = labels[key]
    return gene


def source_folder(published):
    """The folder of the published modules: the checkout itself, or its package folder."""
    wanted = [name + ".py" for name in MODULES]
    for folder in (published, os.path.join(published, PACKAGE)):
        if all(os.path.isfile(os.path.join(folder, name)) for name in wanted):
            return folder
    raise FileNotFoundError(f"--published {published}: must hold {', '.join(wanted)} (or a folder {PACKAGE} with them)")


def source_digest(folder):
    """First 12 digits of the SHA-256 of the imported files, one after another."""
    digest = hashlib.sha256()
    for name in MODULES:
        with open(os.path.join(folder, name + ".py"), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:12]


class SilentBar:
    """Stands in for tqdm's progress bar: writes nothing, keeps the losses."""

    losses = []

    def __init__(self, *_, **__):
        pass

    def update(self, _):
        pass

    def set_postfix(self, loss):
        SilentBar.losses.append(float(loss))

    def close(self):
        pass


def import_published(folder):
    """Its modules by name. The package's own __init__ would import matplotlib and the search, so it is not run."""
    package = types.ModuleType(PACKAGE)
    package.__path__ = [folder]
    sys.modules[PACKAGE] = package
    bar = types.ModuleType("tqdm.auto")
    bar.tqdm = SilentBar
    sys.modules["tqdm"] = types.ModuleType("tqdm")
    sys.modules["tqdm.auto"] = bar
    return {name: importlib.import_module(f"{PACKAGE}.{name}") for name in MODULES}


def blas_library():
    """The BLAS mapped into this process, with what it says of itself."""
    import ctypes
    found = "unknown"
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/") > 0}
    for path in sorted(paths):
        name = os.path.basename(path)
        if "openblas" in name:
            try:
                library = ctypes.CDLL(path)
                library.openblas_get_config.restype = ctypes.c_char_p
                return library.openblas_get_config().decode().strip()
            except (OSError, AttributeError):
                return name
        if name.startswith(("libmkl_core", "libblis", "libblas")):
            found = name
    return found


def peak_rss_bytes():
    """Of this process alone: ru_maxrss would count what the parent had when it forked."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def clock():
    return time.process_time(), time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt


class Batches:
    """A loader that notes the clocks at every request for a batch: the time between two is one whole step."""

    def __init__(self, loader):
        self.loader = loader
        self.clocks = []

    def __iter__(self):
        batches = iter(self.loader)
        while True:
            self.clocks.append(clock())
            try:
                batch = next(batches)
            except StopIteration:
                self.clocks.pop()
                return
            yield batch


def token_batches(arguments, steps):
    import numpy
    import torch
    tokens = numpy.fromfile(arguments.tokens, dtype="<i4")
    length = arguments.context + 1
    windows = torch.from_numpy(tokens[:len(tokens) // length * length].reshape(-1, length).astype("int64"))
    if len(windows) == 0:
        raise ValueError(f"--tokens {arguments.tokens}: shorter than one window of {length} tokens")

    class Windows(torch.utils.data.Dataset):
        def __len__(self):
            return len(windows)

        def __getitem__(self, index):
            return windows[index, :-1], windows[index, 1:]

    # One batch more than there are steps: the loop asks for it before it sees that it is done.
    order = [[(step * arguments.batch + i) % len(windows) for i in range(arguments.batch)] for step in range(steps + 1)]
    return Batches(torch.utils.data.DataLoader(Windows(), batch_sampler=order, num_workers=0))


def train(arguments, modules):
    """Runs the published loop; a dictionary of what was measured."""
    import torch
    steps = arguments.warm_up + arguments.steps
    gene = modules["search_space"].AttentionGene(gene_dict=published_gene(arguments.mechanism))
    torch.manual_seed(arguments.seed)
    with tempfile.TemporaryDirectory() as scratch:  # its configuration makes a folder for checkpoints
        config = modules["config"].Config(vocab_size=arguments.vocabulary, max_seq_len=arguments.context,
                                          batch_size=arguments.batch, train_steps=steps, eval_steps=0, device=arguments.device,
                                          checkpoint_dir=os.path.join(scratch, "checkpoints"))
    batches = token_batches(arguments, steps)
    model = modules["model"].TinyTransformer(config, gene)
    if arguments.wait:
        print("ready", flush=True)
        sys.stdin.readline()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mean of no evaluation
        modules["training"].train_and_evaluate(model, batches, [], config)
    clocks = batches.clocks
    if len(clocks) != steps + 1 or len(SilentBar.losses) != steps:
        raise RuntimeError(f"the published loop asked for {len(clocks)} batches and showed {len(SilentBar.losses)} losses "
                           f"in {steps} steps; {steps + 1} and {steps} are expected: is it another version of that code?")
    timed = list(zip(clocks[arguments.warm_up:], clocks[arguments.warm_up + 1:]))
    SilentBar.losses, losses = [], SilentBar.losses
    return {
        "cpu_seconds": [after[0] - before[0] for before, after in timed],
        "wall_seconds": [after[1] - before[1] for before, after in timed],
        "loss": losses,
        "peak_rss_bytes": peak_rss_bytes(),
        "peak_bytes": None,
        "page_faults": clocks[-1][2] - clocks[arguments.warm_up][2],
        "flop_per_step": None,
    }


def train_on_request(arguments, modules):
    """A training run from the start at every line on stdin, with a line of what its steps took after the warm-up; the loop
    itself waits for the device at every step."""
    import torch
    begin = time.perf_counter()
    torch.zeros(1, device=arguments.device)
    print(json.dumps({"ready": True, "prepare_seconds": time.perf_counter() - begin}), flush=True)
    for _ in sys.stdin:
        result = train(arguments, modules)
        print(json.dumps({"seconds": sum(result["wall_seconds"]), "model_steps": arguments.steps,
                          "loss": result["loss"][-1]}), flush=True)
    on_gpu = arguments.device.startswith("cuda")
    print(json.dumps({"peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None}), flush=True)


def versions(folder):
    import numpy
    import torch
    torch.mm(torch.ones(8, 8), torch.ones(8, 8))  # loads the BLAS
    return {"torch": torch.__version__, "blas": blas_library(), "python": sys.version.split()[0],
            "numpy": numpy.__version__, "sha256_of_its_files": source_digest(folder)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--published", required=True, metavar="FOLDER", help="checkout of the published code")
    parser.add_argument("--mechanism", default="dot|softmax|none|sqrt_d|bias|0.1")
    parser.add_argument("--tokens", metavar="FILE")
    for name, default in (("batch", 32), ("context", 128), ("vocabulary", 10000), ("threads", 1), ("warm-up", 2),
                          ("steps", 5), ("seed", 1)):
        parser.add_argument("--" + name, type=int, default=default, help=f"default {default}")
    parser.add_argument("--wait", action="store_true", help="begin at a line on stdin")
    parser.add_argument("--device", default="cpu", help="default cpu")
    parser.add_argument("--tf32", type=int, choices=(0, 1), default=0, help="float32 products in TensorFloat-32; default 0")
    parser.add_argument("--on-request", action="store_true", help="train at every line on stdin")
    parser.add_argument("--versions", action="store_true", help="print the versions only")
    arguments = parser.parse_args()
    try:
        published_gene(arguments.mechanism)
        folder = source_folder(arguments.published)
        if not arguments.versions and not arguments.tokens:
            raise ValueError("--tokens is missing: a file of int32 tokens")
        import torch
        torch.set_num_threads(arguments.threads)
        torch.backends.cuda.matmul.allow_tf32 = bool(arguments.tf32)
        modules = import_published(folder)
        if arguments.on_request:
            train_on_request(arguments, modules)
            return 0
        result = {"mode": "published", "mechanism": arguments.mechanism, "allocator": "torch", "threads": arguments.threads}
        if not arguments.versions:
            result.update(train(arguments, modules))
        result["versions"] = versions(folder)
    except (ValueError, KeyError, ImportError, OSError) as error:
        message = error.args[0] if isinstance(error, KeyError) else error
        print(f"published_step.py: {message}", file=sys.stderr)
        return 2
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
