#!/usr/bin/env python3
"""Writes the conformance cases of ensembles for tables with embeddings of numbers and of categories, computed by PyTorch in float64.

    pip install torch numpy safetensors
    python3 tests/conformance/tab_m.py tests/conformance/fixtures [--seed 0]
"""
import argparse
import json
import pathlib

import numpy as np
import torch
from safetensors.numpy import save_file

EDGES = [[-2.0, -0.5, 0.25, 1.0, 3.0], [-1.0, 1.0], [-1.5, 0.0, 0.5]]
PIECEWISE = {"kind": "piecewise_linear", "edges": EDGES, "dim": 4}
PERIODIC = {"kind": "periodic", "n_frequencies": 3, "std": 0.3, "dim": 4}
PLAIN = {"kind": "plain"}

# Rows, members, which layers have scales of each member, hidden units, outputs, what the mean is taken of, numbers, codes and dimensions of the categories.
CASES = [
    (7, 3, "first", [8], 1, "outputs", PLAIN, []),
    (6, 4, "all", [8, 6], 1, "outputs", PLAIN, []),
    (9, 3, "first", [6, 5], 1, "sigmoids", PIECEWISE, []),
    (8, 2, "all", [7, 6, 5], 1, "outputs", PIECEWISE, [(5, 2)]),
    (6, 3, "first", [8, 8], 3, "softmaxes", PERIODIC, []),
    (5, 4, "all", [6, 4], 4, "softmaxes", PERIODIC, [(3, 2), (7, 4)]),
    (33, 5, "all", [16, 16], 1, "sigmoids", PIECEWISE, [(4, 2)]),
    (1, 1, "all", [3], 2, "softmaxes", PLAIN, [(2, 1)]),
]


def encoded(x, edges, n_bins):
    """The piecewise-linear encoding of a column; the last bin is the last component."""
    columns = [torch.zeros_like(x) for _ in range(n_bins)]
    for i, (low, high) in enumerate(zip(edges, edges[1:])):
        share = (x - low) / (high - low)
        share = share if i == 0 else share.clamp(min=0.0)
        is_last = i + 2 == len(edges)
        columns[n_bins - 1 if is_last else i] = share if is_last else share.clamp(max=1.0)
    return torch.stack(columns, 1)


def embedded(x, numbers, p):
    """The embeddings of all columns of numbers, next to each other."""
    if numbers["kind"] == "plain":
        return x
    columns = []
    for i in range(x.shape[1]):
        if numbers["kind"] == "periodic":
            phase = 2 * torch.pi * x[:, i, None] * p["numbers.frequencies"][i, 0]
            columns.append(torch.relu(torch.cat([phase.cos(), phase.sin()], 1) @ p["numbers.weight"][i] + p["numbers.bias"][i]))
        else:
            pieces = p["numbers.pieces"][i]
            linear = x[:, i, None] * p["numbers.weight"][i] + p["numbers.bias"][i]
            columns.append(linear + encoded(x[:, i], numbers["edges"][i], len(pieces)) @ pieces)
    return torch.cat(columns, 1)


def forward(x, codes, numbers, n_categories, n_hidden, p):
    """The outputs of all members: [n_members, n_rows, n_outputs]."""
    tables = [p[f"embeddings.{i}.weight"][codes[:, i]] for i in range(n_categories)]
    row = torch.cat([embedded(x, numbers, p), *tables], 1)
    h = row[:, None] * torch.cat([p[f"scales.{i}"] for i in range(1 + n_categories)], 1)
    for i in range(n_hidden):
        name = f"hidden.{i}"
        h = h * p[f"{name}.scale_in"] if f"{name}.scale_in" in p else h
        h = h @ p[f"{name}.weight"].T
        h = h * p[f"{name}.scale_out"] if f"{name}.scale_out" in p else h
        h = torch.relu(h + p[f"{name}.bias"])
    return torch.einsum("nki,kio->kno", h, p["head.weight"]) + p["head.bias"]


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

    for number, (n_rows, k, adapters, hidden, n_outputs, mean_of, numbers, categories) in enumerate(CASES):
        n_cols, dim = len(EDGES), numbers.get("dim", 1)
        p = {}
        if numbers["kind"] == "periodic":
            n_waves = 2 * numbers["n_frequencies"]
            p["numbers.frequencies"] = normal(n_cols, 1, 1, numbers["n_frequencies"], scale=numbers["std"])
            p["numbers.weight"], p["numbers.bias"] = normal(n_cols, n_waves, dim, scale=n_waves**-0.5), normal(n_cols, 1, dim)
        elif numbers["kind"] == "piecewise_linear":
            n_bins = max(map(len, EDGES)) - 1
            p["numbers.weight"], p["numbers.bias"] = normal(n_cols, 1, dim), normal(n_cols, 1, dim)
            p["numbers.pieces"] = normal(n_cols, n_bins, dim)
        p |= {f"embeddings.{i}.weight": normal(n_codes, of_column) for i, (n_codes, of_column) in enumerate(categories)}
        widths = [n_cols * dim] + [of_column for _, of_column in categories]
        p |= {f"scales.{i}": normal(k, width) for i, width in enumerate(widths)}
        n_in = sum(widths)
        for i, width in enumerate(hidden):
            p[f"hidden.{i}.weight"] = normal(width, n_in, scale=n_in**-0.5)
            if adapters == "all":
                p[f"hidden.{i}.scale_out"], p[f"hidden.{i}.bias"] = normal(k, width), normal(k, width)
                p |= {f"hidden.{i}.scale_in": normal(k, n_in)} if i > 0 else {}
            else:
                p[f"hidden.{i}.bias"] = normal(width)
            n_in = width
        p["head.weight"], p["head.bias"] = normal(k, n_in, n_outputs, scale=n_in**-0.5), normal(k, 1, n_outputs)
        x = normal(n_rows, n_cols)
        codes = np.stack([rng.integers(0, n_codes, n_rows) for n_codes, _ in categories], 1) if categories else np.zeros((n_rows, 0))
        y = forward(x, torch.tensor(codes.astype(np.int64)), numbers, len(categories), len(hidden), p)
        grad_y = normal(*y.shape)
        y.backward(grad_y.detach())
        tensors = {"out.y": y, "out.prediction": combined(y, mean_of), "grad_out.y": grad_y, "in.x": x}
        tensors |= {f"in.{name}": value for name, value in p.items()} | {f"grad.{name}": value.grad for name, value in p.items()}
        arrays = {name: np.ascontiguousarray(value.detach().numpy().astype(np.float32)) for name, value in tensors.items()}
        if categories:
            arrays["in.codes"] = codes.astype(np.uint32)
        params = {"adapters": adapters, "hidden": hidden, "n_members": k, "mean_of": mean_of, "numbers": numbers,
                  "n_outputs": n_outputs, "categories": categories}
        metadata = {"op": "tab_m", "params": json.dumps(params, sort_keys=True), "rtol": "0.0001", "atol": "1e-05"}
        save_file(arrays, args.out / f"tab_m-{args.seed:04d}-{number:03d}.safetensors", metadata=metadata)


main()
