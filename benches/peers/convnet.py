"""PyTorch's side of the part `convnet` of `cargo xtask bench kernels`: a small convolutional network.

    python convnet.py BATCH N_THREADS     reads numbers of steps; trains that many, and prints seconds a step: channels last, default layout

Two convolutions of 3 by 3 (1 to 16 and 16 to 32 channels), each with batch normalisation, ReLU and max pooling, then a linear layer for 26
classes, over images of 28 by 28; cross-entropy and Adam.
"""
import sys
import time

import torch
from torch import nn

batch, n_threads = map(int, sys.argv[1:])
torch.set_num_threads(n_threads)
torch.manual_seed(0)


def block(n_in, n_out):
    return [nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True), nn.MaxPool2d(2)]


class Run:
    def __init__(self, layout):
        self.model = nn.Sequential(*block(1, 16), *block(16, 32), nn.Flatten(), nn.Linear(1568, 26)).to(memory_format=layout)
        self.x = torch.rand(batch, 1, 28, 28).to(memory_format=layout)
        self.labels = torch.arange(batch) % 26
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.loss = nn.CrossEntropyLoss()

    def seconds(self, n_steps):
        start = time.perf_counter()
        for _ in range(n_steps):
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(self.model(self.x), self.labels).backward()
            self.optimizer.step()
        return (time.perf_counter() - start) / n_steps


runs = [Run(torch.channels_last), Run(torch.contiguous_format)]
for run in runs:
    run.seconds(3)
for line in sys.stdin:
    print(*(run.seconds(int(line)) for run in runs), flush=True)
