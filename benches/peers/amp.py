"""PyTorch's side of `cargo xtask bench amp`: training steps in f32 and under autocast.

    python amp.py DEVICE N_THREADS     trains on the device, cpu or gpu; reads requests and prints one line for each

`TASK PRECISION BATCH N_ROWS` trains one epoch of a task, `mlp`, `convnet` or `tab_m`, in f32, f16 or bf16 on shuffled batches: rows per second, and the mean loss. The
first request for a task and a precision also warms up.

The networks are those of the suite: 28-256-256-256-1 with ReLU, and four convolutions of 3 by 3 with batch normalisation and CELU over images of 16 by 16, channels
last; TabM-mini is an ensemble of 32 members, which share three layers of 512 units: each multiplies the rows by its own scales, and has an output layer of its own. Binary cross-entropy, fused Adam, gradient scaling in f16. Rows are gathered by index_select into a buffer that is kept.
"""
import sys
import time

import torch
from torch import nn

from device import device_of

DEVICE, _ = device_of(sys.argv[1])
torch.set_num_threads(int(sys.argv[2]))
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


class TabM(nn.Module):
    def __init__(self, n_members=32, n_inputs=28, width=512):
        super().__init__()
        self.scales = nn.Parameter(torch.randint(0, 2, (n_members, n_inputs)).float() * 2 - 1)
        layers = []
        for n_in in (n_inputs, width, width):
            layers += [nn.Linear(n_in, width), nn.ReLU(), nn.Dropout(0.1)]
        self.shared = nn.Sequential(*layers)
        self.weight = nn.Parameter(torch.empty(n_members, width, 1).uniform_(-(width**-0.5), width**-0.5))
        self.bias = nn.Parameter(torch.zeros(n_members, 1, 1))

    def forward(self, x):
        """[n_rows, n_inputs] to [n_rows, n_members]"""
        h = self.shared((x.unsqueeze(1) * self.scales).flatten(0, 1)).view(len(x), len(self.scales), -1)
        return (torch.bmm(h.transpose(0, 1), self.weight) + self.bias).squeeze(2).t()


def tab_m():
    return TabM(), (28,)


class Run:
    def __init__(self, task, precision, batch, n_rows):
        torch.manual_seed(0)
        self.model, shape = {"mlp": mlp, "convnet": convnet, "tab_m": tab_m}[task]()
        self.model.to(DEVICE)
        self.dtype, self.batch = DTYPES[precision], batch
        self.labels = (torch.arange(n_rows, device=DEVICE) % 2).float()
        self.rows = torch.randn(n_rows, *shape, device=DEVICE) + 0.1 * self.labels.view(-1, *[1] * len(shape))
        self.buffer = torch.empty(batch, *shape, device=DEVICE)
        if len(shape) == 3:
            self.rows = self.rows.to(memory_format=torch.channels_last)
            self.buffer = self.buffer.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.scaler = torch.amp.GradScaler(DEVICE.type, enabled=precision == "f16")
        self.loss = nn.BCEWithLogitsLoss()
        for _ in range(3):
            self.step(torch.arange(batch, device=DEVICE)).item()

    def step(self, rows):
        self.optimizer.zero_grad(set_to_none=True)
        x = torch.index_select(self.rows, 0, rows, out=self.buffer) if len(rows) == self.batch else self.rows[rows]
        with torch.autocast(DEVICE.type, dtype=self.dtype or torch.bfloat16, enabled=self.dtype is not None):
            logits = self.model(x)
        loss = self.loss(logits.float(), self.labels[rows].unsqueeze(1).expand_as(logits))
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def epoch(self):
        losses = torch.zeros((), device=DEVICE)
        start = time.perf_counter()
        batches = torch.randperm(len(self.rows), device=DEVICE).split(self.batch)
        for rows in batches:
            losses += self.step(rows)
        # Waits for the device.
        loss = losses.item() / len(batches)
        return len(self.rows) / (time.perf_counter() - start), loss


runs = {}
for line in sys.stdin:
    task, precision, batch, n_rows = line.split()
    key = (task, precision, int(batch), int(n_rows))
    if key not in runs:
        runs[key] = Run(*key)
    print(*runs[key].epoch(), flush=True)
