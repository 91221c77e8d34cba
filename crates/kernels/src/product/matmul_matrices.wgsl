// Part: cooperative matrices of the operands of a matrix product in f16, with m, n and k multiples of SIZE, which are loaded in place. Expects the
// part matmul_job.wgsl.
//
// For each K index a subgroup with 4 by 4 matrices of 16 by 16 reads 2 * 64 values for 2 * 64 * 64 operations: 32 operations per byte; with 2 by 2 it is
// 16. A GPU with 20 TB/s from its first-level caches could feed 640 TFLOP/s, or 320. Operands go from the cache directly into registers in the layout of tensor cores,
// so there is no barrier in the loop. The blocks of a tile are adjacent, so that each operand is fetched once for two.

const STAGED = false;
const DEPTH = SIZE;
const HALF = 0u;

alias Gatherer = u32;
alias Gathered = u32;
fn gatherer_of(job: Job, invocation: u32) -> Gatherer { return 0u; }
fn gather(job: Job, gatherer: Gatherer, start: u32) -> Gathered { return 0u; }
fn put(stage: u32, gatherer: Gatherer, gathered: Gathered) {}

// The matrix of a starting at `row` of the tile and K index `k`. Rows beyond the last one are clamped.
fn matrix_of_a(job: Job, stage: u32, row: u32, k: u32) -> OfA {
    let first = min(4u * job.row + row, params.m - SIZE);
    if TRANSPOSE_A == 1u {
        return coopLoad<OfA>(&a[job.a_start + k * params.m + first], params.m);
    }
    return coopLoadT<OfA>(&a[job.a_start + first * params.k + k], params.k);
}

fn matrix_of_b(job: Job, stage: u32, col: u32, k: u32) -> OfB {
    let first = min(4u * job.col + col, params.n - SIZE);
    if TRANSPOSE_B == 1u {
        return coopLoad<OfB>(&b[job.b_start + first * params.k + k], params.k);
    }
    return coopLoadT<OfB>(&b[job.b_start + k * params.n + first], params.n);
}
