"""PyTorch's side of `cargo xtask bench amp`: training steps in f32 and under autocast.

    python amp.py N_THREADS     reads requests and prints one line for each

`TASK PRECISION BATCH N_ROWS` trains one epoch of a task, `mlp` or `convnet`, in f32, f16 or bf16 on shuffled batches: rows per second, and the mean loss. The
first request for a task and a precision also warms up.

The networks are those of the suite: 28-256-256-256-1 with ReLU, and four convolutions of 3 by 3 with batch normalisation and CELU over images of 16 by 16, channels
last. Binary cross-entropy, fused Adam, gradient scaling in f16. Rows are gathered by index_select into a buffer that is kept.
"""
import sys
import time

import torch
from torch import nn

torch.set_num_threads(int(sys.argv[1]))
DTYPES = {"f32": None, "f16": torch.float16, "bf16": torch.bfloat16}


def mlp():
    layers = [nn.Linear(28, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)]
    return nn.Sequential(*layers), (28,)


def convnet():
    layers = []
    for i, (n_in, n_out) in enumerate([(3, 16), (16, 16), (16, 32), (32, 32)]):
        layers += [nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.CELU(0.3, inplace=True)]
        if i % 2 == 1:
            layers.append(nn.MaxPool2d(2))
    layers += [nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(32, 1, bias=False)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last), (3, 16, 16)


class Run:
    def __init__(self, task, precision, batch, n_rows):
        torch.manual_seed(0)
        self.model, shape = {"mlp": mlp, "convnet": convnet}[task]()
        self.dtype, self.batch = DTYPES[precision], batch
        self.labels = (torch.arange(n_rows) % 2).float()
        self.rows = torch.randn(n_rows, *shape) + 0.1 * self.labels.view(-1, *[1] * len(shape))
        self.buffer = torch.empty(batch, *shape)
        if len(shape) == 3:
            self.rows = self.rows.to(memory_format=torch.channels_last)
            self.buffer = self.buffer.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.scaler = torch.amp.GradScaler("cpu", enabled=precision == "f16")
        self.loss = nn.BCEWithLogitsLoss()
        for _ in range(3):
            self.step(torch.arange(batch))

    def step(self, rows):
        self.optimizer.zero_grad(set_to_none=True)
        x = torch.index_select(self.rows, 0, rows, out=self.buffer) if len(rows) == self.batch else self.rows[rows]
        with torch.autocast("cpu", dtype=self.dtype or torch.bfloat16, enabled=self.dtype is not None):
            logits = self.model(x).squeeze(1)
        loss = self.loss(logits.float(), self.labels[rows])
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def epoch(self):
        losses = torch.zeros(())
        start = time.perf_counter()
        batches = torch.randperm(len(self.rows)).split(self.batch)
        for rows in batches:
            losses += self.step(rows)
        return len(self.rows) / (time.perf_counter() - start), losses.item() / len(batches)


runs = {}
for line in sys.stdin:
    task, precision, batch, n_rows = line.split()
    key = (task, precision, int(batch), int(n_rows))
    if key not in runs:
        runs[key] = Run(*key)
    print(*runs[key].epoch(), flush=True)
