// y[i] = op(a[i]) op(b[i]) for matrix i of the batch, the group's z: each invocation has a block of 4 rows by 4 columns in registers, and reads by vectors.
// n and k are multiples of 4, and m too if a is transposed.
// Twin: batched_matmul_cpu.rs. A group reads 32 rows and 32 columns once for each of its invocations' blocks, mostly from the nearest cache.
// Ladder: batched_matmul.wgsl (scalar loads, any shape) -> this -> matmul_tiled.wgsl (shared tiles).

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

// sum + a b, added in the order of k; a row a column of the sum, an index of K a column of a and of b.
fn add_product(sum: mat4x4f, a: mat4x4f, b: mat4x4f) -> mat4x4f {
    return mat4x4f(
        fma(vec4f(a[3].x), b[3], fma(vec4f(a[2].x), b[2], fma(vec4f(a[1].x), b[1], fma(vec4f(a[0].x), b[0], sum[0])))),
        fma(vec4f(a[3].y), b[3], fma(vec4f(a[2].y), b[2], fma(vec4f(a[1].y), b[1], fma(vec4f(a[0].y), b[0], sum[1])))),
        fma(vec4f(a[3].z), b[3], fma(vec4f(a[2].z), b[2], fma(vec4f(a[1].z), b[1], fma(vec4f(a[0].z), b[0], sum[2])))),
        fma(vec4f(a[3].w), b[3], fma(vec4f(a[2].w), b[2], fma(vec4f(a[1].w), b[1], fma(vec4f(a[0].w), b[0], sum[3])))),
    );
}

@compute @workgroup_size(LANE_COLS, LANE_ROWS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) lane: vec3u) {
    let row = (group.y * LANE_ROWS + lane.y) * 4u;
    let col = group.x * LANE_COLS + lane.x;
    let n_cols = params.n / 4u;
    if row >= params.m || col >= n_cols {
        return;
    }
    // Rows beyond the last read the last one again, and are not stored.
    let rows = min(vec4u(row, row + 1u, row + 2u, row + 3u), vec4u(params.m - 1u));
    // Where four vectors of an operand begin, and how far it is to the next four.
    let a_start = group.z * (params.m * params.k / 4u);
    var a_at = vec4u(a_start) + rows * (params.k / 4u);
    var a_step = 1u;
    if TRANSPOSE_A == 1u {
        a_at = vec4u(a_start + row / 4u) + vec4u(0u, 1u, 2u, 3u) * (params.m / 4u);
        a_step = params.m;
    }
    let b_start = group.z * (params.k * n_cols);
    var b_at = vec4u(b_start + col) + vec4u(0u, 1u, 2u, 3u) * n_cols;
    var b_step = params.n;
    if TRANSPOSE_B == 1u {
        b_at = vec4u(b_start) + (4u * col + vec4u(0u, 1u, 2u, 3u)) * (params.k / 4u);
        b_step = 1u;
    }
    var sum = mat4x4f();
    for (var i = 0u; i < params.k; i += 4u) {
        var of_a = mat4x4f(load_a(a[a_at.x]), load_a(a[a_at.y]), load_a(a[a_at.z]), load_a(a[a_at.w]));
        if TRANSPOSE_A == 0u {
            of_a = transpose(of_a);
        }
        var of_b = mat4x4f(load_b(b[b_at.x]), load_b(b[b_at.y]), load_b(b[b_at.z]), load_b(b[b_at.w]));
        if TRANSPOSE_B == 1u {
            of_b = transpose(of_b);
        }
        sum = add_product(sum, of_a, of_b);
        a_at += vec4u(a_step);
        b_at += vec4u(b_step);
    }
    let start = (group.z * params.m + row) * n_cols + col;
    for (var i = 0u; i < min(4u, params.m - row); i += 1u) {
        y[start + i * n_cols] = store_y(sum[i]);
    }
}
