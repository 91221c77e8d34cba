#!/usr/bin/env python3
"""Writes the conformance cases of normalisations over groups and by root mean squares, computed by PyTorch in float64.

    pip install torch numpy safetensors
    python3 tests/conformance/norms.py tests/conformance/fixtures [--seed 0]
"""
import argparse
import json
import pathlib

import numpy as np
import torch
from safetensors.numpy import save_file

# The shape, channels last, and the groups; 0 for a root mean square.
CASES = [([5, 7], 0), ([2, 3, 33], 0), ([4, 6], 3), ([3, 5, 4, 8], 2), ([2, 3, 3, 6], 6), ([2, 4, 1, 5], 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)

    def normal(*shape):
        # Numbers that f32 holds exactly.
        return torch.tensor(rng.standard_normal(shape).astype(np.float32).astype(np.float64), requires_grad=True)

    for number, (shape, groups) in enumerate(CASES):
        inputs = {"x": normal(*shape), "weight": normal(shape[-1])}
        if groups == 0:
            op, params = "rms_norm", {"eps": 1e-6}
            y = torch.nn.functional.rms_norm(inputs["x"], [shape[-1]], inputs["weight"], params["eps"])
        else:
            op, params = "group_norm", {"eps": 1e-5, "groups": groups}
            inputs["bias"] = normal(shape[-1])
            channels_first = inputs["x"].movedim(-1, 1)
            y = torch.nn.functional.group_norm(channels_first, groups, inputs["weight"], inputs["bias"], params["eps"]).movedim(1, -1)
        grad_y = normal(*y.shape)
        y.backward(grad_y.detach())
        tensors = {"out.y": y, "grad_out.y": grad_y}
        tensors |= {f"in.{name}": value for name, value in inputs.items()}
        tensors |= {f"grad.{name}": value.grad for name, value in inputs.items()}
        arrays = {name: np.ascontiguousarray(value.detach().numpy().astype(np.float32)) for name, value in tensors.items()}
        metadata = {"op": op, "params": json.dumps(params, sort_keys=True), "rtol": "0.0005", "atol": "5e-05"}
        save_file(arrays, args.out / f"{op}-{args.seed:04d}-{number:03d}.safetensors", metadata=metadata)


main()
