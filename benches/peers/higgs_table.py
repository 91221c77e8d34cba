"""The table for speed comparisons: HIGGS-shaped, bit-identical in any language.

Uses only splitmix64's finalizer and IEEE `+ - * /` in a fixed order, so numpy here and Rust on the other side are bit-identical,
which `checksum` proves. Row i depends only on (i, seed): a longer table starts with the shorter one, and any part of
it can be made separately. Columns are independent and bell-shaped, unlike the real data: speeds are representative, qualities are not.

    python higgs_table.py [--rows 1000000] [--seed 1] [--first-row 0]

prints the checksum as one JSON object.
"""
import argparse
import json

import numpy as np

N_COLS = 28
N_LOW = 21
N_HIDDEN = 12
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
CHUNK_ROWS = 1 << 16


def mix(h):
    """The finalizer of splitmix64, on an array of u64."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def hashes(i, seed):
    """`hash(i, seed)` for an array of u64 counters; all arithmetic wraps."""
    return mix((i + np.uint64(1)) * GOLDEN + np.uint64(seed))


def unit(h):
    """A nearly normal f32 from a hash: the sum of its four 16-bit words, centred and scaled to variance 1; within ±3.47."""
    word = np.uint64(0xFFFF)
    total = (h & word) + (h >> np.uint64(16) & word) + (h >> np.uint64(32) & word) + (h >> np.uint64(48))
    return (total.astype(np.int64) - 131070).astype(np.float32) * np.float32(1 / 37837)


def counters(*shape):
    return np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)


# The teacher that labels the rows: fixed, whatever the seed of the table.
W = unit(hashes(counters(N_HIDDEN, N_LOW), 7000021)).astype(np.float64) * 0.45
V = unit(hashes(counters(N_HIDDEN), 7000038)).astype(np.float64)


def teacher(x):
    """The probability of label 1; sums are computed from left to right, in f64, without fused multiply-add."""
    wide = x.astype(np.float64)
    t = np.zeros((len(x), N_HIDDEN))
    for j in range(N_LOW):
        t += W[:, j] * wide[:, j : j + 1]
    h = t / (1 + np.abs(t))
    z = np.zeros(len(x))
    for k in range(N_HIDDEN):
        z += V[k] * h[:, k] * h[:, (k + 1) % N_HIDDEN]
    z = (z + 0.35 * wide[:, 21] - 0.35 * wide[:, 22]) * 6
    return 0.5 * (1 + z / (1 + np.abs(z)))


def rows(first_row, n_rows, seed):
    """`features [n_rows, 28]` f32 and `labels [n_rows]` u8 of rows `first_row..first_row + n_rows`."""
    i = np.uint64(32) * np.arange(first_row, first_row + n_rows, dtype=np.uint64)
    x = np.empty((n_rows, N_COLS), np.float32)
    x[:, :N_LOW] = unit(hashes(i[:, None] + np.arange(N_LOW, dtype=np.uint64), seed))
    for q in range(N_COLS - N_LOW):
        x[:, N_LOW + q] = x[:, 3 * q] * x[:, 3 * q + 1] - x[:, 3 * q + 2] * np.float32(0.5)
    u = (hashes(i + np.uint64(31), seed) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return x, (u < teacher(x)).astype(np.uint8)


def table(n_rows, seed, first_row=0):
    """The whole table, made a chunk at a time so that the intermediates stay in cache."""
    x, y = np.empty((n_rows, N_COLS), np.float32), np.empty(n_rows, np.uint8)
    for a in range(0, n_rows, CHUNK_ROWS):
        b = min(a + CHUNK_ROWS, n_rows)
        x[a:b], y[a:b] = rows(first_row + a, b - a, seed)
    return x, y


def checksum(x, y, first_row=0):
    """`Σ (28 row + col + 1) * bits(x[row, col]) + Σ ((row + 1) * label[row]) << 32`, wrapping u64: in any order, on any threads."""
    total = np.uint64(0)
    for a in range(0, len(y), CHUNK_ROWS):
        row = np.arange(first_row + a, first_row + min(a + CHUNK_ROWS, len(y)), dtype=np.uint64)
        place = row[:, None] * np.uint64(N_COLS) + np.arange(1, N_COLS + 1, dtype=np.uint64)
        bits = np.ascontiguousarray(x[a : a + CHUNK_ROWS]).view(np.uint32).astype(np.uint64)
        labels = (row + np.uint64(1)) * y[a : a + CHUNK_ROWS].astype(np.uint64) << np.uint64(32)
        total = total + (place * bits).sum(dtype=np.uint64) + labels.sum(dtype=np.uint64)
    return f"{int(total):016x}"


def describe(n_rows, seed, first_row=0):
    x, y = table(n_rows, seed, first_row)
    return {"table": "higgs-shaped", "rows": n_rows, "seed": seed, "first_row": first_row,
            "checksum": checksum(x, y, first_row), "positives": int(y.sum()), "first": [float(v) for v in x[0, :3]]}


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--rows", type=int, default=1_000_000)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--first-row", type=int, default=0)
    args = args.parse_args()
    print(json.dumps(describe(args.rows, args.seed, args.first_row)))


np.seterr(over="ignore")

if __name__ == "__main__":
    main()
