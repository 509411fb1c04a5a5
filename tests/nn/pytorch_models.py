"""Compares models of model.py with those that pytorch_model_test.cpp has written; prints what differs and exits with 1 then.

    pytorch_models.py FOLDER_OF_MODEL_PY CASES COUNT
"""

import json
import math
import os
import sys

import torch

sys.path.insert(0, sys.argv[1])
import model as exported  # noqa: E402

TOLERANCE = 1e-9  # of logits in double, relative to the largest


def difference_of_logits(case, weights):
    model = exported.Transformer(case["config"]).double().eval()
    model.load_state_dict(weights)
    tokens = torch.tensor(case["tokens"]).view(-1, case["length"])
    with torch.no_grad():
        ours = model(tokens).flatten()
    theirs = torch.tensor(case["logits"], dtype=torch.double)
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def differences_of_starts(case, draws):
    """Initial values: what is the same in both draws is a constant; what is drawn has some standard deviation."""
    torch.manual_seed(1)
    start = exported.Transformer(case["config"]).state_dict()
    for name, values in draws[0].items():
        constant = values == draws[1][name]
        ours = start[name]
        if not torch.allclose(ours[constant], values[constant], rtol=1e-6):
            yield f"{name} begins at {ours[constant]}, must at {values[constant]}"
        drawn = ~constant
        if drawn.sum() >= 64 and abs(math.log(ours[drawn].std() / values[drawn].std())) > 0.5:
            yield f"{name} begins with deviation {ours[drawn].std():.3g}, must with {values[drawn].std():.3g}"


def width_of(layer):
    return getattr(layer, "attention", layer).out_proj.out_features


def difference_of_states(layer):
    """A mixer of a whole sequence beside that of its parts, one after the other."""
    x, residual, values = torch.randn(3, 2, 11, width_of(layer), dtype=torch.double)
    attends = isinstance(layer, exported.Attention)
    keys = torch.randn(2, 2, layer.key_heads, 11, layer.head_width, dtype=torch.double) if attends else None

    def rows_of(begin, end):
        return {"values": values[:, begin:end], "shared": [*keys[..., :end, :]]} if attends else {}

    with torch.no_grad():
        whole = layer(x, residual, **rows_of(0, 11))
        state, parts = {}, []
        for begin, end in ((0, 1), (1, 6), (6, 7), (7, 11)):
            rows = rows_of(begin, end)
            parts.append(layer(x[:, begin:end], residual[:, begin:end], state=state, **rows))
    return ((torch.cat(parts, 1) - whole).abs().max() / whole.abs().max()).item()


def differences_of_states(case, weights):
    model = exported.Transformer(case["config"]).double().eval()
    model.load_state_dict(weights)
    for layer in model.modules():
        if not isinstance(layer, (exported.Attention, exported.GatedConvolution, exported.Pair,
                                  exported.Recurrent)):
            continue
        refuses = isinstance(layer, exported.Attention) and (
            "sequence_mean" == layer.temperature_kind or "topk_quarter" == layer.normalization)
        try:
            error = difference_of_states(layer)
        except ValueError as refusal:
            if not (refuses and "depends on the whole sequence" in str(refusal)):
                yield f"with a state: {refusal}"
            continue
        if refuses or not error <= TOLERANCE:
            yield f"with a state a mixer differs by {error:.3g}"


def differences(case, read):
    try:
        error = difference_of_logits(case, read(".safetensors"))
        if not error <= TOLERANCE:
            yield f"logits differ by {error:.3g}"
        yield from differences_of_states(case, read(".safetensors"))
        yield from differences_of_starts(case, [read(".start0"), read(".start1")])
    except Exception as error:  # every model is named, whatever is wrong with it
        yield f"{type(error).__name__}: {error}"


def read_tensors(path):
    with open(path, "rb") as file:
        first, places = exported.places_in(file)
        tensors = {name: torch.empty(shape) for _, _, name, shape in places}
        for begin, _, name, _ in places:
            exported.read_numbers(file, first + begin, name, tensors[name])
    return tensors


def main():
    torch.set_num_threads(1)
    failed = False
    for number in range(int(sys.argv[3])):
        stem = os.path.join(sys.argv[2], str(number))
        with open(stem + ".json", encoding="utf-8") as file:
            case = json.load(file)
        for what in differences(case, lambda end: read_tensors(stem + end)):
            print(f"{case['name']}: {what}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
