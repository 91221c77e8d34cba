// y = epilogue(a bᵀ) for a few columns, b: [n, k] with n up to 8 and k a multiple of 4: one invocation two results, which lie
// together and may be in different rows.
// Twin: matmul_cpu.rs. Reads a once a column.
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

// How each is stored: src/stored_types.rs.
alias A = vec4f;
alias B = vec4f;
alias FUSED = f32;
alias Y = f32;
fn load_a(v: A) -> vec4f { return vec4f(v); }
fn load_b(v: B) -> vec4f { return vec4f(v); }
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
    let n_fours = params.k / 4u;
    let a_at = rows * n_fours;
    let b_at = cols * n_fours;
    var first = vec4f();
    var second = vec4f();
    for (var i = 0u; i < n_fours; i += 1u) {
        first = fma(load_a(a[a_at.x + i]), load_b(b[b_at.x + i]), first);
        second = fma(load_a(a[a_at.y + i]), load_b(b[b_at.y + i]), second);
    }
    let products = vec2f((first.x + first.y) + (first.z + first.w), (second.x + second.y) + (second.z + second.w));
    switch EPILOGUE {
        case 1u: { store_y(i, act(products + vec2f(load_fused(cols.x), load_fused(cols.y))), n_results - i); }
        case 2u: { store_y(i, products * slope_from_output(vec2f(load_fused(at.x), load_fused(at.y))), n_results - i); }
        default: { store_y(i, act(products), n_results - i); }
    }
}
