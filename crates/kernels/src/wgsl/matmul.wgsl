// y = epilogue(op(a) b), b: [k, n]: any shape. Each lane has 2 columns of a block of 8 rows.
// Twin: src/cpu/matmul.rs. Reads a once for 16 columns and b once for 8 rows.
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
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: f32, y: f32) -> f32 {
    return select(y, v, (bitcast<u32>(v) & 0x7FFFFFFFu) > 0x7F800000u);
}

fn act(v: f32) -> f32 {
    switch ACTIVATION {
        case 1u: { return select(v, 0.0, v < 0.0); }
        case 2u: { return select(v, ALPHA * (exp(min(v, 0.0) / ALPHA) - 1.0), v < 0.0); }
        case 3u: { return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, -87.0, 87.0)))); }
        case 4u: { return or_nan(v, tanh(clamp(v, -10.0, 10.0))); }
        default: { return v; }
    }
}

fn slope_from_output(v: f32) -> f32 {
    switch ACTIVATION {
        case 1u: { return select(0.0, 1.0, v > 0.0); }
        case 2u: { return select(v / ALPHA + 1.0, 1.0, v > 0.0); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return 1.0; }
    }
}

fn store(row: u32, col: u32, product: f32) {
    if row >= params.m || col >= params.n {
        return;
    }
    let i = row * params.n + col;
    switch EPILOGUE {
        case 1u: { y[i] = act(product + fused[col]); }
        case 2u: { y[i] = product * slope_from_output(fused[i]); }
        default: { y[i] = act(product); }
    }
}

// The values of a in four rows, at one place along k.
fn rows_of_a(at: vec4u) -> vec4f {
    return vec4f(a[at.x], a[at.y], a[at.z], a[at.w]);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = (group.z * groups.y + group.y) * ROWS;
    let col = group.x * LANES * 2u + lane;
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
    var b1_at = min(col + LANES, params.n - 1u);
    var upper0 = vec4f();
    var lower0 = vec4f();
    var upper1 = vec4f();
    var lower1 = vec4f();
    for (var i = 0u; i < params.k; i += 1u) {
        let upper = rows_of_a(upper_at);
        let lower = rows_of_a(lower_at);
        let b0 = b[b0_at];
        let b1 = b[b1_at];
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
        store(row + i, col, upper0[i]);
        store(row + 4u + i, col, lower0[i]);
        store(row + i, col + LANES, upper1[i]);
        store(row + 4u + i, col + LANES, lower1[i]);
    }
}
