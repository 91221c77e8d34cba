// y = epilogue(op(a) b), b: [k, n]: any shape. Each lane has one column of a block of 4 rows.
// Twin: src/cpu/matmul.rs. Reads a once a column block and b once a row block.
// Ladder: this -> matmul_direct.wgsl (vec4 columns, n a multiple of 4).

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

const ROWS = 4u;
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

fn act(v: f32) -> f32 {
    switch ACTIVATION {
        case 1u: { return select(v, 0.0, v < 0.0); }
        case 2u: { return select(v, ALPHA * (exp(min(v, 0.0) / ALPHA) - 1.0), v < 0.0); }
        case 3u: { return 1.0 / (1.0 + exp(-clamp(v, -87.0, 87.0))); }
        case 4u: { return tanh(clamp(v, -10.0, 10.0)); }
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
    if row >= params.m {
        return;
    }
    let i = row * params.n + col;
    switch EPILOGUE {
        case 1u: { y[i] = act(product + fused[col]); }
        case 2u: { y[i] = product * slope_from_output(fused[i]); }
        default: { y[i] = act(product); }
    }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = (group.z * groups.y + group.y) * ROWS;
    let col = group.x * LANES + lane;
    if row >= params.m || col >= params.n {
        return;
    }
    let last = params.m - 1u;
    let row_stride = select(params.k, 1u, TRANSPOSE_A == 1u);
    let k_stride = select(1u, params.m, TRANSPOSE_A == 1u);
    var a0 = row * row_stride;
    var a1 = min(row + 1u, last) * row_stride;
    var a2 = min(row + 2u, last) * row_stride;
    var a3 = min(row + 3u, last) * row_stride;
    var sum0 = 0.0;
    var sum1 = 0.0;
    var sum2 = 0.0;
    var sum3 = 0.0;
    var b_at = col;
    for (var i = 0u; i < params.k; i += 1u) {
        let b_value = b[b_at];
        sum0 += a[a0] * b_value;
        sum1 += a[a1] * b_value;
        sum2 += a[a2] * b_value;
        sum3 += a[a3] * b_value;
        a0 += k_stride;
        a1 += k_stride;
        a2 += k_stride;
        a3 += k_stride;
        b_at += params.n;
    }
    store(row, col, sum0);
    store(row + 1u, col, sum1);
    store(row + 2u, col, sum2);
    store(row + 3u, col, sum3);
}
