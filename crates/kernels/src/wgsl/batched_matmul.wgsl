// y[i] = op(a[i]) op(b[i]) for matrix i of the batch, the group's z: each lane has a block of 4 rows by 4 columns in registers.
// Twin: src/cpu/batched_matmul.rs. A group reads 32 rows and 32 columns once for each of its lanes' blocks, mostly from the nearest cache.
// Ladder: one lane a result -> blocks in registers, here (no barrier, any shape) -> batched_matmul_direct.wgsl (vec4 loads).
//
// The lanes' columns are 8 apart, so that neighbours read neighbouring columns of b and write neighbouring results.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

const LANE_ROWS = 8u;
const LANE_COLS = 8u;
override TRANSPOSE_A: u32 = 0u;
override TRANSPOSE_B: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

fn store(start: u32, row: u32, cols: vec4u, products: vec4f) {
    if row >= params.m {
        return;
    }
    for (var i = 0u; i < 4u; i += 1u) {
        if cols[i] < params.n {
            y[start + row * params.n + cols[i]] = products[i];
        }
    }
}

@compute @workgroup_size(LANE_COLS, LANE_ROWS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) lane: vec3u) {
    let row = group.y * 4u * LANE_ROWS + 4u * lane.y;
    let col = group.x * 4u * LANE_COLS + lane.x;
    let rows = vec4u(row, row + 1u, row + 2u, row + 3u);
    let cols = vec4u(col, col + LANE_COLS, col + 2u * LANE_COLS, col + 3u * LANE_COLS);
    // What lies beyond the last row or column reads the last one again, and is not stored.
    let a_stride = select(params.k, 1u, TRANSPOSE_A == 1u);
    let b_stride = select(1u, params.k, TRANSPOSE_B == 1u);
    let a_step = select(1u, params.m, TRANSPOSE_A == 1u);
    let b_step = select(params.n, 1u, TRANSPOSE_B == 1u);
    var a_at = group.z * params.m * params.k + min(rows, vec4u(params.m - 1u)) * a_stride;
    var b_at = group.z * params.k * params.n + min(cols, vec4u(params.n - 1u)) * b_stride;
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    for (var i = 0u; i < params.k; i += 1u) {
        let of_b = vec4f(b[b_at.x], b[b_at.y], b[b_at.z], b[b_at.w]);
        sum0 += a[a_at.x] * of_b;
        sum1 += a[a_at.y] * of_b;
        sum2 += a[a_at.z] * of_b;
        sum3 += a[a_at.w] * of_b;
        a_at += vec4u(a_step);
        b_at += vec4u(b_step);
    }
    let start = group.z * params.m * params.n;
    store(start, rows.x, cols, sum0);
    store(start, rows.y, cols, sum1);
    store(start, rows.z, cols, sum2);
    store(start, rows.w, cols, sum3);
}
