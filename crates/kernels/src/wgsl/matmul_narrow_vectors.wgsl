// y = epilogue(a bᵀ) for a few columns, b: [n, k] with n up to 8 and k a multiple of 4: one invocation a row and column, neighbours along the rows.
// Twin: src/cpu/matmul.rs. Reads a once a column.
// Ladder: matmul_narrow.wgsl (any k, a or b stored either way) -> this, which reads four places of k at once.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

override WG: u32 = 64u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4f>;
@group(0) @binding(2) var<storage, read> b: array<vec4f>;
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

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = (group.z * groups.y + group.y) * WG + lane;
    let col = group.x;
    if row >= params.m {
        return;
    }
    let n_fours = params.k / 4u;
    var sums = vec4f();
    for (var i = 0u; i < n_fours; i += 1u) {
        sums = fma(a[row * n_fours + i], b[col * n_fours + i], sums);
    }
    let product = (sums.x + sums.y) + (sums.z + sums.w);
    let i = row * params.n + col;
    switch EPILOGUE {
        case 1u: { y[i] = act(product + fused[col]); }
        case 2u: { y[i] = product * slope_from_output(fused[i]); }
        default: { y[i] = act(product); }
    }
}
