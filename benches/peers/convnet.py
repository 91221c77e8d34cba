"""PyTorch's side of the part `convnet` of `cargo xtask bench kernels`: a small convolutional network.

    python convnet.py BATCH N_IMAGES N_THREADS     reads requests and prints the seconds of two layouts: channels last, default

`steps N` trains N steps on one batch: seconds per step. `epoch` trains on all images, shuffled: seconds of the epoch.

Two convolutions of 3 by 3 (1 to 16 and 16 to 32 channels), each with batch normalisation, ReLU and max pooling, then a linear layer for 26
classes, over images of 28 by 28; cross-entropy and Adam.
"""
import sys
import time

import torch
from torch import nn

batch, n_images, n_threads = map(int, sys.argv[1:])
torch.set_num_threads(n_threads)
torch.manual_seed(0)


def block(n_in, n_out):
    return [nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True), nn.MaxPool2d(2)]


class Run:
    def __init__(self, layout):
        self.model = nn.Sequential(*block(1, 16), *block(16, 32), nn.Flatten(), nn.Linear(1568, 26)).to(memory_format=layout)
        self.images = torch.rand(n_images, 1, 28, 28).to(memory_format=layout)
        self.labels = torch.arange(n_images) % 26
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.loss = nn.CrossEntropyLoss()

    def step(self, x, labels):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(x), labels).backward()
        self.optimizer.step()

    def steps(self, n_steps):
        x, labels = self.images[:batch], self.labels[:batch]
        start = time.perf_counter()
        for _ in range(n_steps):
            self.step(x, labels)
        return (time.perf_counter() - start) / n_steps

    def epoch(self):
        start = time.perf_counter()
        for rows in torch.randperm(n_images).split(batch):
            self.step(self.images[rows], self.labels[rows])
        return time.perf_counter() - start


runs = [Run(torch.channels_last), Run(torch.contiguous_format)]
for run in runs:
    run.steps(3)
for line in sys.stdin:
    request, *n_steps = line.split()
    print(*(run.epoch() if request == "epoch" else run.steps(*map(int, n_steps)) for run in runs), flush=True)
