// y[i] = op(a[i]) op(b[i]) for matrix i of the batch, the group's z: each invocation has a block of 4 rows by 4 columns in registers.
// Twin: batched_matmul_cpu.rs. A group reads 32 rows and 32 columns once for each of its invocations' blocks, mostly from the nearest cache.
// Ladder: one invocation a result -> blocks in registers, here (no barrier, any shape) -> batched_matmul_direct.wgsl (vec4 loads).
//
// Two columns of an invocation lie together, and the other two 16 after them, so that neighbours read neighbouring columns of b and write neighbouring results.

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
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
@group(0) @binding(3) var<storage, read_write> y: array<Y>;

fn store_two(start: u32, row: u32, col: u32, products: vec2f) {
    if row < params.m && col < params.n {
        store_y(start + row * params.n + col, products, params.n - col);
    }
}

fn store(start: u32, row: u32, col: u32, products: vec4f) {
    store_two(start, row, col, products.xy);
    store_two(start, row, col + 2u * LANE_COLS, products.zw);
}

@compute @workgroup_size(LANE_COLS, LANE_ROWS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) lane: vec3u) {
    let row = group.y * 4u * LANE_ROWS + 4u * lane.y;
    let col = group.x * 4u * LANE_COLS + 2u * lane.x;
    let rows = vec4u(row, row + 1u, row + 2u, row + 3u);
    let cols = vec4u(col, col + 1u, col + 2u * LANE_COLS, col + 2u * LANE_COLS + 1u);
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
        let of_b = vec4f(load_b(b_at.x), load_b(b_at.y), load_b(b_at.z), load_b(b_at.w));
        sum0 += load_a(a_at.x) * of_b;
        sum1 += load_a(a_at.y) * of_b;
        sum2 += load_a(a_at.z) * of_b;
        sum3 += load_a(a_at.w) * of_b;
        a_at += vec4u(a_step);
        b_at += vec4u(b_step);
    }
    let start = group.z * params.m * params.n;
    store(start, rows.x, col, sum0);
    store(start, rows.y, col, sum1);
    store(start, rows.z, col, sum2);
    store(start, rows.w, col, sum3);
}
