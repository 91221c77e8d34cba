// y = epilogue(op(a) b) for a few columns, b: [k, n] with n up to 8: one invocation two results, which lie together and may be in different rows.
// Twin: matmul_cpu.rs. Reads a once a column.
// Ladder: matmul.wgsl gives invocations to columns, which here would leave most of them idle -> this.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

override WG: u32 = 64u;
override TRANSPOSE_A: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

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
    store_y(i, finished(products, at, cols), n_results - i);
}
