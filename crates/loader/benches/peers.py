"""Common PyTorch loaders for shuffled and in-order batches of rows in memory, started by `batches.rs`.

python peers.py N_ROWS     reads lines `NAME BATCH`; runs one epoch of that loader for each, and prints its rows per second
"""

import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

N_COLS = 28


def data_loader(x, y, batch):
    """The loader of the tutorials. Fetches row by row, so part of the table is enough to measure its rate."""
    n = min(len(x), 4 * 8192)
    loader = DataLoader(TensorDataset(x[:n], y[:n]), batch_size=batch, shuffle=True)
    return sum(len(labels) for _, labels in loader)


def permuted_slices(x, y, batch):
    """A permuted copy of the table each epoch, then slices of it, as in FastTensorDataLoader."""
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    n = 0
    for i in range(0, len(x), batch):
        _, labels = x[i : i + batch], y[i : i + batch]
        n += len(labels)
    return n


def index_select_out(x, y, batch):
    """The fastest known loader: one permutation, rows gathered into the same buffers."""
    bx, by = torch.empty(batch, x.shape[1]), torch.empty(batch)
    order = torch.randperm(len(x))
    n = 0
    for i in range(0, len(x) - batch + 1, batch):
        rows = order[i : i + batch]
        torch.index_select(x, 0, rows, out=bx)
        torch.index_select(y, 0, rows, out=by)
        n += batch
    return n


def copied_slices(x, y, batch):
    """In order, into the same buffers."""
    bx, by = torch.empty(batch, x.shape[1]), torch.empty(batch)
    n = 0
    for i in range(0, len(x) - batch + 1, batch):
        bx.copy_(x[i : i + batch])
        by.copy_(y[i : i + batch])
        n += batch
    return n


def main():
    torch.manual_seed(0)
    n_rows = int(sys.argv[1])
    x, y = torch.rand(n_rows, N_COLS), torch.rand(n_rows)
    forms = {form.__name__: form for form in (data_loader, permuted_slices, index_select_out, copied_slices)}
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
    for line in sys.stdin:
        name, batch = line.split()
        start = time.perf_counter()
        n = forms[name](x, y, int(batch))
        print(n / (time.perf_counter() - start), flush=True)


main()
