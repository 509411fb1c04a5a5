#!/usr/bin/env python3
"""Trains the same language model in PyTorch, in the ways that a Python user would: what side_by_side_gpu sets beside ours.

    rivals_torch.py --competitor eager --mechanism 'dot|softmax|none|sqrt_d|bias|0.1' --tokens FILE [--on-request]

The model is the one of the published code, stated anew as functions of a dictionary of parameters,
which carry the names of ours: a pre-norm transformer of 2 layers, width 128, 4 heads, with tied
embeddings; AdamW (3e-4, decay 0.01 on everything), gradients clipped at a norm of 1. Several
mechanisms, separated by commas, are models that take turns, one step each.

    loop      an ordinary training loop: its batch goes to the device at every step, the loss is read twice with .item(), and
              additive attention is computed over concatenated pairs
    eager     no synchronisation, everything on the device, AdamW(fused=True), additive attention in its factored form
    compiled  eager, model and optimiser under torch.compile(mode="max-autotune"), which captures CUDA graphs of its own
    compiled-no-graphs   the same without them
    graph     a CUDA graph of the eager step
    vmap      --array models at once: torch.func.vmap over stacked parameters, compiled where there is a GPU

One JSON object on stdout: {"loss": of every step}. --on-request: a line {"ready": true, ...} after
the warm-up; for every line on stdin --steps more steps with one synchronisation and a line
{"seconds": ..., "model_steps": ..., "loss": the last}; at the end of stdin a line {"peak_bytes":
...}. --peaks: rates of the device, nothing else. Exit status 3: this PyTorch or machine lacks what
the competitor needs; stderr says what.
"""

import argparse
import json
import math
import os
import sys
import time
import warnings

import numpy
import torch
import torch.nn.functional as F

LAYERS, WIDTH, HEADS, FEED_FORWARD = 2, 128, 4, 4
LEARNING_RATE, WEIGHT_DECAY, CLIP_NORM = 3e-4, 0.01, 1.0
COMPETITORS = ("loop", "eager", "compiled", "compiled-no-graphs", "graph", "vmap")
GRAPH_WARM_UP = 3


class Lacking(Exception):
    """What this PyTorch or this machine has not, in words."""


# ---- The model, over a dictionary of parameters.

def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))


def unit(x):
    return x / x.norm(dim=-1, keepdim=True).clamp_min(1e-12)


def additive(p, name, q, k, pairs):
    """v . tanh(W [q; k] + b); over concatenated pairs as it was published, or with W in its two halves."""
    weight, bias, v = p[name + ".attn_fc.weight"], p[name + ".attn_fc.bias"], p[name + ".attn_v.weight"]
    if pairs:
        tokens = q.shape[2]
        both = torch.cat([q.unsqueeze(3).expand(-1, -1, -1, tokens, -1), k.unsqueeze(2).expand(-1, -1, tokens, -1, -1)], -1)
        return F.linear(torch.tanh(F.linear(both, weight, bias)), v).squeeze(-1)
    of_q, of_k = weight.chunk(2, 1)
    sums = F.linear(q, of_q, bias).unsqueeze(3) + F.linear(k, of_k).unsqueeze(2)
    return F.linear(torch.tanh(sums), v).squeeze(-1)


def scores(p, name, similarity, q, k, pairs):
    if similarity == "additive":
        return additive(p, name, q, k, pairs)
    if similarity == "cosine":
        q, k = unit(q), unit(k)
    products = q @ k.transpose(-2, -1)
    return F.silu(products) if similarity == "silu_dot" else products


