#!/usr/bin/env python3
"""Writes the conformance cases of RealMLP, several of which are an ensemble, computed by PyTorch in float64.

    pip install torch numpy safetensors
    python3 tests/conformance/real_mlp.py tests/conformance/fixtures [--seed 0]
"""
import argparse
import json
import pathlib

import numpy as np
import torch
from safetensors.numpy import save_file

SCALING = {"centers": [0.25, -1.0, 0.5], "factors": [0.75, 1.5, 0.0]}
PBLD = {"kind": "pbld", "n_frequencies": 5, "std": 0.3, "dim": 4}
PLAIN = {"kind": "plain"}

# Rows, members, hidden units, activation, outputs, what the mean is taken of, numbers, codes and dimensions of the categories.
CASES = [
    (7, 1, [8], "mish", 1, "outputs", PLAIN, []),
    (6, 4, [8, 6], "selu", 1, "sigmoids", PBLD, []),
    (9, 3, [6, 5, 7], "mish", 2, "outputs", PBLD, [(5, 2)]),
    (33, 5, [16, 16], "selu", 3, "softmaxes", PBLD, [(3, 2), (7, 4)]),
]


def embedded(x, numbers, p):
    """The embeddings of all columns of numbers, next to each other."""
    x = (x - torch.tensor(SCALING["centers"])) * torch.tensor(SCALING["factors"])
    x = x / (1 + x**2 / 9).sqrt()
    if numbers["kind"] == "plain":
        return x
    columns = []
    for i in range(x.shape[1]):
        waves = torch.cos(2 * torch.pi * x[:, i, None] * p["numbers.frequencies"][i] + p["numbers.phases"][i])
        columns += [waves @ p["numbers.weight"][i] + p["numbers.bias"][i], x[:, i, None]]
    return torch.cat(columns, 1)


def linear(h, name, p):
    return torch.einsum("kni,kio->kno", h, p[f"{name}.weight"]) / h.shape[2] ** 0.5 + p[f"{name}.bias"]


def forward(x, codes, numbers, n_categories, n_hidden, activation, p):
    """The outputs of all members: [n_members, n_rows, n_outputs]."""
    tables = [p[f"embeddings.{i}.weight"][codes[:, i]] for i in range(n_categories)]
    h = (torch.cat([embedded(x, numbers, p), *tables], 1)[:, None] * p["scale"]).transpose(0, 1)
    for i in range(n_hidden):
        z = linear(h, f"hidden.{i}", p)
        h = z + (getattr(torch.nn.functional, activation)(z) - z) * p[f"hidden.{i}.strength"]
    return linear(h, "head", p)


def combined(y, mean_of):
    """The prediction of the ensemble: numbers, the logit of a probability, or logarithms of probabilities."""
    if mean_of == "outputs":
        return y.mean(0)
    if mean_of == "sigmoids":
        return torch.logit(torch.sigmoid(y).mean(0))
    return torch.softmax(y, 2).mean(0).log()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)

    def normal(*shape, scale=1.0):
        # Numbers that f32 holds exactly.
        return torch.tensor((scale * rng.standard_normal(shape)).astype(np.float32).astype(np.float64), requires_grad=True)

    for number, (n_rows, k, hidden, activation, n_outputs, mean_of, numbers, categories) in enumerate(CASES):
        n_cols, dim = len(SCALING["centers"]), numbers.get("dim", 1)
        p = {}
        if numbers["kind"] == "pbld":
            n = numbers["n_frequencies"]
            p["numbers.frequencies"] = normal(n_cols, 1, n, scale=numbers["std"])
            p["numbers.phases"] = normal(n_cols, 1, n)
            p["numbers.weight"], p["numbers.bias"] = normal(n_cols, n, dim - 1, scale=n**-0.5), normal(n_cols, 1, dim - 1)
        p |= {f"embeddings.{i}.weight": normal(n_codes, of_column) for i, (n_codes, of_column) in enumerate(categories)}
        n_in = n_cols * dim + sum(of_column for _, of_column in categories)
        p["scale"] = normal(1, k, n_in)
        for i, width in enumerate(hidden):
            p |= {f"hidden.{i}.weight": normal(k, n_in, width), f"hidden.{i}.bias": normal(k, 1, width)}
            p[f"hidden.{i}.strength"] = normal(k, 1, width)
            n_in = width
        p["head.weight"], p["head.bias"] = normal(k, n_in, n_outputs), normal(k, 1, n_outputs)
        x = normal(n_rows, n_cols)
        codes = np.stack([rng.integers(0, n_codes, n_rows) for n_codes, _ in categories], 1) if categories else np.zeros((n_rows, 0))
        y = forward(x, torch.tensor(codes.astype(np.int64)), numbers, len(categories), len(hidden), activation, p)
        grad_y = normal(*y.shape)
        y.backward(grad_y.detach())
        tensors = {"out.y": y, "out.prediction": combined(y, mean_of), "grad_out.y": grad_y, "in.x": x}
        tensors |= {f"in.{name}": value for name, value in p.items()} | {f"grad.{name}": value.grad for name, value in p.items()}
        arrays = {name: np.ascontiguousarray(value.detach().numpy().astype(np.float32)) for name, value in tensors.items()}
        if categories:
            arrays["in.codes"] = codes.astype(np.uint32)
        params = {"scaling": SCALING, "hidden": hidden, "n_members": k, "mean_of": mean_of, "numbers": numbers,
                  "activation": activation, "n_outputs": n_outputs, "categories": categories}
        metadata = {"op": "real_mlp", "params": json.dumps(params, sort_keys=True), "rtol": "0.0001", "atol": "1e-05"}
        save_file(arrays, args.out / f"real_mlp-{args.seed:04d}-{number:03d}.safetensors", metadata=metadata)


main()
