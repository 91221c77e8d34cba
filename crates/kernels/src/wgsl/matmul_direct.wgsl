// y = epilogue(op(a) b), b: [k, n], n a multiple of 4: a register block of 4 rows by a vec4 of columns a lane, no barriers.
// Twin: src/cpu/matmul.rs. Reads a once a column block and b once a row block.
// Ladder: matmul.wgsl (scalar columns) -> this. The row comes from `workgroup_id`, so loads of `a` are uniform over the lanes.

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
@group(0) @binding(2) var<storage, read> b: array<vec4f>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4f>;

fn act(v: vec4f) -> vec4f {
    switch ACTIVATION {
        case 1u: { return select(v, vec4f(), v < vec4f()); }
        case 2u: { return select(v, ALPHA * (exp(min(v, vec4f()) / ALPHA) - 1.0), v < vec4f()); }
        case 3u: { return 1.0 / (1.0 + exp(-clamp(v, vec4f(-87.0), vec4f(87.0)))); }
        case 4u: { return tanh(clamp(v, vec4f(-10.0), vec4f(10.0))); }
        default: { return v; }
    }
}

fn slope_from_output(v: vec4f) -> vec4f {
    switch ACTIVATION {
        case 1u: { return select(vec4f(), vec4f(1.0), v > vec4f()); }
        case 2u: { return select(v / ALPHA + 1.0, vec4f(1.0), v > vec4f()); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return vec4f(1.0); }
    }
}

fn store(row: u32, col: u32, product: vec4f) {
    if row >= params.m {
        return;
    }
    let i = row * (params.n / 4u) + col;
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
    let n_vectors = params.n / 4u;
    if row >= params.m || col >= n_vectors {
        return;
    }
    let last = params.m - 1u;
    let row_stride = select(params.k, 1u, TRANSPOSE_A == 1u);
    let k_stride = select(1u, params.m, TRANSPOSE_A == 1u);
    var a0 = row * row_stride;
    var a1 = min(row + 1u, last) * row_stride;
    var a2 = min(row + 2u, last) * row_stride;
    var a3 = min(row + 3u, last) * row_stride;
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
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
        b_at += n_vectors;
    }
    store(row, col, sum0);
    store(row + 1u, col, sum1);
    store(row + 2u, col, sum2);
    store(row + 3u, col, sum3);
}
