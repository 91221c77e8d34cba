"""PyTorch's side of conv2d.rs: a line of sizes in, a line of milliseconds out, so that the two sides take turns.

In: threads images height width channels out kernel stride padding. Out: forward and backward (input, weights and bias), the faster of the
two layouts each.
"""
import sys
import time

import torch
import torch.nn.functional as F


def milliseconds(function):
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3


cases = {}
for line in sys.stdin:
    key = tuple(map(int, line.split()))
    threads, images, height, width, channels, out, kernel, stride, padding = key
    torch.set_num_threads(threads)
    if key not in cases:
        cases[key] = []
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(images, channels, height, width).to(memory_format=layout).requires_grad_()
            weight = torch.randn(out, channels, kernel, kernel).to(memory_format=layout).requires_grad_()
            bias = torch.randn(out).requires_grad_()
            cases[key].append((x, weight, bias))
    forward, backward = [], []
    for x, weight, bias in cases[key]:
        def conv():
            return F.conv2d(x, weight, bias, stride, padding)
        with torch.no_grad():
            forward.append(milliseconds(conv))
        y = conv()
        grad_y = torch.ones_like(y)
        backward.append(milliseconds(lambda: torch.autograd.grad(y, (x, weight, bias), grad_y)))
    print(min(forward), min(backward), flush=True)
