"""PyTorch on the HIGGS-shaped table: how fast it loads and how fast it trains, in common ways.

    python higgs.py [--suite loader,train] [--rows 1000000] [--batch 1024,8192] [--epochs 1] [--repeats 5] [--seed 1] [--device cpu]

Prints one JSON object per line: first the table and its checksum, then one case per line with the median of the repeats. The cases of one
suite alternate, so that other load on the machine affects all of them equally; only ratios within one run are meaningful.

Loader cases move every row of the table into a batch once and read nothing back from it:
    dataloader       DataLoader(TensorDataset, shuffle=True), as in the tutorials: fetches row by row
    batch_sampler    DataLoader(sampler=BatchSampler(..), batch_size=None): one index per batch
    permute_slice    the whole table is permuted in each epoch, batches are slices of the copy
    index_select     randperm, then index_select(out=) into a buffer that is kept: PyTorch's fastest way
    in_order_copy    slices in file order, copied into the buffer

Training cases fit 28-256-256-256-1 (ReLU, f32, BCEWithLogits, Adam at 1e-3) on shuffled batches, on the CPU or a GPU, which then holds the table too:
    gather           index_select(out=) and Adam with its defaults
    gather_foreach   the same with Adam(foreach=True)
    gather_fused     the same with Adam(fused=True)
    dataloader       DataLoader(TensorDataset, shuffle=True) over a table in memory, and Adam with its defaults; batches are copied to a GPU
"""
import argparse
import json
import os
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

import higgs_table
from device import device_of


def gathered(x, y, batch):
    """Shuffled batches, written into two buffers that are kept."""
    order = torch.randperm(len(x), device=x.device)
    xb, yb = x.new_empty(batch, x.shape[1]), y.new_empty(batch)
    for rows in order.split(batch):
        if len(rows) < batch:
            xb, yb = x.new_empty(len(rows), x.shape[1]), y.new_empty(len(rows))
        torch.index_select(x, 0, rows, out=xb)
        torch.index_select(y, 0, rows, out=yb)
        yield xb, yb


def permuted(x, y, batch):
    order = torch.randperm(len(x))
    yield from zip(x[order].split(batch), y[order].split(batch))


def copied_in_order(x, y, batch):
    xb, yb = x.new_empty(batch, x.shape[1]), y.new_empty(batch)
    for xs, ys in zip(x.split(batch), y.split(batch)):
        yield xb[: len(xs)].copy_(xs), yb[: len(ys)].copy_(ys)


def by_row(x, y, batch):
    return DataLoader(TensorDataset(x, y), batch_size=batch, shuffle=True)


def by_batch_sampler(x, y, batch):
    rows = TensorDataset(x, y)
    return DataLoader(rows, sampler=BatchSampler(RandomSampler(rows), batch, drop_last=False), batch_size=None)


LOADERS = {
    "dataloader": by_row,
    "batch_sampler": by_batch_sampler,
    "permute_slice": permuted,
    "index_select": gathered,
    "in_order_copy": copied_in_order,
}
TRAINERS = {
    "gather": (gathered, {}),
    "gather_foreach": (gathered, {"foreach": True}),
    "gather_fused": (gathered, {"fused": True}),
    "dataloader": (by_row, {}),
}


def mlp(widths):
    layers = []
    for fan_in, fan_out in zip(widths, widths[1:]):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def load(x, y, batches, batch, epochs):
    start = time.perf_counter()
    n_rows = 0
    for _ in range(epochs):
        for xb, _ in batches(x, y, batch):
            n_rows += len(xb)
    return n_rows / (time.perf_counter() - start), {}


def train(x, y, device, batches, batch, epochs, options, seed):
    """Rows per second over all epochs, and the mean loss of the last one, summed without reading it back in each step."""
    torch.manual_seed(seed)
    model, criterion = mlp([x.shape[1], 256, 256, 256, 1]).to(device), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **options)

    def step(xb, yb):
        xb, yb = xb.to(device), yb.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(3):  # memory pools, library start-up; the optimizer's state is part of every later step as well
        step(x[:batch], y[:batch]).item()
    start = time.perf_counter()
    for _ in range(epochs):
        loss_sum, n_batches = torch.zeros((), device=device), 0
        for xb, yb in batches(x, y, batch):
            loss_sum += step(xb, yb)
            n_batches += 1
    # Waits for the device.
    loss = loss_sum.item() / n_batches
    seconds = time.perf_counter() - start
    return epochs * len(x) / seconds, {"loss": round(loss, 5)}


def report(suite, case, batch, args, results):
    speeds = [speed for speed, _ in results]
    print(json.dumps({
        "suite": suite, "case": case, "batch": batch, "rows": args.rows, "epochs": args.epochs, "repeats": args.repeats,
        "rows_per_s": round(statistics.median(speeds)), "slowest": round(min(speeds)), "fastest": round(max(speeds)),
        **results[-1][1], "torch": torch.__version__, "threads": torch.get_num_threads()}), flush=True)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--suite", default="loader,train", help="which of loader, train; comma-separated")
    args.add_argument("--rows", type=int, default=1_000_000)
    args.add_argument("--batch", default="1024,8192", help="batch sizes, comma-separated")
    args.add_argument("--epochs", type=int, default=1)
    args.add_argument("--repeats", type=int, default=5)
    args.add_argument("--cases", default="", help="only the cases that contain one of these, comma-separated")
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--device", default="cpu", choices=["cpu", "gpu"], help="where to train")
    args = args.parse_args()

    torch.set_num_threads(os.cpu_count())
    features, labels = higgs_table.table(args.rows, args.seed)
    print(json.dumps({"table": "higgs-shaped", "rows": args.rows, "seed": args.seed,
                      "checksum": higgs_table.checksum(features, labels), "positives": int(labels.sum())}), flush=True)
    x, y = torch.from_numpy(features), torch.from_numpy(labels.astype(np.float32))
    device, _ = device_of(args.device)
    on_device = x.to(device), y.to(device)
    wanted = lambda case: any(part in case for part in args.cases.split(","))

    for batch in map(int, args.batch.split(",")):
        runs = {}
        if "loader" in args.suite:
            for case, batches in LOADERS.items():
                runs["loader", case] = lambda batches=batches: load(x, y, batches, batch, args.epochs)
        if "train" in args.suite:
            for case, (batches, options) in TRAINERS.items():
                table = (x, y) if batches is by_row else on_device
                runs["train", case] = lambda table=table, batches=batches, options=options: train(
                    *table, device, batches, batch, args.epochs, options, args.seed)
        runs = {key: run for key, run in runs.items() if wanted(key[1])}
        results = {key: [] for key in runs}
        for _ in range(args.repeats):
            for key, run in runs.items():
                results[key].append(run())
        for (suite, case), result in results.items():
            report(suite, case, batch, args, result)


if __name__ == "__main__":
    main()