def divisor(p, name, temperature, x):
    if temperature == "sqrt_d":
        return math.sqrt(WIDTH // HEADS)
    if temperature == "shifted_abs":
        return p[name + ".temperature"].abs() + 0.5
    return (linear(p, name + ".temp_proj", x.mean(1)).sigmoid() + 0.5).view(-1, 1, 1, 1)


def weights(normalization, s, hidden):
    if normalization in ("softmax", "topk_quarter"):
        s = s.masked_fill(hidden, -math.inf)
        if normalization == "topk_quarter":
            kept = s.topk(max(1, s.shape[-1] // 4), dim=-1)
            s = torch.full_like(s, -math.inf).scatter(-1, kept.indices, kept.values)
        return s.softmax(-1)
    open_ = (s.relu() if normalization == "relu_norm" else s.sigmoid()).masked_fill(hidden, 0.0)
    return open_ / (open_.sum(-1, keepdim=True) + 1e-8)


def attention(p, name, mechanism, x, hidden, pairs):
    similarity, normalization, gating, temperature, _, dropout = mechanism
    source = x * linear(p, name + ".gate", x).sigmoid() if gating == "input_gate" else x
    split = source.shape[:2] + (HEADS, WIDTH // HEADS)
    q, k, v = (linear(p, f"{name}.{one}_proj", source).view(split).transpose(1, 2) for one in "qkv")
    s = scores(p, name, similarity, q, k, pairs) / divisor(p, name, temperature, source)
    w = F.dropout(weights(normalization, s, hidden), dropout)
    o = linear(p, name + ".out_proj", (w @ v).transpose(1, 2).flatten(2))
    if gating == "output_gate":
        return o * linear(p, name + ".out_gate", source).sigmoid()
    if gating == "normed_highway":
        gate = linear(p, name + ".highway_gate", source).sigmoid()
        return gate * o + (1.0 - gate) * source
    return o


def normed(p, name, x):
    return F.layer_norm(x, (WIDTH,), p[name + ".weight"], p[name + ".bias"])


def loss_of(p, mechanism, windows, dropout, pairs=False):
    """Mean nll of windows (B, T + 1)."""
    tokens, targets = windows[:, :-1], windows[:, 1:]
    length = tokens.shape[1]
    hidden = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(1)
    x = F.dropout(F.embedding(tokens, p["embedding.weight"]) + p["position.weight"][:length], dropout)
    for i in range(LAYERS):
        name = f"layers.{i}"
        x = x + attention(p, name + ".attention", mechanism, normed(p, name + ".attention_norm", x), hidden, pairs)
        inner = F.gelu(linear(p, name + ".feed_forward.expand", normed(p, name + ".feed_forward_norm", x)))
        x = x + F.dropout(linear(p, name + ".feed_forward.contract", F.dropout(inner, dropout)), dropout)
    logits = F.linear(normed(p, "final_norm", x), p["embedding.weight"])
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def parse_mechanism(text):
    parts = text.split("|")
    if len(parts) != 6:
        raise ValueError(f"mechanism '{text}' must have six parts")
    return (*parts[:5], float(parts[5]))


def shapes_of(mechanism, context, vocabulary):
    """Names and shapes of the parameters, as training_step writes them."""
    similarity, _, gating, temperature, bias, _ = mechanism
    d, shapes = WIDTH // HEADS, {"embedding.weight": (vocabulary, WIDTH), "position.weight": (context, WIDTH)}

    def add_linear(name, rows, columns, with_bias=True):
        shapes[name + ".weight"] = (rows, columns)
        if with_bias:
            shapes[name + ".bias"] = (rows,)

    def add_norm(name):
        shapes[name + ".weight"] = shapes[name + ".bias"] = (WIDTH,)

    for i in range(LAYERS):
        layer, name = f"layers.{i}", f"layers.{i}.attention"
        add_norm(layer + ".attention_norm")
        for one in "qkv":
            add_linear(f"{name}.{one}_proj", WIDTH, WIDTH, bias == "bias")
        add_linear(name + ".out_proj", WIDTH, WIDTH)
        if similarity == "additive":
            add_linear(name + ".attn_fc", d, 2 * d)
            add_linear(name + ".attn_v", 1, d, False)
        if gating != "none":
            add_linear(name + {"input_gate": ".gate", "output_gate": ".out_gate", "normed_highway": ".highway_gate"}[gating],
                       WIDTH, WIDTH)
        if temperature == "shifted_abs":
            shapes[name + ".temperature"] = (1,)
        if temperature == "sequence_mean":
            add_linear(name + ".temp_proj", 1, WIDTH)
        add_norm(layer + ".feed_forward_norm")
        add_linear(layer + ".feed_forward.expand", FEED_FORWARD * WIDTH, WIDTH)
        add_linear(layer + ".feed_forward.contract", WIDTH, FEED_FORWARD * WIDTH)
    add_norm("final_norm")
    return shapes


def start_of(shapes, seed):
    """Initial values as the model has them: N(0, 0.02), biases 0, norms and the temperature 1."""
    generator = torch.Generator().manual_seed(seed)
    values = {}
    for name, shape in shapes.items():
        if name.endswith("norm.weight") or name.endswith(".temperature"):
            values[name] = torch.ones(shape)
        elif name.endswith(".bias"):
            values[name] = torch.zeros(shape)
        else:
            values[name] = 0.02 * torch.randn(shape, generator=generator)
    return values


def read_start(path, shapes):
    """The parameters that `training_step --save-start` wrote; ValueError if they are another model's."""
    with open(path, "rb") as file:
        written = {name: tuple(shape) for name, shape in json.loads(file.readline()).items()}
        if written != {name: tuple(shape) for name, shape in shapes.items()}:
            odd = sorted(set(written.items()) ^ {(name, tuple(shape)) for name, shape in shapes.items()})
            raise ValueError(f"--start {path}: other parameters than the mechanism's: {odd[:3]}")
        return {name: torch.from_numpy(numpy.fromfile(file, "<f4", math.prod(shape)).reshape(shape).copy())
                for name, shape in written.items()}


# ---- Ways of training it. Each is an object with step(index) -> loss on the device.

def set_precision(precision):
    """float32 products are exact ("fp32", and outside autocast in "bf16") or TensorFloat-32, said explicitly."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


class Model:
    """One model, or a stack of them, with its optimiser."""

    def __init__(self, options, mechanism, batches):
        self.mechanism, self.batches, self.device = mechanism, batches, torch.device(options.device)
        self.dropout, self.precision = options.dropout, options.precision
        self.pairs = options.competitor == "loop"
        shapes = shapes_of(mechanism, options.context, options.vocabulary)
        starts = [read_start(options.start, shapes) if options.start else start_of(shapes, options.seed + i)
                  for i in range(options.array)]
        stacked = options.competitor == "vmap"
        self.parameters = {name: (torch.stack([start[name] for start in starts]) if stacked else starts[0][name])
                           .to(self.device).requires_grad_() for name in shapes}
        self.optimizer = self.make_optimizer(options.competitor)

    def make_optimizer(self, competitor):
        more = {}
        if self.device.type == "cuda" and competitor != "loop":
            more = {"fused": True}
            if competitor == "graph":
                more["capturable"] = True
        return torch.optim.AdamW(list(self.parameters.values()), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, **more)

    def autocast(self):
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    def loss(self, windows):
        with self.autocast():
            return loss_of(self.parameters, self.mechanism, windows, self.dropout, self.pairs)

    def clip(self):
        """Total norm and scaling on the device: nobody waits for it."""
        gradients = [p.grad for p in self.parameters.values()]
        total = torch.stack([g.norm() for g in gradients]).norm()
        factor = (CLIP_NORM / (total + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factor)

    def update(self, windows):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(windows)
        loss.backward()
        self.clip()
        self.optimizer.step()
        return loss.detach()

    def step(self, index):
        return self.update(self.batches[index % len(self.batches)])


class Loop(Model):
    """The batch comes from the host; the loss is read for the progress bar and for the mean."""

    def __init__(self, options, mechanism, batches):
        super().__init__(options, mechanism, [batch.cpu() for batch in batches])
        self.total = 0.0

    def step(self, index):
        windows = self.batches[index % len(self.batches)].to(self.device)
        self.optimizer.zero_grad()
        loss = self.loss(windows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(self.parameters.values()), CLIP_NORM)
        self.optimizer.step()
        self.total += loss.item()
        self.shown = loss.item()
        return loss.detach()


class Compiled(Model):
    def __init__(self, options, mechanism, batches):
        if not hasattr(torch, "compile"):
            raise Lacking(f"torch.compile, which begins with PyTorch 2.0; this is {torch.__version__}")
        super().__init__(options, mechanism, batches)
        if self.device.type != "cuda":
            raise Lacking("a CUDA device, for torch.compile with max-autotune")
        from torch import _dynamo
        # Several mechanisms are as many variants of one function.
        limit = "recompile_limit" if hasattr(_dynamo.config, "recompile_limit") else "cache_size_limit"
        setattr(_dynamo.config, limit, 64)
        mode = "max-autotune" + ("-no-cudagraphs" if options.competitor == "compiled-no-graphs" else "")
        self.compiled_loss = torch.compile(self.loss, mode=mode)
        self.compiled_rest = torch.compile(self.rest, mode=mode)

    def rest(self):
        self.clip()
        self.optimizer.step()

    def update(self, windows):
        torch.compiler.cudagraph_mark_step_begin()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.compiled_loss(windows)
        loss.backward()
        self.compiled_rest()
        return loss.detach()


class Graph(Model):
    """The eager step, captured once; every replay trains on what lies in one static batch."""

    def __init__(self, options, mechanism, batches):
        super().__init__(options, mechanism, batches)
        if self.device.type != "cuda":
            raise Lacking("a CUDA device, for a CUDA graph")
        self.windows = batches[0].clone()
        start = [parameter.detach().clone() for parameter in self.parameters.values()]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for i in range(GRAPH_WARM_UP):
                self.windows.copy_(batches[i % len(batches)])
                self.update(self.windows)
        torch.cuda.current_stream().wait_stream(stream)
        self.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.captured = self.update(self.windows)
        self.restart(start)

    def restart(self, start):
        """As if the steps before the capture had not been: in place, where the graph finds everything."""
        with torch.no_grad():
            for parameter, value in zip(self.parameters.values(), start):
                parameter.copy_(value)
            for state in self.optimizer.state.values():
                for number in state.values():
                    number.zero_()

    def step(self, index):
        self.windows.copy_(self.batches[index % len(self.batches)])
        self.graph.replay()
        return self.captured


class Vmap(Model):
    """Stacked parameters, the same batch for all, dropout masks of their own, a clip norm for each."""

    def __init__(self, options, mechanism, batches):
        try:
            from torch.func import vmap
        except ImportError:  # before PyTorch 2.0
            try:
                from functorch import vmap
            except ImportError:
                raise Lacking(f"torch.func, which begins with PyTorch 2.0; this is {torch.__version__}") from None
        super().__init__(options, mechanism, batches)
        self.each = vmap(lambda p, windows: loss_of(p, mechanism, windows, self.dropout), in_dims=(0, None),
                         randomness="different")
        if self.device.type == "cuda":
            self.each = torch.compile(self.each)

    def clip(self):
        gradients = [p.grad for p in self.parameters.values()]
        total = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)
        factor = (CLIP_NORM / (total + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factor.view(-1, *[1] * (gradient.dim() - 1)))

    def loss(self, windows):
        with self.autocast():
            return self.each(self.parameters, windows)

    def update(self, windows):
        self.optimizer.zero_grad(set_to_none=True)
        losses = self.loss(windows)
        losses.sum().backward()
        self.clip()
        self.optimizer.step()
        return losses.detach()


KINDS = {"loop": Loop, "eager": Model, "compiled": Compiled, "compiled-no-graphs": Compiled, "graph": Graph, "vmap": Vmap}


class Turns:
    """One model, or several that take turns."""

    def __init__(self, options, batches):
        make = KINDS[options.competitor]
        self.models = [make(options, parse_mechanism(text), batches) for text in options.mechanism.split(",")]
        self.steps = 0

    def step(self):
        model = self.models[self.steps % len(self.models)]
        index = self.steps // len(self.models)
        self.steps += 1
        return model.step(index)


# ---- The program.

def read_batches(options):
    """Batches of windows on the device: step s takes windows [s * batch, (s + 1) * batch), modulo their number."""
    length = options.context + 1
    windows = torch.from_numpy(numpy.fromfile(options.tokens, dtype="<i4").reshape(-1, length).astype("int64"))
    count = len(windows) // math.gcd(len(windows), options.batch)
    order = torch.arange(count * options.batch) % len(windows)
    return list(windows[order].view(count, options.batch, length).to(options.device))


def synchronize(options):
    if options.device.startswith("cuda"):
        torch.cuda.synchronize()


def timed(options, work):
    synchronize(options)
    begin = time.perf_counter()
    result = work()
    synchronize(options)
    return time.perf_counter() - begin, result


def emit(**values):
    print(json.dumps(values), flush=True)


def versions():
    return {"torch": torch.__version__, "cuda": torch.version.cuda, "python": sys.version.split()[0]}


def on_request(options, batches):
    begin = time.perf_counter()
    turns = Turns(options, batches)

    def several(count):
        loss = None
        for _ in range(count):
            loss = turns.step()
        return loss

    first, _ = timed(options, lambda: several(len(turns.models)))  # it is the one that compiles
    several(options.warm_up - len(turns.models))
    synchronize(options)
    emit(ready=True, prepare_seconds=time.perf_counter() - begin, first_step_seconds=first, versions=versions())
    for _ in sys.stdin:
        seconds, loss = timed(options, lambda: several(options.steps))
        emit(seconds=seconds, model_steps=options.steps * options.array, loss=loss.mean().item())
    emit(peak_bytes=torch.cuda.max_memory_allocated() if options.device.startswith("cuda") else None)


def losses(options, batches):
    turns = Turns(options, batches)
    # A copy: a graph's loss is one place in memory.
    return [turns.step().clone().float().cpu().tolist() for _ in range(options.warm_up + options.steps)]


def peaks(options):
    """Best rates of matrix products and of copying, with random values, of the device itself."""
    device, size, copied = options.device, (4096, 256)[options.smoke], (1 << 28, 1 << 20)[options.smoke]
    result = {"device": torch.cuda.get_device_name() if device.startswith("cuda") else "CPU"}

    def best(work, repeats=20, trials=5):
        work()
        return min(timed(options, lambda: [work() for _ in range(repeats)])[0] for _ in range(trials)) / repeats

    for precision in ("fp32", "tf32", "bf16"):
        if precision == "tf32" and not device.startswith("cuda"):
            result["gemm_tf32"] = None
            continue
        set_precision(precision)
        kind = torch.bfloat16 if precision == "bf16" else torch.float32
        rates = []
        for m, k, n in ((size, size, size), (2 * size, size, 2 * size)):
            a, b = (torch.randn(shape, device=device).to(kind) for shape in ((m, k), (k, n)))
            out = torch.empty(m, n, device=device, dtype=kind)
            rates.append(2.0 * m * k * n / best(lambda: torch.mm(a, b, out=out)))
        result["gemm_" + precision] = max(rates)
    source = torch.rand(copied, device=device)
    target = torch.empty_like(source)
    result["copy_bytes_per_second"] = 2.0 * 4 * copied / best(lambda: target.copy_(source))
    result["versions"] = versions()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--competitor", choices=COMPETITORS, default="eager")
    parser.add_argument("--mechanism", default="dot|softmax|none|sqrt_d|bias|0.1", help="one, or several with commas between")
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16"), default="fp32")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tokens", metavar="FILE", help="int32 windows of context + 1 tokens")
    parser.add_argument("--start", metavar="FILE", help="initial parameters, from training_step --save-start")
    parser.add_argument("--dropout", type=float, default=0.1, help="of the embedding and the feed-forward layers")
    for name, default in (("array", 1), ("batch", 32), ("context", 128), ("vocabulary", 10000), ("warm-up", 20),
                          ("steps", 200), ("seed", 1)):
        parser.add_argument("--" + name, type=int, default=default, help=f"default {default}")
    parser.add_argument("--on-request", action="store_true", help="train at every line on stdin")
    parser.add_argument("--peaks", action="store_true", help="rates of the device")
    parser.add_argument("--smoke", action="store_true", help="with --peaks: small sizes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.device == "cpu":
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    try:
        if options.device.startswith("cuda") and not torch.cuda.is_available():
            raise Lacking("a CUDA device")
        if options.peaks:
            emit(**peaks(options))
            return 0
        if options.tokens is None:
            raise ValueError("--tokens is missing: a file of int32 tokens")
        set_precision(options.precision)
        torch.manual_seed(options.seed)
        batches = read_batches(options)
        if options.on_request:
            on_request(options, batches)
        else:
            emit(loss=losses(options, batches))
    except Lacking as error:
        print(f"rivals_torch.py: needs {error}", file=sys.stderr)
        return 3
    except (ValueError, OSError) as error:
        print(f"rivals_torch.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
