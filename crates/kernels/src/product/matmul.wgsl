// y = epilogue(op(a) b), b: [k, n]: any shape. Each invocation has 2 columns of a block of 8 rows.
// Twin: matmul_cpu.rs. Reads a once for 16 columns and b once for 8 rows.
// Ladder: this -> matmul_direct.wgsl (vec4 loads, for n and k that are multiples of 4).

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

const ROWS = 8u;
const LANES = 8u;
override TRANSPOSE_A: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// The values of a in four rows, at one place along k.
fn rows_of_a(at: vec4u) -> vec4f {
    return vec4f(load_a(at.x), load_a(at.y), load_a(at.z), load_a(at.w));
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = (group.z * groups.y + group.y) * ROWS;
    let col = (group.x * LANES + lane) * 2u;
    if row >= params.m || col >= params.n {
        return;
    }
    // Rows and columns beyond the last read the last one again, and are not stored.
    let row_stride = select(params.k, 1u, TRANSPOSE_A == 1u);
    let k_stride = select(1u, params.m, TRANSPOSE_A == 1u);
    let rows = vec4u(row, row + 1u, row + 2u, row + 3u);
    var upper_at = min(rows, vec4u(params.m - 1u)) * row_stride;
    var lower_at = min(rows + 4u, vec4u(params.m - 1u)) * row_stride;
    var b0_at = col;
    var b1_at = min(col + 1u, params.n - 1u);
    var upper0 = vec4f();
    var lower0 = vec4f();
    var upper1 = vec4f();
    var lower1 = vec4f();
    for (var i = 0u; i < params.k; i += 1u) {
        let upper = rows_of_a(upper_at);
        let lower = rows_of_a(lower_at);
        let b0 = load_b(b0_at);
        let b1 = load_b(b1_at);
        upper0 += upper * b0;
        lower0 += lower * b0;
        upper1 += upper * b1;
        lower1 += lower * b1;
        upper_at += vec4u(k_stride);
        lower_at += vec4u(k_stride);
        b0_at += params.n;
        b1_at += params.n;
    }
    for (var i = 0u; i < 4u; i += 1u) {
        store_two(row + i, col, vec2f(upper0[i], upper1[i]));
        store_two(row + 4u + i, col, vec2f(lower0[i], lower1[i]));
    }
}
