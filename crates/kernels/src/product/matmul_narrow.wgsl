// y = epilogue(op(a) b) for a few columns, b: [k, n] with n up to 8: one invocation two results, which lie together and may be in different rows.
// Twin: matmul_cpu.rs. Reads a once a column.
// Ladder: matmul.wgsl gives lanes to columns, which here would leave most of them idle -> this.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

override WG: u32 = 64u;
override TRANSPOSE_A: u32 = 0u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

// As stored: src/stored_types.rs.
alias A = f32;
alias B = f32;
alias FUSED = f32;
alias Y = f32;
fn load_a(i: u32) -> f32 { return a[i]; }
fn load_b(i: u32) -> f32 { return b[i]; }
fn load_fused(i: u32) -> f32 { return fused[i]; }
fn store_y(i: u32, v: vec2f, n: u32) { y[i] = v.x; if n > 1u { y[i + 1u] = v.y; } }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: vec2f, y: vec2f) -> vec2f {
    return select(y, v, (bitcast<vec2u>(v) & vec2u(0x7FFFFFFFu)) > vec2u(0x7F800000u));
}

fn act(v: vec2f) -> vec2f {
    switch ACTIVATION {
        case 1u: { return select(v, vec2f(), v < vec2f()); }
        case 2u: { return select(v, ALPHA * (exp(min(v, vec2f()) / ALPHA) - 1.0), v < vec2f()); }
        case 3u: { return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, vec2f(-87.0), vec2f(87.0))))); }
        case 4u: { return or_nan(v, tanh(clamp(v, vec2f(-10.0), vec2f(10.0)))); }
        default: { return v; }
    }
}

fn slope_from_output(v: vec2f) -> vec2f {
    switch ACTIVATION {
        case 1u: { return select(vec2f(), vec2f(1.0), v > vec2f()); }
        case 2u: { return select(v / ALPHA + 1.0, vec2f(1.0), v > vec2f()); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return vec2f(1.0); }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = ((group.y * groups.x + group.x) * WG + lane) * 2u;
    let n_results = params.m * params.n;
    if i >= n_results {
        return;
    }
    // The one beyond the last is the last again, and is not stored.
    let at = vec2u(i, min(i + 1u, n_results - 1u));
    let rows = at / vec2u(params.n);
    let cols = at % vec2u(params.n);
    let k_stride = select(1u, params.m, TRANSPOSE_A == 1u);
    var a_at = rows * select(params.k, 1u, TRANSPOSE_A == 1u);
    var b_at = cols;
    var products = vec2f();
    for (var i = 0u; i < params.k; i += 1u) {
        products += vec2f(load_a(a_at.x), load_a(a_at.y)) * vec2f(load_b(b_at.x), load_b(b_at.y));
        a_at += vec2u(k_stride);
        b_at += vec2u(params.n);
    }
    switch EPILOGUE {
        case 1u: { store_y(i, act(products + vec2f(load_fused(cols.x), load_fused(cols.y))), n_results - i); }
        case 2u: { store_y(i, products * slope_from_output(vec2f(load_fused(at.x), load_fused(at.y))), n_results - i); }
        default: { store_y(i, act(products), n_results - i); }
    }
}
