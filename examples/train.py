"""A training script that knows nothing of attnas: a network of one hidden layer learns a noisy curve.

Seeds draw its weights, its data and the order of batches. Every 50 steps it prints its validation loss, as scripts do.
"""

import argparse

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--activation", choices=["relu", "tanh"], default="tanh")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

rng = np.random.default_rng(args.seed)


def draw(count):
    x = rng.uniform(-2, 2, (count, 1))
    return x, np.sin(3 * x) + rng.normal(0, 0.1, x.shape)


def activate(a):
    return np.maximum(a, 0) if args.activation == "relu" else np.tanh(a)


def slope(a):
    return (a > 0).astype(float) if args.activation == "relu" else 1 - np.tanh(a) ** 2


(x, y), (valid_x, valid_y) = draw(256), draw(256)
w1, b1 = rng.normal(0, 2, (1, args.width)), rng.normal(0, 1, args.width)
w2 = rng.normal(0, 1 / np.sqrt(args.width), (args.width, 1))
for step in range(1, args.steps + 1):
    batch = rng.integers(0, len(x), 32)
    a = x[batch] @ w1 + b1
    error = (activate(a) @ w2 - y[batch]) / len(batch)
    back = (error @ w2.T) * slope(a)
    w2 -= args.lr * activate(a).T @ error
    w1 -= args.lr * x[batch].T @ back
    b1 -= args.lr * back.sum(0)
    if step % 50 == 0:
        loss = np.mean((activate(valid_x @ w1 + b1) @ w2 - valid_y) ** 2)
        print(f"step {step} valid loss {loss:.5f}", flush=True)
