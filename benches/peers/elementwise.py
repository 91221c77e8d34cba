"""How fast PyTorch computes elementwise functions, softmax and layer norm; answers requests of the benchmark.

    python elementwise.py N_ROWS N_COLS N_THREADS     reads names of cases; computes that case once, and prints its seconds

Results are written into tensors that are kept, so that no case includes allocation. Four sets of tensors are used in turn, because their addresses
change the speed of a case by up to 1.8 times.
"""
import sys
import time

import torch

n_rows, n_cols, n_threads = map(int, sys.argv[1:])
torch.set_num_threads(n_threads)
aten = torch.ops.aten
placements = [[torch.rand(n_rows, n_cols) * 4 - 2, torch.rand(n_rows, n_cols) * 4 - 2, torch.empty(n_rows, n_cols)] for _ in range(4)]
a, b, y = placements[0]
weight, bias = torch.rand(n_cols), torch.rand(n_cols)
mean, rstd = torch.empty(n_rows, 1), torch.empty(n_rows, 1)


def chain():
    torch.mul(a, 2.0, out=y)
    torch.add(y, 1.0, out=y)
    torch.clamp_min(y, 0.0, out=y)
    torch.sub(y, 0.25, out=y)
    torch.mul(y, a, out=y)
    torch.div(y, 3.0, out=y)


cases = {
    "copy": lambda: y.copy_(a),
    "add": lambda: torch.add(a, b, out=y),
    "multiply": lambda: torch.mul(a, b, out=y),
    "relu": lambda: torch.clamp_min(a, 0.0, out=y),
    "exp": lambda: torch.exp(a, out=y),
    "tanh": lambda: torch.tanh(a, out=y),
    "sigmoid": lambda: torch.sigmoid(a, out=y),
    "gelu": lambda: aten.gelu.out(a, out=y),
    "six operations": chain,
    "softmax": lambda: aten.softmax.int_out(a, -1, out=y),
    "layer norm": lambda: aten.native_layer_norm.out(a, [n_cols], weight, bias, 1e-5, out0=y, out1=mean, out2=rstd),
}
with torch.no_grad():
    for turn, line in enumerate(sys.stdin):
        a, b, y = placements[turn % len(placements)]
        case = cases[line.rstrip("\n")]
        start = time.perf_counter()
        case()
        print(time.perf_counter() - start, flush=True)
