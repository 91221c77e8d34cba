// y = epilogue(a bᵀ) for a few columns, b: [n, k] with n up to 8 and k a multiple of 4: one invocation two results, which lie
// together and may be in different rows.
// Twin: matmul_cpu.rs. Reads a once a column.
// Ladder: matmul_narrow.wgsl (any k, a or b stored either way) -> this, which reads four indices of K at once.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

override WG: u32 = 64u;

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
    store_y(i, finished(products, at, cols), n_results - i);
}
