"""The test AUC of PyTorch on real HIGGS rows, for comparison with brisk's.

    python higgs_auc.py --train higgs_train.csv.gz --test higgs_test.csv.gz [--seeds 0,1,2]

28-300-300-300-1, ReLU, Adam at 1e-3, batch 256, columns standardised by the training rows; a tenth of the training file
is used for validation, training stops when its AUC has not improved for `--patience` epochs, and the best epoch's weights are
tested. Prints one JSON object per seed, then their mean.
"""
import argparse
import copy
import gzip
import json
import os
import time

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from higgs import gathered, mlp


def read(path):
    """Label first, then the features; the first line is a header if its first cell is not a number."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as lines:
        first = next(lines).split(",")[0]
    table = np.loadtxt(path, np.float32, delimiter=",", skiprows=int(not first.replace(".", "", 1).isdigit()))
    return torch.from_numpy(np.ascontiguousarray(table[:, 1:])), torch.from_numpy(np.ascontiguousarray(table[:, 0]))


def evaluate(model, x, y):
    model.eval()
    with torch.inference_mode():
        logits = torch.cat([model(part).squeeze(1) for part in x.split(8192)])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, y).item()
    model.train()
    return roc_auc_score(y.numpy(), logits.numpy()), loss, ((logits > 0) == (y > 0.5)).float().mean().item()


def fit(x, y, x_test, y_test, args, seed):
    torch.manual_seed(seed)
    order = torch.randperm(len(x))
    n_valid = len(x) // 10
    valid, rest = order[:n_valid], order[n_valid:]
    mean, std = x[rest].mean(0), x[rest].std(0)
    scaled = lambda t: (t - mean) / std
    x_train, y_train, x_valid, y_valid = scaled(x[rest]), y[rest], scaled(x[valid]), y[valid]

    model = mlp([x.shape[1], 300, 300, 300, 1])
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.BCEWithLogitsLoss()
    best_auc, best_epoch, best = 0.0, 0, None
    start = time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        for xb, yb in gathered(x_train, y_train, args.batch):
            optimizer.zero_grad(set_to_none=True)
            criterion(model(xb).squeeze(1), yb).backward()
            optimizer.step()
        auc, _, _ = evaluate(model, x_valid, y_valid)
        if auc > best_auc:
            best_auc, best_epoch, best = auc, epoch, copy.deepcopy(model.state_dict())
        elif epoch - best_epoch >= args.patience:
            break
    model.load_state_dict(best)
    test_auc, test_loss, test_accuracy = evaluate(model, scaled(x_test), y_test)
    return {"seed": seed, "test_auc": round(test_auc, 5), "test_log_loss": round(test_loss, 5),
            "test_accuracy": round(test_accuracy, 5), "valid_auc": round(best_auc, 5), "best_epoch": best_epoch, "epochs": epoch,
            "seconds": round(time.perf_counter() - start, 2), "train_rows": len(rest), "test_rows": len(x_test)}


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--train", required=True)
    args.add_argument("--test", required=True)
    args.add_argument("--seeds", default="0,1,2")
    args.add_argument("--batch", type=int, default=256)
    args.add_argument("--lr", type=float, default=1e-3)
    args.add_argument("--epochs", type=int, default=60)
    args.add_argument("--patience", type=int, default=8)
    args = args.parse_args()

    torch.set_num_threads(os.cpu_count())
    x, y = read(args.train)
    x_test, y_test = read(args.test)
    results = []
    for seed in map(int, args.seeds.split(",")):
        results.append(fit(x, y, x_test, y_test, args, seed))
        print(json.dumps(results[-1]), flush=True)
    aucs = [r["test_auc"] for r in results]
    print(json.dumps({"test_auc_mean": round(float(np.mean(aucs)), 5), "test_auc_min": min(aucs), "test_auc_max": max(aucs),
                      "batch": args.batch, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
