#!/usr/bin/env python3
"""Writes the conformance cases of convolutions with groups and dilation, computed by PyTorch in float64.

    pip install torch numpy safetensors
    python3 tests/conformance/grouped_conv2d.py tests/conformance/fixtures [--seed 0]
"""
import argparse
import json
import pathlib

import numpy as np
import torch
from safetensors.numpy import save_file

# Images [n, height, width, channels], output channels, kernel, stride, padding, dilation, groups, bias.
CASES = [
    # Depthwise, with one filter per channel and with two; channels that are odd, so that rows of 16-bit values end within a word.
    ([2, 7, 6, 5], 5, [3, 3], [1, 1], [1, 1], [1, 1], 5, False),
    ([2, 6, 7, 4], 8, [3, 2], [2, 1], [1, 0], [1, 1], 4, True),
    # Groups of several channels.
    ([3, 5, 6, 6], 4, [2, 3], [1, 1], [0, 1], [1, 1], 2, True),
    # Dilation of all channels together, alike and different along the axes.
    ([2, 8, 9, 3], 4, [3, 3], [1, 1], [2, 2], [2, 2], 1, True),
    ([1, 9, 11, 3], 5, [3, 2], [2, 3], [2, 1], [3, 2], 1, False),
    # Both, with strides.
    ([2, 9, 8, 6], 9, [2, 3], [2, 1], [2, 3], [2, 3], 3, True),
    # Windows that lie in the padding only.
    ([2, 3, 2, 4], 8, [2, 2], [1, 1], [4, 3], [2, 1], 2, False),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)

    def normal(*shape):
        # Numbers that f32 holds exactly.
        return torch.tensor(rng.standard_normal(shape).astype(np.float32).astype(np.float64), requires_grad=True)

    for number, (images, n_out, kernel, stride, padding, dilation, groups, has_bias) in enumerate(CASES):
        inputs = {"x": normal(*images), "weight": normal(n_out, *kernel, images[-1] // groups)}
        if has_bias:
            inputs["bias"] = normal(n_out)
        nchw, oihw = inputs["x"].permute(0, 3, 1, 2), inputs["weight"].permute(0, 3, 1, 2)
        y = torch.nn.functional.conv2d(nchw, oihw, inputs.get("bias"), stride, padding, dilation, groups).permute(0, 2, 3, 1)
        grad_y = normal(*y.shape)
        y.backward(grad_y.detach())
        tensors = {"out.y": y, "grad_out.y": grad_y}
        tensors |= {f"in.{name}": value for name, value in inputs.items()}
        tensors |= {f"grad.{name}": value.grad for name, value in inputs.items()}
        arrays = {name: np.ascontiguousarray(value.detach().numpy().astype(np.float32)) for name, value in tensors.items()}
        params = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "bias": has_bias}
        metadata = {"op": "conv2d", "params": json.dumps(params, sort_keys=True), "rtol": "0.0001", "atol": "1e-05"}
        save_file(arrays, args.out / f"conv2d_groups-{args.seed:04d}-{number:03d}.safetensors", metadata=metadata)


main()
